"""A recursion over the tree, written as steps on one body, and its unrolled drive.

A step is a function `step(b, p)` of a body `b` and the body `p` that carries it. It reads and sets attributes named as
in the book. A pass runs one step over all links, from the root outwards (`down`) or inwards (`up`), or over all
bodies fixed to the links (`bodies_down`, `bodies_up`). What crosses from one body to another is declared as `shared`.

Two drives run the same steps. `unroll` here runs them link after link on symbols: the fastest code, a graph that
grows with the model. `cardan.kernels.looped` compiles each step once a joint kind and loops over the links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant, zeros
from cardan.algebra.spatial import rigid_inertia
from cardan.model.graph import GROUND, Link
from cardan.model.model import Model
from cardan.model.regroup import regrouped_inertias

Node = Any  # a body in a recursion: an object whose attributes are the book's symbols
Step = Callable[[Node, Node], None]

SCALAR, VECTOR3, VECTOR6, MATRIX3, SYMMETRIC6, GENERAL6 = "scalar", "vector3", "vector6", "matrix3", "symmetric6", "general6"
SHAPES = {
    SCALAR: (1, 1),
    VECTOR3: (3, 1),
    VECTOR6: (6, 1),
    MATRIX3: (3, 3),
    SYMMETRIC6: (6, 6),
    GENERAL6: (6, 6),
}

# Inputs of a recursion: attribute of the node, name of the port, and whether it has a row a joint or a body.
JOINT_INPUTS = {"q": "q", "qd": "v", "qdd": "a", "tau": "tau"}
BODY_INPUTS = {"fx": "wrenches"}


@dataclass(frozen=True)
class Pass:
    """One sweep: `down`, `up`, `bodies_down` or `bodies_up`, and its step."""

    sweep: str
    step: Step


@dataclass(frozen=True)
class Output:
    """What a recursion gives: an attribute of every joint (`joint`), body (`body`) or link, or of the ground (`total`)."""

    name: str
    attribute: str
    of: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recursion:
    """Passes over the tree, and what goes in, across and out."""

    name: str
    inputs: tuple[str, ...]
    shared: dict[str, str]
    passes: tuple[Pass, ...]
    outputs: tuple[Output, ...]
    regrouped: bool = False
    """Whether inertia may be moved across joints: only joint-space results come out (see `model.regroup`)."""
    ground: dict[str, str] = field(default_factory=dict)
    """Values that the ground hands to its children: attribute -> "gravity" for `-gravity` as an acceleration."""


def unroll(recursion: Recursion, model: Model, inputs: dict[str, Matrix]) -> list[Matrix]:
    """Run a recursion link by link; `inputs` has a column a port, `wrenches` a matrix (nb, 6)."""
    tree = model.tree
    like = next(iter(inputs.values()))
    ground = ground_node(recursion, model, like)
    inertias = regrouped_inertias(tree) if recursion.regrouped else [link.I for link in tree.links]
    links = [_link_node(recursion, *pair, inputs) for pair in zip(tree.links, inertias, strict=True)]
    bodies = [_body_node(recursion, model, b, inputs) for b in range(model.nb)] if _needs_bodies(recursion) else []
    carrier = [*links, ground]  # index GROUND is the last
    for sweep in recursion.passes:
        if sweep.sweep.startswith("bodies"):
            pairs = [(b, carrier[tree.body_link[i]]) for i, b in enumerate(bodies)]
        else:
            pairs = [(b, carrier[link.parent]) for b, link in zip(links, tree.links, strict=True)]
        for b, p in reversed(pairs) if sweep.sweep.endswith("up") else pairs:
            sweep.step(b, p)
    return [_collect(output, links, bodies, ground, like) for output in recursion.outputs]


def ground_node(recursion: Recursion, model: Model, like: Matrix) -> Node:
    """The node of the ground: zero in everything shared, but for what `ground` says."""
    node = SimpleNamespace(**{name: zeros(*SHAPES[kind], like) for name, kind in recursion.shared.items()})
    for name, value in recursion.ground.items():
        setattr(node, name, constant(ground_value(value, model)))
    return node


def ground_value(value: str, model: Model) -> np.ndarray:
    """Number behind a name in `Recursion.ground`."""
    if value == "gravity":  # the ground accelerates upwards instead of the bodies falling (RBDA section 5.3)
        return np.concatenate([np.zeros(3), -model.gravity])
    if value == "gravity3":
        return -model.gravity
    if value == "identity":
        return np.eye(3)
    raise KeyError(value)


def _link_node(recursion: Recursion, link: Link, I: np.ndarray, inputs: dict[str, Matrix]) -> Node:
    node = SimpleNamespace(kind=link.kind, E=constant(link.E), r=constant(link.r))
    node.m, node.c, node.I_C = constant(np.array(link.mass)), constant(link.com), constant(link.I_C)
    node.I = constant(I)
    for attribute, port in JOINT_INPUTS.items():
        if attribute in recursion.inputs:
            setattr(node, attribute, inputs[port][link.q if attribute == "q" else link.v])
    return node


def _body_node(recursion: Recursion, model: Model, index: int, inputs: dict[str, Matrix]) -> Node:
    pose = model.tree.body_pose[index]
    node = SimpleNamespace(E=constant(pose.rotation.T), r=constant(pose.position))
    if "fx" in recursion.inputs:
        node.fx = inputs["wrenches"][index, :].T
    return node


def _needs_bodies(recursion: Recursion) -> bool:
    return any(sweep.sweep.startswith("bodies") for sweep in recursion.passes)


def _collect(output: Output, links: Sequence[Node], bodies: Sequence[Node], ground: Node, like: Matrix) -> Matrix:
    import casadi as ca

    if output.of == "total":
        return getattr(ground, output.attribute)
    nodes = links if output.of == "joint" else bodies
    values = [getattr(node, output.attribute) for node in nodes]
    if output.of == "joint":
        return ca.vertcat(*values) if values else type(like)(0, 1)
    # a body's matrix becomes one row, in C order; a vector becomes one row
    return ca.vertcat(*(ca.vec(value.T).T if value.shape[1] > 1 else value.T for value in values))


def inertia_of_parameters(m: Matrix, mc: Matrix, I_O: Matrix) -> Matrix:
    """6x6 inertia from the ten parameters a looped drive reads from arrays."""
    return rigid_inertia(m, mc, I_O)


__all__ = ["GROUND", "Node", "Output", "Pass", "Recursion", "Step", "unroll"]
