"""A program as a function of arrays on a card, or of NumPy arrays that are taken to a card and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cuda import driver, ptx
from cardan.machines.cuda.arrays import View, constant, launches, library_of, view_of
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
        return card.load(builder.through_cache(what, text, compile_text), SYMBOL)

    def __call__(self, args: Sequence[Any], out: Any = None) -> Any:
        """Evaluate on arrays of a card; the result is an array of the same library on the same card and stream."""
        program = self.builder.program
        if len(args) != len(program.inputs):
            names = ", ".join(port.name for port in program.inputs)
            raise InputError(f"{program.name}: takes {len(program.inputs)} arrays ({names}), got {len(args)}")
        library = library_of(program.name, [(p.name, a) for p, a in zip(program.inputs, args, strict=True)])
        dtype, device = library.dtype, library.device
        stream = library.stream()
        inputs = []
        for port, value in zip(program.inputs, args, strict=True):
            given = library.is_array(value)
            view = view_of(program.name, port.name, value, stream) if given else constant(value, dtype, device)
            inputs.append(_checked(program.name, port, view))
        batch = _batch_of(program.name, program.inputs, inputs)
        outs = out if isinstance(out, tuple | list) else (out,) * len(program.outputs)
        if len(outs) != len(program.outputs):
            raise InputError(f"{program.name}: out has {len(outs)} arrays, the results are {len(program.outputs)}")
        results, views = [], []
        for port, place in zip(program.outputs, outs, strict=True):
            result = library.empty(batch + port.shape, inputs) if place is None else place
            view = view_of(program.name, f"out for {port.name}", result, stream)
            if view.shape != batch + port.shape or view.dtype != dtype or view.device != device:
                raise InputError(
                    f"{program.name}: out for {port.name} has shape {view.shape}, {view.dtype}, on gpu:{view.device}; "
                    f"the result has shape {batch + port.shape}, {dtype}, on gpu:{device}"
                )
            results.append(result)
            views.append(view)
        self._launch(device, dtype, batch, inputs, views, stream)
        answers = tuple(library.answer(result, place) for result, place in zip(results, outs, strict=True))
        return answers if len(answers) > 1 else answers[0]

    def _launch(
        self, device: int, dtype: np.dtype[Any], batch: tuple[int, ...], inputs: list[View], outputs: list[View],
        stream: int,
    ) -> None:  # fmt: skip
        """Start the kernel for all rows of a batch."""
        program = self.builder.program
        pairs = [(p, a) for p, a in zip(program.ports, [*inputs, *outputs], strict=True) if p.size]
        if math.prod(batch) == 0 or not any(p.size for p in program.outputs):
            return
        function = self.function(device, dtype)
        for rows, others, ports in launches(batch, [(a, len(p.shape)) for p, a in pairs]):
            if not any(p.size for p in program.inputs):  # the compiled program has one input that it does not read
                ports = [(0, (), ()), *ports]
            block = _block(rows, driver.card(device).multiprocessors)
            function.launch((-(-rows // block), *others), block, words_of(rows, ports), stream)

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
        for low in range(0, rows, most):
            self._piece(place, function, [a[low : low + most] if len(a) == rows else a for a in flat],
                        [r[low : low + most] for r in flat_results])  # fmt: skip
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


def _checked(owner: str, port: Port, view: View) -> View:
    """The view, if it ends in the port's shape."""
    split = len(view.shape) - len(port.shape)
    if split < 0 or view.shape[split:] != port.shape:
        wanted = ", ".join(map(str, port.shape))
        raise InputError(f"{owner}: {port.name} has shape {view.shape}, the model needs (..., {wanted})")
    return view


def _batch_of(owner: str, ports: Sequence[Port], views: list[View]) -> tuple[int, ...]:
    """The broadcast of all axes before those of a row."""
    shapes = [view.shape[: len(view.shape) - len(port.shape)] for port, view in zip(ports, views, strict=True)]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        told = ", ".join(f"{port.name} {shape}" for port, shape in zip(ports, shapes, strict=True))
        raise InputError(f"{owner}: the batch shapes do not broadcast: {told}") from None
