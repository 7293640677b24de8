"""A program as a function of arrays on a card, or of NumPy arrays that are taken to a card and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cuda import driver, ptx
from cardan.machines.cuda.arrays import Taken, View, give, launch_geometry, signature_of, take, view_of
from cardan.machines.cuda.forms import ANY, DENSE, NARROW, PACKED, SYMBOL, THREADS, form_of, words_of
from cardan.machines.cuda.launch import Launch
from cardan.machines.cuda.place import Place
from cardan.machines.cuda.plan import Plan
from cardan.machines.host import compiling

if TYPE_CHECKING:
    from cardan.machines.build import Builder
    from cardan.program.program import Port, Program, Recorded

_LLVM_TYPE = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}

# NumPy arrays go to the card in pieces of at most this part of its free memory.
_SHARE = 0.8
_PLANS = 64  # calls of different shapes that a kernel remembers


@dataclass(frozen=True)
class Entry:
    """A kernel around a program's body: its symbol, how it is printed, and a key that tells it from others."""

    symbol: str
    print: Callable[[Any, Program, str], str]
    key: str = ""


def _print_rows(recorded: Recorded, program: Program, dtype: str, form: str) -> str:
    """IR of the kernel of rows. What prints it is not loaded where kernels are in the cache."""
    from cardan.machines.cuda.entry import print_entry

    return print_entry(recorded, program, dtype, form)


_ROWS = {form: Entry(SYMBOL, partial(_print_rows, form=form), form) for form in (ANY, NARROW, PACKED, DENSE)}
ROWS = _ROWS[ANY]


class DeviceKernel:
    """The kernels of one program on all cards and in both precisions, compiled when first called."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._functions: dict[tuple[int, np.dtype[Any], str], driver.Function] = {}
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def function(self, card: int, dtype: np.dtype[Any], entry: Entry = ROWS) -> driver.Function:
        """The compiled kernel on a card: that of rows, or another `entry` around the same program."""
        key = (card, dtype, entry.key)
        found = self._functions.get(key)
        if found is None:
            with compiling:
                if key not in self._functions:
                    self._functions[key] = self._compiled(driver.card(card), _LLVM_TYPE[dtype], entry)
            found = self._functions[key]
        return found

    def _compiled(self, card: driver.Card, kind: str, entry: Entry) -> driver.Function:
        builder, architecture = self.builder, ptx.architecture_for(card.capability)
        name = builder.program.name

        def compile_text(text: str) -> bytes:
            return card.compile(ptx.to_ptx(text, architecture), name)

        def text() -> str:
            return entry.print(builder.recorded(), builder.compiled, kind)

        what: tuple[str | int, ...] = ("cuda", kind, card.capability, driver.driver_version())
        what += (entry.key,) if entry.key else ()
        try:
            return card.load(builder.through_cache(what, text, compile_text), entry.symbol)
        except driver.CodeRefusedError:  # code that another build of the driver made
            return card.load(builder.through_cache(what, text, compile_text, fresh=True), entry.symbol)

    def __call__(self, args: Sequence[Any], out: Any = None, place: Place | None = None) -> Any:
        """Evaluate on arrays of a card; the result is an array of the same library on the same card and stream.

        `place` is where the caller wants it computed; another card than that of the arrays is an error.
        """
        key = signature_of(args, out) if place is None else None
        plan = None if key is None else self._plans.get(key)
        if plan is not None:
            answer = plan(args, out)
            if answer is not None:
                return answer
        program = self.builder.program
        taken = take(program.name, program.inputs, args, out)
        if place is not None and place.card != taken.device:
            raise InputError(
                f"{program.name}: device={str(place)!r}, but the arrays are on gpu:{taken.device}; leave device out, "
                "or move them"
            )
        results, views = give(taken, program.outputs, out)
        launches = self.launch(taken, views)
        if key is not None and taken.is_of_one_library:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = Plan(program, taken, views, args, launches)
        answers = tuple(map(taken.library.answer, results) if out is None else results)
        return answers if len(answers) > 1 else answers[0]

    def launch(self, taken: Taken, outputs: list[View]) -> list[Launch]:
        """Start the kernel for all rows of a batch; returns what was started."""
        program = self.builder.program
        pairs = [(p, a) for p, a in zip(program.ports, [*taken.views, *outputs], strict=True) if p.size]
        geometry = launch_geometry([(len(p.shape), a) for p, a in pairs], taken.batch)
        if geometry.rows == 0 or not any(p.size for p in program.outputs):
            return []
        # the compiled program of one without inputs has one that it does not read
        unread = [] if any(p.size for p in program.inputs) else [(0, (), ())]
        marks = [-(2**62) - j for j in range(len(pairs))]  # no address, size or stride
        ports = [*unread, *zip(marks, geometry.batch, geometry.core, strict=True)]
        launches = []
        for offsets, (rows, *others) in geometry.launches:
            y, z = (*others, 1, 1)[:2]
            form = form_of(self.builder.compiled, rows, (y, z), ports, taken.dtype.itemsize)
            function = self.function(taken.device, taken.dtype, _ROWS[form])
            block = block_of(rows * y * z, function)
            words = words_of(rows, ports)
            places = [words.index(mark) for mark in marks]
            launches.append(Launch(function, (-(-rows // block), y, z), block, words, places, offsets))
        for each in launches:
            each([view.pointer for _, view in pairs], taken.stream)
        taken.launched()
        return launches

    def bind(
        self, owner: str, args: Sequence[Any], out: Sequence[Any], shapes: Sequence[tuple[int, ...]]
    ) -> tuple[Callable[[], None], list[Any]]:
        """A function that evaluates what `args` hold when it is called, and the arrays that it writes into.

        These are `out`, None for new ones, with core axes as in `shapes`, which may split an axis of a port in two.
        """
        program = self.builder.program
        taken = take(owner, program.inputs, args, tuple(out))
        if not taken.is_of_one_library or taken.borrowed:
            raise InputError(
                f"{owner}: on a card arrays of one library can be bound, of torch, CuPy, Numba, Warp or cd.to_device"
            )
        given = [
            None if array is None else _reshaped(owner, port.name, array, taken.batch, shape, port.shape)
            for port, shape, array in zip(program.outputs, shapes, out, strict=True)
        ]
        flat, views = give(taken, program.outputs, tuple(given))
        pointers = [a.pointer for p, a in zip(program.ports, [*taken.views, *views], strict=True) if p.size]
        starts = [launch.bound(pointers) for launch in self.launch(taken, views)]
        library, device = taken.library, taken.device

        def start(held: Any = (args, flat, taken)) -> None:
            stream = library.stream(device)
            for each in starts:
                each(stream)

        results = [
            made.reshape(taken.batch + shape) if array is None else array
            for made, shape, array in zip(flat, shapes, out, strict=True)
        ]
        return start, results

    def on_numpy(self, card: int, dtype: np.dtype[Any], arrays: list[np.ndarray], batch: tuple[int, ...]) -> list[Any]:
        """Evaluate NumPy arrays of the compiled program on a card, in pieces that fit its memory; NumPy results.

        An array of one row serves all rows of the batch.
        """
        program = self.builder.compiled
        place, rows = driver.card(card), math.prod(batch)
        results = [np.empty(batch + port.shape, dtype) for port in program.outputs]
        if rows == 0:
            return results
        flat = [_flat(np.asarray(a, dtype), port, batch, rows) for port, a in zip(program.inputs, arrays, strict=True)]
        size = dtype.itemsize * sum(port.size for port in program.ports)
        most = min(max(int(_SHARE * place.free_bytes() / max(size, 1)), 1), 2**31)
        flat_results = [r.reshape(rows, port.size) for r, port in zip(results, program.outputs, strict=True)]
        low = 0
        while low < rows:
            piece = slice(low, low + most)
            try:
                self._piece(place, [a[piece] if len(a) == rows else a for a in flat], [r[piece] for r in flat_results])
            except driver.DeviceMemoryError:  # others took memory in the meantime
                if most == 1:
                    raise
                most = -(-min(most, rows) // 2)
            else:
                low += most
        return results

    def _piece(self, card: driver.Card, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        """Upload rows, compute, download results."""
        program, rows, ports, held = self.builder.compiled, len(outputs[0]), [], []
        for port, array in zip(program.ports, [*inputs, *outputs], strict=True):
            memory = card.allocate(array.nbytes)
            held.append(memory)
            if len(held) <= len(inputs):
                card.upload(memory.pointer, array.ctypes.data, array.nbytes)
            size = array.itemsize
            step = port.size * size if len(array) > 1 or rows == 1 else 0
            core = [math.prod(port.shape[k + 1 :]) * size for k in range(len(port.shape))]
            ports.append((memory.pointer, (step,), core))
        form = form_of(program, rows, (), ports, outputs[0].itemsize)
        function = self.function(card.index, outputs[0].dtype, _ROWS[form])
        block = block_of(rows, function)
        function.launch((-(-rows // block), 1, 1), block, words_of(rows, ports))
        for memory, array in zip(held[len(inputs) :], outputs, strict=True):
            card.download(array.ctypes.data, memory.pointer, array.nbytes)


def _reshaped(
    owner: str, name: str, array: Any, batch: tuple[int, ...], shape: tuple[int, ...], core: tuple[int, ...]
) -> Any:
    """An array for a result with the core axes of its port, on the same memory."""
    if shape == core or tuple(getattr(array, "shape", ())) != batch + shape:
        return array  # what is wrong with it is said later
    flat = array.reshape(batch + core)
    if view_of(owner, name, flat).pointer != view_of(owner, name, array).pointer:
        raise InputError(f"{owner}: out for {name} is not contiguous in its last axes; give an array that is")
    return flat


def block_of(rows: int, function: driver.Function) -> int:
    """Threads of a block: fewer where a small batch would leave parts of the card idle."""
    block = min(function.threads, THREADS)
    while block > 32 and rows < block * function.card.multiprocessors * 2:
        block //= 2
    return block


def _flat(array: np.ndarray, port: Port, batch: tuple[int, ...], rows: int) -> np.ndarray:
    """An array as rows in C order: all of the batch's, or one that serves all."""
    if array.size == port.size:
        return np.ascontiguousarray(array).reshape(1, port.size)
    return np.ascontiguousarray(np.broadcast_to(array, batch + port.shape)).reshape(rows, port.size)
