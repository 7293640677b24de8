"""Kinds of constraint elements, and the elements: rolling wheels, knife edges, rods without mass, cams.

A kind has a law that gives one expression for each of its rows, from where two bodies are and how they move:

    law(e, t, poses, twists) -> rows    each must stay zero; one with twists is on rates alone, and affine in them
    fields                              the element's numbers and functions: unit, form, rule, default, letter, meaning
    rows                                name and unit of each row, and whether elements have it unless they say so
    contact(e, poses) -> point, axes    where its force acts: a point (3) and directions (3, 3), in ground components

`e` is the element; the law reads its numbers as `e["radius"]`. Poses and twists are those of `model.force`. The law
runs once on symbols, when the model is built; every row then is a `Constraint`. `model.constraint_table` has Cardan's
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import expression, is_free, scalar, with_symbols
from cardan.algebra.matrix import Matrix, Scalar, constant, stack
from cardan.errors import InputError, ModelError
from cardan.model.constraint import Constraint, symbols_of_bodies
from cardan.model.field import CURVE, FUNCTION, Field
from cardan.model.force import BodyPose, trace


@dataclass(frozen=True)
class ConstraintRow:
    """One row of a constraint kind: its name, empty where there is but one; SI unit of its residual.

    `held` is whether elements have it that do not say which rows they hold. Of a row on rates the unit is that of its
    integral over time.
    """

    name: str = ""
    unit: str = "m"
    held: bool = True


@dataclass(frozen=True, eq=False)
class ConstraintKind:
    """One row of the table of constraint kinds.

    Use one of your own with `Mechanism.constrain`, and register it with `cd.add_constraint` so that files can name it.

    Args:
        name: what messages and files call it.
        law: `law(e, t, poses, twists)` gives a list with an expression for each row; each must stay zero.
        rows: the rows (`cd.ConstraintRow`), in the order of the law.
        fields: its numbers by name, which the law reads as `e[name]`.
        bodies: how many bodies it is between; 0 is any number.
        contact: `contact(e, poses)`, where a contact force acts: the point (3) and the directions of the rows (3, n) in
            ground components; None where it is no contact.
        mark: how drawings show it: "contact", "rod", or "element".
        file_name: what files call it; by default its name.
        check: `check(e)` raises an error for numbers that contradict one another.
        undefined: why its rows may have no value somewhere, for messages: "a wheel that lies flat has no lowest point".

    """

    name: str
    law: Callable[..., Any]
    rows: tuple[ConstraintRow, ...] = (ConstraintRow(),)
    fields: Mapping[str, Field] = field(default_factory=dict)
    bodies: int = 2
    contact: Callable[..., Any] | None = None
    mark: str = "element"
    file_name: str = ""
    check: Callable[..., None] | None = None
    undefined: str = ""

    def __post_init__(self) -> None:
        """Check what can be checked without an element."""
        for name, number in self.fields.items():
            if not isinstance(number, Field):
                raise ModelError(f"constraint kind {self.name!r}: {name} in fields must be a cd.Field, got {number!r}")
        names = [row.name if isinstance(row, ConstraintRow) else "" for row in self.rows]
        if not names or not all(isinstance(row, ConstraintRow) for row in self.rows) or len({*names}) < len(names):
            raise ModelError(
                f"constraint kind {self.name!r}: rows must be several cd.ConstraintRow, with different names; got "
                f"{self.rows!r}"
            )

    @property
    def in_files(self) -> str:
        """Its name in files."""
        return self.file_name or self.name

    @property
    def on(self) -> str:
        """What it is between: bodies, as of a force element."""
        return "bodies"

    @property
    def function(self) -> str:
        """Whether a field is a function of the user's: the name of the first; empty where there is none."""
        return next((name for name, number in self.fields.items() if number.form == FUNCTION), "")

    @property
    def free_fields(self) -> dict[str, Field]:
        """The numbers that `model.free` may name."""
        return {
            name: number for name, number in self.fields.items() if number.free and number.form not in (FUNCTION, CURVE)
        }

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a row of Cardan's own table by its name."""
        from cardan.model.constraint_table import CONSTRAINTS, own_constraint

        return (own_constraint, (self.name,)) if CONSTRAINTS.get(self.name) is self else super().__reduce_ex__(protocol)


@dataclass(frozen=True, eq=False)
class ConstraintElement:
    """One constraint element: its kind, the bodies it is between (index -1 is ground), its numbers and functions.

    `holds` are the numbers of the rows that it has. `functions` are what the user wrote; in a built model they are the
    `casadi.Function`s that tracing made of them. `graph` gives all rows of the kind, from time, poses and twists of the
    bodies and the numbers that may be free.
    """

    name: str
    kind: ConstraintKind
    on: tuple[int, ...]
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    holds: tuple[int, ...] = ()
    graph: Any = None

    @property
    def owner(self) -> str:
        """Its name in error messages."""
        return f"{self.kind.name} {self.name!r}"

    def __getitem__(self, name: str) -> Any:
        """A number, an array (graph constant) or a function of the element, or a curve, for its law."""
        if name in self.functions:
            return self.functions[name]
        value = self.numbers[name]
        return constant(value) if value.ndim else expression(scalar(value[()]))

    @property
    def free(self) -> list[Any]:
        """The numbers that may be free, in the order in which the graph takes them."""
        return [expression(x) for name in self.kind.free_fields for x in self.numbers[name].flat]

    @property
    def is_freed(self) -> bool:
        """Whether one of its numbers is a free parameter."""
        return any(is_free(value) for value in self.numbers.values())

    def written(self, *ports: Any) -> list[Matrix]:
        """All rows of its kind, at (t, R, r of each body, twist of each body)."""
        import casadi as ca

        return list(ca.vertsplit(self.graph.call([ca.SX(x) for x in (*ports, *self.free)])[0]))

    def varied(self) -> tuple[ConstraintElement, list[Any]]:
        """The element with symbols for the numbers that may be free, and the symbols."""
        numbers, inputs = with_symbols(self.numbers, self.kind.free_fields)
        return replace(self, numbers=numbers), inputs

    def traced(self) -> ConstraintElement:
        """The same element with its functions and its law as graphs."""
        own = replace(self, functions={name: self.traced_function(name) for name in self.functions})
        varied, inputs = own.varied()
        ports, arguments = symbols_of_bodies(len(self.on))

        def law(t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Any:
            rows = own.kind.law(varied, t, poses, twists)
            if not isinstance(rows, list | tuple) or len(rows) != len(own.kind.rows):
                raise TypeError(f"its law must return a list of {len(own.kind.rows)} rows")
            return list(rows)

        graph = trace(self.owner, law, [*ports, *inputs], arguments, (len(self.kind.rows),), what="law")
        return replace(own, graph=graph)

    def traced_function(self, name: str) -> Any:
        """One function of the user's as a graph; a curve has its own."""
        import casadi as ca

        if self.kind.fields[name].form == CURVE:
            return self.functions[name]
        arguments = [ca.SX.sym(symbol) for symbol, _ in self.kind.fields[name].arguments]
        return trace(self.owner, self.functions[name], arguments, tuple(arguments), (1,), what=name)

    def row_names(self) -> list[tuple[int, str]]:
        """Number and name of each row that it has: its own name, and the direction where there are several."""
        return [(k, f"{self.name}: {row.name}" if (row := self.kind.rows[k]).name else self.name) for k in self.holds]

    def traced_rows(self) -> tuple[Constraint, ...]:
        """Its rows as constraints, traced."""
        own = self.traced()
        rows = [Constraint(name, own.on, own.row(k), own.kind.rows[k].unit, own, k) for k, name in own.row_names()]
        for row in rows:
            row.require_affine()
        return tuple(rows)

    def row(self, k: int) -> Any:
        """Graph of one row, of (t, R, r of each body, twist of each body), with its numbers as constants."""
        import casadi as ca

        ports, _ = symbols_of_bodies(len(self.on))
        return ca.Function("law", ports, [ca.densify(self.written(*ports)[k])])

    def contact(self, poses: Sequence[BodyPose]) -> tuple[Matrix, Matrix]:
        """The point (3) where its force acts, and the directions of its rows (3, n), in ground components."""
        if self.kind.contact is None:
            raise InputError(f"{self.owner}: it is no contact and has no point")
        point, axes = self.kind.contact(self, poses)
        return point, axes


@dataclass(frozen=True)
class ContactReading:
    """Where a contact acts, in ground components: its point, and the directions of the rows that it has."""

    element: ConstraintElement

    @property
    def size(self) -> int:
        """How many numbers it has: three for the point, and three for each direction."""
        return 3 + 3 * len(self.element.holds)

    def graph(self, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Matrix:
        """Record them, one below the other."""
        point, axes = self.element.contact(poses)
        return stack(point, *(axes[:, k] for k in self.element.holds))
