"""Poses: `pos`, and a rotation in one of the five forms of MJCF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.algebra.rotation import quaternion_product, rotation_of_quaternion
from cardan.io.mjcf.item import Item
from cardan.io.mjcf.vocabulary import ROTATIONS
from cardan.model.pose import Pose

SMALLEST = 1e-14
"""A vector shorter than this has no direction."""


@dataclass(frozen=True)
class Angles:
    """How a file writes angles: the unit in rad, and the sequence of axes of `euler`."""

    unit: float = np.pi / 180
    sequence: str = "xyz"


def pose_of(item: Item, angles: Angles) -> Pose:
    """The pose of an element in its parent."""
    position = item.numbers("pos", 3) if item.has("pos") else np.zeros(3)
    return Pose(position, rotation_of(item, angles))


def rotation_of(item: Item, angles: Angles) -> np.ndarray:
    """The rotation (3, 3) of an element in its parent; its own overrides that of its defaults class."""
    own = [name for name in ROTATIONS if name in item.own]
    given = own or [name for name in ROTATIONS if item.has(name)]
    if len(own) > 1:
        raise item.error(f"<{item.tag}> gives its rotation as {' and as '.join(map(repr, own))}; give it once")
    if not given:
        return np.eye(3)
    how = given[-1]
    angles = item.origin.angles if item.origin else angles
    if how == "quat":
        return rotation_of_quaternion(unit(item, how, item.numbers(how, 4)))
    if how == "axisangle":
        x, y, z, angle = item.numbers(how, 4)
        return turn(unit(item, how, np.array([x, y, z])), angle * angles.unit)
    if how == "euler":
        return euler(item.numbers(how, 3) * angles.unit, angles.sequence)
    if how == "xyaxes":
        numbers = item.numbers(how, 6)
        x = unit(item, how, numbers[:3])
        y = unit(item, how, numbers[3:] - x * (x @ numbers[3:]))
        return np.column_stack([x, y, np.cross(x, y)])
    return to_z(unit(item, how, item.numbers(how, 3)))


def unit(item: Item, what: str, vector: np.ndarray) -> np.ndarray:
    """A vector or quaternion of unit length."""
    length = float(np.linalg.norm(vector))
    if length < SMALLEST:
        raise item.error(
            f"{what!r} of <{item.tag}> has no direction: {item.get(what)!r}; give numbers that are not all 0"
        )
    return vector / length


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation (3, 3) about a unit axis."""
    return rotation_of_quaternion(np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)]))


def to_z(z: np.ndarray) -> np.ndarray:
    """The shortest rotation that takes the z axis to a direction."""
    axis = np.cross((0.0, 0.0, 1.0), z)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-10:
        axis, sine = np.array([1.0, 0.0, 0.0]), 0.0
    else:
        axis = axis / sine
    return turn(axis, float(np.arctan2(sine, z[2])))


def euler(angles: np.ndarray, sequence: str) -> np.ndarray:
    """Rotations in sequence about moving axes (lower case) or fixed axes (capitals)."""
    total = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, letter in zip(angles, sequence, strict=True):
        own = np.array([np.cos(angle / 2), 0.0, 0.0, 0.0])
        own[1 + "xyz".index(letter.lower())] = np.sin(angle / 2)
        total = quaternion_product(total, own) if letter.islower() else quaternion_product(own, total)
    return rotation_of_quaternion(np.asarray(total, dtype=float).ravel())
