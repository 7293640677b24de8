"""Recording the steps of a recursion for one class of links, so that they can be called again and again.

A step becomes a small graph

    (constants, inputs, own state, carrier's state) -> (own state, carrier's state)

The steps are those that `recursion.unroll` runs; here their nodes remember what was read and set. Attributes that pass
between bodies have a place in the state that all nodes share. What a step leaves for a later pass of its own node gets
a private place, unless it is a constant or an input, which later passes can read anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from cardan.algebra.spatial import rigid_inertia
from cardan.formulation.recursion import BODY_INPUTS, JOINT_INPUTS, SHAPES, Node, Recursion, Step
from cardan.model.joint import Kind

if TYPE_CHECKING:
    import casadi


def shared_places(recursion: Recursion) -> dict[str, slice]:
    """Where each shared attribute is in a node's state; a symmetric matrix has its upper triangle, by columns."""
    places, size = {}, 0
    for name, kind in recursion.shared.items():
        n, m = SHAPES[kind]
        count = n * (n + 1) // 2 if kind.startswith("symmetric") else n * m
        places[name], size = slice(size, size + count), size + count
    return places


@dataclass
class LinkClass:
    """Links that share recorded steps: one joint kind, and the same constants equal to 0, 1 and -1.

    `pattern` has those numbers, and NaN where the constant differs from link to link. `kind` is None for bodies.
    """

    kind: Kind | None
    pattern: tuple[float, ...]


@dataclass(frozen=True)
class Taken:
    """What a step set: attributes of its own node, of its carrier, and values to keep in private places."""

    own: dict[str, Any]
    carrier: dict[str, Any]
    kept: dict[int, Any]


class _TracedNode:
    """A node of the recursion that remembers what the present step sets."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_set", {})

    def __getattr__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        return self._read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._set[name] = value


def _hashes(symbols: Any) -> list[int]:
    """An identity for each element of a vector."""
    return [symbols[k].element_hash() for k in range(symbols.numel())]


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild a value, changing each scalar expression in it; structure, zeros and numbers stay."""
    import casadi as ca

    if isinstance(value, ca.SX):
        elements = value.nonzeros()
        return ca.SX(value.sparsity(), ca.vertcat(*map(change, elements)) if elements else ca.SX(0, 1))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, (type, Kind)):
        return replace(value, **{f.name: mapped(getattr(value, f.name), change) for f in fields(value)})
    return value


class Tracer:
    """Records every pass of a recursion for one class."""

    def __init__(self, recursion: Recursion, cls: LinkClass, final: Sequence[frozenset[str]] = ()) -> None:
        """`final[k]`: shared attributes that no pass after the k-th sets, so that later ones may read them in place."""
        import casadi as ca

        self.recursion, self.cls, self.shared = recursion, cls, shared_places(recursion)
        self.final = final
        self.size_shared = max((at.stop for at in self.shared.values()), default=0)
        self.C = ca.SX.sym("C", len(cls.pattern))
        sizes = {name: cls.kind.nq if name == "q" else cls.kind.nv for name in JOINT_INPUTS} if cls.kind else {}
        names = JOINT_INPUTS if cls.kind else BODY_INPUTS
        self.inputs = {n: ca.SX.sym(n, sizes.get(n, 6)) for n in names if n in recursion.inputs}
        self.P = ca.SX.sym("P", self.size_shared)
        self.own = ca.SX.sym("S", self.size_shared)
        self.private: list[Any] = []  # a symbol for each private place
        self.place: dict[int, int] = {}  # element -> place, for elements already kept
        self.fields: dict[str, Any] = {}  # private attributes as later passes see them
        self.fixed = self._fixed_attributes()
        # what each symbol belongs to: a shared attribute, or (None) something that stays as it is
        self.owner: dict[int, str | None] = {}
        for symbols in (self.C, *self.inputs.values()):
            self.owner.update(dict.fromkeys(_hashes(symbols)))
        for name, at in self.shared.items():
            self.owner.update(dict.fromkeys(_hashes(self.own[at]), name))

    def _fixed_attributes(self) -> dict[str, Any]:
        """Constants and inputs, as attributes of a node."""
        import casadi as ca

        values = [ca.SX(x) if x == x else self.C[k] for k, x in enumerate(self.cls.pattern)]
        dense = ca.vertcat(*values)
        fixed: dict[str, Any] = dict(self.inputs)
        if self.cls.kind is not None:
            fixed |= {name: ca.SX(self.cls.kind.nv, 1) for name in self.recursion.zero}
        fixed["E"] = ca.sparsify(ca.reshape(dense[:9], 3, 3).T)
        fixed["r"] = ca.sparsify(dense[9:12])
        if self.cls.kind is not None:
            J = [values[k] for k in range(16, 22)]
            I_O = ca.blockcat([[J[0], J[3], J[4]], [J[3], J[1], J[5]], [J[4], J[5], J[2]]])
            fixed["I"] = ca.sparsify(rigid_inertia(values[12], dense[13:16], I_O))
            fixed["kind"] = self.cls.kind
            rotor = values[22 : 22 + self.cls.kind.nv]  # nothing in a model without armature
            fixed["armature"] = ca.sparsify(ca.diag(ca.vertcat(*rotor))) if len(values) > 22 else None
        return fixed

    def step(self, number: int, step: Step) -> Taken:
        """Run the step of a pass and note what it set."""
        b, p = self.node(), _TracedNode(lambda name: self._shared(name, self.P))
        step(b, p)
        kept: dict[int, Any] = {}
        for name, value in b._set.items():
            if name not in self.shared:
                self.fields[name] = mapped(value, lambda e: self._keep(e, number, kept))
        return Taken(dict(b._set), dict(p._set), kept)

    def node(self) -> Node:
        """The node as passes after the last one see it."""
        return _TracedNode(self._own)

    def carrier(self, name: str) -> Any:
        """A shared attribute of the carrier, as a step reads it."""
        return self._shared(name, self.P)

    def _own(self, name: str) -> Any:
        if name in self.shared:
            return self._shared(name, self.own)
        if name in self.fields:
            return self.fields[name]
        return self.fixed[name]

    def _shared(self, name: str, block: Any) -> Any:
        import casadi as ca

        at, kind = self.shared[name], self.recursion.shared[name]
        rows, columns = SHAPES[kind]
        if kind.startswith("symmetric"):
            upper = ca.SX(ca.Sparsity.upper(rows), block[at])
            return ca.triu2symm(upper)
        return ca.reshape(block[at], rows, columns)

    def _keep(self, e: Any, number: int, kept: dict[int, Any]) -> Any:
        """Stand-in for a value in later passes: itself if it is at hand there, else a private place."""
        import casadi as ca

        if e.is_constant() or self._at_hand(e, number):
            return e
        if e.is_op(ca.OP_NEG):
            return -self._keep(e.dep(0), number, kept)
        key = e.element_hash()
        if key not in self.place:
            self.place[key] = len(self.private)
            self.private.append(ca.SX.sym(f"s{len(self.private)}"))
            self.owner[self.private[-1].element_hash()] = None
            kept[self.place[key]] = e
        return self.private[self.place[key]]

    def _at_hand(self, e: Any, number: int) -> bool:
        """Whether a symbol means the same in later passes: inputs, private places, shared ones that stay."""
        if not e.is_symbolic() or e.element_hash() not in self.owner:
            return False
        name = self.owner[e.element_hash()]
        return name is None or (number < len(self.final) and name in self.final[number])

    def call(self, taken: Taken, outputs: list[Any]) -> casadi.Function:
        """The step as a function: constants, inputs, own and carrier's state in; the states and `outputs` out.

        The states are sparse where nothing is written.
        """
        import casadi as ca

        own = self._column({name: value for name, value in taken.own.items() if name in self.shared})
        kept = ca.SX(len(self.private), 1)
        for place, value in taken.kept.items():
            kept[place] = value
        return ca.Function("step", self.ports(), [ca.vertcat(own, kept), self._column(taken.carrier), *outputs])

    def ports(self) -> list[Any]:
        """Symbols of the input ports."""
        import casadi as ca

        return [self.C, *self.inputs.values(), ca.vertcat(self.own, *self.private), self.P]

    @property
    def state(self) -> int:
        """How many numbers a node of this class keeps."""
        return self.size_shared + len(self.private)

    def _column(self, values: dict[str, Any]) -> Any:
        """Column of the shared places, structurally empty where nothing was set."""
        import casadi as ca

        column = ca.SX(self.size_shared, 1)
        for name, value in values.items():
            dense = ca.densify(value)
            upper = self.recursion.shared[name].startswith("symmetric")
            entries = ca.triu(dense).nonzeros() if upper else dense.nonzeros()
            for k, entry in enumerate(entries, self.shared[name].start):
                column[k] = entry
        return column
