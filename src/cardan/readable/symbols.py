"""Equations of motion as SymPy matrices, in symbols named after the parts of the model.

    M(q,t) vdot + J(q,t)^T lam = f(q,v,t)      J vdot = gamma(q,v,t)      qdot = N(q) v      phi(q,t) = 0

The expressions are read from the same graph that kernels are compiled from: nothing is derived a second time. Entries
of the rotation matrices of quaternions are symbols of their own, each with a definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.algebra.free_number import FreeNumber
from cardan.errors import CardanError, InputError, UnknownNameError, nearest
from cardan.formulation.coordinates import own_equations
from cardan.formulation.formulation import Formulation
from cardan.model.model import Model
from cardan.model.parameter import with_numbers
from cardan.model.values import number, one
from cardan.program.graph import Graph, read
from cardan.readable.graph_to_sympy import Expressions, RotationMatrix, simplified, verbatim
from cardan.readable.naming import (
    Component,
    Letters,
    Meaning,
    components,
    coordinates,
    every_parameter,
    index_of,
    letters_of,
)
from cardan.readable.row_style import AS_RECORDED, RecordedRows, RowStyle
from cardan.structure.planarity import prepare

ENTRY = "entry of a rotation matrix"
MATRICES = ("M", "f", "J", "gamma", "phi", "N")
# Simplifying a graph of this many operations takes about a minute at worst.
MOST_OPERATIONS = 2000


@dataclass(frozen=True, eq=False)
class Symbols:
    """The equations of a model as SymPy matrices: `M vdot + J^T lam = f`, `J vdot = gamma`, `qdot = N v`, `phi = 0`.

    `q`, `v` and `tau` are columns of symbols, `lam` the multipliers. `parameters` has the symbol of each number of the
    model that became one, by its name in the model. `meanings` has the meaning of every symbol, with value and unit.
    `definitions` has the entries of rotation matrices in terms of unit quaternions, and other abbreviations of a style.
    """

    title: str
    M: Any
    f: Any
    J: Any
    gamma: Any
    phi: Any
    N: Any
    q: Any
    v: Any
    tau: Any
    t: Any
    parameters: dict[str, Any]
    meanings: dict[Any, Meaning]
    definitions: dict[Any, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[Any, float]:
        """Value (SI units) in the model of every symbol of a parameter."""
        return {symbol: m.value for symbol, m in self.meanings.items() if m.value is not None}

    @property
    def lam(self) -> Any:
        """Multipliers, one for each row of `J`."""
        import sympy

        return sympy.Matrix([sympy.Symbol(f"lambda_{k + 1}") for k in range(self.J.shape[0])])

    def explicit(self, name: str) -> Any:
        """One of the matrices with the definitions substituted: only `q`, `v`, time and parameters are left."""
        return self._written_out(self.matrix(name))

    def _written_out(self, expression: Any) -> Any:
        """Without abbreviations; one may be defined by others."""
        while expression.free_symbols & self.definitions.keys():
            expression = expression.xreplace(self.definitions)
        return expression

    def function(self, name: str) -> Callable[..., Any]:
        """One of the matrices as a function of arrays `(q, v, tau, t, values)`; only `q` is required.

        `values` are those of parameters, by symbol; by default they are the model's.
        """
        import sympy

        letters = list(self.values)
        defined = sympy.Matrix([self._written_out(x) for x in self.definitions.values()])
        short = sympy.lambdify([list(self.q), list(self.v), letters], defined, modules="numpy", cse=True)
        abbreviations = short if self.definitions else lambda *state: ()
        own = [list(self.q), list(self.v), list(self.tau), self.t, letters, list(self.definitions)]
        numeric = sympy.lambdify(own, self.matrix(name), modules="numpy", cse=True)

        def function(q: Any, v: Any = None, tau: Any = None, t: float = 0.0, values: Mapping[Any, float] = {}) -> Any:
            q = one("function", "q", q, len(self.q))
            rates = np.zeros(len(self.v)) if v is None else one("function", "v", v, len(self.v))
            if tau is not None and not len(self.tau):
                raise InputError("function: there is no tau in these equations; name the joints in sympy(drives=[...])")
            drives = np.zeros(len(self.tau)) if tau is None else one("function", "tau", tau, len(self.tau))
            t = number("function", "t", t, "of seconds")
            for symbol in values:
                if symbol not in letters:
                    raise UnknownNameError(
                        f"function: {symbol!r} is not the symbol of a parameter{nearest(symbol, map(str, letters))}"
                    )
            now = {x: number("function", str(x), value) for x, value in {**self.values, **values}.items()}
            numbers = [now[x] for x in letters]
            return numeric(q, rates, drives, t, numbers, np.ravel(abbreviations(q, rates, numbers)))

        return function

    def matrix(self, name: str) -> Any:
        """One of M, f, J, gamma, phi, N."""
        if not isinstance(name, str) or name not in MATRICES:
            raise UnknownNameError(f"{name!r} is not a matrix of the equations{nearest(name, MATRICES)}")
        return getattr(self, name)

    def operations(self, name: str | None = None) -> int:
        """Number of operations in one matrix, or in all of them."""
        import sympy

        return int(sum(sympy.count_ops(self.matrix(x)) for x in (MATRICES if name is None else [name])))

    def latex(self, name: str | None = None) -> str:
        """LaTeX of one matrix, or of all equations with the legend."""
        if name is None:
            return _whole_text(self)
        matrix = self.matrix(name)  # rejects an unknown name
        return f"{LEFT[name]} = {latex_of(matrix)}"

    def _repr_latex_(self) -> str:
        """What a notebook shows."""
        return f"$$\\begin{{gathered}}\n{self.latex()}\n\\end{{gathered}}$$"

    def __repr__(self) -> str:
        """One line."""
        sizes = f"{len(self.v)} rates, {self.J.shape[0]} constraints, {self.operations()} operations"
        return f"Symbols({self.title!r}, {sizes})"


def require_sympy() -> None:
    """Raise an error that says what to install if SymPy is missing."""
    try:
        import sympy  # noqa: F401
    except ImportError:
        raise CardanError(
            "equations as symbols need SymPy, which is not installed: pip install 'cardan[symbols]'"
        ) from None


def symbols_of(
    model: Model, formulation: Formulation, *, symbols: str | Iterable[str] = "all",
    names: Mapping[str, str] | None = None, drives: Iterable[str] = (), simplify: bool = True,
    style: RowStyle = AS_RECORDED,
) -> Symbols:  # fmt: skip
    """Equations of a model in a formulation as SymPy matrices, rows in a style; see `Equations.sympy`."""
    require_sympy()
    model, key = model.unbound, formulation.name
    wanted = every_parameter(model) if symbols == "all" else listed(symbols)
    freed = model.free(*(name for name in wanted if name not in model.parameters.names))
    found = components(freed, freed.parameters.items)
    letters = letters_of(model, found, coordinates(model, formulation), list(drives), dict(names or {}))
    function, shapes, rows = _record(freed, formulation, found, style)
    graph = read(function)
    count = sum(graph.operations().values())
    require_short(model.name, key, count, simplify)
    if not simplify:
        letters = letters.renamed(_without_entry(letters, _in_graph(graph, letters)))
        return _collected(f"{model.name}, {key}", verbatim(graph, letters, range(len(MATRICES))), shapes, letters)
    rotations = _rotations(model, formulation, letters)
    expressions = simplified(graph, letters, rotations, [MATRICES.index("N")], every_entry=bool(rows.derived))
    shorter = _without_entry(letters, set().union(*(x.free_symbols for x in expressions.outputs.values())))
    expressions = expressions.renamed(shorter)
    first = len(MATRICES) + 2 * len(rotations)
    vectors = [[expressions.outputs[first + k, e] for e in range(3)] for k in range(len(rows.vectors))]
    printed = _collected(f"{model.name}, {key}", expressions, shapes, letters.renamed(shorter))
    return style.finished(formulation, printed, rows, vectors, rotations)


def require_short(name: str, key: str, count: int, simplify: bool) -> None:
    """Refuse to simplify a graph of too many operations."""
    if simplify and count > MOST_OPERATIONS:
        raise InputError(
            f"equations of {name!r} in {key!r}: {count} operations are too many to simplify, the limit is "
            f"{MOST_OPERATIONS}; ask with simplify=False, or for a formulation with fewer coordinates"
        )


def _in_graph(graph: Graph, letters: Letters) -> set[Any]:
    """Symbols of the inputs that a graph uses."""
    uses = graph.uses()
    inputs = [args for op, args, n in zip(graph.op, graph.args, uses, strict=True) if op == "input" and n]
    return set().union(*(letters.expression(*place).free_symbols for place in inputs))


def listed(symbols: str | Iterable[str]) -> list[str]:
    """Check a list of parameter names."""
    if isinstance(symbols, str):
        raise InputError(f"symbols must be 'all' or a list of parameter names such as ['crank.mass'], got {symbols!r}")
    return list(symbols)


def _record(
    freed: Model, formulation: Formulation, found: list[Component], style: RowStyle
) -> tuple[Any, list[tuple[int, int]], RecordedRows]:
    """Record the contract, with some parameters as inputs, the rotation matrices in it, and a style's abbreviations.

    Also the shapes, and the rows in this style.
    """
    import casadi as ca

    p = ca.SX.sym("p", max(len(found), 1))
    values = freed.parameters.nominal.astype(object)
    for k, c in enumerate(found):
        values[c.place] = FreeNumber(c.sign * p[k], c.sign * c.value)
    model = with_numbers(freed, values) if found else freed
    prepare(model, formulation)
    nq, nv = formulation.sizes(model)
    ports = {"q": (nq,), "v": (nv,), "tau": (model.nv,), "wrenches": (model.nb, 6), "t": (1,)}
    inputs = {port: ca.SX.sym(port, *shape) for port, shape in ports.items()}
    parts = own_equations(model, formulation, inputs)
    rows = style.rows(formulation, parts, inputs["v"])
    outputs = [parts.M, parts.f, rows.J, rows.gamma, rows.phi]
    outputs.append(ca.jacobian(formulation.rates(model, inputs["q"], inputs["v"]), inputs["v"]))
    turns = [x for each in formulation.rotations(model, inputs["q"]) for x in (each.R, each.meaning)]
    vectors = [x.value for x in rows.vectors]
    function = ca.Function("symbols", [*inputs.values(), p], [*outputs, *turns, *vectors])
    return function, [out.shape for out in outputs], rows


def _rotations(model: Model, formulation: Formulation, letters: Letters) -> list[RotationMatrix]:
    """The rotation matrices of a formulation, with symbols for their entries."""
    import casadi as ca
    import sympy

    found, first = [], len(MATRICES)
    rotations = formulation.rotations(model, ca.SX.sym("q", formulation.sizes(model)[0]))
    for k, each in enumerate(rotations):
        tail = f"_{index_of(each.owner)}" if len(rotations) > 1 else ""
        entries = [[sympy.Symbol(f"R{i}{j}{tail}") for j in (1, 2, 3)] for i in (1, 2, 3)]
        own = [] if each.quaternion is None else letters.q[each.quaternion : each.quaternion + 4]
        found.append(RotationMatrix(first + 2 * k, first + 2 * k + 1, own, entries))
    return found


def _collected(title: str, found: Expressions, shapes: Sequence[tuple[int, int]], letters: Letters) -> Symbols:
    """Put the entries into matrices and collect the meanings of their symbols."""
    import sympy

    matrices = {}
    for port, (name, (rows, columns)) in enumerate(zip(MATRICES, shapes, strict=True)):
        matrices[name] = sympy.Matrix(rows, columns, [found.outputs[port, e] for e in range(rows * columns)])
    used = found.symbols
    parameters = {c.key: p for c, p in zip(letters.components, letters.p, strict=True) if p.free_symbols & used}
    meanings = {x: meaning for x, meaning in letters.meanings.items() if meaning.value is None or x in used}
    meanings |= {x: Meaning(ENTRY, None, "1") for x in found.definitions}
    return Symbols(
        title, **matrices, q=sympy.Matrix(letters.q), v=sympy.Matrix(letters.v),
        tau=sympy.Matrix([x for x in letters.tau if x.is_Symbol]), t=letters.t, parameters=parameters,
        meanings=meanings, definitions=found.definitions,
    )  # fmt: skip


def _without_entry(letters: Letters, used: set[Any]) -> dict[Any, Any]:
    """Shorter symbols, `I` for `I_zz`, where only one moment of inertia of a body is in use."""
    import sympy

    bodies: dict[str, list[Any]] = {}
    for c, p in zip(letters.components, letters.p, strict=True):
        if p in used and p not in letters.named and c.parameter.endswith(".inertia"):
            bodies.setdefault(c.parameter, []).append(p)
    taken = {str(x) for x in used}
    renamed = {own[0]: str(own[0]).rsplit("_", 1)[0] for own in bodies.values() if len(own) == 1}
    return {old: sympy.Symbol(new) for old, new in renamed.items() if new not in taken}


# LaTeX: aligned matrices, and a legend with the meaning of every symbol

LEFT = {
    "M": "M", "f": "f", "J": "J", "gamma": r"\gamma", "phi": r"\varphi(q)", "N": "N", "q": "q", "v": "v"
}  # fmt: skip


def _whole_text(s: Symbols) -> str:
    """The equations, their matrices, definitions of abbreviations and the legend, aligned at the equals signs."""
    lines = [f"{left} &= {right}" for left, right in _rows(s)]
    body = " \\\\\n".join(lines)
    legend = legend_text({x: meaning for x, meaning in s.meanings.items() if meaning.text != ENTRY})
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n\\\\[1ex]\n{legend}"


def _rows(s: Symbols) -> list[tuple[str, str]]:
    """Left and right side of every line."""
    constrained = s.J.shape[0] > 0
    plain = s.N.is_square and s.N.is_Identity
    rows = [(r"M\,\dot v + J^{\mathsf T}\lambda" if constrained else r"M\,\dot v", "f")]
    if constrained:
        rows += [(r"J\,\dot v", r"\gamma"), (r"\varphi(q)", "0")]
    rows.append((r"\dot q", "v" if plain else r"N\,v"))
    rows += [("q", _column(s.q)), ("v", _column(s.v))]
    names = ["M", "f", *(("J", "gamma", "phi") if constrained else ()), *(() if plain else ("N",))]
    rows += [(LEFT[name], latex_of(s.matrix(name))) for name in names]
    return rows + [(latex_of(symbol), latex_of(value)) for symbol, value in s.definitions.items()]


def legend_text(meanings: Mapping[Any, Meaning]) -> str:
    """Every symbol with its meaning, value and unit, as an array."""
    rows = [f"{latex_of(symbol)} & {_row(meaning)}" for symbol, meaning in meanings.items()]
    return "\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}"


def _row(meaning: Meaning) -> str:
    """Meaning, value and unit of a symbol."""
    value = "" if meaning.value is None else _number(meaning.value) + r"\;"
    return f"\\text{{{_escaped(meaning.text)}}} & {value}{_unit(meaning.unit)}".rstrip()


def _number(value: float) -> str:
    """A float with six digits."""
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _unit(unit: str) -> str:
    """A unit in upright letters."""
    if unit in ("", "1"):
        return ""
    return r"\mathrm{" + re.sub(r"\^(\d+)", r"^{\1}", unit).replace(" ", r"\,") + "}"


def _column(symbols: Any) -> str:
    """A column of symbols, written as a transposed row."""
    return r"\begin{pmatrix}" + " & ".join(latex_of(x) for x in symbols) + r"\end{pmatrix}^{\mathsf T}"


def latex_of(expression: Any) -> str:
    """SymPy's LaTeX of an expression."""
    import sympy

    return str(sympy.latex(expression, mat_str="matrix"))


def _escaped(text: str) -> str:
    """Escape the characters of a user's name that LaTeX would read as commands."""
    return re.sub(r"[_&%#$^{}~\\]", lambda found: WRITTEN.get(found[0], f"\\{found[0]}"), text)


WRITTEN = {"\\": r"$\backslash$", "~": r"$\sim$", "^": r"\^{}"}
