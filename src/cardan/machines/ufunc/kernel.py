"""A program as a function of NumPy arrays.

A kernel picks the precision, compiles what the call needs, and splits large batches over threads. Arrays that NumPy
refuses are explained in one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, OutOfMemoryError
from cardan.lazy import cached_property
from cardan.machines.build import Builder
from cardan.machines.cuda.place import OnHost, Place
from cardan.machines.host import compiling, few, host, load, refused_memory, takes_memory
from cardan.machines.ufunc.gufunc import LoopAddresses, make_gufunc, signature
from cardan.machines.ufunc.threads import get_threads, run_together
from cardan.machines.waiting import doing
from cardan.on_card import is_device_array
from cardan.program.program import Port, Program

if TYPE_CHECKING:
    from cardan.machines.cuda.kernel import DeviceKernel
    from cardan.machines.full_code import FullCode

_ARRAY = np.ndarray
_FLOAT64, _FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_OWN = frozenset((np.ndarray, np.float64, tuple))  # types that a ufunc returns for plain arrays
_LLVM_TYPE: dict[np.dtype[Any], str] = {_FLOAT64: "double", _FLOAT32: "float"}

# A second thread pays above this many nanoseconds of work; and about how many one operation of one row takes.
_WORTH_SPLITTING = 200_000
_NS_PER_OPERATION = 0.03

# A watched kernel shows the arguments of its 2nd, 4th, 8th ... call; past this many a call costs nothing more for it.
WATCHED = 1024

# Large batches are computed in pieces of about this many nanoseconds; Ctrl-C takes effect between two pieces.
_PIECE = 50_000_000


def compile_program(program: Program) -> Kernel:
    """A kernel of `program`. Nothing is recorded or compiled before the first call."""
    return Kernel(program)


class _Variant:
    """The ufunc of one precision, and the addresses of its loops."""

    def __init__(self, builder: Builder, dtype: np.dtype[Any]) -> None:
        self.builder, self.dtype = builder, dtype
        self.loops = LoopAddresses()
        self.code: list[Any] = []
        self.ufunc: np.ufunc | None = None
        self.loop = 0
        self.takes_memory = False
        self.to_come: dict[bool, FullCode] = {}  # of the wide loop and that on one lane, until it is there
        self.improved: Callable[[], None] = lambda: None  # called when full code is there

    def ensure(self, wide: bool, full: bool = False) -> np.ufunc:
        """The ufunc, with the loop on the host's lanes (`wide`) or on one lane compiled; with `full`, in full code."""
        if not self.has(wide, full):
            kind = _LLVM_TYPE[self.dtype]
            lanes = host().lanes(kind) if wide else 1
            code, recipe = (self.builder.code(kind, lanes), b"") if full else self.builder.first_code(kind, lanes)
            self._install(wide, code)
            self.to_come.pop(wide, None)
            if recipe:
                from cardan.machines.full_code import FullCode  # which short programs do without

                self.to_come[wide] = FullCode(recipe, partial(self._improve, wide, kind, lanes))
        assert self.ufunc is not None
        return self.ufunc

    def has(self, wide: bool, full: bool = False) -> bool:
        """Whether a loop is compiled; with `full`, in full code."""
        return bool(self.loops.wide if wide else self.loops.row) and not (full and wide in self.to_come)

    def _install(self, wide: bool, code: bytes) -> None:
        """Load a loop. One that it replaces stays loaded: a call may be inside it."""
        (loop, rows), held = load(code, "loop", "rows")
        self.code.append(held)
        self.takes_memory |= takes_memory(code)
        if self.ufunc is None:
            self.loop = loop
            self.ufunc = make_gufunc(self.builder.compiled, loop, self.loops, self.dtype, self.code)
        setattr(self.loops, "wide" if wide else "row", rows)  # last: it tells other threads that the ufunc exists

    def _improve(self, wide: bool, kind: str, lanes: int, code: bytes, text: str, is_full: bool) -> None:
        """Replace what is there by quick or full code, unless that was done; `text` is the digest of its text."""
        if wide not in self.to_come:
            return
        self._install(wide, code)
        if is_full:
            del self.to_come[wide]
            self.builder.keep(kind, lanes, text, code)
            self.improved()


class Kernel:
    """A compiled, batched function of arrays, one per input port, each `(..., *port.shape)`.

    Batch axes broadcast as NumPy's do. The result is float32 where every array given is, else float64.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.signature = signature(program)
        self._builder = Builder(program)
        self._variants = {dtype: _Variant(self._builder, dtype) for dtype in _LLVM_TYPE}
        self._has_empty_ports = any(port.size == 0 for port in program.ports)
        # float64 arrays of more elements than `_floor` and at most `_limit` go straight to `_fast`
        self._fast: Any = None
        self._floor = self._limit = 0
        self._arity = len(program.inputs)  # NumPy would take one argument more as `out`
        self._middle = self._arity // 2
        self._look: Callable[[tuple[Any, ...]], None] | None = None
        self._calls = self._closely = 0

    def __repr__(self) -> str:
        """The name and the signature."""
        return f"<kernel {self.program.name} {self.signature}>"

    @property
    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation, or one step of a march, takes; records the program if need be."""
        return self._builder.operations()

    def watch(self, look: Callable[[tuple[Any, ...]], None], closely: int = 0) -> None:
        """Let `look` see the arguments of the 2nd, 4th, 8th ... call, those of large batches without end.

        Of the first `closely` calls it sees all.
        """
        self._look, self._closely, self._fast, self._limit = look, closely, None, 0
        for variant in self._variants.values():
            if variant.ufunc is not None:
                self._open_fast_path(variant)

    def _counted(self, args: tuple[Any, ...]) -> None:
        """Count a call of a watched kernel, and let its arguments be seen at the powers of two."""
        self._calls += 1
        if self._look is not None and (self._calls <= self._closely or self._calls & (self._calls - 1) == 0):
            self._look(args)

    def prepare(self, dtype: Any = _FLOAT64) -> Kernel:
        """Compile everything that calls with this dtype may need, in full code."""
        variant = self.compiled(dtype, wide=True)
        with compiling, doing(f"compiling {self.program.name}"):
            for wide in (True, False):
                variant.ensure(wide, full=True)
        self._open_fast_path(variant)
        return self

    def ufunc(self, dtype: Any = _FLOAT64, *, wide: bool = True) -> np.ufunc:
        """The NumPy ufunc of this dtype, compiled for any batch, or (`wide=False`) for one row only.

        Ports without elements are not among its arguments. Full code for it is made at once, but may come later.
        """
        dtype = np.dtype(dtype)
        if dtype not in self._variants:
            raise InputError(f"{self.program.name}: kernels compute in float64 or float32, not in {dtype}")
        if not self._builder.compiled.outputs:
            raise InputError(f"{self.program.name}: every result is empty, there is nothing to compile")
        if wide:
            self._ensure(dtype, wide=True)
        found = self._ensure(dtype, wide=False)
        for full_code in [*self._variants[dtype].to_come.values()]:
            full_code.ask()
        return found

    def compiled(self, dtype: Any, *, wide: bool) -> _Variant:
        """The loops of one precision, that on one lane compiled and (`wide`) that on many."""
        self.ufunc(dtype, wide=wide)
        return self._variants[np.dtype(dtype)]

    def __call__(self, *args: Any, out: Any = None, threads: int | Place | None = None) -> Any:
        """Evaluate. `out` is an array, or a tuple of them; `threads` overrides the number of threads, or is a `Place`.

        Arrays on a card are computed there.
        """
        if threads is None or threads == 1:
            try:
                # one float64 array makes the result float64; a batch in a middle argument is only slower, not wrong
                first, limit = args[0], self._limit
                if (
                    type(first) is _ARRAY  # NumPy would copy arrays of JAX, Numba and Warp on a card to the host
                    and first.dtype is _FLOAT64
                    and self._floor < first.size <= limit
                    and type(args[-1]) is _ARRAY
                    and args[-1].size <= limit
                    and len(args) == self._arity
                    and type(args[self._middle]) is _ARRAY
                    and (self._arity < 4 or all(type(x) is _ARRAY for x in args))
                ):
                    result = self._fast(*args) if out is None else self._fast(*args, out=out)
                    if type(result) in _OWN:  # not so for a masked array or a Series
                        return result
            except (AttributeError, IndexError, NotImplementedError):
                pass  # not arrays
            except (ValueError, TypeError) as error:
                if all(type(a) is np.ndarray for a in args):
                    raise explain(self.program, args, out, _FLOAT64, str(error)) from None
        return self._general(args, out, threads)

    def _general(self, args: tuple[Any, ...], out: Any, threads: int | Place | None) -> Any:
        """Evaluate any arguments: lists, float32, first calls, large batches, arrays on a card."""
        if any(map(is_device_array, args)):
            if isinstance(threads, OnHost):
                raise InputError(
                    f"{self.program.name}: device='cpu', but arrays are on a GPU; leave device out, or copy them to "
                    "the host first"
                )
            return self.on_card(args, out, threads if isinstance(threads, Place) else None)
        if self._look is not None:
            self._counted(args)
        dtype = _common_dtype(args)
        ports = self.program.inputs
        place = threads if isinstance(threads, Place) else None
        if place is not None:
            threads = None
        elif threads is not None and not (isinstance(threads, int | np.integer) and threads >= 1):
            raise InputError(f"{self.program.name}: threads must be a whole number, 1 or more, got {threads!r}")
        try:
            arrays = [_as_array(a, dtype) for a in args]
            batch = _batch_shape(ports, arrays)
        except Exception as error:  # an object may raise anything when converted to an array
            raise explain(self.program, args, out, dtype, str(error)) from None
        if self._has_empty_ports:
            arrays, out, finish = self._drop_empty(arrays, batch, out, dtype)
            if not self._builder.compiled.outputs:
                return finish(())
        else:
            finish = None
        rows = math.prod(batch)
        if place is not None:
            result = self._at_place(place, arrays, batch, out, dtype)
            return finish(result) if finish else result if len(result) > 1 else result[0]
        wide = rows > few(host().lanes(_LLVM_TYPE[dtype]))
        ufunc = self._ensure(dtype, wide)
        full_code, begin = self._variants[dtype].to_come.get(wide), perf_counter()
        try:
            result = self._evaluate(ufunc, arrays, batch, out, dtype, threads)
            self._require_memory()
        except (ValueError, TypeError) as error:
            raise explain(self.program, args, out, dtype, str(error)) from None
        if full_code is not None:
            full_code.used(perf_counter() - begin)
        return finish(result if isinstance(result, tuple) else (result,)) if finish else result

    @cached_property
    def on_card(self) -> DeviceKernel:
        """The same program on a GPU."""
        from cardan.machines.cuda.kernel import DeviceKernel

        return DeviceKernel(self._builder)

    def _at_place(
        self, place: Place, arrays: list[np.ndarray], batch: tuple[int, ...], out: Any, dtype: np.dtype[Any]
    ) -> tuple[np.ndarray, ...]:
        """Evaluate NumPy arrays of the compiled program on a card."""
        for port, array in zip(self._builder.compiled.inputs, arrays, strict=True):
            if not np.can_cast(array.dtype, dtype, "safe"):
                raise explain(self.program, arrays, out, dtype, f"{port.name} has dtype {array.dtype}")
        found = self.on_card.on_numpy(place.card, dtype, arrays, batch)
        given = out if isinstance(out, tuple) else (out,) * len(found)
        if fault := _out_fault(self._builder.compiled, batch, out if out is None else tuple(given), dtype):
            raise InputError(f"{self.program.name}: {fault}")
        for result, target in zip(found, given, strict=True):
            if target is not None:
                target[...] = result
        return tuple(result if target is None else target for result, target in zip(found, given, strict=True))

    def _ensure(self, dtype: np.dtype[Any], wide: bool) -> np.ufunc:
        """Compile the loop asked for, unless that was done; other threads wait."""
        variant = self._variants[dtype]
        if not variant.has(wide):
            with compiling, doing(f"compiling {self.program.name}"):
                variant.ensure(wide)
            self._open_fast_path(variant)
        assert variant.ufunc is not None
        return variant.ufunc

    def _open_fast_path(self, variant: _Variant) -> None:
        """Let float64 calls through that need neither threads nor a loop that is not compiled yet, in full code."""
        if variant.dtype is not _FLOAT64 or self._has_empty_ports:
            return
        if variant.to_come:
            variant.improved, self._limit = partial(self._open_fast_path, variant), 0
            return
        sizes = [port.size for port in self.program.inputs]
        scant = few(host().lanes("double"))
        self._floor = 0 if variant.loops.row else scant * sizes[0]
        ufunc: Any = self._checked(variant.ufunc) if variant.takes_memory else variant.ufunc
        assert ufunc is not None

        def watched(*args: Any, **given: Any) -> Any:
            self._counted(args)
            if self._calls >= WATCHED:
                self._fast = ufunc
            return ufunc(*args, **given)

        self._fast = ufunc if self._look is None or self._calls >= WATCHED else watched
        self._limit = max(sizes) * (self._rows_worth_splitting() if variant.loops.wide else scant)

    def _checked(self, ufunc: Any) -> Callable[..., Any]:
        """A ufunc whose code asks the system for memory, with an error if there is none."""

        def checked(*args: Any, **given: Any) -> Any:
            result = ufunc(*args, **given)
            self._require_memory()
            return result

        return checked

    def _require_memory(self) -> None:
        if size := refused_memory():
            raise OutOfMemoryError(
                f"{self.program.name}: the system has not given the {size / 1e6:,.0f} MB that each thread needs to "
                "compute a few rows at a time; use fewer threads (cd.set_threads), free memory, or take a smaller model"
            )

    def _rows_worth_splitting(self) -> int:
        """From how many rows on a batch is split."""
        rows = int(_WORTH_SPLITTING / self._ns_per_row)
        return max(rows, 64 if self.program.repeats == 1 else host().lanes("double") + 1)

    @property
    def _ns_per_row(self) -> float:
        """Estimated time of one row, ns."""
        work = sum(self.operations.values()) + sum(port.size for port in self.program.ports)
        return _NS_PER_OPERATION * max(work, 1) * self.program.repeats

    def _evaluate(
        self, ufunc: np.ufunc, arrays: list[np.ndarray], batch: tuple[int, ...], out: Any, dtype: np.dtype[Any],
        threads: int | None,
    ) -> Any:  # fmt: skip
        """Call the ufunc, in pieces and on threads if the batch is large."""
        count = threads or get_threads()
        rows = math.prod(batch)
        plain = partial(ufunc, *arrays, **({} if out is None else {"out": out}))
        most = max(int(_PIECE / self._ns_per_row), 1)
        if rows < self._rows_worth_splitting() or (count < 2 and rows <= most):
            return plain()
        ports = self._builder.compiled
        results = _results(ports.outputs, batch, out, dtype, arrays)
        if results is None:
            return plain()
        axis = max(range(len(batch)), key=lambda k: batch[k])
        lanes = host().lanes(_LLVM_TYPE[dtype])
        cuts = _cuts(batch[axis], count, lanes, most * batch[axis] // rows)
        tasks: list[Callable[[], object]] = []
        for lo, hi in pairwise(cuts):
            part = partial(_slice, axis=axis - len(batch), lo=lo, hi=hi)
            ins = [part(a, core=len(p.shape)) for p, a in zip(ports.inputs, arrays, strict=True)]
            outs = tuple(part(a, core=len(p.shape)) for p, a in zip(ports.outputs, results, strict=True))
            tasks.append(partial(ufunc, *ins, out=outs))
        run_together(tasks, count)
        return results if len(results) > 1 else results[0]

    def _drop_empty(
        self, arrays: list[np.ndarray], batch: tuple[int, ...], out: Any, dtype: np.dtype[Any]
    ) -> tuple[list[np.ndarray], Any, Callable[[Sequence[Any]], Any]]:
        """Arguments of the compiled program, and a function that puts its results among the empty ones."""
        kept = [a for p, a in zip(self.program.inputs, arrays, strict=True) if p.size]
        # the batch shape may come from an array that is left out
        whole = np.broadcast_to(np.zeros((), dtype), batch)
        if kept:
            first = next(p for p in self.program.inputs if p.size)
            kept[0] = np.broadcast_to(kept[0], batch + first.shape)
        given: Sequence[Any] = out if isinstance(out, tuple) else (out,) * len(self.program.outputs)
        pairs = list(zip(self.program.outputs, given, strict=True))

        def finish(results: Sequence[Any]) -> Any:
            left = iter(results)
            every = tuple(
                next(left) if p.size else np.empty(batch + p.shape, dtype) if o is None else o for p, o in pairs
            )
            return every if len(every) > 1 else every[0]

        return kept or [whole], tuple(o for p, o in pairs if p.size), finish


def _common_dtype(args: Sequence[Any]) -> np.dtype[Any]:
    """float32 where every array is; numbers and lists follow the arrays, as Python numbers do in NumPy."""
    dtypes = {a.dtype for a in args if isinstance(a, (np.ndarray, np.generic))}
    return _FLOAT32 if dtypes == {_FLOAT32} else _FLOAT64


def _as_array(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """An array as it is; numbers and lists in the precision of the other arguments."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise ValueError("some entries are masked; fill them, or leave them out")
        return np.asarray(value)
    array = np.asarray(value)
    return array.astype(dtype) if np.can_cast(array.dtype, _FLOAT64, "safe") else array


def _batch_shape(ports: tuple[Port, ...], arrays: list[np.ndarray]) -> tuple[int, ...]:
    """The broadcast of all axes before the core ones; ValueError where a core shape is wrong."""
    batches = []
    for port, array in zip(ports, arrays, strict=True):
        split = array.ndim - len(port.shape)
        if split < 0 or array.shape[split:] != port.shape:
            raise ValueError("wrong core shape")
        batches.append(array.shape[:split])
    return np.broadcast_shapes(*batches)


def _results(
    ports: tuple[Port, ...], batch: tuple[int, ...], out: Any, dtype: np.dtype[Any], arrays: list[np.ndarray]
) -> tuple[np.ndarray, ...] | None:
    """Arrays to fill part by part; None if NumPy must handle `out`: it does not fit, or overlaps an input."""
    given = out if isinstance(out, tuple) else (out,) * len(ports)
    if len(given) != len(ports):
        return None
    results = []
    for port, array in zip(ports, given, strict=True):
        if array is None:
            array = np.empty(batch + port.shape, dtype)
        elif (
            not isinstance(array, np.ndarray)
            or array.shape != batch + port.shape
            or any(np.may_share_memory(array, a) for a in arrays)
        ):
            return None
        results.append(array)
    return tuple(results)


def _cuts(size: int, parts: int, lanes: int, most: int) -> list[int]:
    """Cut points of `size` rows into parts of whole lanes: `parts` of them, or more where these would pass `most`."""
    share = -(-min(-(-size // parts), max(most, 1)) // lanes) * lanes
    return [*range(0, size, share), size]


def _slice(array: np.ndarray, *, axis: int, lo: int, hi: int, core: int) -> np.ndarray:
    """Rows `lo` to `hi` along a batch axis (negative, from the last one), where the array has that axis."""
    place = array.ndim - core + axis
    if place < 0 or array.shape[place] == 1:
        return array
    return array[(slice(None),) * place + (slice(lo, hi),)]


def explain(program: Program, args: Sequence[Any], out: Any, dtype: np.dtype[Any], refusal: str) -> InputError:
    """The error to raise for a call that NumPy refused with the message `refusal`."""
    return InputError(f"{program.name}: {_fault(program, args, out, dtype) or refusal}")


def _fault(program: Program, args: Sequence[Any], out: Any, dtype: np.dtype[Any]) -> str | None:
    """What is wrong with the arguments, or None if nothing was found."""
    ports = program.inputs
    if len(args) < len(ports):
        missing = ports[len(args) :]
        return f"missing argument{'s' if len(missing) > 1 else ''} {', '.join(port.name for port in missing)}"
    if len(args) > len(ports):
        return f"takes {len(ports)} arrays ({', '.join(port.name for port in ports)}), got {len(args)}"
    arrays = []
    for port, arg in zip(ports, args, strict=True):
        if np.ma.is_masked(arg):
            return f"{port.name} has masked entries; fill them, or leave their rows out"
        if found := _what_takes(arg, program.name):
            return f"{port.name} {found}"
        if callable(arg):
            return f"{port.name} is a function; call it, and give the numbers that it returns"
        try:
            array = np.asarray(arg)
        except ValueError:
            return f"{port.name} is not an array of numbers: its rows have different lengths"
        except Exception as error:  # an object may raise anything when converted to an array
            return f"{port.name} is not an array of numbers: {error}"
        if array.dtype == object and (
            found := next(filter(None, (_what_takes(x, program.name) for x in array.flat)), "")
        ):
            return f"{port.name} {found}"
        if array.dtype == object or array.dtype.kind in "USV":
            kind = "objects" if array.ndim else "None" if arg is None else f"a {type(arg).__name__}"
            kind = "text" if array.dtype.kind in "US" else kind
            return f"{port.name} must be numbers of shape (..., {', '.join(map(str, port.shape))}), got {kind}"
        if not np.can_cast(array.dtype, dtype, "safe"):
            return f"{port.name} has dtype {array.dtype}, which cannot be cast to {dtype} safely"
        arrays.append(array)
    if fault := shape_fault(ports, [array.shape for array in arrays]):
        return fault
    batches = [array.shape[: array.ndim - len(port.shape)] for port, array in zip(ports, arrays, strict=True)]
    return _out_fault(program, np.broadcast_shapes(*batches), out, dtype)


def _what_takes(thing: Any, quantity: str) -> str:
    """What takes symbols of other libraries instead, as the tail of a sentence; empty for anything else."""
    library, kind = type(thing).__module__.partition(".")[0], type(thing).__name__
    if library == "casadi" and kind in ("SX", "MX"):
        return (
            f"is a symbol of CasADi, and this function takes numbers; cd.casadi_function(model, {quantity!r}) takes it"
        )
    if library in ("jax", "jaxlib") and "Tracer" in kind:
        return f"is traced by JAX, and this function takes numbers; cd.jax_function(model, {quantity!r}) takes it"
    if library == "torch" and getattr(thing, "requires_grad", False):
        return f"asks for a gradient, which this function has not; cd.torch_function(model, {quantity!r}) has it"
    if library == "sympy":
        return "has symbols of SymPy, and this function takes numbers; cd.equations(model) gives equations of symbols"
    return ""


def shape_fault(ports: Sequence[Port], shapes: Sequence[tuple[int, ...]]) -> str | None:
    """What is wrong with the shapes of arrays, one for each port, or None."""
    for port, shape in zip(ports, shapes, strict=True):
        if fault := _core_fault(port, shape):
            return fault
    batches = [shape[: len(shape) - len(port.shape)] for port, shape in zip(ports, shapes, strict=True)]
    for i, a in enumerate(batches):
        for j in range(i + 1, len(batches)):
            if not _broadcast(a, batches[j]):
                b, p, r = batches[j], ports[i].name, ports[j].name
                return f"batch shapes {a} of {p} and {b} of {r} do not broadcast"
    return None


def _core_fault(port: Port, shape: tuple[int, ...]) -> str | None:
    core, name = port.shape, port.name
    if len(shape) < len(core):
        wanted = ", ".join(map(str, core))
        return f"{name} has shape {shape}, the model needs (..., {wanted})"
    if shape[len(shape) - len(core) :] == core:
        return None
    if len(core) == 1:
        n = shape[-1]
        listed = f", for the joints {port.entries}" if port.entries else ""
        turned = "; rows of a batch come first, so give its transpose" if shape[:-1] == core else ""
        return f"{name} has {n} entries along its last axis, the model needs {core[0]} (shape {shape}){listed}{turned}"
    return f"{name} ends in {shape[-2:]} along its last two axes, the model needs {core} (shape {shape})"


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _out_fault(program: Program, batch: tuple[int, ...], out: Any, dtype: np.dtype[Any]) -> str | None:
    if out is None:
        return None
    given = out if isinstance(out, tuple) else (out,)
    if len(given) != len(program.outputs):
        return f"out has {len(given)} arrays, the results are {len(program.outputs)}"
    for port, array in zip(program.outputs, given, strict=True):
        if array is None:
            continue
        if not isinstance(array, np.ndarray):
            return f"out for {port.name} is a {type(array).__name__}, not a NumPy array"
        if array.shape != batch + port.shape:
            return f"out for {port.name} has shape {array.shape}, the result has {batch + port.shape}"
        if not np.can_cast(dtype, array.dtype, "same_kind"):
            return f"out for {port.name} has dtype {array.dtype}, which cannot hold {dtype}"
        if not array.flags.writeable:
            return f"out for {port.name} is read-only"
    return None
