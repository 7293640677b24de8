"""The limits of the card, measured: multiply-adds in registers, bytes copied, kernels started."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.gpu.card import Graph
from benchmarks.report import Run
from benchmarks.tables import number, table
from cardan.machines.cuda import driver, ptx

CHAINS = 8  # independent multiply-adds of a thread
DEEP = 16  # multiply-adds of a chain in one turn of the loop
TURNS = 512
BLOCK, BLOCKS = 256, 32  # threads of a block; blocks for each multiprocessor, so that every lane has work
COPIED = 1 << 30  # bytes, many times the second-level cache
MOVED = 1 << 28  # bytes between host and card

_HEAD = """.version {version}
.target sm_{architecture}
.address_size 64
.visible .entry {name}({parameters})
{{
"""


def head(architecture: int, name: str, parameters: int) -> str:
    """The opening of a kernel of 64-bit arguments."""
    version = ptx._VERSIONS[architecture]
    return _HEAD.format(
        version=f"{version // 10}.{version % 10}",
        architecture=architecture,
        name=name,
        parameters=", ".join(f".param .u64 p{k}" for k in range(parameters)),
    )


def multiply_adds(architecture: int, kind: str) -> str:
    """A kernel of independent fused multiply-adds in registers, `kind` f32 or f64; arguments: where to put, turns."""
    one, small = {"f32": ("0f3F000000", "0f3F800000"), "f64": ("0d3FE0000000000000", "0d3FF0000000000000")}[kind]
    size = int(kind[1:]) // 8
    lines = [
        f".reg .{kind} %x<{CHAINS}>;", ".reg .b64 %a<5>;", ".reg .b32 %r<4>;", ".reg .pred %more;",
        "ld.param.u64 %a0, [p0];", "ld.param.u64 %a1, [p1];",
        "mov.u32 %r0, %ctaid.x;", "mov.u32 %r1, %ntid.x;", "mov.u32 %r2, %tid.x;",
        "mad.lo.u32 %r3, %r0, %r1, %r2;",
        *(f"cvt.rn.{kind}.u32 %x{c}, %r3;" for c in range(CHAINS)),
        *(f"add.{kind} %x{c}, %x{c}, %x{c - 1};" for c in range(1, CHAINS)),
        "turn:",
        *(f"fma.rn.{kind} %x{c}, %x{c}, {one}, {small};" for _ in range(DEEP) for c in range(CHAINS)),
        "sub.u64 %a1, %a1, 1;", "setp.ne.u64 %more, %a1, 0;", "@%more bra turn;",
        *(f"add.{kind} %x0, %x0, %x{c};" for c in range(1, CHAINS)),
        f"mul.wide.u32 %a2, %r3, {size};", "add.u64 %a3, %a0, %a2;", f"st.global.{kind} [%a3], %x0;",
        "ret;", "}",
    ]  # fmt: skip
    return head(architecture, "peak", 2) + "\n".join(lines) + "\n"


def copying(architecture: int) -> str:
    """A kernel that copies 16 bytes a thread; arguments: from, to."""
    lines = [
        ".reg .b64 %a<5>;", ".reg .b32 %r<8>;",
        "ld.param.u64 %a0, [p0];", "ld.param.u64 %a1, [p1];",
        "mov.u32 %r0, %ctaid.x;", "mov.u32 %r1, %ntid.x;", "mov.u32 %r2, %tid.x;",
        "mad.lo.u32 %r3, %r0, %r1, %r2;", "mul.wide.u32 %a2, %r3, 16;",
        "add.u64 %a3, %a0, %a2;", "add.u64 %a4, %a1, %a2;",
        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%a3];", "st.global.v4.b32 [%a4], {%r4, %r5, %r6, %r7};",
        "ret;", "}",
    ]  # fmt: skip
    return head(architecture, "copy", 2) + "\n".join(lines) + "\n"


def nothing(architecture: int) -> str:
    """A kernel that does nothing."""
    return head(architecture, "nothing", 1) + "ret;\n}\n"


class Limits:
    """The limits of one card; each is measured when first asked for."""

    def __init__(self, card: driver.Card, rounds: int) -> None:
        self.card, self.rounds = card, rounds
        self.architecture = ptx.architecture_for(card.capability)
        self.multiply_adds = {kind: self._multiply_adds(kind) for kind in ("f32", "f64")}  # 1/s
        self.copied = self._copied()  # bytes/s, read and written
        self.launches = self._launches()  # 1/s: from Python, in a CUDA graph
        self.moved = self._moved()  # bytes/s: to the card, from the card

    def _function(self, text: str, name: str) -> driver.Function:
        return self.card.load(self.card.compile(text, name), name)

    def _multiply_adds(self, kind: str) -> float:
        function = self._function(multiply_adds(self.architecture, kind), "peak")
        blocks = BLOCKS * self.card.multiprocessors
        place = self.card.allocate(8 * BLOCK * blocks)
        launch = lambda stream: function.launch((blocks, 1, 1), BLOCK, [place.pointer, TURNS], stream)
        seconds = median(Graph(self.card, launch, 5).seconds(self.rounds))
        return BLOCK * blocks * CHAINS * DEEP * TURNS / seconds

    def _copied(self) -> float:
        function = self._function(copying(self.architecture), "copy")
        source, target = self.card.allocate(COPIED), self.card.allocate(COPIED)
        grid, words = (COPIED // 16 // BLOCK, 1, 1), [source.pointer, target.pointer]
        data = np.random.default_rng(0).standard_normal(MOVED // 8)
        for k in range(COPIED // MOVED):
            self.card.upload(source.pointer + k * MOVED, data.ctypes.data, MOVED)
        launch = lambda stream: function.launch(grid, BLOCK, words, stream)
        seconds = median(Graph(self.card, launch, 10).seconds(self.rounds))
        self.card.download(data.ctypes.data, target.pointer + COPIED - MOVED, MOVED)
        if not np.array_equal(data, np.random.default_rng(0).standard_normal(MOVED // 8)):
            raise RuntimeError("the copy differs from its source")
        return 2 * COPIED / seconds

    def _launches(self) -> tuple[float, float]:
        function, count = self._function(nothing(self.architecture), "nothing"), 1000
        launch = lambda stream: function.launch((1, 1, 1), 32, [0], stream)
        taken = []
        for _ in range(self.rounds):
            self.card.synchronize()
            start = perf_counter()
            for _ in range(count):
                launch(0)
            self.card.synchronize()
            taken.append((perf_counter() - start) / count)
        return 1 / median(taken), 1 / median(Graph(self.card, launch, count).seconds(self.rounds))

    def _moved(self) -> tuple[float, float]:
        data, place = np.ones(MOVED // 8), self.card.allocate(MOVED)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(self.rounds):
            for k, move in enumerate((
                lambda: self.card.upload(place.pointer, data.ctypes.data, MOVED),
                lambda: self.card.download(data.ctypes.data, place.pointer, MOVED),
            )):  # fmt: skip
                start = perf_counter()
                move()
                times[k].append(perf_counter() - start)
        return MOVED / median(times[0]), MOVED / median(times[1])


def section(run: Run, limits: Limits) -> str:
    """The limits as a table."""
    rows = [
        ("fused multiply-adds a second, float32", f"{limits.multiply_adds['f32']:.3g}"),
        ("fused multiply-adds a second, float64", f"{limits.multiply_adds['f64']:.3g}"),
        ("memory copied, bytes read and written a second", f"{limits.copied:.3g}"),
        ("kernels a second, started from Python", f"{limits.launches[0]:.3g}"),
        ("kernels a second, in a CUDA graph", f"{limits.launches[1]:.3g}"),
        ("NumPy arrays to the card, GB/s", number(limits.moved[0] / 1e9)),
        ("NumPy arrays from the card, GB/s", number(limits.moved[1] / 1e9)),
    ]
    return (
        "## Limits of the card\n\nMeasured by small kernels in this run: "
        f"{CHAINS} independent chains of multiply-adds a thread in registers; a copy of 1 GiB, 16 bytes a thread; "
        "empty kernels.\n\n" + table(("limit", "measured"), rows) + "\n"
    )
