"""Print the factorisation of dense fronts, and solving with it, as loops.

Rows are taken in groups. On one lane a group is a vector of neighbouring rows of one system; on many lanes it is as
many vectors, each with one row of all systems. Both add in the same order, so they have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

from cardan.machines.llvm.module import Loops, Module
from cardan.program.fronts import GROUP, PANEL, RECORD, Fronts

Group = list[str]  # names of the values of a group of rows


class _Rows(Loops):
    """Loops over groups of rows."""

    def __init__(self, module: Module) -> None:
        super().__init__(module.type, "f")
        self.module = module
        self.one = self.t.width == 1
        kind = f"v{GROUP}{'f64' if self.t.scalar == 'double' else 'f32'}" if self.one else self.t.suffix
        self.kind = f"<{GROUP} x {self.t.scalar}>" if self.one else self.t.vector
        self.fma = f"@llvm.fmuladd.{kind}"
        module.declarations.add(f"declare {self.kind} {self.fma}({self.kind}, {self.kind}, {self.kind})")

    def group(self, at: str) -> Group:
        """Load the rows from an address on."""
        if self.one:
            return [self.new(f"load {self.kind}, ptr {at}, align {self.t.bytes}")]
        return [self.load(self.element(at, r)) for r in range(GROUP)]

    def put(self, values: Group, at: str) -> None:
        """Store the rows from an address on."""
        if self.one:
            self.lines.append(f"  store {self.kind} {values[0]}, ptr {at}, align {self.t.bytes}")
            return
        for r, value in enumerate(values):
            self.store(value, self.element(at, r))

    def spread(self, value: str) -> str:
        """One number as a factor of a group."""
        if not self.one:
            return value
        first = self.new(f"insertelement {self.kind} poison, {self.t.scalar} {value}, i64 0")
        return self.new(f"shufflevector {self.kind} {first}, {self.kind} poison, <{GROUP} x i32> zeroinitializer")

    def minus(self, c: Group, a: Group, b: str) -> Group:
        """`c - a x`, where b is `negative(x)`."""
        return [self.new(f"call {self.kind} {self.fma}({self.kind} {x}, {self.kind} {b}, {self.kind} {y})")
                for x, y in zip(a, c, strict=True)]  # fmt: skip

    def negative(self, value: str) -> str:
        """A factor for `minus`."""
        return self.new(f"fneg {self.kind} {self.spread(value)}")

    def product(self, a: Group, b: str) -> Group:
        """A group times a number that was spread."""
        return [self.new(f"fmul {self.kind} {x}, {b}") for x in a]

    def number(self, op: str, *values: str) -> str:
        """An operation on single numbers."""
        return self.new(f"{op} {self.t.vector} {', '.join(values)}")

    def at(self, base: str, ld: str, row: str, column: str) -> str:
        """Address of an entry of a matrix by columns."""
        return self.element(base, self.add(row, self.times(column, ld)))

    def groups(self, first: str, end: str) -> tuple[str, str]:
        """A loop over groups of rows from `first`, a multiple, to `end`; the row, and the label to close it with."""
        i, label = self.loop(self.new(f"sdiv i64 {self.sub(end, first)}, {GROUP}"))
        return self.add(first, self.times(i, GROUP)), label

    def whole(self, row: str) -> str:
        """A row, rounded down to whole groups."""
        return self.new(f"and i64 {row}, {-GROUP}")

    def accumulate(
        self, count: str, start: list[Group], body: Callable[[str, list[Group]], list[Group]]
    ) -> list[Group]:
        """Repeat `body(index, sums)`, which returns new sums; the last sums."""
        label = self.label("s")
        before, names, flat = f"{label}.in", [], [x for g in start for x in g]
        self.lines += [f"  br label %{before}", f"{before}:", f"  br label %{label}", f"{label}:"]
        place = len(self.lines)
        names = [f"%{label}.{k}" for k in range(len(flat))]
        self.lines += [""] * (len(flat) + 1)
        self.lines += [f"  %{label}.more = icmp slt i64 %{label}.i, {count}"]
        self.lines += [f"  br i1 %{label}.more, label %{label}.do, label %{label}.out", f"{label}.do:"]
        size = len(start[0])
        groups = [names[k : k + size] for k in range(0, len(names), size)]
        new = [x for g in body(f"%{label}.i", groups) for x in g]
        self.lines += [f"  %{label}.next = add i64 %{label}.i, 1", f"  br label %{label}.end", f"{label}.end:"]
        self.lines += [f"  br label %{label}", f"{label}.out:"]
        self.lines[place] = f"  %{label}.i = phi i64 [0, %{before}], [%{label}.next, %{label}.end]"
        for k, (old, x) in enumerate(zip(flat, new, strict=True)):
            self.lines[place + 1 + k] = f"  {names[k]} = phi {self.kind} [{old}, %{before}], [{x}, %{label}.end]"
        return groups


def print_fronts(fronts: Fronts, name: str, module: Module) -> None:
    """Define `@name.factor(ptr %state)` and `@name.solve(ptr %state, ptr %x)`."""
    for table in ("records", "below", "place", "children", "blocks"):
        module.integers(f"{name}.{table}", getattr(fronts, table))
    parts: list[tuple[str, str, Callable[[_Rows], None]]] = [
        ("front.panel", "ptr %P, i64 %ld, i64 %k0, i64 %k1, ptr %S, ptr %d", _panel),
        ("front.update", "ptr %A, i64 %ld, ptr %S, i64 %count, ptr %C, i64 %ldc, i64 %first, i64 %end", _update),
        (f"{name}.factor", "ptr %state", lambda f: _factor(f, fronts, name)),
        (f"{name}.solve", "ptr %state, ptr %x", lambda f: _solve(f, fronts, name)),
    ]
    for symbol, parameters, write in parts:
        if symbol not in module.functions:
            f = _Rows(module)
            write(f)
            module.functions[symbol] = f.function(f"@{symbol}({parameters})")


def _panel(f: _Rows) -> None:
    """Factor the pivots k0..k1-1 of a panel; `S` gets their columns divided by the pivots.

    `d / (d^2 + e^2)` replaces the pivot `d` in the panel, and `d` the square of `e` in the vector `%d`. What stands
    above the diagonal is not used.
    """
    i, pivots = f.loop(f.sub("%k1", "%k0"))
    k = f.add("%k0", i)
    own = f.element("%P", f.times(k, "%ld"))
    diagonal = f.element(own, k)
    pivot, place = f.load(diagonal), f.element("%d", k)
    inverse = f.number("fdiv", pivot, f.number("fadd", f.number("fmul", pivot, pivot), f.load(place)))
    f.store(pivot, place)
    f.store(inverse, diagonal)
    n, columns = f.loop(f.sub(f.sub("%k1", k), 1))
    j = f.add(f.add(k, 1), n)
    factor = f.negative(f.number("fmul", f.load(f.element(own, j)), inverse))
    other = f.element("%P", f.times(j, "%ld"))
    r, rows = f.groups(f.whole(j), "%ld")
    to = f.element(other, r)
    f.put(f.minus(f.group(to), f.group(f.element(own, r)), factor), to)
    f.end(rows)
    f.end(columns)
    spread = f.spread(inverse)
    scaled = f.element("%S", f.times(i, "%ld"))
    r, rows = f.groups(f.whole("%k1"), "%ld")
    f.put(f.product(f.group(f.element(own, r)), spread), f.element(scaled, r))
    f.end(rows)
    f.end(pivots)


def _update(f: _Rows) -> None:
    """Take `A S^T`, `count` columns each, from columns first..end-1 of `C`, from the diagonal down to row `ld`."""
    c0, columns = f.groups("%first", "%end")
    r, rows = f.groups(c0, "%ld")
    at_once = GROUP if f.one else 2
    for c in range(0, GROUP, at_once):
        places = [f.at("%C", "%ldc", r, f.add(c0, c + n)) for n in range(at_once)]

        def product(k: str, sums: list[Group], c: int = c) -> list[Group]:
            a = f.group(f.at("%A", "%ld", r, k))
            factors = f.at("%S", "%ld", c0, k)
            b = [f.negative(f.load(f.element(factors, c + n))) for n in range(at_once)]
            return [f.minus(s, a, x) for s, x in zip(sums, b, strict=True)]

        for values, to in zip(f.accumulate("%count", [f.group(p) for p in places], product), places, strict=True):
            f.put(values, to)
    f.end(rows)
    f.end(columns)


def _record(f: _Rows, name: str, number: str) -> dict[str, str]:
    """What the tables say of a front; arrays as addresses."""
    at = f.times(number, len(RECORD))
    front = {what: f.entry(f"{name}.records", f.add(at, c)) for c, what in enumerate(RECORD)}
    front["side"] = f.sub(front["height"], front["skip"])
    for what in ("panel", "rest"):
        front[what] = f.element("%state", front[what])
    # so that rows and columns of the rest are counted as in the panel
    back = f.sub(0, f.add(front["skip"], f.times(front["skip"], front["side"])))
    front["rest"] = f.element(front["rest"], back)
    return front


def _factor(f: _Rows, fronts: Fronts, name: str) -> None:
    """Assemble each front, and factor it."""
    f.module.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    scratch = f.element("%state", fronts.scratch)
    number, outer = f.loop(str(len(fronts.records)))
    front = _record(f, name, number)
    p, ld, side, skip, panel, rest = (front[n] for n in ("pivots", "height", "side", "skip", "panel", "rest"))
    wide = f.new(f"icmp sgt i64 {p}, {PANEL}")
    full = f.whole(f.add(p, GROUP - 1))
    width = f.new(f"select i1 {wide}, i64 {full}, i64 {p}")
    start = f.element(rest, f.add(skip, f.times(skip, side)))
    for place, size in ((panel, f.times(width, ld)), (start, f.times(side, side))):
        length = f.times(size, f.t.align)
        f.lines.append(f"  call void @llvm.memset.p0.i64(ptr align {f.t.bytes} {place}, i8 0, i64 {length}, i1 false)")
    _assemble_blocks(f, name, front)
    _assemble_children(f, name, front)
    vector = f.element("%state", f.add(front["first"], fronts.pivots))
    i, panels = f.loop(f.new(f"sdiv i64 {f.add(p, PANEL - 1)}, {PANEL}"))
    k0 = f.times(i, PANEL)
    next_one = f.add(k0, PANEL)
    k1 = f.new(f"select i1 {f.new(f'icmp slt i64 {next_one}, {p}')}, i64 {next_one}, i64 {p}")
    given = f"ptr {panel}, i64 {ld}, i64 {k0}, i64 {k1}, ptr {scratch}, ptr {vector}"
    f.lines.append(f"  call void @front.panel({given})")
    columns, count = f.element(panel, f.times(k0, ld)), f.sub(k1, k0)
    last = f.new(f"select i1 {f.new(f'icmp slt i64 {k1}, {p}')}, i64 {full}, i64 {k1}")
    for to, stride, first, end in ((panel, ld, k1, last), (rest, side, skip, ld)):
        given = f"ptr {columns}, i64 {ld}, ptr {scratch}, i64 {count}, ptr {to}, i64 {stride}, i64 {first}, i64 {end}"
        f.lines.append(f"  call void @front.update({given})")
    f.end(panels)
    f.end(outer)


def _assemble_blocks(f: _Rows, name: str, front: dict[str, str]) -> None:
    """Copy the blocks of the matrix to the panel."""
    n, blocks = f.loop(front["blocks"])
    at = f.times(f.add(front["block"], n), 4)
    source, to, rows, columns = (f.entry(f"{name}.blocks", f.add(at, c)) for c in range(4))
    c, each = f.loop(columns)
    here, there = f.element("%state", f.add(source, f.times(c, rows))), f.add(to, f.times(c, front["height"]))
    r, inner = f.loop(rows)
    f.store(f.load(f.element(here, r)), f.element(f.element("%state", there), r))
    f.end(inner)
    f.end(each)
    f.end(blocks)


def _assemble_children(f: _Rows, name: str, front: dict[str, str]) -> None:
    """Add what the fronts below leave."""
    n, children = f.loop(front["children"])
    child = _record(f, name, f.entry(f"{name}.children", f.add(front["child"], n)))
    c, columns = f.loop(child["count"])
    column = f.entry(f"{name}.place", f.add(child["below"], c))
    is_pivot = f.new(f"icmp slt i64 {column}, {front['pivots']}")
    base = f.new(f"select i1 {is_pivot}, ptr {front['panel']}, ptr {front['rest']}")
    stride = f.new(f"select i1 {is_pivot}, i64 {front['height']}, i64 {front['side']}")
    to = f.element(base, f.times(column, stride))
    own = f.add(child["pivots"], c)
    source = f.element(child["rest"], f.add(own, f.times(own, child["side"])))
    first = f.add(child["below"], c)
    r, rows = f.loop(f.sub(child["count"], c))
    place = f.element(to, f.entry(f"{name}.place", f.add(first, r)))
    f.store(f.number("fadd", f.load(place), f.load(f.element(source, r))), place)
    f.end(rows)
    f.end(columns)
    f.end(children)


def _solve(f: _Rows, fronts: Fronts, name: str) -> None:
    """Forward through the fronts, then back: `y` has the rows below the pivots of a front, counted as in its panel."""
    count = len(fronts.records)
    scratch = f.element("%state", fronts.scratch)
    number, outer = f.loop(str(count))
    front = _record(f, name, number)
    own = f.element("%x", front["first"])
    _clear(f, front, scratch)
    k, pivots = f.loop(front["pivots"])
    column = f.element(front["panel"], f.times(k, front["height"]))
    w = f.number("fmul", f.load(f.element(own, k)), f.load(f.element(column, k)))
    _triangle(f, own, column, k, front["pivots"], w)
    factor = f.negative(w)
    r, rows = f.groups(front["skip"], front["height"])
    to = f.element(scratch, r)
    f.put(f.minus(f.group(to), f.group(f.element(column, r)), factor), to)
    f.end(rows)
    f.end(pivots)
    i, below = f.loop(front["count"])
    place = f.element("%x", f.entry(f"{name}.below", f.add(front["below"], i)))
    f.store(f.number("fadd", f.load(place), f.load(f.element(scratch, f.add(front["pivots"], i)))), place)
    f.end(below)
    f.end(outer)
    _solve_back(f, count, name, scratch)


def _clear(f: _Rows, front: dict[str, str], y: str) -> None:
    zero = "zeroinitializer" if f.one or f.t.width > 1 else "0.0"
    r, rows = f.groups(front["skip"], front["height"])
    f.put([zero] * (1 if f.one else GROUP), f.element(y, r))
    f.end(rows)


def _triangle(f: _Rows, x: str, column: str, k: str, end: str, w: str) -> None:
    """Take a column times `w` from the pivots after k."""
    n, rest = f.loop(f.sub(f.sub(end, k), 1))
    j = f.add(f.add(k, 1), n)
    to = f.element(x, j)
    f.store(f.number("fsub", f.load(to), f.number("fmul", f.load(f.element(column, j)), w)), to)
    f.end(rest)


def _solve_back(f: _Rows, count: int, name: str, y: str) -> None:
    i, outer = f.loop(str(count))
    front = _record(f, name, f.sub(count - 1, i))
    own = f.element("%x", front["first"])
    _clear(f, front, y)
    i, below = f.loop(front["count"])
    place = f.element("%x", f.entry(f"{name}.below", f.add(front["below"], i)))
    f.store(f.load(place), f.element(y, f.add(front["pivots"], i)))
    f.end(below)
    n, pivots = f.loop(front["pivots"])
    k = f.sub(f.sub(front["pivots"], 1), n)
    column = f.element(front["panel"], f.times(k, front["height"]))
    zero = "zeroinitializer"

    def product(r: str, sums: list[Group]) -> list[Group]:
        row = f.add(front["skip"], f.times(r, GROUP))
        a, b = f.group(f.element(column, row)), f.group(f.element(y, row))
        text = f"call {f.kind} {f.fma}({f.kind} {{}}, {f.kind} {{}}, {f.kind} {{}})"
        return [[f.new(text.format(p, q, s)) for p, q, s in zip(a, b, sums[0], strict=True)]]

    groups = f.new(f"sdiv i64 {front['side']}, {GROUP}")
    (sums,) = f.accumulate(groups, [[zero] * (1 if f.one else GROUP)], product)
    terms = [f.new(f"extractelement {f.kind} {sums[0]}, i64 {e}") for e in range(GROUP)] if f.one else sums
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [f.number("fadd", a, b) for a, b in zip(terms[:half], terms[half:], strict=True)]
    place = f.element(own, k)
    f.store(f.number("fsub", f.load(place), terms[0]), place)
    m, rest = f.loop(f.sub(f.sub(front["pivots"], k), 1))
    j = f.add(f.add(k, 1), m)
    part = f.number("fmul", f.load(f.element(column, j)), f.load(f.element(own, j)))
    f.store(f.number("fsub", f.load(place), part), place)
    f.end(rest)
    f.store(f.number("fmul", f.load(place), f.load(f.element(column, k))), place)
    f.end(pivots)
    f.end(outer)
