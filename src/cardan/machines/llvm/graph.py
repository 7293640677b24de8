"""Print a graph as an LLVM IR function on lanes: one vector value per graph value.

The text is optimised where LLVM cannot, or where it would take long. Multiply-adds are fused here, so that every lane
count gives the same bits. Sines and cosines of inputs are taken first, in a loop. The straight line is cut into blocks
by branches that are never taken, because LLVM's time and its spilling grow faster than the block. In a long function,
whose blocks LLVM would still place in registers together, values pass from block to block through memory.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from cardan.machines.llvm.elementary.functions import FUNCTIONS, elementary, sincos
from cardan.machines.llvm.module import Lines, Module
from cardan.program.graph import Graph, Lookup

# one LLVM instruction each
_INSTRUCTIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSICS = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "copysign": "copysign",
}  # fmt: skip
# when the second number is taken: of 0.0 and -0.0 processors' own instructions take either, so they are not used
_CHOICES = {"fmin": "olt", "fmax": "ogt"}
COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
# constpow is pow with a constant exponent
_ELEMENTARY = {name: name for name in FUNCTIONS} | {"constpow": "pow"}

# lines of a block: 100 to 400 run alike, beyond that large graphs compile and run slower
BLOCK = 400
# operations past which values pass between blocks through memory: from about 50,000 on LLVM takes less time so, down to
# half, while the code of shorter graphs, which have fewer values at a time, can be a tenth slower
LONG = 50_000
MANY_ZEROS = 64


def print_graph(
    graph: Graph, symbol: str, module: Module, uniform: frozenset[int] = frozenset(), ahead: tuple[int, ...] = (),
    in_place: bool = False, sparse: bool = False, cleared: bool = False, same: bool = False,
) -> None:  # fmt: skip
    """Define `internal void @symbol(ptr %in0, ..., ptr %out0, ..., ptr %ahead0, ...)` and all that it calls.

    Each pointer addresses one vector of lanes per element of the port, in C order. An input whose number is in
    `uniform` is an array of scalars, the same for every lane. `ahead` gives, per port, how many cache lines from
    `%aheadN` on to prefetch along the way: all at once they would hold up the body. With `in_place` outputs may share
    memory with inputs: everything is stored at the end. With `sparse` an output may have elements between those that
    are stored, which stay as they are. With `cleared` the outputs are zero before, and zeros are not stored. `same`
    says of outputs in place that each shares memory with the input of its own port and element alone.
    """
    if module.card:
        from cardan.machines.llvm.thread import print_thread_function

        print_thread_function(graph, symbol, module, in_place, same, cleared, inline=not sparse)
        return
    if module.tables and not uniform:
        from cardan.machines.llvm.interpreted import LEAST, print_table

        if len(graph.op) >= LEAST:
            print_table(graph, symbol, module, cleared, len(ahead))
            return
    line = StraightLine(graph, module, "v", uniform, in_place, sparse, cleared)
    module.functions[symbol] = line.print(symbol, ahead)


def with_choices(graph: Graph) -> Graph:
    """The graph with one operation, `if_else`, where a sum takes a value if something is true and another if not.

    CasADi has only `if_else_zero`, so it writes a choice as the sum of two.
    """
    op, args = list(graph.op), list(graph.args)
    for k, (name, operands) in enumerate(zip(graph.op, graph.args, strict=True)):
        if name != "add" or any(graph.op[a] != "if_else_zero" for a in operands):
            continue
        (p, x), (q, y) = (graph.args[a] for a in operands)
        if graph.op[q] == "not" and graph.args[q] == (p,):
            op[k], args[k] = "if_else", (p, x, y)
        elif graph.op[p] == "not" and graph.args[p] == (q,):
            op[k], args[k] = "if_else", (q, y, x)
    return replace(graph, op=op, args=args)


def fused_products(graph: Graph, uses: list[int]) -> dict[int, int]:
    """Products with one reader, a sum, mapped to that sum; a sum takes one product."""
    fused: dict[int, int] = {}
    for k, op in enumerate(graph.op):
        if op in ("add", "sub") and uses[k]:
            for a in graph.args[k]:
                if graph.op[a] in ("mul", "sq") and uses[a] == 1:
                    fused[a] = k
                    break
    return fused


class StraightLine(Lines):
    """One straight-line function: names of values, and the lines printed so far."""

    def __init__(
        self, graph: Graph, module: Module, prefix: str, uniform: frozenset[int] = frozenset(), in_place: bool = False,
        sparse: bool = False, cleared: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(module.type, prefix)
        self.graph, self.module, self.uniform, self.in_place = with_choices(graph), module, uniform, in_place
        self.sparse, self.cleared = sparse, cleared
        self.uses = self.graph.uses()
        self.fused = fused_products(self.graph, self.uses)
        self.name: dict[int, str] = {}
        self.local: dict[int, str] = {}  # values that each block loads again, which is cheaper than spilling them
        self.hoisted: dict[int, int] = {}  # input value -> place in the arrays of sines and cosines
        self.trig: dict[int, str] = {}  # value -> the pair of its sine and cosine
        self.kept: _Kept | None = None

    def print(self, symbol: str, ahead: tuple[int, ...]) -> str:
        """The IR of the function."""
        n_in, n_out = len(self.graph.input_sizes), len(self.graph.output_sizes)
        alone, kept = ("", "") if self.in_place else ("noalias ", "readonly ")
        params = [f"ptr {alone}{kept}%in{i}" for i in range(n_in)]
        params += [f"ptr {alone}%out{i}" for i in range(n_out)]
        params += [f"ptr %ahead{i}" for i in range(len(ahead))]
        wanted = [(i, line, int(i >= n_in)) for i, count in enumerate(ahead) for line in range(count)]
        live = sum(1 for count in self.uses if count)
        self._hoist_sincos()
        if live > LONG:
            self.kept = _Kept(self._last_reads())
        cleared = self._clear_sparse_outputs()
        stores: dict[int, list[tuple[int, int]]] = {}
        for port, element, k in self.graph.outputs:
            if not (port in cleared and self._is_zero(k)):
                stores.setdefault(k, []).append((port, element))
        last_cut = printed = 0
        for k in range(len(self.graph.op)):
            printed += bool(self.uses[k])
            while wanted and len(wanted) * live > (live - printed) * sum(ahead):
                self._prefetch(*wanted.pop())
            if not self._is_printed(k):
                continue
            self.name[k] = self.value(k)
            if self.kept is not None:
                self.kept.define(k, self.lines)
            for port, element in () if self.in_place else stores.pop(k, ()):
                self._store_output(self.name[k], port, element)
            if len(self.lines) - last_cut > BLOCK and n_out:
                self._cut(k)
                last_cut = len(self.lines)
        # all loads before the first store: in place, a store may overwrite what another output still reads
        last = [(self._operand(k), place) for k, places in stores.items() for place in places]
        for value, (port, element) in last:
            self._store_output(value, port, element)
        head = ["  %never = icmp eq ptr %out0, null"] if n_out else []
        if self.kept is not None:
            head.append(f"  %kept = alloca [{self.kept.size} x {self.t.vector}], align {self.t.align}")
        return "\n".join(
            [
                f"define internal void @{symbol}({', '.join(params)}) {{",
                *("entry:", *head, *filter(None, self.lines)),
                *("  br label %done", "done:", "  ret void", "}"),
            ]
        )

    def _is_zero(self, k: int) -> bool:
        return self.graph.op[k] == "const" and self.graph.args[k][0] == 0.0

    def _clear_sparse_outputs(self) -> set[int]:
        """Set ports with many structural zeros to zero as a whole; LLVM takes seconds over thousands of stores."""
        if self.cleared:
            return set(range(len(self.graph.output_sizes)))
        zeros: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for port, element, k in self.graph.outputs:
            zeros[port] = zeros.get(port, 0) + self._is_zero(k)
            sizes[port] = max(sizes.get(port, 0), element + 1)
        cleared = {port for port, count in zeros.items() if count > MANY_ZEROS and not (self.in_place or self.sparse)}
        for port in sorted(cleared):
            self.module.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            size = sizes[port] * self.t.align
            self.lines.append(f"  call void @llvm.memset.p0.i64(ptr %out{port}, i8 0, i64 {size}, i1 false)")
        return cleared

    # placing

    def _cut(self, k: int) -> None:
        """Begin a new block after value k."""
        if self.kept is not None:
            for value, line, place in self.kept.cut(k):
                name = self.name.pop(value)
                address = f"{name}.at = getelementptr {self.t.vector}, ptr %kept, i64 {place}"
                self.lines[line] = f"  {address}\n  store {self.t.vector} {name}, ptr {name}.at, align {self.t.align}"
        block = self.label("b")
        self.lines += [f"  br i1 %never, label %done, label %{block}", f"{block}:"]
        self.local.clear()

    def _store_output(self, value: str, port: int, element: int) -> None:
        self.store(value, self.element(f"%out{port}", element))

    def _prefetch(self, port: int, line: int, write: int) -> None:
        self.module.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        place = self.new(f"getelementptr i8, ptr %ahead{port}, i64 {64 * line}")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {place}, i32 {write}, i32 3, i32 1)")

    def _load_input(self, port: int, element: int | str) -> str:
        t = self.t
        if port in self.uniform:
            place = self.new(f"getelementptr {t.scalar}, ptr %in{port}, i64 {element}")
            return self.splat(self.new(f"load {t.scalar}, ptr {place}, align {t.bytes}"))
        return self.load(self.element(f"%in{port}", element))

    def _operand(self, k: int) -> str:
        """The name of a value; inputs are loaded and negations printed where they are used."""
        if k in self.name:
            return self.name[k]
        if k in self.local:
            return self.local[k]
        op, args = self.graph.op[k], self.graph.args[k]
        if op == "const":
            return self.t.splat(args[0])
        if self.kept is not None and k in self.kept.places:
            name = self.local[k] = self.load(self.element("%kept", self.kept.places[k]))
            return name
        if op == "input":
            name = self._load_input(*args)
        elif op in ("sin", "cos"):
            name = self._trig(args[0], op)
        else:  # neg, printed beside its use so that it folds into a multiply-add
            name = self.new(f"fneg {self.t.vector} {self._operand(args[0])}")
        self.local[k] = name
        return name

    def _is_printed(self, k: int) -> bool:
        """Whether a value has a line of its own, not one beside each use."""
        kind = self.graph.op[k] not in ("input", "const", "neg")
        return bool(self.uses[k]) and kind and k not in self.fused and not self._is_hoisted(k)

    def _last_reads(self) -> list[int]:
        """For each value the last value beside which it is read; the number of values if that is the end."""
        end = len(self.graph.op)
        last = [0] * end

        def read(k: int, at: int) -> None:
            if self.graph.op[k] == "neg" or k in self.fused:
                for a in self.graph.args[k]:
                    read(a, at)
            else:
                last[k] = max(last[k], at)

        for k in filter(self._is_printed, range(end)):
            for a in self.graph.args[k]:
                read(a, k)
        for _, _, k in self.graph.outputs:
            read(k, end if self.in_place or not self._is_printed(k) else k)
        return last

    # operations

    def _is_hoisted(self, k: int) -> bool:
        return self.graph.op[k] in ("sin", "cos") and self.graph.args[k][0] in self.hoisted

    def value(self, k: int) -> str:
        """Print one operation; the name of its result."""
        op, args, t = self.graph.op[k], self.graph.args[k], self.t
        v = t.vector
        if op in ("add", "sub"):
            for place, a in enumerate(args):
                if self.fused.get(a) == k:
                    return self._multiply_add(op, place, a, args[1 - place])
        if op in ("sin", "cos"):
            return self._trig(args[0], op)
        x = [self._operand(a) for a in args]
        if op in _INSTRUCTIONS:
            return self.new(f"{_INSTRUCTIONS[op]} {v} {x[0]}, {x[1]}")
        if op == "neg":
            return self.new(f"fneg {v} {x[0]}")
        if op == "sq":
            return self.new(f"fmul {v} {x[0]}, {x[0]}")
        if op == "twice":
            return self.new(f"fadd {v} {x[0]}, {x[0]}")
        if op == "inv":
            return self.new(f"fdiv {v} {t.splat(1.0)}, {x[0]}")
        if isinstance(op, Lookup):
            return self._looked_up(op, x[0])
        call = ", ".join(f"{v} {a}" for a in x)
        if op in _INTRINSICS:
            return self.new(f"call {v} {self.module.intrinsic(_INTRINSICS[op], len(x))}({call})")
        if op in _ELEMENTARY:
            return self.new(f"call {v} {elementary(self.module, _ELEMENTARY[op])}({call})")
        return self._logic(op, x)

    def _looked_up(self, array: Lookup, index: str) -> str:
        """The numbers of an array at indices, which are whole numbers inside it."""
        t = self.t
        self.module.data(array, array.values.astype("<f8" if t.bytes == 8 else "<f4"))
        whole = self.new(f"fptosi {t.vector} {index} to {t.of('i32')}")
        found = "poison"
        for lane in range(t.width):
            own = whole if t.width == 1 else self.new(f"extractelement {t.of('i32')} {whole}, i32 {lane}")
            place = self.new(f"getelementptr {t.scalar}, ptr @{array}, i32 {own}")
            value = self.new(f"load {t.scalar}, ptr {place}, align {t.bytes}")
            if t.width == 1:
                return value
            found = self.new(f"insertelement {t.vector} {found}, {t.scalar} {value}, i32 {lane}")
        return found

    def _logic(self, op: str, x: list[str]) -> str:
        """Comparisons and logic: true is the number 1, false is 0, and any number but 0 counts as true."""
        t = self.t
        v, m, one, zero = t.vector, t.of("i1"), t.splat(1.0), t.splat(0.0)

        def true(a: str) -> str:
            return self.new(f"fcmp une {v} {a}, {zero}")

        def choose(mask: str, a: str, b: str) -> str:
            return self.new(f"select {m} {mask}, {v} {a}, {v} {b}")

        if op in COMPARISONS:
            return choose(self.new(f"fcmp {COMPARISONS[op]} {v} {x[0]}, {x[1]}"), one, zero)
        if op in _CHOICES:  # a number if one is NaN
            second = choose(self.new(f"fcmp {_CHOICES[op]} {v} {x[1]}, {x[0]}"), x[1], x[0])
            return choose(self.new(f"fcmp uno {v} {x[0]}, {x[0]}"), x[1], second)
        if op in ("and", "or"):
            return choose(self.new(f"{op} {m} {true(x[0])}, {true(x[1])}"), one, zero)
        if op == "not":
            return choose(true(x[0]), zero, one)
        if op in ("if_else", "if_else_zero"):
            return choose(true(x[0]), x[1], x[2] if op == "if_else" else zero)
        if op == "sign":
            positive = choose(self.new(f"fcmp ogt {v} {x[0]}, {zero}"), one, x[0])
            return choose(self.new(f"fcmp olt {v} {x[0]}, {zero}"), t.splat(-1.0), positive)
        raise AssertionError(op)

    def _multiply_add(self, op: str, place: int, product: int, other: int) -> str:
        """`a*b + c`, `a*b - c` or `c - a*b`, rounded once where the machine can."""
        v, factors = self.t.vector, self.graph.args[product]
        a, b = self._operand(factors[0]), self._operand(factors[-1])
        c = self._operand(other)
        if op == "sub" and place == 0:
            c = self.new(f"fneg {v} {c}")
        elif op == "sub":
            a = self.new(f"fneg {v} {a}")
        return self.new(f"call {v} {self.module.intrinsic('fmuladd', 3)}({v} {a}, {v} {b}, {v} {c})")

    # sines and cosines

    def _hoist_sincos(self) -> None:
        """Print the loops that take sine and cosine of every input that needs them, before anything else."""
        graph = self.graph
        wanted: dict[int, list[int]] = {}
        for k, op in enumerate(graph.op):
            a = graph.args[k][0] if op in ("sin", "cos") and self.uses[k] else None
            if a is not None and graph.op[a] == "input" and a not in self.hoisted:
                self.hoisted[a] = len(self.hoisted)
                wanted.setdefault(graph.args[a][0], []).append(a)
        if not wanted:
            return
        self.lines.append(f"  %trig = alloca [{2 * len(self.hoisted)} x {self.t.vector}], align {self.t.align}")
        place = 0
        for port, values in wanted.items():
            for a in values:
                self.hoisted[a] = place
                place += 1
            self._sincos_loop(port, [graph.args[a][1] for a in values], place - len(values))

    def _sincos_loop(self, port: int, elements: list[int], first: int) -> None:
        """Print the loop for some elements of a port; its results go to the arrays from place `first` on."""
        v, n, label = self.t.vector, len(elements), f"trig{port}"
        table = f"@{label}.{len(self.module.functions)}"
        entries = ", ".join(f"i64 {e}" for e in elements)
        self.module.declarations.add(f"{table} = internal constant [{n} x i64] [{entries}]")
        before = f"{label}.before"
        self.lines += [f"  br label %{before}", f"{before}:", f"  br label %{label}", f"{label}:"]
        self.lines.append(f"  %{label}.i = phi i64 [0, %{before}], [%{label}.next, %{label}]")
        entry = self.new(f"getelementptr i64, ptr {table}, i64 %{label}.i")
        x = self._load_input(port, self.new(f"load i64, ptr {entry}"))
        pair = self.new(f"call {{ {v}, {v} }} {sincos(self.module)}({v} {x})")
        where = self.new(f"add i64 %{label}.i, {first}")
        row = self.new(f"getelementptr [2 x {v}], ptr %trig, i64 {where}")
        for half in (0, 1):
            value = self.new(f"extractvalue {{ {v}, {v} }} {pair}, {half}")
            self.store(value, self.element(row, half))
        self.lines.append(f"  %{label}.next = add i64 %{label}.i, 1")
        again = self.new(f"icmp ult i64 %{label}.next, {n}")
        self.lines += [f"  br i1 {again}, label %{label}, label %{label}.after", f"{label}.after:"]

    def _trig(self, argument: int, op: str) -> str:
        """The sine or cosine of a value, from the arrays or from its pair."""
        v, half = self.t.vector, ("sin", "cos").index(op)
        if argument in self.hoisted:
            return self.load(self.element("%trig", 2 * self.hoisted[argument] + half))
        if argument not in self.trig:
            x = self._operand(argument)
            self.trig[argument] = self.new(f"call {{ {v}, {v} }} {sincos(self.module)}({v} {x})")
        return self.new(f"extractvalue {{ {v}, {v} }} {self.trig[argument]}, {half}")


class _Kept:
    """Places in memory of values that a later block reads. A place serves again when its value is read no more."""

    def __init__(self, last: list[int]) -> None:
        self.last = last
        self.places: dict[int, int] = {}  # value -> place
        self.size = 0
        self._free: list[int] = []
        self._due: list[tuple[int, int]] = []  # heap of values with places: the last read, and the value
        self._new: list[tuple[int, int]] = []  # values of this block, and the empty line after each
        self._began = 0

    def define(self, k: int, lines: list[str]) -> None:
        """Note that value k was printed, and add an empty line for storing it."""
        self._new.append((k, len(lines)))
        lines.append("")

    def cut(self, k: int) -> list[tuple[int, int, int]]:
        """End a block with value k; the values to store, each with its line and its place."""
        # a place read in this block is not free in it: the new value may be stored before the old one is loaded
        while self._due and self._due[0][0] < self._began:
            self._free.append(self.places.pop(heapq.heappop(self._due)[1]))
        stored = []
        for value, line in self._new:
            if self.last[value] > k:
                if not self._free:
                    self._free.append(self.size)
                    self.size += 1
                self.places[value] = self._free.pop()
                heapq.heappush(self._due, (self.last[value], value))
                stored.append((value, line, self.places[value]))
        self._new, self._began = [], k + 1
        return stored
