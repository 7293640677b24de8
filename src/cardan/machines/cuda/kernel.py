"""A program as a function of arrays on a card, or of NumPy arrays that are taken to a card and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.machines.cuda import driver, ptx
from cardan.machines.cuda.arrays import Taken, View, give, launch_geometry, take
from cardan.machines.cuda.entry import SYMBOL, THREADS, print_entry, words_of
from cardan.machines.host import compiling

if TYPE_CHECKING:
    from cardan.machines.build import Builder
    from cardan.program.program import Port

_LLVM_TYPE = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}

# NumPy arrays go to the card in pieces of at most this part of its free memory.
_SHARE = 0.8


class DeviceKernel:
    """The kernels of one program on all cards and in both precisions, compiled when first called."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._functions: dict[tuple[int, np.dtype[Any]], driver.Function] = {}

    def function(self, card: int, dtype: np.dtype[Any]) -> driver.Function:
        """The compiled kernel on a card."""
        found = self._functions.get((card, dtype))
        if found is None:
            with compiling:
                if (card, dtype) not in self._functions:
                    self._functions[card, dtype] = self._compiled(driver.card(card), _LLVM_TYPE[dtype])
            found = self._functions[card, dtype]
        return found

    def _compiled(self, card: driver.Card, kind: str) -> driver.Function:
        builder, architecture = self.builder, ptx.architecture_for(card.capability)
        name = builder.program.name

        def compile_text(text: str) -> bytes:
            return card.compile(ptx.to_ptx(text, architecture), name)

        def text() -> str:
            return print_entry(builder.recorded(), builder.compiled, kind)

        what = ("cuda", kind, card.capability, driver.driver_version())
        try:
            return card.load(builder.through_cache(what, text, compile_text), SYMBOL)
        except driver.CodeRefusedError:  # code that another build of the driver made
            return card.load(builder.through_cache(what, text, compile_text, fresh=True), SYMBOL)

    def __call__(self, args: Sequence[Any], out: Any = None) -> Any:
        """Evaluate on arrays of a card; the result is an array of the same library on the same card and stream."""
        program = self.builder.program
        taken = take(program.name, program.inputs, args, out)
        results, views = give(taken, program.outputs, out)
        self.launch(taken, views)
        answers = tuple(map(taken.library.answer, results) if out is None else results)
        return answers if len(answers) > 1 else answers[0]

    def launch(self, taken: Taken, outputs: list[View]) -> None:
        """Start the kernel for all rows of a batch."""
        program = self.builder.program
        pairs = [(p, a) for p, a in zip(program.ports, [*taken.views, *outputs], strict=True) if p.size]
        geometry = launch_geometry([(len(p.shape), a) for p, a in pairs], taken.batch)
        if geometry.rows == 0 or not any(p.size for p in program.outputs):
            return
        function, multiprocessors = self.function(taken.device, taken.dtype), driver.card(taken.device).multiprocessors
        # the compiled program of one without inputs has one that it does not read
        unread = [] if any(p.size for p in program.inputs) else [(0, (), ())]
        for offsets, (rows, *others) in geometry.launches:
            ports = [
                (view.pointer + offset, batch, core)
                for (_, view), offset, batch, core in zip(pairs, offsets, geometry.batch, geometry.core, strict=True)
            ]
            y, z = (*others, 1, 1)[:2]
            block = _block(rows * y * z, multiprocessors)
            function.launch((-(-rows // block), y, z), block, words_of(rows, [*unread, *ports]), taken.stream)
        taken.launched()

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
        most = max(int(_SHARE * place.free_bytes() / max(size, 1)), 1)
        flat_results = [r.reshape(rows, port.size) for r, port in zip(results, program.outputs, strict=True)]
        function = self.function(card, dtype)
        low = 0
        while low < rows:
            piece = slice(low, low + most)
            try:
                self._piece(
                    place, function, [a[piece] if len(a) == rows else a for a in flat], [r[piece] for r in flat_results]
                )
            except driver.DeviceMemoryError:  # others took memory in the meantime
                if most == 1:
                    raise
                most = -(-min(most, rows) // 2)
            else:
                low += most
        return results

    def _piece(
        self, card: driver.Card, function: driver.Function, inputs: list[np.ndarray], outputs: list[np.ndarray]
    ) -> None:
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
        block = _block(rows, card.multiprocessors)
        function.launch((-(-rows // block), 1, 1), block, words_of(rows, ports))
        for memory, array in zip(held[len(inputs) :], outputs, strict=True):
            card.download(array.ctypes.data, memory.pointer, array.nbytes)


def _block(rows: int, multiprocessors: int) -> int:
    """Threads of a block: fewer where a small batch would leave parts of the card idle."""
    block = THREADS
    while block > 32 and rows < block * multiprocessors * 2:
        block //= 2
    return block


def _flat(array: np.ndarray, port: Port, batch: tuple[int, ...], rows: int) -> np.ndarray:
    """An array as rows in C order: all of the batch's, or one that serves all."""
    if array.size == port.size:
        return np.ascontiguousarray(array).reshape(1, port.size)
    return np.ascontiguousarray(np.broadcast_to(array, batch + port.shape)).reshape(rows, port.size)
