"""Print a graph as one straight line for one thread of a card, which has few registers.

The operations are those of the CPU's line (`graph.py`), and so are the bits; the order is another one, with few values
waiting at a time. Inputs are loaded where they are used, and again where they are used much later; outputs are stored
as soon as they can be. Values that do not fit the registers wait in memory, at places that are chosen here: the line is
known from end to end, while the card's compiler spills with less foresight. Sines and cosines are taken several at a
time, with one branch for large angles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cardan.machines.llvm.elementary.functions import sincos, sincos_near
from cardan.machines.llvm.graph import StraightLine
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.llvm.registers import Compute, Move, Placement, Put, frugal_order, gathered, most_waiting, place
from cardan.program.graph import Graph
from cardan.program.march import March

if TYPE_CHECKING:
    from cardan.program.program import Recorded

Load = Callable[[int, int], str]
Store = Callable[[int, int, str], None]

# values in registers at a time: of the 255 of 32 bits some are left for addresses, and for the compiler to hide the
# latency of operations
ROOM = {"float": 210, "double": 100}
FITS = {"float": 240, "double": 113}  # values at a time that need no memory at all
TOGETHER = 8  # angles whose sines and cosines are taken side by side
EARLY = 30  # values before its use that one is loaded which waits in memory of the thread
AHEAD = 300  # values before its use that an input is loaded from the card's memory
AGAIN = 400  # values after which an input is loaded again
SHORT = 2000  # operations of a step up to which a march keeps its state in registers
CONSTANTS = 4096  # most numbers in the card's memory for constants


def print_thread_function(
    graph: Graph, symbol: str, module: Module, in_place: bool, same: bool, cleared: bool, inline: bool
) -> None:
    """Define `internal void @symbol(ptr %in0, ..., ptr %out0, ...)`, as `print_graph` does for the CPU.

    With `in_place` outputs may share memory with inputs; with `same` too, output e of a port then shares it with
    input e of the port of the same number, and no other.
    """
    inputs, outputs = len(graph.input_sizes), len(graph.output_sizes)

    def load(port: int, element: int) -> str:
        return line.load(line.element(f"%in{port}", element))

    def store(port: int, element: int, value: str) -> None:
        line.store(value, line.element(f"%out{port}", element))

    line = ThreadLine(graph, module, load, store, in_place, same, cleared)
    line.run()
    alone = "" if in_place else "noalias "
    parameters = [f"ptr {alone}%in{i}" for i in range(inputs)] + [f"ptr {alone}%out{i}" for i in range(outputs)]
    head = f"define internal void @{symbol}({', '.join(parameters)}) {'alwaysinline ' if inline else ''}{{"
    module.functions[symbol] = "\n".join([head, "entry:", *line.head, *line.lines, "  ret void", "}"])


def memory(module: Module, name: str, size: int) -> list[str]:
    """Lines for the beginning of a function: memory of a thread for `size` numbers, at `%name`.

    The compilers cannot see that the address is that of an array, whose elements they would turn into registers.
    """
    t, ntid = module.type, "@llvm.nvvm.read.ptx.sreg.ntid.x"
    module.declarations.add(f"declare i32 {ntid}()")
    return [
        f"  %{name}.all = alloca [{size} x {t.scalar}], align {t.align}",
        f"  %{name}.threads = call i32 {ntid}()",
        f"  %{name}.zero = lshr i32 %{name}.threads, 11",  # a block has at most 1,024 threads
        f"  %{name} = getelementptr {t.scalar}, ptr %{name}.all, i32 %{name}.zero",
    ]


def shared_memory(module: Module, name: str) -> list[str]:
    """Lines for the beginning of a kernel: at `%name` memory of a thread among that which the threads of a block share.

    Its places lie as many numbers apart as the block has threads.
    """
    t, tid = module.type, "@llvm.nvvm.read.ptx.sreg.tid.x"
    module.declarations.add(f"declare i32 {tid}()")
    module.declarations.add(f"@shared_of_block = external addrspace(3) global [0 x {t.scalar}], align {t.align}")
    return [
        f"  %{name}.thread = call i32 {tid}()",
        f"  %{name} = getelementptr {t.scalar}, ptr addrspace(3) @shared_of_block, i32 %{name}.thread",
    ]


def array(t: VectorType, name: str, size: int) -> list[str]:
    """Lines for the beginning of a function: `size` numbers at `%name`, which LLVM turns into registers."""
    return [f"  %{name} = alloca [{size} x {t.scalar}], align {t.align}"]


def in_memory(recorded: Recorded) -> bool:
    """Whether the ports and the state of a program stay in memory, since its graphs need the registers."""
    if not isinstance(recorded, March):
        return True
    pieces = [piece for part, _ in recorded.pieces for piece in part]
    return not all(isinstance(piece, Graph) and sum(piece.operations().values()) < SHORT for piece in pieces)


class ThreadLine(StraightLine):
    """The line of one graph. `head` are lines for the beginning of the function that it stands in."""

    def __init__(
        self, graph: Graph, module: Module, load: Load, store: Store, in_place: bool = False, same: bool = False,
        cleared: bool = False, early: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(graph, module, frozenset(), in_place, sparse=True, cleared=cleared)
        self.same, self.early, self.shared = same, early or EARLY, module.shared
        self.head: list[str] = []
        self._load, self._store = load, store
        self._loaded: dict[int, int] = {}  # when each input was used last
        self._pairs: dict[int, tuple[str, str]] = {}  # sine and cosine of a value
        self._step = 0

    def run(self) -> None:
        """Print the line."""
        reads = {k: self._registers(k) for k in range(len(self.graph.op)) if self._is_printed(k)}
        stores = self._outputs(reads)
        placement, when = self._placed(reads, stores)
        if placement.places and self.shared:
            self.module.places = max(self.module.places, placement.places)
            self.head += shared_memory(self.module, "waiting")
        elif placement.places:
            self.head += memory(self.module, "waiting", placement.places)
        self._print(placement, when)

    # what is where

    def _roots(self, k: int) -> tuple[int, ...]:
        """The values that a value is made of when it is printed beside its use."""
        op, args = self.graph.op[k], self.graph.args[k]
        if op in ("input", "const"):
            return (k,)
        if op == "neg" or k in self.fused:
            return tuple(dict.fromkeys(root for a in args for root in self._roots(a)))
        return (k,)

    def _registers(self, k: int) -> tuple[int, ...]:
        """Values in registers that computing value k reads."""
        roots = dict.fromkeys(root for a in self.graph.args[k] for root in self._roots(a))
        return tuple(a for a in roots if self.graph.op[a] not in ("input", "const"))

    def _outputs(self, reads: Mapping[int, object]) -> dict[int | None, list[tuple[int, int, int]]]:
        """Outputs (port, element, value) by the value in a register that each is made of; None for inputs, numbers."""
        stores: dict[int | None, list[tuple[int, int, int]]] = {}
        for port, element, k in self.graph.outputs:
            if self.cleared and self._is_zero(k):
                continue
            (root,) = self._roots(k)
            stores.setdefault(root if root in reads else None, []).append((port, element, k))
        return stores

    def _placed(
        self, reads: dict[int, tuple[int, ...]], stores: dict[int | None, list[tuple[int, int, int]]]
    ) -> tuple[Placement, dict[int, list[tuple[int, int, int]]]]:
        """The best of several orders with its places in memory, and which outputs are stored after each value."""
        room = ROOM[self.t.scalar]
        trig = {k for k in reads if self.graph.op[k] in ("sin", "cos")}
        best: tuple[tuple[int, int], Placement, dict[int, list[tuple[int, int, int]]]] | None = None
        kept = {k for k in stores if k is not None} if self.in_place and not self.same else set()
        for order in (frugal_order(reads, kept), frugal_order(reads, kept, recent=False), list(reads)):
            order = gathered(order, reads, trig, 2 * TOGETHER)
            when = self._times(order, stores)
            read = dict(reads)
            for after, outputs in when.items():
                if after >= 0:
                    roots = dict.fromkeys(self._roots(k)[0] for _, _, k in outputs)
                    read[after] = (*read[after], *(k for k in roots if k in reads and k != after))
            late = {self._roots(k)[0] for _, _, k in when.get(-1, ())} & reads.keys()
            waiting = most_waiting(order, read, late)
            placement = place(order, read, len(order) if waiting <= FITS[self.t.scalar] else room, late)
            cost = placement.traffic, waiting
            if best is None or cost < best[0]:
                best = cost, placement, when
        assert best is not None
        return best[1:]

    def _times(
        self, order: list[int], stores: dict[int | None, list[tuple[int, int, int]]]
    ) -> dict[int, list[tuple[int, int, int]]]:
        """The outputs that are stored after each value; those under -1 at the end."""
        position, end = {k: n for n, k in enumerate(order)}, len(order)
        last: dict[tuple[int, int], int] = {}  # where each input that an output overwrites is read last
        if self.same:
            for n, k in enumerate(order):
                for a in self.graph.args[k]:
                    last |= dict.fromkeys(self._places_read(a), n)
            for _, _, k in stores.get(None, ()):
                last |= dict.fromkeys(self._places_read(k), end)
        when: dict[int, list[tuple[int, int, int]]] = {}
        for root, outputs in stores.items():
            for output in outputs:
                at_end = root is None or (self.in_place and not self.same)
                n = end if at_end or root is None else max(position[root], last.get(output[:2], -1))
                when.setdefault(order[n] if n < end else -1, []).append(output)
        return when

    def _places_read(self, k: int) -> list[tuple[int, int]]:
        """Port and element of the inputs that are loaded where value k is read."""
        return [self.graph.args[root] for root in self._roots(k) if self.graph.op[root] == "input"]

    # lines

    def _print(self, placement: Placement, when: dict[int, list[tuple[int, int, int]]]) -> None:
        steps = [move.value for move in placement.moves if isinstance(move, Compute)]
        before, loads = self._early(placement.moves), self._loads(steps)
        for n, k in enumerate(steps):
            self._step = n
            for a, use in loads.get(n, ()):
                self.name[a], self._loaded[a] = self._load(*self.graph.args[a]), use
            for move in before[n]:
                self._move(move)
            if self.graph.op[k] in ("sin", "cos") and self.graph.args[k][0] not in self._pairs:
                self._take_sincos(self._together(steps, n))
            self.name[k] = self._value(k)
            for port, element, value in when.get(k, ()):
                self._store(port, element, self._operand(value))
        for move in before[len(steps)]:
            self._move(move)
        # in place, a store may overwrite what another output still reads
        last = [(port, element, self._operand(k)) for port, element, k in when.get(-1, ())]
        for port, element, name in last:
            self._store(port, element, name)

    def _early(self, moves: list[Move]) -> list[list[Move]]:
        """Loads and stores before each step. Loads come some steps early: their latency passes meanwhile."""
        before: list[list[Move]] = [[]]
        stored: dict[int, int] = {}
        for move in moves:
            if isinstance(move, Compute):
                before.append([])
            elif isinstance(move, Put):
                stored[move.value] = len(before) - 1
                before[-1].append(move)
            else:
                before[max(len(before) - 1 - EARLY, stored[move.value])].append(move)
        return before

    def _loads(self, steps: list[int]) -> dict[int, list[tuple[int, int]]]:
        """Inputs to load before each step, with the step that reads them."""
        loads: dict[int, list[tuple[int, int]]] = {}
        last: dict[int, int] = {}
        for n, k in enumerate(steps):
            roots = dict.fromkeys(root for a in self.graph.args[k] for root in self._roots(a))
            for a in roots:
                if self.graph.op[a] == "input":
                    if n - last.get(a, -AGAIN - 1) > AGAIN:
                        loads.setdefault(max(n - self.early, 0), []).append((a, n))
                    last[a] = n
        return loads

    def _move(self, move: Move) -> None:
        """Store or load a value that waits."""
        t, k = self.t, move.value
        space, step = (" addrspace(3)", self.shared) if self.shared else ("", 1)
        at = self.new(f"getelementptr {t.scalar}, ptr{space} %waiting, i64 {move.place * step}")
        if isinstance(move, Put):
            self.lines.append(f"  store {t.scalar} {self.name[k]}, ptr{space} {at}, align {t.align}")
        else:
            self.name[k] = self.new(f"load {t.scalar}, ptr{space} {at}, align {t.align}")

    def _operand(self, k: int) -> str:
        op, args = self.graph.op[k], self.graph.args[k]
        if op == "const":
            return self._number(args[0])
        if op == "neg":
            return self.new(f"fneg {self.t.vector} {self._operand(args[0])}")
        if op == "input":
            if self._step - self._loaded.get(k, -AGAIN - 1) > AGAIN:
                self.name[k] = self._load(*args)
            self._loaded[k] = self._step
        return self.name[k]

    def _number(self, value: float) -> str:
        """A constant. An instruction has room for half a double; others come from memory for constants."""
        literal, table = self.t.splat(value), self.module.constants
        if self.t.scalar == "float" or int(literal, 16) & 0xFFFFFFFF == 0:
            return literal
        if literal not in table and len(table) == CONSTANTS:
            return literal
        k = table.setdefault(literal, len(table))
        where = self.new(f"getelementptr double, ptr addrspace(4) @constants.of.card, i64 {k}")
        return self.new(f"load double, ptr addrspace(4) {where}, align 8")

    # sines and cosines

    def _together(self, steps: list[int], n: int) -> list[int]:
        """The values whose sine and cosine are taken with that of step n."""
        found: dict[int, None] = {}
        for k in steps[n : n + 2 * TOGETHER]:
            a = self.graph.args[k][0]
            if self.graph.op[k] not in ("sin", "cos") or (len(found) == TOGETHER and a not in found):
                break
            if not all(root in self.name or self.graph.op[root] in ("input", "const") for root in self._roots(a)):
                break
            found[a] = None
        return [a for a in found if a not in self._pairs]

    def _take_sincos(self, arguments: list[int]) -> None:
        """Sines and cosines of some values; if one is large, all are taken by the function for any angle."""
        v, module = self.t.vector, self.module
        near, limit = sincos_near(module)
        size = module.intrinsic("fabs", 1)
        angles = [self._operand(a) for a in arguments]
        far = "false"
        for x in angles:
            beyond = self.new(f"fcmp ugt {v} {self.new(f'call {v} {size}({v} {x})')}, {self.t.splat(limit)}")
            far = self.new(f"or i1 {far}, {beyond}")
        label = self.label("angles")
        self.lines += [f"  br i1 {far}, label %{label}.far, label %{label}.near"]
        halves: dict[str, list[list[str]]] = {}
        for case, symbol in (("near", near), ("far", sincos(module))):
            self.lines.append(f"{label}.{case}:")
            pairs = [self.new(f"call {{ {v}, {v} }} {symbol}({v} {x})") for x in angles]
            halves[case] = [[self.new(f"extractvalue {{ {v}, {v} }} {p}, {h}") for h in (0, 1)] for p in pairs]
            self.lines.append(f"  br label %{label}.done")
        self.lines.append(f"{label}.done:")
        for k, a in enumerate(arguments):
            sine, cosine = (
                self.new(f"phi {v} " + ", ".join(f"[{halves[c][k][h]}, %{label}.{c}]" for c in ("near", "far")))
                for h in (0, 1)
            )
            self._pairs[a] = sine, cosine

    def _trig(self, argument: int, op: str) -> str:
        return self._pairs[argument][("sin", "cos").index(op)]
