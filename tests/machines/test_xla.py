"""The handler by which XLA starts kernels on a card, called with a frame and a driver that are not there."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.fake_card import FakeDriver, fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda import driver, xla
from cardan.structure.kernels import tree_kernel

STREAM = 77
Pointer, Integer = ctypes.c_void_p, ctypes.c_int
ARGUMENTS = {
    "cuLaunchKernel": (Pointer, *[ctypes.c_uint] * 7, Pointer, Pointer, Pointer), "cuStreamGetCtx": (Pointer, Pointer),
    "cuCtxPushCurrent_v2": (Pointer,), "cuCtxPopCurrent_v2": (Pointer,), "cuCtxGetDevice": (Pointer,),
}  # fmt: skip


class Played:
    """The functions of the driver that the handler calls, and XLA's frame."""

    def __init__(self, cards: FakeDriver, card: int) -> None:
        self.cards, self.card, self.streams, self.told = cards, card, list[int](), list[bytes]()
        self.depth = 0
        self.functions = {
            name: ctypes.CFUNCTYPE(Integer, *kinds)(getattr(self, name)) for name, kinds in ARGUMENTS.items()
        }

    def address(self, name: str) -> int:
        found = ctypes.cast(self.functions[name], Pointer).value
        assert found is not None
        return found

    def cuLaunchKernel(self, function: int, *rest: Any) -> int:
        *sizes, stream, _, extra = rest
        self.streams.append(stream)
        words = ctypes.cast(extra, ctypes.POINTER(Pointer))
        count = ctypes.cast(words[3], ctypes.POINTER(ctypes.c_size_t))[0] // 8
        given = (ctypes.c_int64 * count).from_address(words[1])
        held = (Pointer * 5)(1, ctypes.addressof(given), 2, words[3], None)
        return self.cards.cuLaunchKernel(
            Pointer(function), *map(ctypes.c_uint, sizes), Pointer(stream), None, held
        )  # fmt: skip

    def cuStreamGetCtx(self, stream: int, context: int) -> int:
        Pointer.from_address(context).value = 1000 + self.card
        return 0

    def cuCtxPushCurrent_v2(self, context: int) -> int:
        self.depth += context == 1000 + self.card
        return 0

    def cuCtxPopCurrent_v2(self, context: int) -> int:
        self.depth -= 1
        return 0

    def cuCtxGetDevice(self, number: int) -> int:
        ctypes.c_int.from_address(number).value = self.card
        return 0

    def call(self, attribute: int, inputs: list[int], outputs: list[int]) -> int | None:
        """Call the handler with a frame of XLA's layout; what it returns."""

        def stream(args: int) -> None:
            assert ctypes.c_size_t.from_address(args).value == 32
            assert ctypes.c_size_t.from_address(args + 16).value == 5  # the context
            ctypes.c_size_t.from_address(args + 24).value = STREAM

        def error(args: int) -> int:
            self.told.append(ctypes.string_at(ctypes.c_size_t.from_address(args + 16).value))
            return 9

        ask, tell = ctypes.CFUNCTYPE(Pointer, Pointer)(stream), ctypes.CFUNCTYPE(Pointer, Pointer)(error)
        table = (ctypes.c_size_t * 11)()
        table[6], table[10] = (ctypes.cast(f, Pointer).value or 0 for f in (tell, ask))
        buffers = [(ctypes.c_size_t * 6)(48, 0, 12, at, 1, 0) for at in (*inputs, *outputs)]
        addresses = [ctypes.addressof(b) for b in buffers]
        ins, outs = ((ctypes.c_size_t * 8)(*part) for part in (addresses[: len(inputs)], addresses[len(inputs) :]))
        value = ctypes.c_int64(attribute)
        scalar = (ctypes.c_size_t * 2)(0, ctypes.addressof(value))
        attributes = (ctypes.c_size_t * 1)(ctypes.addressof(scalar))
        frame = (ctypes.c_size_t * 22)(176)
        frame[2], frame[3], frame[4] = ctypes.addressof(table), 5, 3
        frame[9], frame[14], frame[20] = map(ctypes.addressof, (ins, outs, attributes))
        return ctypes.CFUNCTYPE(Pointer, Pointer)(xla.handler())(ctypes.addressof(frame))


@pytest.mark.parametrize("card", [0, 1, 2])
def test_a_call_of_xla_on_a_card(card: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = mechanisms.double_pendulum().build()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 37, 2))
    kernel = tree_kernel(model, "forward_dynamics")
    cpu = kernel(q, v, tau)
    with fake_cards(cards=2) as cards:
        played = Played(cards, card)
        monkeypatch.setattr(driver, "address_of", played.address)
        found = xla.call_address(kernel, np.dtype(float), len(q))
        assert found is not None
        arrays = [cd.to_device(x, min(card, 1)) for x in (q, v, tau, np.zeros_like(cpu))]
        addresses = [x.pointer for x in arrays]
        told = played.call(found[0], addresses[:3], addresses[3:])
        assert played.depth == 0
        if card == 2:  # which this machine does not have
            assert told == 9
            assert played.told == [b"forward_dynamics: the GPU refused to start the kernel"]
            return
        assert told is None
        assert played.streams == [STREAM]
        assert np.array_equal(arrays[-1].numpy(), cpu)
        assert xla.call_address(kernel, np.dtype(float), 0) is None
