"""Random mechanisms written and read again: what the format says is the same, and what it does not is told by name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd

from ..trees import KINDS
from .random_mechanism import mechanisms
from .test_export import mass_matrix, matched

SAME = ("revolute", "prismatic", "cylindrical", "rigid")  # each has the same coordinates from either side
FORMATS = {"urdf": SAME, "xml": (*SAME, "spherical")}


def again(model: cd.Model, suffix: str) -> tuple[cd.Model, list[str]]:
    """What is read back, and what the format cannot say."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{suffix}"
        losses = cd.save(model, path)
        return cd.load(path, snapping=0.0), losses


def differing(model: cd.Model, copy: cd.Model) -> Iterator[str]:
    """Names of what is not in the copy, or is otherwise there."""
    for joint in model.joints:
        yield from (joint.name for _ in _differing(joint, copy))
    bodies, frames = ({thing.name: thing for thing in things} for things in (copy.bodies, (*copy.frames, *copy.bodies)))
    yield from (b.name for b in model.bodies if b.name not in bodies or abs(bodies[b.name].mass - b.mass) > 1e-12)
    yield from (f.name for f in model.frames if f.name not in frames)
    yield from (f.name for f in model.forces if not any(_is_same_force(model, f, copy, g) for g in copy.forces))
    yield from (c.name for c in model.couplings if not any(_is_same_coupling(c, d) for d in copy.couplings))
    yield from (name for name in model.states if name not in copy.states)
    yield from (a.name for a in model.actuators if a.name not in [b.name for b in copy.actuators])


def _differing(joint: cd.Joint, copy: cd.Model) -> Iterator[str]:
    """Attributes of a joint that are otherwise in the copy; parts of a joint are called by it and _1, _2."""
    parts = [j for j in copy.joints if j.name == joint.name]
    parts = parts or [j for j in copy.joints if j.name.rpartition("_")[0] == joint.name]
    if not parts:
        if joint.kind.nv:
            yield "joint"
        return
    if sum(part.kind.nv for part in parts) != joint.kind.nv:
        yield "kind"
    if len(parts) > 1:
        if joint.data != cd.JointData():
            yield "data"
    else:
        for name in ("lower", "upper", "velocity", "effort", "friction", "damping"):
            mine, theirs = getattr(joint.data, name), getattr(parts[0].data, name)
            if mine != theirs and not (name == "damping" and not mine):  # that of a spring is data of MJCF too
                yield name
    for name in ("armature", "start"):
        mine = getattr(joint, name)
        theirs = [np.atleast_1d(x) for part in parts if (x := getattr(part, name)) is not None]
        if mine is not None and not np.array_equal(mine, np.concatenate(theirs or [np.zeros(0)])):
            yield name


def _is_same_force(model: cd.Model, mine: cd.Force, copy: cd.Model, theirs: cd.Force) -> bool:
    """Springs along joints; on parts of a joint the numbers are those of the parts."""
    if mine.kind is not theirs.kind or mine.kind.on != "joint":
        return False
    on, other = model.joints[mine.on[0]], copy.joints[theirs.on[0]]
    if other.name == on.name:
        return all(np.array_equal(mine.numbers[key], theirs.numbers[key]) for key in mine.numbers)
    return other.name.rpartition("_")[0] == on.name


def _is_same_coupling(mine: object, theirs: object) -> bool:
    """The same equation, up to its sign and size."""
    a, b = (np.array([*getattr(c, "coefficients"), getattr(c, "offset")]) for c in (mine, theirs))  # noqa: B009
    return a.shape == b.shape and bool(np.allclose(a / a[0], b / b[0], rtol=1e-14))


@pytest.mark.parametrize("suffix", FORMATS)
@given(mechanism=mechanisms())
@settings(max_examples=15)
def test_what_a_format_cannot_say_is_told_by_name(suffix: str, mechanism: cd.Mechanism) -> None:
    model = mechanism.build(snapping=0.0)
    copy, losses = again(model, suffix)
    silent = [name for name in differing(model, copy) if not any(repr(name) in loss for loss in losses)]
    assert not silent, (silent, losses)
    assert np.array_equal(model.gravity, copy.gravity) or any(loss.startswith("gravity") for loss in losses)


@pytest.mark.parametrize("suffix", FORMATS)
@given(mechanism=mechanisms(SAME))
@settings(max_examples=8)
def test_what_is_read_back_has_the_same_mass_matrix(suffix: str, mechanism: cd.Mechanism) -> None:
    model = mechanism.build(snapping=0.0)
    copy, losses = again(model, suffix)
    if not model.nv or any("armature" in loss for loss in losses):
        return
    q, _ = model.random_state(np.random.default_rng(1))
    q_order, v_order = matched(model, copy)
    M = mass_matrix(model, q)[np.ix_(v_order, v_order)]
    assert np.abs(mass_matrix(copy, q[q_order]) - M).max() < 1e-12 * np.abs(M).max()


@given(mechanism=mechanisms(tuple(KINDS)))
@settings(max_examples=10)
def test_the_native_format_says_everything(mechanism: cd.Mechanism) -> None:
    model = mechanism.build(snapping=0.0)
    copy, losses = again(model, "yaml")
    assert losses == []
    assert copy.key == model.key
    if model.nv:
        q, _ = model.random_state(np.random.default_rng(1))
        assert np.array_equal(mass_matrix(copy, q), mass_matrix(model, q))
