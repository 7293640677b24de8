"""Wrong arrays get one clear sentence."""

import numpy as np
import pytest

from cardan.errors import InputError

from .conftest import make_kernel

GOOD = np.zeros(7)


def case(*args, **options):
    return args, options


CASES = {
    "arm: q has 6 entries along its last axis, the model needs 7 (shape (10, 6))": case(np.zeros((10, 6)), GOOD, GOOD),
    "arm: tau has 8 entries along its last axis, the model needs 7 (shape (8,))": case(GOOD, GOOD, np.zeros(8)),
    "arm: batch shapes (3,) of q and (4,) of v do not broadcast": case(np.zeros((3, 7)), np.zeros((4, 7)), GOOD),
    "arm: v has dtype complex128, which cannot be cast to float64 safely": case(GOOD, GOOD + 0j, GOOD),
    "arm: tau must be numbers of shape (..., 7), got objects": case(GOOD, GOOD, [None] * 7),
    "arm: missing argument tau": case(GOOD, GOOD),
    "arm: missing arguments v, tau": case(GOOD),
    "arm: missing arguments q, v, tau": case(),
    "arm: takes 3 arrays (q, v, tau), got 4": case(GOOD, GOOD, GOOD, GOOD),
    "arm: v has shape (), the model needs (..., 7)": case(GOOD, 1.0, GOOD),
    "arm: out for a has shape (3, 7), the result has (2, 7)": case(np.zeros((2, 7)), GOOD, GOOD, out=np.zeros((3, 7))),
    "arm: out for a has dtype int64, which cannot hold float64": case(GOOD, GOOD, GOOD, out=np.zeros(7, np.int64)),
    "arm: out for a is a list, not a NumPy array": case(GOOD, GOOD, GOOD, out=[0] * 7),
    "arm: out has 2 arrays, the results are 1": case(GOOD, GOOD, GOOD, out=(np.zeros(7), np.zeros(7))),
    "arm: threads must be a whole number, 1 or more, got 0": case(GOOD, GOOD, GOOD, threads=0),
}


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("sentence", CASES)
def test_sentences(arm_kernel, sentence, prepared):
    """The same words from a first call and from a prepared kernel."""
    args, options = CASES[sentence]
    kernel = arm_kernel.prepare() if prepared else type(arm_kernel)(arm_kernel.program)
    with pytest.raises(InputError) as caught:
        kernel(*args, **options)
    assert str(caught.value) == sentence
    assert caught.value.__cause__ is None  # nobody else's traceback
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_read_only_out(arm_kernel):
    """A result cannot go where nothing may be written."""
    out = np.zeros(7)
    out.flags.writeable = False
    with pytest.raises(InputError, match="arm: out for a is read-only"):
        arm_kernel(GOOD, GOOD, GOOD, out=out)


def test_ragged_list(arm_kernel):
    """A list that is no array is said to be none."""
    with pytest.raises(InputError, match="arm: q is not an array of numbers"):
        arm_kernel([[1.0], [1.0, 2.0]], GOOD, GOOD)


def test_matrix_sizes():
    """Matrices name both axes."""
    kernel = make_kernel("double", {"a": (2, 3)}, {"b": (2, 3)}, lambda a: 2 * a)
    with pytest.raises(InputError, match=r"a ends in \(3, 2\) along its last two axes, the model needs \(2, 3\)"):
        kernel(np.zeros((5, 3, 2)))


def test_other_precisions(arm_kernel):
    """Kernels exist in two precisions."""
    with pytest.raises(InputError, match="float64 or float32, not in float16"):
        arm_kernel.ufunc(np.float16)


def test_longdouble_is_not_truncated(arm_kernel):
    """A cast that may lose bits is refused."""
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(InputError, match="cannot be cast to float64 safely"):
            arm_kernel(GOOD.astype(np.longdouble), GOOD, GOOD)
