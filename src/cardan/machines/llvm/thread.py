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
from cardan.machines.llvm.elementary.reciprocal import reciprocal_near
from cardan.machines.llvm.graph import COMPARISONS, StraightLine
from cardan.machines.llvm.module import SHARING, Module, VectorType
from cardan.machines.llvm.registers import (
    Compute,
    Move,
    Placement,
    Put,
    Take,
    frugal_order,
    gathered,
    most_waiting,
    place,
)
from cardan.program.graph import Graph
from cardan.program.march import March

if TYPE_CHECKING:
    from cardan.program.program import Recorded

_LOGIC = frozenset((*COMPARISONS, "and", "or", "not", "if_else", "if_else_zero"))
Load = Callable[..., str]  # of port and element; in a loop, besides, the name of how many elements further
Store = Callable[[int, int, str], None]

# values in registers at a time: of the 255 of 32 bits some are left for addresses, and for the compiler to hide the
# latency of operations
ROOM = {"float": 210, "double": 100}
FITS = {"float": 240, "double": 113}  # values at a time that need no memory at all
TOGETHER = 8  # angles whose sines and cosines are taken side by side
LOOPED = 3  # groups of so many angles from which on they are taken in a loop
EARLY = 30  # values before its use that one is loaded which waits in memory of the thread
AHEAD = 300  # values before its use that an input is loaded from the card's memory
AGAIN = 400  # values after which an input is loaded again
SHARED = 48 * 1024  # bytes of memory that the threads of a block share
# times as many values as this memory holds, from which on all wait in memory of the thread; a march needs the cache
MOSTLY = {False: 1.62, True: 1.5}
OWN = 256  # bytes of values that wait up to which the memory is a thread's own: the nearest cache holds it
SHORT, FEW = 8000, 80  # operations of a step, and numbers of its state, up to which a march has that in registers
SOON = 40  # steps for which the truth of a comparison is kept


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


def shared_memory(module: Module, name: str, size: int) -> list[str]:
    """Lines for the beginning of a function: at `%name` a thread's first of `size` numbers in the memory of its block.

    The numbers of one thread lie `SHARING` apart, so that those of neighbours are in different banks.
    """
    t, tid = module.type, "@llvm.nvvm.read.ptx.sreg.tid.x"
    module.declarations.add(f"declare i32 {tid}()")
    module.shared, module.threads = max(module.shared, size), SHARING
    return [
        f"  %{name}.thread = call i32 {tid}()",
        f"  %{name} = getelementptr {t.scalar}, ptr addrspace(3) @shared.of.block, i32 %{name}.thread",
    ]


def array(module: Module, name: str, size: int) -> list[str]:
    """Lines for the beginning of a function: `size` numbers at `%name`, which LLVM turns into registers."""
    t = module.type
    module.standing += size
    return [f"  %{name} = alloca [{size} x {t.scalar}], align {t.align}"]


def in_memory(recorded: Recorded, t: VectorType) -> bool:
    """Whether the ports and the state of a program stay in memory, since its graphs need the registers.

    A march of a short step keeps its state in registers, in single precision.
    """
    if not isinstance(recorded, March) or t.scalar == "double" or sum(recorded.argument_sizes) > FEW:
        return True
    pieces = [piece for part, _ in recorded.pieces for piece in part]
    return not all(isinstance(piece, Graph) and sum(piece.operations().values()) < SHORT for piece in pieces)


class ThreadLine(StraightLine):
    """The line of one graph. `head` are lines for the beginning of the function that it stands in.

    A `quick` line takes reciprocals, sines and cosines for ordinary numbers, without branches, across which the card's
    compiler moves nothing. If one of its `doubts` is true, a line that is not quick has to compute all results again.
    """

    def __init__(
        self, graph: Graph, module: Module, load: Load, store: Store, in_place: bool = False, same: bool = False,
        cleared: bool = False, early: int = 0, looped: bool = False, quick: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(graph, module, "v", frozenset(), in_place, sparse=True, cleared=cleared)
        self.same, self.early, self.looped, self.quick = same, early or EARLY, looped, quick
        self.doubts: list[str] = []  # of a quick line: values, each true if some result is wrong
        self.groups: list[tuple[int, int]] = []  # port and first element of angles that one turn of the loop takes
        self.block = ""  # the one that lines are added to
        self.shared = 0  # places in the memory of a block
        self.head: list[str] = []
        self._load, self._store = load, store
        self._loaded: dict[int, int] = {}  # when each input was used last
        self._pairs: dict[int, tuple[str, str]] = {}  # sine and cosine of a value
        self._truths: dict[int, tuple[str, int]] = {}  # whether a value is not zero, and the step that found it
        self._made_of: dict[int, tuple[int, ...]] = {}
        self._step = 0

    def run(self) -> None:
        """Print the line."""
        if self.looped:
            self._choose_loop()
        self._loop_over_angles()
        reads = {k: self._registers(k) for k in range(len(self.graph.op)) if self._is_printed(k)}
        stores = self._outputs(reads)
        placement, when = self._placed(reads, stores)
        self._reserve(placement.places)
        self._print(placement, when)

    # what is where

    def _reserve(self, places: int) -> None:
        """Memory for values that wait: that of a block, as far as it goes, where they are many; else a thread's own."""
        size = self.t.align
        most = SHARED // (SHARING * size) - self.module.staged
        if self.module.share and places * size > OWN and places < MOSTLY[self.same] * most:
            self.shared = min(places, most)
            self.head += shared_memory(self.module, "waiting.block", self.shared)
        if places > self.shared:
            self.head += memory(self.module, "waiting", places - self.shared)

    def _roots(self, k: int) -> tuple[int, ...]:
        """The values that a value is made of when it is printed beside its use."""
        if self.graph.op[k] != "neg" and k not in self.fused:
            return (k,)
        found = self._made_of.get(k)
        if found is None:
            found = tuple(dict.fromkeys(root for a in self.graph.args[k] for root in self._roots(a)))
            self._made_of[k] = found
        return found

    def _registers(self, k: int) -> tuple[int, ...]:
        """Values in registers that computing value k reads."""
        roots = dict.fromkeys(root for a in self.graph.args[k] for root in self._roots(a))
        return tuple(a for a in roots if not self._is_outside(a))

    def _is_outside(self, k: int) -> bool:
        """Whether a value is a number, or is loaded from memory where it is used."""
        return self.graph.op[k] in ("input", "const") or self._is_hoisted(k)

    def _outputs(self, reads: Mapping[int, object]) -> dict[int | None, list[tuple[int, int, int]]]:
        """Outputs (port, element, value) by the value in a register that each is made of; None for inputs, numbers."""
        stores: dict[int | None, list[tuple[int, int, int]]] = {}
        for port, element, k in self.graph.outputs:
            if port < 0 or (self.cleared and self._is_zero(k)):  # port -1: a value of its own, which is not stored
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
        self.module.waiting = max(self.module.waiting, best[0][1])
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
                self.name[a], self._loaded[a] = self._outside(a), use
            for move in before[n]:
                self._move(move)
            if self.graph.op[k] in ("sin", "cos") and self.graph.args[k][0] not in self._pairs:
                together = self._together(steps, n)
                angles = [self._operand(a) for a in together]
                self._pairs |= zip(together, self._take_sincos(angles, self.quick), strict=True)
            self.name[k] = self.value(k)
            for port, element, value in when.get(k, ()):
                self._store(port, element, self._operand(value))
        for move in before[len(steps)]:
            self._move(move)
        # in place, a store may overwrite what another output still reads
        last = [(port, element, self._operand(k)) for port, element, k in when.get(-1, ())]
        for port, element, name in last:
            self._store(port, element, name)

    def _early(self, moves: list[Move]) -> list[list[Put | Take]]:
        """Loads and stores before each step. Loads come some steps early: their latency passes meanwhile."""
        before: list[list[Put | Take]] = [[]]
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
                if self.graph.op[a] != "const" and self._is_outside(a):
                    early, again = self._habits(a)
                    if n - last.get(a, -again - 1) > again:
                        loads.setdefault(max(n - early, 0), []).append((a, n))
                    last[a] = n
        return loads

    def _move(self, move: Put | Take) -> None:
        """Store or load a value that waits."""
        t, k, space = self.t, move.value, ""
        if move.place < self.shared:
            space, base, place = " addrspace(3)", "%waiting.block", move.place * SHARING
        else:
            base, place = "%waiting", move.place - self.shared
        at = self.new(f"getelementptr {t.scalar}, ptr{space} {base}, i64 {place}")
        if isinstance(move, Put):
            self.lines.append(f"  store {t.scalar} {self.name[k]}, ptr{space} {at}, align {t.align}")
        else:
            self.name[k] = self.new(f"load {t.scalar}, ptr{space} {at}, align {t.align}")

    def _operand(self, k: int) -> str:
        op, args = self.graph.op[k], self.graph.args[k]
        if op == "const":
            return self.constant(self.module, args[0])
        if op == "neg":
            return self.new(f"fneg {self.t.vector} {self._operand(args[0])}")
        if self._is_outside(k):
            again = self._habits(k)[1]
            if self._step - self._loaded.get(k, -again - 1) > again:
                self.name[k] = self._outside(k)
            self._loaded[k] = self._step
        return self.name[k]

    def _habits(self, k: int) -> tuple[int, int]:
        """How many steps before its use a value from memory is loaded, and after how many once more."""
        return (self.early, AGAIN) if self.graph.op[k] == "input" else (EARLY, 8 * EARLY)

    def _outside(self, k: int) -> str:
        """Load an input, or a sine or cosine that was taken in the loop."""
        op, args = self.graph.op[k], self.graph.args[k]
        if op == "input":
            return self._load(*args)
        at = self.element("%turned", 2 * self.hoisted[args[0]] + ("sin", "cos").index(op))
        # volatile: the compiler would load it once and keep it
        return self.new(f"load volatile {self.t.scalar}, ptr {at}, align {self.t.align}")

    def value(self, k: int) -> str:
        """Print one operation; the name of its result."""
        op = self.graph.op[k]
        if op == "inv" and self.quick:
            pair, x = f"{{ {self.t.vector}, i1 }}", self._operand(self.graph.args[k][0])
            found = self.new(f"call {pair} {reciprocal_near(self.module)}({self.t.vector} {x})")
            self.doubts.append(self.new(f"extractvalue {pair} {found}, 1"))
            return self.new(f"extractvalue {pair} {found}, 0")
        return self._judged(k) if op in _LOGIC else super().value(k)

    def _judged(self, k: int) -> str:
        """A comparison, or what depends on one. Its truth serves at once where it is read soon, not by the number."""
        op, args, v = self.graph.op[k], self.graph.args[k], self.t.vector
        one, zero = self.t.splat(1.0), self.t.splat(0.0)
        if op in ("if_else", "if_else_zero"):
            truth, yes = self._truth(args[0]), self._operand(args[1])
            no = self._operand(args[2]) if op == "if_else" else zero
            return self.new(f"select i1 {truth}, {v} {yes}, {v} {no}")
        if op == "not":
            truth = self.new(f"xor i1 {self._truth(args[0])}, true")
        elif op in ("and", "or"):
            truth = self.new(f"{op} i1 {self._truth(args[0])}, {self._truth(args[1])}")
        else:
            x = [self._operand(a) for a in args]
            truth = self.new(f"fcmp {COMPARISONS[op]} {v} {x[0]}, {x[1]}")
        self._truths[k] = truth, self._step
        return self.new(f"select i1 {truth}, {v} {one}, {v} {zero}")

    def _truth(self, k: int) -> str:
        """Whether a value is not zero."""
        truth, step = self._truths.get(k, ("", -SOON - 1))
        if self._step - step <= SOON:
            return truth
        truth = self.new(f"fcmp une {self.t.vector} {self._operand(k)}, {self.t.splat(0.0)}")
        self._truths[k] = truth, self._step
        return truth

    # sines and cosines

    def _together(self, steps: list[int], n: int) -> list[int]:
        """The values whose sine and cosine are taken with that of step n."""
        found: dict[int, None] = {}
        for k in steps[n : n + 2 * TOGETHER]:
            a = self.graph.args[k][0]
            if self.graph.op[k] not in ("sin", "cos") or (len(found) == TOGETHER and a not in found):
                break
            if not all(root in self.name or self._is_outside(root) for root in self._roots(a)):
                break
            found[a] = None
        return [a for a in found if a not in self._pairs]

    def _take_sincos(self, angles: list[str], quick: bool = False) -> list[tuple[str, str]]:
        """Sines and cosines of some angles; if one is large, all are taken by the function for any angle."""
        v, module = self.t.vector, self.module
        near, limit = sincos_near(module)
        size = module.intrinsic("fabs", 1)
        far = "false"
        for x in angles:
            beyond = self.new(f"fcmp ugt {v} {self.new(f'call {v} {size}({v} {x})')}, {self.t.splat(limit)}")
            far = self.new(f"or i1 {far}, {beyond}")
        if quick:
            self.doubts.append(far)
            return [self._halves(near, x) for x in angles]
        label = self.label("angles")
        self.lines += [f"  br i1 {far}, label %{label}.far, label %{label}.near"]
        halves: dict[str, list[tuple[str, str]]] = {}
        for case, symbol in (("near", near), ("far", sincos(module))):
            self.lines.append(f"{label}.{case}:")
            halves[case] = [self._halves(symbol, x) for x in angles]
            self.lines.append(f"  br label %{label}.done")
        self.lines.append(f"{label}.done:")
        self.block = f"{label}.done"
        found = []
        for k in range(len(angles)):
            sine, cosine = (
                self.new(f"phi {v} " + ", ".join(f"[{halves[c][k][h]}, %{label}.{c}]" for c in ("near", "far")))
                for h in (0, 1)
            )
            found.append((sine, cosine))
        return found

    def _halves(self, symbol: str, x: str) -> tuple[str, str]:
        """Sine and cosine of an angle by a function."""
        v = self.t.vector
        pair = self.new(f"call {{ {v}, {v} }} {symbol}({v} {x})")
        sine, cosine = (self.new(f"extractvalue {{ {v}, {v} }} {pair}, {half}") for half in (0, 1))
        return sine, cosine

    def _choose_loop(self) -> None:
        """Choose the inputs whose sines and cosines are taken in a loop, `TOGETHER` of them at a time: less code."""
        graph = self.graph
        wanted: dict[tuple[int, int], int] = {}
        for k, op in enumerate(graph.op):
            a = graph.args[k][0] if op in ("sin", "cos") and self.uses[k] else None
            if a is not None and graph.op[a] == "input":
                wanted[graph.args[a]] = a
        for port, element in sorted(wanted):
            run = [(port, element + n) for n in range(TOGETHER)]
            if all(place in wanted and wanted[place] not in self.hoisted for place in run):
                self.groups.append((port, element))
                self.hoisted |= {wanted[place]: len(self.hoisted) + n for n, place in enumerate(run)}
        if len(self.groups) < LOOPED:
            self.groups, self.hoisted = [], {}

    def _loop_over_angles(self) -> None:
        """Print the loop. Groups of one port that follow each other make one loop."""
        if not self.groups:
            return
        self.head += memory(self.module, "turned", 2 * len(self.hoisted))
        runs: list[list[tuple[int, int]]] = []
        for port, element in self.groups:
            if runs and runs[-1][-1] == (port, element - TOGETHER):
                runs[-1].append((port, element))
            else:
                runs.append([(port, element)])
        done = 0
        for run in runs:
            label = self.label("turns")
            self.lines += [f"  br label %{label}.in", f"{label}.in:", f"  br label %{label}", f"{label}:"]
            count = len(self.lines)
            self.lines.append("")
            first = self.new(f"mul i64 %{label}.i, {TOGETHER}")
            angles = [self._load(run[0][0], run[0][1] + n, first) for n in range(TOGETHER)]
            pairs = self._take_sincos(angles)
            row = self.new(f"add i64 {first}, {done}")
            at = self.new(f"getelementptr [2 x {self.t.scalar}], ptr %turned, i64 {row}")
            for n, value in enumerate(value for pair in pairs for value in pair):
                self.store(value, self.element(at, n))
            self.lines[count] = f"  %{label}.i = phi i64 [0, %{label}.in], [%{label}.next, %{self.block}]"
            self.lines.append(f"  %{label}.next = add i64 %{label}.i, 1")
            more = self.new(f"icmp ult i64 %{label}.next, {len(run)}")
            self.lines += [f"  br i1 {more}, label %{label}, label %{label}.out", f"{label}.out:"]
            done += TOGETHER * len(run)

    def _trig(self, argument: int, op: str) -> str:
        return self._pairs[argument][("sin", "cos").index(op)]
