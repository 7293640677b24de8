"""The textbook's formulas on arrays: the text of `algebra` and `formulation.two_body`, compiled and batched.

Arrays are (..., core shape) as each docstring says, SI units, angular part first; leading axes broadcast.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra import rotation, spatial
from cardan.errors import InputError
from cardan.formulation import two_body
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.program.program import Port, Program

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Sizes = tuple[int | str, ...]
_KERNELS: dict[tuple[str, int], Kernel] = {}


def _evaluate(text: Callable[..., Any], shapes: dict[str, Sizes], results: dict[str, Sizes], *args: Any) -> Any:
    """Run a formula on arrays; a size given by a letter is read off the arrays."""
    k = 0
    arrays = [np.asarray(a) for a in args]
    for array, (name, shape) in zip(arrays, shapes.items(), strict=True):
        if array.ndim < len(shape):
            raise InputError(f"{text.__name__}: {name} must be (..., {shape}), got shape {array.shape}")
        k = max([k, *(array.shape[axis - len(shape)] for axis, n in enumerate(shape) if isinstance(n, str))])
    key = (f"{text.__module__}.{text.__name__}", k)
    if key not in _KERNELS:
        _KERNELS[key] = _compile(text, *(_ports(named, k) for named in (shapes, results)))
    return _KERNELS[key](*arrays)


def _ports(shapes: dict[str, Sizes], k: int) -> tuple[Port, ...]:
    return tuple(Port(name, tuple(k if isinstance(n, str) else n for n in shape)) for name, shape in shapes.items())


def _compile(text: Callable[..., Any], inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Kernel:
    def record() -> Any:
        import casadi as ca

        symbols = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in inputs]
        values = text(*symbols)
        return ca.Function("formula", symbols, list(values) if isinstance(values, tuple) else [values])

    source = f"{text.__module__} {inspect.getsource(text)} {inputs}"
    key = hashlib.sha256(source.encode()).hexdigest()
    return compile_program(Program(text.__name__, inputs, outputs, key, record))


def momentum_about_origin(m: ArrayLike, c: ArrayLike, I_C: ArrayLike, v: ArrayLike) -> NDArray[Any]:
    """FX(A1): momentum (..., 6) from mass (...), centre of mass (..., 3), inertia (..., 3, 3) and twist (..., 6)."""
    return _evaluate(spatial.momentum, {"m": (), "c": (3,), "I_C": (3, 3), "v": (6,)}, {"h": (6,)}, m, c, I_C, v)


def inverse_inertia(m: ArrayLike, c: ArrayLike, I_C: ArrayLike) -> NDArray[Any]:
    """FX(A2): inverse inertia (..., 6, 6) of a body with centre of mass (..., 3) and inertia (..., 3, 3) about it."""
    return _evaluate(spatial.inverse_inertia, {"m": (), "c": (3,), "I_C": (3, 3)}, {"Iinv": (6, 6)}, m, c, I_C)


def relative_inertia(I_A: ArrayLike, I_B: ArrayLike) -> NDArray[Any]:
    """FX(A3): inertia (..., 6, 6) that two bodies show to a force between them, the harmonic sum of theirs."""
    return _evaluate(spatial.relative_inertia, {"I_A": (6, 6), "I_B": (6, 6)}, {"I": (6, 6)}, I_A, I_B)


def newton_euler_force(m: ArrayLike, I_C: ArrayLike, w: ArrayLike, wdot: ArrayLike, a_C: ArrayLike) -> NDArray[Any]:
    """FX(A4): force (..., 6) about the centre of mass from angular velocity and both accelerations (..., 3)."""
    shapes: dict[str, Sizes] = {"m": (), "I_C": (3, 3), "w": (3,), "wdot": (3,), "a_C": (3,)}
    return _evaluate(spatial.newton_euler, shapes, {"f": (6,)}, m, I_C, w, wdot, a_C)


def constrained_body(
    I: ArrayLike, S: ArrayLike, Sdot_alpha: ArrayLike, v: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    """FX(B1): apparent inverse inertia (..., 6, 6) and bias (..., 6) of a body with `v = S alpha`, S (..., 6, k)."""
    shapes: dict[str, Sizes] = {"I": (6, 6), "S": (6, "k"), "Sdot_alpha": (6,), "v": (6,)}
    return _evaluate(spatial.constrained_body, shapes, {"Phi": (6, 6), "b": (6,)}, I, S, Sdot_alpha, v)


def joint_space_body(
    I: ArrayLike, S: ArrayLike, Sdot_alpha: ArrayLike, v: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    """FX(B3): `H` (..., k, k) and `C` (..., k) of one constrained body, `tau = H qdd + C`."""
    shapes: dict[str, Sizes] = {"I": (6, 6), "S": (6, "k"), "Sdot_alpha": (6,), "v": (6,)}
    return _evaluate(spatial.joint_space, shapes, {"H": ("k", "k"), "C": ("k",)}, I, S, Sdot_alpha, v)


def body_kinetic_energy(I: ArrayLike, v: ArrayLike) -> NDArray[Any]:
    """FX(B4): kinetic energy (...), J, from inertia (..., 6, 6) and twist (..., 6)."""
    return _evaluate(spatial.kinetic_energy, {"I": (6, 6), "v": (6,)}, {"T": ()}, I, v)


def articulated_inertia(I1: ArrayLike, I2: ArrayLike, s: ArrayLike) -> NDArray[Any]:
    """F6(7): inertia (..., 6, 6) that B1 shows with B2 on a hinge of axis s (..., 6)."""
    return _evaluate(two_body.articulated_inertia, {"I1": (6, 6), "I2": (6, 6), "s": (6,)}, {"IA": (6, 6)}, I1, I2, s)


def two_body_matrix(
    m1: ArrayLike, I1: ArrayLike, r1: ArrayLike, m2: ArrayLike, I2: ArrayLike, r2: ArrayLike, s: ArrayLike
) -> NDArray[Any]:
    """F3(26): matrix (..., 6, 6) from `[a1; w1dot]` to `[f; tau]`, by 3-D vectors about B1's centre of mass."""
    shapes: dict[str, Sizes] = {
        "m1": (),
        "I1": (3, 3),
        "r1": (3,),
        "m2": (),
        "I2": (3, 3),
        "r2": (3,),
        "s": (3,),
    }
    return _evaluate(two_body.two_body_matrix, shapes, {"ABCD": (6, 6)}, m1, I1, r1, m2, I2, r2, s)


def rotation_of_quaternion(q: ArrayLike) -> NDArray[Any]:
    """Rotation matrix (..., 3, 3) of a quaternion (..., 4) in the order (w, x, y, z), of any non-zero length."""
    return _evaluate(rotation.rotation_of_quaternion, {"q": (4,)}, {"R": (3, 3)}, q)


def quaternion_of_rotation(R: ArrayLike) -> NDArray[Any]:
    """Unit quaternion (..., 4) of a rotation matrix (..., 3, 3)."""
    return _evaluate(rotation.quaternion_of_rotation, {"R": (3, 3)}, {"q": (4,)}, R)


def rotation_exp(u: ArrayLike) -> NDArray[Any]:
    """Rotation matrix (..., 3, 3) of a rotation vector (..., 3), rad."""
    return _evaluate(rotation.rotation_exp, {"u": (3,)}, {"R": (3, 3)}, u)


def rotation_log(R: ArrayLike) -> NDArray[Any]:
    """Rotation vector (..., 3), rad, of a rotation matrix (..., 3, 3)."""
    return _evaluate(rotation.rotation_log, {"R": (3, 3)}, {"u": (3,)}, R)
