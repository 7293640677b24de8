"""An equation of a source: its number, its text, and what can be done with it.

    cd.textbook.F6_7(I1, I2, s, f)      numbers, arrays of any batch, CasADi or SymPy matrices
    cd.textbook.F6_7.sympy()            as the page has it, in SymPy's matrix symbols
    cd.textbook.F6_7.latex()            the same in LaTeX

The text is written once. Arrays run through a kernel compiled from its recorded graph; CasADi and SymPy matrices get
the same graph, operation by operation; what is printed is the text itself, run on letters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cardan.algebra.matrix import is_symbol
from cardan.errors import CardanError, InputError
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.program.program import Port, Program
from cardan.textbook import written
from cardan.textbook.notation import Quantity, Text
from cardan.textbook.written import Written

Sizes = tuple[tuple[str, int], ...]  # of the letters in the shapes
Need = Callable[..., str | None]


class Equation:
    """A numbered equation: a function of its quantities that can print itself. Arrays are (..., core shape), SI units.

    `number` is the source's, such as "F6(7)"; `inputs` and `outputs` have the quantities by name, each with letter,
    core shape, meaning and unit. A call returns the value of the left side; for an equation `... = 0` that of its own
    left side, which vanishes for a motion that satisfies it.
    """

    def __init__(
        self, source: Source, number: str, text: Callable[..., Text], gives: Sequence[str],
        left: Callable[..., Any] | None, is_zero: bool, needs: Sequence[Need], printed: bool,
    ) -> None:  # fmt: skip
        self.source, self.number, self.text = source, number, text
        self.name = text.__name__
        self.inputs = {name: source.quantity(name) for name in inspect.signature(text).parameters}
        self.outputs = {name: source.quantity(name) for name in gives}
        self.is_zero, self.is_printed = is_zero, printed
        self._left, self._needs = left, needs
        self._kernels: dict[Sizes, Kernel] = {}
        self._functions: dict[Sizes, Any] = {}
        self.__doc__ = f"{number}: {inspect.getdoc(text)}\n\n{self._legend()}"
        self.__name__, self.__module__, self.__qualname__ = self.name, text.__module__, self.name
        self.__signature__ = _signature(text, self.outputs)

    @cached_property
    def title(self) -> str:
        """What it says, in words."""
        return (inspect.getdoc(self.text) or "").split("\n")[0]

    @property
    def line(self) -> int:
        """Line of the text in its module."""
        return inspect.getsourcelines(self.text)[1]

    def __repr__(self) -> str:
        """Number, name and what it takes."""
        return f"<{self.number} {self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Value of the left side; of several, a tuple."""
        values = self._bound(args, named)
        if any(map(_is_sympy, values.values())):
            return self._of_sympy(values)
        if any(is_symbol(x) for x in values.values()):
            return self._of_casadi(values)
        return self._of_arrays(values)

    def sides(self) -> list[tuple[Written, Written]]:
        """Left and right side of the equation, or of each of several, as written."""
        if not self.is_printed:
            others = [e.name for e in self.source.equations.values() if e.number == self.number and e.is_printed]
            raise InputError(f"{self.name} has no form in print{': ask ' if others else ''}{' or '.join(others)}")
        found = self.text(*map(self.source.letter, self.inputs))
        rights = found if isinstance(found, tuple) else (found,)
        if self.is_zero:
            return [
                (right, written.symbol(self.source.zero if right.size else "0", right.size, False)) for right in rights
            ]
        if self._left is None:
            return list(zip(map(self.source.letter, self.outputs), rights, strict=True))
        lefts = self._left(*map(self.source.letter, inspect.signature(self._left).parameters))
        return list(zip(lefts if isinstance(lefts, tuple) else (lefts,), rights, strict=True))

    def sympy(self) -> Any:
        """The equation as `sympy.Eq` of matrix expressions in the source's letters; of several, a tuple.

        Substitute explicit matrices for the symbols in `letters()` and call `doit()` for numbers.
        """
        sympy, as_sympy = _sympy()
        found = []
        for left, right in self.sides():
            value = as_sympy.as_sympy(left)
            zero = sympy.ZeroMatrix(*value.shape) if left.size else sympy.Integer(0)
            found.append(sympy.Eq(value, zero if self.is_zero else as_sympy.as_sympy(right), evaluate=False))
        return tuple(found) if len(found) > 1 else found[0]

    def letters(self) -> dict[str, Any]:
        """The SymPy symbol of every input by name; sizes that are letters are 2 in print."""
        _, as_sympy = _sympy()
        return {name: as_sympy.letter(self.source.letter(name)) for name in self.inputs}

    def latex(self) -> str:
        """The equation in LaTeX, in the order of the page; several are on lines of their own."""
        lines = [(left.latex(), right.latex()) for left, right in self.sides()]
        if len(lines) == 1:
            return " = ".join(lines[0])
        return "\\begin{aligned}\n" + " \\\\\n".join(f"{a} &= {b}" for a, b in lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        """What a notebook shows."""
        return f"$${self.latex()} \\tag{{{self.number}}}$$"

    def function(self, **sizes: int) -> Any:
        """The recorded graph as a CasADi function; `sizes` are those of the letters in the shapes."""
        key = tuple(sorted(sizes.items()))
        if key not in self._functions:
            import casadi as ca

            symbols = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in self._ports(self.inputs, sizes)]
            values = self.text(*symbols)
            results = list(values) if isinstance(values, tuple) else [values]
            self._functions[key] = ca.Function(self.name, symbols, results, [*self.inputs], [*self.outputs])
        return self._functions[key]

    def kernel(self, **sizes: int) -> Kernel:
        """The compiled, batched function of arrays; it does not check what the numbers mean."""
        key = tuple(sorted(sizes.items()))
        if key not in self._kernels:
            inputs, outputs = (tuple(self._ports(named, sizes)) for named in (self.inputs, self.outputs))
            program = Program(self.name, inputs, outputs, f"textbook {self.name} {key}", lambda: self.function(**sizes))
            self._kernels[key] = compile_program(program)
        return self._kernels[key]

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = inspect.signature(self.text).bind(*args, **named).arguments
        except TypeError as error:
            raise InputError(f"{self.number}: {error}; it takes {', '.join(self.inputs)}") from None
        return {name: bound[name] for name in self.inputs}

    def _of_arrays(self, values: Mapping[str, Any]) -> Any:
        arrays: dict[str, np.ndarray] = {}
        sizes: dict[str, int] = {}
        for name, value in values.items():
            arrays[name] = self._array(name, value)
            sizes |= self._sizes(name, arrays[name].shape, sizes)
        for name, array in arrays.items():
            self._require_shape(name, array.shape, sizes)
            quantity = self.inputs[name]
            wrong = quantity.rule(array) if quantity.rule and array.size else None
            if wrong:
                raise InputError(f"{self.number}: {name}, {quantity.meaning}, {wrong}")
        for need in self._needs:
            parameters = inspect.signature(need).parameters
            wrong = need(**{name: arrays[name] for name in parameters})
            if wrong:
                raise InputError(f"{self.number}: {wrong}")
        return self.kernel(**sizes)(*arrays.values())

    def _array(self, name: str, value: Any) -> np.ndarray:
        try:
            array = np.asarray(value)
            array = array if array.dtype == np.float32 else array.astype(float)
        except (TypeError, ValueError):
            raise InputError(
                f"{self.number}: {name}, {self.inputs[name].meaning}, must be numbers, or a CasADi or SymPy matrix; "
                f"got {type(value).__name__}"
            ) from None
        if not np.isfinite(array).all():
            raise InputError(f"{self.number}: {name}, {self.inputs[name].meaning}, has a number that is not finite")
        return array

    def _of_casadi(self, values: Mapping[str, Any]) -> Any:
        import casadi as ca

        sizes: dict[str, int] = {}
        given = {name: x if is_symbol(x) else ca.DM(self._unbatched(name, x)) for name, x in values.items()}
        for name, x in given.items():
            sizes |= self._sizes(name, x.shape if len(self.inputs[name].shape) == 2 else x.shape[:1], sizes)
        for name, x in given.items():
            core = _numbers(self.inputs[name], sizes)
            if x.shape != (*core, 1, 1)[:2]:
                raise self._wrong_shape(name, x.shape)
        results = self.function(**sizes).call(list(given.values()))
        return tuple(results) if len(results) > 1 else results[0]

    def _of_sympy(self, values: Mapping[str, Any]) -> Any:
        import sympy

        from cardan.program.graph import read
        from cardan.readable.graph_to_sympy import written_out

        sizes: dict[str, int] = {}
        given = {name: self._explicit(name, x) for name, x in values.items()}
        for name, x in given.items():
            sizes |= self._sizes(name, x.shape if len(self.inputs[name].shape) == 2 else x.shape[:1], sizes)
        for name, x in given.items():
            if x.shape != (*_numbers(self.inputs[name], sizes), 1, 1)[:2]:
                raise self._wrong_shape(name, x.shape)
        entries = [list(x) for x in given.values()]  # row by row
        found = written_out(read(self.function(**sizes)), lambda port, element: entries[port][element])
        results = []
        for port, quantity in enumerate(self.outputs.values()):
            n, m = (*_numbers(quantity, sizes), 1, 1)[:2]
            whole = sympy.Matrix(n, m, [found[port, e] for e in range(n * m)])
            results.append(whole if quantity.shape else whole[0, 0])
        return tuple(results) if len(results) > 1 else results[0]

    def _unbatched(self, name: str, value: Any) -> np.ndarray:
        """Numbers beside symbols, as a matrix."""
        array = self._array(name, value)
        if array.ndim > max(len(self.inputs[name].shape), 1):
            raise InputError(f"{self.number}: {name} has batch axes, shape {array.shape}; symbols have none")
        return array.reshape(-1, 1) if array.ndim < 2 else array

    def _explicit(self, name: str, x: Any) -> Any:
        """A SymPy matrix with explicit entries; a scalar is 1x1, an array becomes one."""
        import sympy

        from cardan.readable.polynomial import exact, rational

        if isinstance(x, sympy.MatrixBase):
            return x
        if getattr(x, "is_Matrix", False):
            return x.as_explicit()
        if isinstance(x, sympy.Basic):
            return sympy.Matrix([[x]])
        return sympy.Matrix([[rational(exact(entry)) for entry in row] for row in self._unbatched(name, x).tolist()])

    def _sizes(self, name: str, shape: tuple[int, ...], known: Mapping[str, int]) -> dict[str, int]:
        """Sizes of the letters in the shape of an input, read off what was given."""
        core = self.inputs[name].shape
        if len(shape) < len(core):
            raise self._wrong_shape(name, shape)
        read = zip(core, shape[len(shape) - len(core) :], strict=True)
        return {letter: n for letter, n in read if isinstance(letter, str) and letter not in known}

    def _require_shape(self, name: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> None:
        core = _numbers(self.inputs[name], sizes)
        if len(shape) < len(core) or shape[len(shape) - len(core) :] != core:
            raise self._wrong_shape(name, shape)

    def _wrong_shape(self, name: str, shape: tuple[int, ...]) -> InputError:
        q = self.inputs[name]
        wanted = ", ".join(map(str, ("...", *q.shape)))
        return InputError(f"{self.number}: {name}, {q.meaning}, must be ({wanted}), got shape {tuple(shape)}")

    def _ports(self, named: Mapping[str, Quantity], sizes: Mapping[str, int]) -> list[Port]:
        return [Port(name, _numbers(q, sizes)) for name, q in named.items()]

    def _legend(self) -> str:
        """One line for each quantity: name, core shape, meaning, unit."""
        lines = []
        for word, named in (("takes", self.inputs), ("returns", self.outputs)):
            for name, q in named.items():
                core = ", ".join(map(str, ("...", *q.shape)))
                lines.append(f"{word} `{name}` ({core}): {q.meaning}{f', {q.unit}' if q.unit else ''}")
        return "\n".join(f"- {line}" for line in lines)


class Source:
    """One of the documents: its short name, its letters, and its equations by name in the order of its pages."""

    def __init__(self, short: str, title: str, quantities: Mapping[str, Quantity], zero: str = "0") -> None:
        self.short, self.title, self.quantities = short, title, quantities
        self.zero = zero  # of a column, in print
        self.equations: dict[str, Equation] = {}

    def quantity(self, name: str) -> Quantity:
        """The quantity of a name; an unknown one is a mistake in the text of an equation."""
        if name not in self.quantities:
            raise KeyError(f"{self.short} has no quantity {name!r}: declare it in its notation")
        return self.quantities[name]

    def letter(self, name: str) -> Written:
        """The letter of a quantity in print."""
        q = self.quantity(name)
        return written.symbol(q.latex, _numbers(q, {}), q.symmetric)

    def equation(
        self, number: str, *, gives: str, left: Callable[..., Any] | None = None, is_zero: bool = False,
        needs: Sequence[Need] = (), printed: bool = True,
    ) -> Callable[[Callable[..., Text]], Equation]:  # fmt: skip
        """Declare the equation of a number by its text: a function of quantities of this source, by their names.

        `gives` names the quantities it returns, separated by blanks; `left` writes the left side in print where it is
        more than their letters; `is_zero` prints `... = 0`; `printed` is False for a text that takes vectors apart,
        which has no form in print. A need takes arrays of inputs by name and returns what is wrong with them together,
        or None.
        """

        def declare(text: Callable[..., Text]) -> Equation:
            made = Equation(self, number, text, gives.split(), left, is_zero, needs, printed)
            self.equations[made.name] = made
            return made

        return declare


def _numbers(quantity: Quantity, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Core shape with the letters replaced by their sizes, 2 where none is known."""
    return tuple(sizes.get(n, 2) if isinstance(n, str) else n for n in quantity.shape)


def _is_sympy(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "sympy"


def _sympy() -> Any:
    """SymPy, and the module that makes its expressions."""
    try:
        import sympy

        from cardan.textbook import as_sympy
    except ImportError:
        raise CardanError("equations as SymPy need SymPy: pip install 'cardan[symbols]'") from None
    return sympy, as_sympy


def _signature(text: Callable[..., Text], outputs: Mapping[str, Quantity]) -> inspect.Signature:
    own = inspect.signature(text)
    result = "Array" if len(outputs) == 1 else f"tuple of {len(outputs)} arrays"
    parameters = [p.replace(annotation="ArrayLike") for p in own.parameters.values()]
    return own.replace(parameters=parameters, return_annotation=result)
