"""Functions of a mechanism's state that can be written down as graphs.

A `Quantity` is one function of a model and its state. Most are a `Recursion`, which can be unrolled or looped,
followed by a few operations on its result (`finish`); the others `write` their graph directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, constant, eye, mirrored, stack, zeros
from cardan.algebra.rotation import cross
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.formulation.recursion import Recursion, unroll
from cardan.model.model import Model
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from cardan.formulation.tree import TreeFormulation
    from cardan.program.stages import Stages

Shape = tuple[int, ...]
Inputs = dict[str, Matrix]


@dataclass(frozen=True)
class Quantity:
    """A function of a model's state that a formulation can write down."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, Callable[[Model], Shape]], ...]
    recursion: Recursion | None = None
    finish: Callable[[Model, list[Matrix]], list[Matrix]] | None = None
    write: Callable[[Model, Inputs], list[Matrix]] | None = None
    stages: Callable[[Model, Inputs], Stages | None] | None = None
    """The same as `write` in stages, for compiling, where that is better (None where it is not).

    The inputs have "p" last if there are any.
    """
    most_climbs: int | None = None
    """From how many steps of climbs on (`climbs`) it is looped or put together, though the model is not large."""
    put_together: Callable[..., tuple[np.ndarray, ...]] | None = None
    """For large models: the results from arrays, and first a function that gives the kernel of another quantity."""
    shapes: dict[str, Shape] | None = None
    """Shapes of the inputs where they are not those of `port_shape`."""
    solves: tuple[TreeFormulation, tuple[int, ...]] | None = None
    """Whose equations of motion it is the answer of, and the numbers of their rows, where these can be differentiated
    in place of the answer: `formulation.derivative`."""

    def input_shape(self, model: Model, port: str) -> Shape:
        """Shape of an input array."""
        return self.shapes[port] if self.shapes is not None else port_shape(model, port)

    def graph(self, model: Model, inputs: Inputs) -> list[Matrix]:
        """Record the quantity over symbols: one column a port, `wrenches` a matrix (nb, 6)."""
        if self.write is not None:
            return self.write(model, inputs)
        assert self.recursion is not None
        results = unroll(self.recursion, model, inputs)
        return self.finish(model, results) if self.finish else results


def climbs(model: Model) -> int:
    """How many steps climbs from all links to the root take together."""
    depth: list[int] = []
    for link in model.tree.links:
        depth.append(1 if link.parent == GROUND else depth[link.parent] + 1)
    return sum(depth)


def port_shape(model: Model, port: str) -> Shape:
    """Shape of an input array."""
    sizes: dict[str, Shape] = {
        "t": (),
        "q": (model.nq,),
        "v": (model.nv,),
        "a": (model.nv,),
        "tau": (model.nv,),
        "wrenches": (model.nb, 6),
        "poses": (model.nb, 16),
        "twists": (model.nb, 6),
    }
    return sizes[port]


def per_velocity(model: Model) -> Shape:
    """(nv,)."""
    return (model.nv,)


def square(model: Model) -> Shape:
    """(nv, nv)."""
    return (model.nv, model.nv)


def per_body(*shape: int) -> Callable[[Model], Shape]:
    """(nb, ...)."""
    return lambda model: (model.nb, *shape)


def fixed(*shape: int) -> Callable[[Model], Shape]:
    """A shape that does not depend on the model."""
    return lambda model: shape


def potential_of_moment(model: Model, mc: Matrix) -> Matrix:
    """Potential energy (J) from the first moment (kg m) about the ground's origin, where it is zero."""
    g = model.gravity
    return -(g[0] * mc[0] + g[1] * mc[1] + g[2] * mc[2])


def centroidal(h: Matrix, c: Matrix) -> Matrix:
    """Momentum about the centre of mass `c` from momentum about the origin."""
    return stack(h[:3] - cross(c, h[3:]), h[3:])


def solve_joint_space(model: Model, H: Matrix, b: Matrix) -> Matrix:
    """Solve `H x = b` along the tree, without fill-in."""
    above = model.tree.coordinate_ancestor()
    return tree_solve(tree_factor(H, above), above, b)


def inverse_of(model: Model, H: Matrix) -> Matrix:
    """Inverse of a joint-space inertia."""
    return mirrored(solve_joint_space(model, H, eye(model.nv, H)))


def links_from_bodies(model: Model, poses: Matrix, twists: Matrix) -> dict[int, tuple[Matrix, Matrix, Matrix]]:
    """Axes, origin and twist of every link and the ground, from `poses` (nb, 16) and `twists` (nb, 6) of the bodies."""
    tree, like = model.tree, poses
    at = {GROUND: (eye(3, like), zeros(3, None, like), zeros(6, None, like))}
    for b in reversed(range(model.nb)):
        if tree.body_link[b] == GROUND:
            continue
        row, pose = poses[b, :], tree.body_pose[b].inverse
        R_B = stack(*(row[4 * k : 4 * k + 3] for k in range(3)))
        r_B = stack(*(row[4 * k + 3] for k in range(3)))
        X = Transform((turned(constant(pose.rotation.T)), shifted(constant(pose.position))))
        R = R_B @ constant(pose.rotation)
        at[tree.body_link[b]] = R, r_B + R_B @ constant(pose.position), X @ twists[b, :].T
    return at
