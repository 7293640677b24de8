"""`cd.equations(model, formulation="points").sympy(style="AT")`: the momentum equations with particles as symbols.

    A (x'', mu) = b

The text is that of `formulation.points.momentum`. Masses `m1`, `m2`, `m3` of the three particles of each body, their
`nu` and `lambda`, the places of joints on the lines of bodies, and gravity are symbols. A body whose particle 2 is in
the middle of its line is a rod: `nu` is 1/2 and `lambda` 0, as in the source's rod form. `symbols` names numbers that
are to be symbols although they are 0, 1 or these: `["plate.nu", "plate.lambda"]`. Where a force element acts on a body,
the direction of the body's line in its own axes stays a number.

Equations: AT(1), AT(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import FreeNumber
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.coordinates import own_equations
from cardan.formulation.formulation import Formulation
from cardan.formulation.points.formulation import Points
from cardan.formulation.points.momentum import Weight
from cardan.model.model import Model
from cardan.model.parameter import with_numbers
from cardan.model.particles import link_particles
from cardan.model.plane import PlanarCut, PlanarLink, PlanarModel, planar_model, put_planar_model
from cardan.model.tree import GROUND
from cardan.model.values import number, one
from cardan.program.graph import read
from cardan.readable.graph_to_sympy import Expressions, simplified, verbatim
from cardan.readable.naming import (
    Component,
    Coordinate,
    Meaning,
    components,
    coordinates,
    every_parameter,
    index_of,
    letters_of,
    unique,
)
from cardan.readable.symbols import at_values, latex_of, legend_text, listed, require_short
from cardan.structure.planarity import prepare, require_planar


@dataclass(frozen=True, eq=False)
class MomentumSymbols:
    """Momentum equations as SymPy matrices, `A unknowns = b`: square `A`, column `b`, accelerations and multipliers.

    `rows` tells what each row says. `q`, `v` and `tau` are columns of symbols; `parameters` has the symbol of each
    number by its name (`rod.m2`, `rod.nu`), `meanings` the meaning of every symbol, with value and unit.
    """

    title: str
    A: Any
    b: Any
    unknowns: Any
    rows: tuple[str, ...]
    q: Any
    v: Any
    tau: Any
    t: Any
    parameters: dict[str, Any]
    meanings: dict[Any, Meaning]

    @property
    def values(self) -> dict[Any, float]:
        """Value (SI units) in the model of every symbol of a parameter."""
        return {symbol: m.value for symbol, m in self.meanings.items() if m.value is not None}

    @property
    def equations(self) -> tuple[Any, ...]:
        """Each row as `sympy.Eq`, loads on the left as the source has them."""
        import sympy

        return tuple(
            sympy.Eq(self.b[k], (self.A.row(k) * self.unknowns)[0], evaluate=False) for k in range(len(self.rows))
        )

    def function(self, name: str) -> Callable[..., Any]:
        """`A` or `b` as a function of arrays `(q, v, tau, t, values)`; only `q` is required."""
        import sympy

        letters = list(self.values)
        own = [list(self.q), list(self.v), list(self.tau), self.t, letters]
        numeric = sympy.lambdify(own, self.matrix(name), modules="numpy", cse=True)

        def function(q: Any, v: Any = None, tau: Any = None, t: float = 0.0, values: Mapping[Any, float] = {}) -> Any:
            q = one("function", "q", q, len(self.q))
            rates = np.zeros(len(self.v)) if v is None else one("function", "v", v, len(self.v))
            drives = np.zeros(len(self.tau)) if tau is None else one("function", "tau", tau, len(self.tau))
            now = {x: number("function", str(x), value) for x, value in {**self.values, **values}.items()}
            found = numeric(q, rates, drives, number("function", "t", t, "of seconds"), [now[x] for x in letters])
            return np.asarray(found, dtype=float)

        return function

    def matrix(self, name: str) -> Any:
        """One of A, b."""
        if name not in ("A", "b"):
            raise UnknownNameError(f"{name!r} is not a matrix of these equations{nearest(name, ('A', 'b'))}")
        return getattr(self, name)

    def latex(self) -> str:
        """LaTeX of all equations, one a line, with the legend."""
        lines = [f"{latex_of(row.lhs)} &= {latex_of(row.rhs)}" for row in self.equations]
        body = " \\\\\n".join(lines)
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n\\\\[1ex]\n{legend_text(self.meanings)}"

    def _repr_latex_(self) -> str:
        """What a notebook shows."""
        return f"$$\\begin{{gathered}}\n{self.latex()}\n\\end{{gathered}}$$"

    def __repr__(self) -> str:
        """One line."""
        return f"MomentumSymbols({self.title!r}, {len(self.rows)} equations)"


def momentum_symbols(
    model: Model, formulation: Formulation, *, symbols: str | Iterable[str] = "all",
    names: Mapping[str, str] | None = None, drives: Iterable[str] = (), simplify: bool = True,
) -> MomentumSymbols:  # fmt: skip
    """The momentum equations of a planar mechanism as SymPy matrices; see `Equations.sympy`."""
    import casadi as ca
    import sympy

    if not isinstance(formulation, Points):
        require_planar(model, formulation)
        raise InputError(f"style 'AT' is that of formulation 'points', got formulation {formulation.name!r}")
    forced = frozenset() if symbols == "all" else frozenset(listed(symbols))
    model = at_values(model)
    forces = [name for name in every_parameter(model) if name.partition(".")[0] in {f.name for f in model.forces}]
    freed = model.free(*(name for name in forces if name not in model.parameters.names))
    given = components(freed, freed.parameters.items)
    prepare(model, formulation)
    found = _Letters(planar_model(model), model, given, forced)
    own = unique([*given, *found.components])
    p = ca.SX.sym("p", max(len(own), 1))
    graph, labels, shapes = _record(freed, formulation, found, p, len(given))
    require_short(model.name, "AT", sum(graph.operations().values()), simplify)
    letters = letters_of(model, own, coordinates(model, formulation), list(drives), dict(names or {}))
    if simplify:
        expressions: Expressions = simplified(graph, letters, [], [])
    else:
        expressions = verbatim(graph, letters, range(2))
    A, b = (
        sympy.Matrix(n, m, [expressions.outputs[port, e] for e in range(n * m)]) for port, (n, m) in enumerate(shapes)
    )
    unknowns, meanings = _unknowns(coordinates(model, formulation)[1], labels)
    used = expressions.symbols
    meanings |= {x: meaning for x, meaning in letters.meanings.items() if meaning.value is None or x in used}
    parameters = {c.key: x for c, x in zip(letters.components, letters.p, strict=True) if x.free_symbols & used}
    return MomentumSymbols(
        f"{model.name}, AT", A, b, sympy.Matrix(unknowns), tuple(labels), sympy.Matrix(letters.q),
        sympy.Matrix(letters.v), sympy.Matrix([x for x in letters.tau if x.is_Symbol]), letters.t, parameters, meanings,
    )  # fmt: skip


def _record(
    freed: Model, formulation: Points, found: _Letters, p: Any, given: int
) -> tuple[Any, list[str], list[tuple[int, int]]]:
    """The graph of `A` and `b`, the labels of its rows, and its shapes."""
    import casadi as ca

    values = freed.parameters.nominal.astype(object)
    for k, c in enumerate(found.given):
        values[c.place] = FreeNumber(c.sign * p[k], c.sign * c.value)
    model = with_numbers(freed, values) if found.given else replace(freed)
    prepare(model, formulation)
    planar, own = found.lettered(p[given:] if p.shape[0] > given else p)
    put_planar_model(model, planar)
    n = formulation.sizes(model)[0]
    ports = {"q": (n,), "v": (n,), "tau": (model.nv,), "wrenches": (model.nb, 6), "t": (1,)}
    inputs = {port: ca.SX.sym(port, *shape) for port, shape in ports.items()}
    parts = own_equations(model, formulation, inputs)
    A, b = formulation.momentum_equations(parts, own)
    A, b = ca.densify(A), ca.densify(b)
    function = ca.Function("momentum", [*inputs.values(), p], [A, b])
    return read(function), formulation.momentum_labels(parts), [A.shape, b.shape]


def _unknowns(rates: Sequence[Coordinate], labels: Sequence[str]) -> tuple[list[Any], dict[Any, Meaning]]:
    """Symbols of the accelerations and of the multipliers, and what they mean."""
    import sympy

    found, meanings = [], {}
    for rate in rates:
        found.append(sympy.Symbol(rate.name.replace("dot", "ddot", 1)))
        meanings[found[-1]] = Meaning(rate.meaning.replace("rate", "acceleration", 1), None, "m/s^2")
    for k, label in enumerate(labels[len(rates) :]):
        found.append(sympy.Symbol(f"mu_{k + 1}"))
        meanings[found[-1]] = Meaning(f"multiplier of {label}", None, "")
    return found, meanings


class _Letters:
    """Which numbers of a planar mechanism become symbols: particles of links, places of joints, slides, gravity."""

    def __init__(self, planar: PlanarModel, model: Model, given: list[Component], forced: frozenset[str]) -> None:
        self.planar, self.model, self.given, self.forced = planar, model, given, forced
        self._known: list[str] = []
        self.components: list[Component] = []
        self._place: dict[str, int] = {}
        several = len(planar.links) > 1
        for link in planar.links:
            tail = f"_{index_of(link.name)}" if several else ""
            particles = link_particles(link)
            for k, m in enumerate(particles.masses, 1):
                self._add(f"{link.name}.m{k}", f"m{k}{tail}", f"mass of particle {k} of {link.name}", "kg", m)
            rod = particles.nu == 0.5 and particles.lam == 0.0
            for what, value in (("nu", particles.nu), ("lambda", particles.lam)):
                meaning = f"{what} of particle 2 of {link.name}"
                self._add(f"{link.name}.{what}", f"{what}{tail}", meaning, "1", value, plain=rod)
            meaning = f"distance of particles 1 and 3 of {link.name}"
            self._add(f"{link.name}.length", f"l{tail}", meaning, "m", link.line.length, plain=False)
        for link in planar.links:
            self._joint(link, link.parent, link.at, "")
            for k, direction in enumerate(link.slide):
                self._slide(link, link.parent, direction, k)
        for cut in planar.cuts:
            self._joint(cut, cut.parent, cut.at, "")
            self._joint(cut, cut.child, cut.child_at, "child ")
            for k, direction in enumerate(cut.slide):
                self._slide(cut, cut.parent, direction, k)
        for axis, g in zip("xy", planar.gravity, strict=True):
            both = np.count_nonzero(planar.gravity) > 1
            self._add(f"gravity.{axis}", f"g_{axis}" if both else "g", "gravity", "m/s^2", g, signed=True)
        for name in forced - set(self._known):
            raise UnknownNameError(f"symbols: {name!r} is no number of these equations{nearest(name, self._known)}")

    def _add(
        self, key: str, name: str, meaning: str, unit: str, value: float, *, plain: bool | None = None,
        signed: bool = False,
    ) -> None:  # fmt: skip
        """A symbol for a number, unless it is `plain`, by default if it is 0 or a dimensionless 1."""
        value = float(value)
        plain = (value == 0 or (value == 1 and unit == "1")) if plain is None else plain
        self._known.append(key)
        if plain and key not in self.forced:
            return
        sign = -1 if signed and value < 0 else 1
        self._place[key] = len(self.components)
        told = meaning if sign > 0 else f"{meaning} along -{key[-1]}"
        self.components.append(Component(-1, key, key, name, told, unit, sign * value, sign))

    def _joint(self, joint: PlanarLink | PlanarCut, link: int, place: tuple[float, float], side: str) -> None:
        """Where a joint sits: on the ground x and y, on a body `nu` and `lambda`."""
        name = self.model.joints[joint.joint].name
        letters, unit = (("x", "y"), "m") if link == GROUND else (("nu", "lambda"), "1")
        on = "ground" if link == GROUND else f"the line of {self.planar.links[link].name}"
        for letter, value in zip(letters, place, strict=True):
            meaning = f"{letter} of {name} on {on}"
            self._add(f"{name}.{side}{letter}", f"{letter}_{index_of(name)}", meaning, unit, value)

    def _slide(self, joint: PlanarLink | PlanarCut, link: int, direction: tuple[float, float], k: int) -> None:
        """Where a slide points: a unit vector on the ground; on a body relative to its line, 1/m."""
        name = self.model.joints[joint.joint].name
        unit = "1" if link == GROUND else "1/m"
        for axis, value in zip("xy", direction, strict=True):
            self._add(f"{name}.u{k}{axis}", f"u_{index_of(name)}_{axis}", f"direction of {name}", unit, value)

    def lettered(self, p: Any) -> tuple[PlanarModel, list[Weight]]:
        """The mechanism with symbols for its numbers, and what its links weigh in terms of their particles."""

        def free(key: str, value: float) -> Any:
            place = self._place.get(key)
            if place is None:
                return value
            c = self.components[place]
            return FreeNumber(c.sign * p[place], c.sign * c.value)

        def pair(joint: PlanarLink | PlanarCut, link: int, place: tuple[float, float], side: str) -> tuple[Any, Any]:
            name = self.model.joints[joint.joint].name
            letters = ("x", "y") if link == GROUND else ("nu", "lambda")
            first, second = (free(f"{name}.{side}{x}", value) for x, value in zip(letters, place, strict=True))
            return first, second

        def slides(joint: PlanarLink | PlanarCut) -> tuple[tuple[Any, Any], ...]:
            name = self.model.joints[joint.joint].name
            return tuple((free(f"{name}.u{k}x", x), free(f"{name}.u{k}y", y)) for k, (x, y) in enumerate(joint.slide))

        links, own = [], []
        for link in self.planar.links:
            particles = link_particles(link)
            m1, m2, m3 = (free(f"{link.name}.m{k}", m) for k, m in enumerate(particles.masses, 1))
            nu, lam = free(f"{link.name}.nu", particles.nu), free(f"{link.name}.lambda", particles.lam)
            own.append(Weight(m1 + m2 + m3, (m3 + nu * m2, lam * m2), m3 + (nu * nu + lam * lam) * m2))  # AT(1),(7)
            line = replace(link.line, length=free(f"{link.name}.length", link.line.length))
            at = pair(link, link.parent, link.at, "")
            links.append(replace(link, line=line, at=at, slide=slides(link)))
        cuts = [
            replace(
                cut, at=pair(cut, cut.parent, cut.at, ""), child_at=pair(cut, cut.child, cut.child_at, "child "),
                slide=slides(cut),
            )
            for cut in self.planar.cuts
        ]  # fmt: skip
        g = self.planar.gravity
        gravity = np.array([free(f"gravity.{axis}", float(value)) for axis, value in zip("xy", g, strict=True)])
        return replace(self.planar, links=tuple(links), cuts=tuple(cuts), gravity=gravity), own
