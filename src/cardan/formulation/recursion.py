"""A recursion over the tree, written as steps on one body, and its unrolled drive.

A step is a function `step(b, p)` of a body `b` and the body `p` that carries it. It reads and sets attributes named as
in the book. A sweep runs one step over all links, from the root outwards (`down`) or inwards (`up`), or over all
bodies fixed to the links (`bodies_down`, `bodies_up`). A `Climb` starts at every link and walks to the root.
What crosses from one body to another is declared as `shared`.

Two drives run the same steps. `unroll` here runs them link after link on symbols: the fastest code, a graph that
grows with the model. The looped drive (`formulation.looping`) records each step once a joint kind, for kernels that
loop over the links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant, segment, zeros
from cardan.model.model import Model
from cardan.model.tree import GROUND, Link, Tree, regrouped_inertias

Node = Any  # a body in a recursion: an object whose attributes are the book's symbols
Step = Callable[[Node, Node], None]

SHAPES = {
    "scalar": (1, 1),
    "vector3": (3, 1),
    "vector6": (6, 1),
    "matrix3": (3, 3),
    "symmetric3": (3, 3),
    "symmetric6": (6, 6),
    "general6": (6, 6),
}

# Inputs of a recursion: attribute of the node, and the name of the port it comes from.
JOINT_INPUTS = {
    "q": "q", "qd": "v", "qdd": "a", "tau": "tau",
    "mu": "w", "weight": "w", "dq": "dq", "dqd": "dv", "dqdd": "da", "dforce": "dtau",  # of `spatial_products`
}  # fmt: skip
BODY_INPUTS = {"wrench": "wrenches"}


@dataclass(frozen=True)
class Sweep:
    """One pass over the links (`down`, `up`) or the bodies (`bodies_down`, `bodies_up`), and its step."""

    order: str
    step: Step


@dataclass(frozen=True)
class Climb:
    """From every link to the root, carrying columns that belong to the link's own coordinates.

    `start(b)` gives the columns, `carry(c, columns)` takes them across the joint of c to its parent, and `give(j,
    columns)` what they mean there, two blocks for each matrix in `attributes`: the block in j's rows and the start's
    columns, and, transposed, the block in the start's rows and j's columns.
    """

    start: Callable[[Node], tuple[Matrix, ...]]
    carry: Callable[[Node, tuple[Matrix, ...]], tuple[Matrix, ...]]
    give: Callable[[Node, tuple[Matrix, ...]], tuple[Matrix, ...]]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """What comes out: an attribute of every joint, link or body, of the ground (`total`), or a climb's `matrix`.

    `shape` is that of one row: per coordinate of a joint, per link or body.
    """

    name: str
    attribute: str
    of: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recursion:
    """Sweeps over the tree, and what goes in, across and out."""

    name: str
    inputs: tuple[str, ...]
    shared: dict[str, str]
    passes: tuple[Sweep | Climb, ...]
    outputs: tuple[Output, ...]
    ground: dict[str, str] = field(default_factory=dict)
    """What the ground hands to its children where it is not zero: a name that `ground_value` knows."""
    accumulate: tuple[str, ...] = ()
    """Shared attributes that start as zero on every link."""
    zero: tuple[str, ...] = ()
    """Inputs that are zero here and have no port."""
    regrouped: bool = False
    """Whether inertia may be moved across joints: only joint-space results come out (see `model.regroup`)."""

    def at_rest(self, *zero: str) -> Recursion:
        """The same recursion with some inputs zero."""
        return replace(self, inputs=tuple(name for name in self.inputs if name not in zero), zero=zero)

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the input arrays."""
        return tuple({**JOINT_INPUTS, **BODY_INPUTS}[name] for name in self.inputs)

    @property
    def has_bodies(self) -> bool:
        """Whether a sweep runs over the bodies, not only over the links."""
        return any(isinstance(p, Sweep) and p.order.startswith("bodies") for p in self.passes)


@dataclass(frozen=True)
class Nodes:
    """Every node after a recursion has run: links and bodies in the model's order, and the ground."""

    links: list[Node]
    bodies: list[Node]
    ground: Node

    def carrier(self, link: int) -> Node:
        """The node of a link, or of the ground for index -1."""
        return self.ground if link == GROUND else self.links[link]


def run(recursion: Recursion, model: Model, inputs: dict[str, Matrix]) -> Nodes:
    """Run a recursion link by link; `inputs` has a column a port, `wrenches` a matrix (nb, 6)."""
    tree = model.tree
    like = next(iter(inputs.values()))
    inertias = regrouped_inertias(tree) if recursion.regrouped else [link.I for link in tree.links]
    links = [_link_node(recursion, *pair, inputs) for pair in zip(tree.links, inertias, strict=True)]
    for b, A in zip(links, armatures(tree), strict=True):
        b.armature = None if A is None else constant(np.diag(A[: b.kind.nv]))
    bodies = [_body_node(recursion, model, b, inputs) for b in range(model.nb)] if recursion.has_bodies else []
    nodes = Nodes(links, bodies, _ground_node(recursion, model, like))
    for item in recursion.passes:
        if isinstance(item, Climb):
            for name, matrix in zip(item.attributes, _climb(item, model, links, like), strict=True):
                setattr(nodes.ground, name, matrix)
            continue
        if item.order.startswith("bodies"):
            pairs = [(b, nodes.carrier(i)) for i, b in zip(tree.body_link, bodies, strict=True)]
        else:
            pairs = [(b, nodes.carrier(link.parent)) for b, link in zip(links, tree.links, strict=True)]
        for b, p in reversed(pairs) if item.order.endswith("up") else pairs:
            item.step(b, p)
    return nodes


def unroll(recursion: Recursion, model: Model, inputs: dict[str, Matrix]) -> list[Matrix]:
    """Run a recursion and collect its outputs."""
    nodes = run(recursion, model, inputs)
    like = next(iter(inputs.values()))
    of = {"joint": nodes.links, "link": nodes.links, "body": nodes.bodies}
    return [_collect(output, of.get(output.of, [nodes.ground]), like) for output in recursion.outputs]


def armatures(tree: Tree) -> list[np.ndarray | None]:
    """Armature (6,) of each link's joint, zeros after its coordinates; None for all where no joint has any."""
    if all(link.armature is None for link in tree.links):
        return [None] * len(tree.links)
    own = [np.zeros(link.kind.nv) if link.armature is None else link.armature for link in tree.links]
    return [np.concatenate([A, np.zeros(6 - len(A))]) for A in own]


def ground_value(value: str, model: Model) -> np.ndarray:
    """Number behind a name in `Recursion.ground`."""
    values = {
        # the ground accelerates upwards instead of the bodies falling (RBDA section 5.3)
        "gravity": np.concatenate([np.zeros(3), -model.gravity]),
        "gravity3": -model.gravity,
        "identity": np.eye(3),
    }
    return values[value]


def _climb(climb: Climb, model: Model, links: list[Node], like: Matrix) -> list[Matrix]:
    """Fill matrices (nv, nv) by climbing from each link."""
    tree = model.tree
    results = [_Blocks() for _ in climb.attributes]
    for i, link in enumerate(tree.links):
        columns = climb.start(links[i])
        j = i
        while True:
            at = tree.links[j]
            blocks = climb.give(links[j], columns)
            for result, column, row in zip(results, blocks[::2], blocks[1::2], strict=True):
                result.add(at.v.start, link.v.start, column)
                if j != i:
                    result.add(link.v.start, at.v.start, row.T)
            if at.parent == GROUND:
                break
            columns = climb.carry(links[j], columns)
            j = at.parent
    return [result.matrix(tree.nv, like) for result in results]


class _Blocks:
    """A square matrix that is put together from blocks at once: each assignment would copy what there is."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.values: list[Matrix] = []

    def add(self, row: int, column: int, block: Matrix) -> None:
        """Put a block at its first row and column."""
        import casadi as ca

        rows, columns = block.sparsity().get_triplet()
        self.rows += [row + k for k in rows]
        self.columns += [column + k for k in columns]
        self.values.append(ca.vec(block.nz[:]))  # a row has its nonzeros in a row

    def matrix(self, n: int, like: Matrix) -> Matrix:
        """The matrix (n, n)."""
        import casadi as ca

        if not self.rows:
            return type(like)(n, n)
        result: Matrix = type(like).triplet(self.rows, self.columns, ca.vertcat(*self.values), n, n)
        return result


def _ground_node(recursion: Recursion, model: Model, like: Matrix) -> Node:
    """The node of the ground: zero in everything shared, but for what `ground` says."""
    node = SimpleNamespace(**{name: zeros(*SHAPES[kind], like) for name, kind in recursion.shared.items()})
    for name, value in recursion.ground.items():
        setattr(node, name, constant(ground_value(value, model)))
    return node


def _link_node(recursion: Recursion, link: Link, I: np.ndarray, inputs: dict[str, Matrix]) -> Node:
    node = SimpleNamespace(kind=link.kind, E=constant(link.E), r=constant(link.r), I=constant(I))
    for attribute, port in JOINT_INPUTS.items():
        if attribute in recursion.inputs:
            setattr(node, attribute, segment(inputs[port], link.q if attribute == "q" else link.v))
        elif attribute in recursion.zero:
            setattr(node, attribute, zeros(link.kind.nv, None, node.I))
    for name in recursion.accumulate:
        setattr(node, name, zeros(*SHAPES[recursion.shared[name]], node.I))
    return node


def _body_node(recursion: Recursion, model: Model, index: int, inputs: dict[str, Matrix]) -> Node:
    pose = model.tree.body_pose[index]
    node = SimpleNamespace(E=constant(pose.rotation.T), r=constant(pose.position))
    for attribute, port in BODY_INPUTS.items():
        if attribute in recursion.inputs:
            setattr(node, attribute, inputs[port][index, :].T)
    return node


def _collect(output: Output, nodes: list[Node], like: Matrix) -> Matrix:
    """Put an attribute of the nodes into one array: a vector over joints, or a row for each link or body."""
    import casadi as ca

    values = [getattr(node, output.attribute) for node in nodes]
    if output.of in ("total", "matrix"):
        return values[0]
    if output.of == "joint":
        return ca.vertcat(*values) if values else type(like)(0, output.shape[0] if output.shape else 1)
    return ca.vertcat(*(ca.vec(value.T).T for value in values))  # C order
