# ruff: noqa: E501
"""Mutants of `machines` and `program`: graphs, printers, keys, the cache, arrays and threads."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

OPERATIONS = "machines/test_printed_code.py machines/test_operations.py"
ARRAYS = "machines/test_arrays.py machines/test_printed_code.py"
KEYS = "machines/test_producer.py machines/test_cache.py"
ON_CARD = "product/test_device_arrays.py"

MUTANTS: list[Mutant] = [
    *changes(
        "program/graph.py", OPERATIONS,
        ("if a < b or op not in COMMUTATIVE else", "if a < b else", "a - b and b - a are one value"),
        ("return value(\"const\", (c,), struct.pack(\"<d\", c))", "return value(\"const\", (c,), (\"const\", c))", "0.0 and -0.0 are one constant", Equivalent("CasADi has no constant -0.0: it becomes 0")),
        ("return [r * columns + c for r, c in zip", "return [c * columns + r for r, c in zip", "matrices are transposed"),
        ("(graph.args[k][0], self.reciprocal[divisor])", "(self.reciprocal[divisor], self.reciprocal[divisor])", "a shared division forgets its numerator"),
        ("missing = set(range(size)) - written", "missing = set()", "structural zeros of results are not written"),
        ("if count[k] and self.op[k] not in (\"input\", \"const\"):", "if self.op[k] not in (\"input\", \"const\"):", "dead values count as used", Equivalent("they are then computed and not stored: slower, the same results")),
    ),
    *changes(
        "program/program.py", "machines/test_programs.py machines/test_march.py",
        ("if [port.size for port in ports] != [*sizes]:", "if False:", "code that writes past the end of its ports is compiled"),
        ("args = [\n        (place_in[args[0]], args[1]) if op", "args = [\n        (args[0], args[1]) if op", "ports are not numbered anew where empty ones are left out"),
    ),
    *changes(
        "program/march.py", "machines/test_programs.py agreement/test_large_trees.py",
        ("return sum(self.own_sizes) + 1 + max(", "return sum(self.own_sizes) + max(", "memory of a march is one number too short"),
    ),
    *changes(
        "program/schedule.py", "machines/test_programs.py agreement/test_drives.py agreement/test_looped_drives.py",
        ("return (self.message + 2 * len(self.outputs)) * self.widest", "return self.message", "memory of a climb is too short"),
    ),
    *changes(
        "machines/llvm/graph.py", OPERATIONS,
        ("if op == \"sub\" and place == 0:", "if op == \"sub\" and place == 1:", "a*b - c becomes c - a*b"),
        ("c = self.new(f\"fneg {v} {c}\")", "c = c", "a*b - c becomes a*b + c"),
        ("if graph.op[a] in (\"mul\", \"sq\") and uses[a] == 1:", "if graph.op[a] in (\"mul\", \"sq\"):", "a product with several readers is fused and lost"),
        ("\"lt\": \"olt\", \"le\": \"ole\"", "\"lt\": \"ole\", \"le\": \"ole\"", "less is less or equal"),
        ("\"fmin\": \"olt\", \"fmax\": \"ogt\"", "\"fmin\": \"ogt\", \"fmax\": \"olt\"", "the smaller is the larger"),
        ("\"ne\": \"une\"", "\"ne\": \"one\"", "NaN does not differ from itself"),
        ("return choose(true(x[0]), x[1], x[2] if op == \"if_else\" else zero)", "return choose(true(x[0]), x[1], x[1])", "a choice takes its first value"),
        ("op[k], args[k] = \"if_else\", (q, y, x)", "op[k], args[k] = \"if_else\", (q, x, y)", "a choice whose condition is denied first is turned round"),
        ("return self.new(f\"fadd {v} {x[0]}, {x[0]}\")", "return self.new(f\"fadd {v} {x[0]}, {t.splat(2.0)}\")", "twice x is x + 2"),
        ("positive = choose(self.new(f\"fcmp ogt {v} {x[0]}, {zero}\"), one, x[0])", "positive = choose(self.new(f\"fcmp oge {v} {x[0]}, {zero}\"), one, x[0])", "the sign of zero is 1"),
        ("v, half = self.t.vector, (\"sin\", \"cos\").index(op)", "v, half = self.t.vector, (\"cos\", \"sin\").index(op)", "sine and cosine exchanged"),
        ("where = self.new(f\"add i64 %{label}.i, {first}\")", "where = self.new(f\"add i64 %{label}.i, 0\")", "sines of a second port overwrite those of the first"),
        ("last = [(self._operand(k), place) for k, places in stores.items() for place in places]", "last = []", "results that are inputs or constants are not stored"),
        ("if count > MANY_ZEROS and not (self.in_place or self.sparse)}", "if count > MANY_ZEROS}", "a march clears outputs that it still reads"),
    ),
    *changes(
        "machines/llvm/batch_loop.py", ARRAYS,
        ("%full = icmp sge i64 %left, {w}", "%full = icmp sge i64 %left, 1", "the last rows read and write past the end"),
        ("one = {\"sm\": m == 1, \"sn\": n == 1}", "one = {\"sm\": True, \"sn\": n == 1}", "strided rows are taken for contiguous"),
        ("call void %row(ptr %shifted, i64 %left,", "call void %row(ptr %args, i64 %left,", "the last rows are computed from the first"),
        ("low = [e if not e & s else w + e - s for e in range(w)]", "low = [e if not e & s else w + e for e in range(w)]", "rows are mixed when they are transposed"),
        ("offset += -(-items * t.bytes // 64) * 64", "offset += 64", "buffers of ports overlap"),
        ("%next = add i64 %i, {w}", "%next = add i64 %i, 1", "rows are computed many times", Equivalent("each pass computes up to w rows from row i on; starting a pass at every row gives the same results, w times as slow")),
    ),
    *changes(
        "machines/llvm/march.py", "machines/test_printed_code.py machines/test_march.py closed_form/test_alpha_oscillator.py agreement/test_large_trees.py",
        ("\"  %left = icmp slt i64 %next, %most\"", "\"  %left = icmp sle i64 %next, %most\"", "a march takes one step more than its limit"),
        ("\"  %more = and i1 %left, %any\"", "\"  %more = and i1 %left, true\"", "a march goes on when every lane is done", Equivalent("a step leaves a lane that is done as it is: the results are the same, later")),
        ("key = (id(piece.function), piece.count, *march.sizes_of(piece))", "key = (piece.count, *march.sizes_of(piece))", "pieces of a march are taken for one another"),
        ("outputs = [o for o in graph.outputs if graph.op[o[2]] != \"input\" or graph.args[o[2]] != (o[0], o[1])]", "outputs = [o for o in graph.outputs if graph.op[o[2]] != \"input\"]", "a march forgets state that is copied from another place"),
    ),
    *changes(
        "machines/llvm/schedule.py", "agreement/test_drives.py agreement/test_looped_drives.py machines/test_programs.py",
        ("self._entries(r, row, col), self._entries(r, col, row)", "self._entries(r, col, row), self._entries(r, row, col)", "looped matrices are transposed"),
    ),
    *changes(
        "machines/javascript/operations.py", "machines/test_javascript.py",
        ("if (half * 2 === p ? r >= half : r + r >= p) r -= p;", "if (half * 2 === p ? r > half : r + r > p) r -= p;", "JavaScript: remainders do not round ties to even"),
        ("if (p !== Infinity) r %= 2 * p;", "if (p !== Infinity) r %= p;", "JavaScript: remainders forget whether the quotient is odd"),
        ("y < 0 || Object.is(y, -0) ? -Math.abs(x)", "y < 0 ? -Math.abs(x)", "JavaScript: copysign loses the sign of zero"),
        ("x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1", "x === 1 ? 1", "JavaScript: (-1) ** Infinity is NaN"),
        ("if (z < 2.5) {", "if (z < 25) {", "JavaScript: erf by its series far out", Equivalent("all terms of the series are positive: it has the same digits up to 6, in more terms")),
        ("return f\"(-{text})\" if math.copysign(1.0, x) < 0 else text", "return text", "JavaScript: negative numbers lose their sign"),
    ),
    *changes(
        "machines/javascript/operations.py", "machines/test_tables.py",
        ("return f\"{op}[{{0}}]\"", "return f\"{op}[{{0}}+1]\"", "JavaScript: the next number of a table is read"),
    ),
    *changes(
        "machines/javascript/graph.py", "machines/test_javascript.py",
        ("and k not in self.written_twice:", ":", "JavaScript: the operand of a square is written twice", Equivalent("it is then computed twice: the same results, longer text")),
        ("self.text[k] = text if function is not None else f\"({text})\"", "self.text[k] = text", "JavaScript: operands lose their parentheses"),
        ("outputs[port][element] = line.operand(k)", "outputs[port][0] = line.operand(k)", "JavaScript: all elements are written to the first"),
    ),
    *changes(
        "machines/javascript/module.py", "machines/test_javascript.py",
        ("[port for port in program.inputs if port.size])", "list(program.inputs))", "JavaScript: inputs are counted with empty ones"),
        ("given != null && given.length === size;", "given != null;", "JavaScript: arrays of wrong length are read"),
    ),
    *changes(
        "machines/cache.py", KEYS,
        ("h.triple, h.cpu, h.features)\n", "h.triple)\n", "cached kernels of another processor are loaded"),
        ("repr((_source(), tools))", "repr((_source(), tools[4:]))", "cached kernels of other versions of the tools are loaded"),
        ("_MAGIC + digest + payload, \"sha256\")", "_MAGIC + payload, \"sha256\")", "the seal does not say which kernel it seals"),
        ("if not hmac.compare_digest(entry, _sealed(digest, payload)):", "if False:", "entries without a seal are loaded"),
        ("return hashlib.sha256(_producer(of_host) + json.dumps(parts).encode()).digest()", "return hashlib.sha256(json.dumps(parts).encode()).digest()", "cached kernels of another version of Cardan are loaded"),
    ),
    *changes(
        "machines/ufunc/kernel.py", f"{ARRAYS} machines/test_threads.py machines/test_errors.py",
        ("share = -(-min(-(-size // parts), max(most, 1)) // lanes) * lanes", "share = max(min(-(-size // parts), max(most, 1)) // lanes * lanes, lanes)", "a batch is cut into more parts than threads", Equivalent("parts are rounded down to whole lanes instead of up: one small part more, the same results")),
    ),
    *changes(
        "machines/ufunc/bound.py", "product/test_compiled.py",
        ("if array.size and before.size and np.may_share_memory(array, before):", "if False:", "results are bound to the memory of an input"),
        ("if not (array.flags.c_contiguous and array.flags.aligned):", "if False:", "arrays with gaps are bound"),
        ("%finite = fcmp oeq {s} %sum, 0.0", "%finite = fcmp ueq {s} %sum, 0.0", "a bound call returns NaN in silence"),
        ("if ahead and batch and ahead != batch:", "if False:", "a bound call reads past the end of a short batch"),
    ),
    *changes(
        "machines/cuda/kernel.py", "machines/test_cuda_cache.py",
        ("card.capability, driver.driver_version())", "card.capability)", "code of a card is kept for every driver"),
        ("card.capability, driver.driver_version())", "driver.driver_version())", "code of a card is kept for every card"),
        ("except driver.CodeRefusedError:", "except driver.DeviceMemoryError:", "stored code that the driver refuses is an error"),
        ("most = -(-min(most, rows) // 2)", "most = -(-min(most, rows) // 2)\n                low += most", "rows that did not fit are left out"),
    ),
    *changes(
        "machines/cuda/driver.py", "machines/test_driver.py",
        ("_forked = _forked or library.cache_info().currsize > 0", "_forked = False", "a forked process calls the driver"),
        ("if status in _DEAD:\n        return", "if False:\n        return", "a kernel that failed is not told from a call that failed"),
        ("if self.capability < OLDEST:", "if False:", "a card that is too old gets code"),
        ("return interruptible(lambda: self._compiled(ptx, name))", "return self._compiled(ptx, name)", "Ctrl-C is not heard while the driver compiles"),
        ("if status == _OUT_OF_MEMORY:\n                raise self._full(f\"{size", "if False:\n                raise self._full(f\"{size", "the numbers of a full card are not told"),
    ),
    *changes(
        "machines/cuda/ptx.py", "machines/test_ptx.py machines/test_cuda_cache.py",
        ("if known <= capability), default", "if known < capability), default", "a card gets code of the architecture before its own"),
    ),
    *changes(
        "machines/cuda/entry.py", "machines/test_entry.py",
        ("%along = mul i64 %c, %n", "%along = mul i64 %r, %n", "large ports are read along the wrong axis"),
        ("doubt = line.new(f\"or i1 {doubt}, {other}\")", "doubt = other", "only the last doubt of a quick line counts"),
    ),
    *changes(
        "machines/llvm/elementary/reciprocal.py", "machines/test_entry.py",
        ("%other = icmp ugt i32 %above, {span}", "%other = icmp ugt i32 %size, {span}", "reciprocals of numbers near the ends of the exponents are wrong"),
    ),
    *changes(
        "machines/cuda/geometry.py", ON_CARD,
        ("outer == n * step for outer", "True for outer", "axes of a batch on a card are joined that do not follow one another"),
        ("outer == n * step for outer", "outer == step for outer", "rows that follow one another take several axes of a grid"),
        ("own = [0 if n == 1 else step for", "own = [step for", "an axis of one entry is not broadcast on a card"),
        ("base[j] + sum(lo * steps[j]", "base[j] + sum(0 * steps[j]", "parts of a long axis all begin at its first row"),
    ),
    *changes(
        "machines/cuda/arrays.py", ON_CARD,
        ("if any(view.overlaps(other) for other in (*taken.views, *before)):", "if False:", "results on a card are written over arguments"),
        ("        for other in self.others:\n            streams.let_wait(self.device, other, self.stream)", "        for other in ():\n            pass", "another library may write to an argument while the kernel reads it"),
        ("    for other in others:\n        streams.let_wait(device, stream, other)", "    for other in ():\n        pass", "a kernel does not wait for another library's work"),
        ("    float: float.hex,", "    float: float,", "-0.0 is taken for 0.0 in remembered calls"),
        ("        if view.dtype != dtype:", "        if False:", "float32 is read as float64 on a card"),
    ),
    *changes(
        "machines/cuda/constants.py", ON_CARD,
        ("            self._recorded[key] = found", "            pass", "numbers that a CUDA graph reads are released"),
    ),
    *changes(
        "machines/cuda/plan.py", ON_CARD,
        ("self.launches = launches", "self.launches, self.held = launches, args", "a remembered call holds the memory of its first arguments"),
        ("elif is_capturing(self.device, stream):", "elif False:", "numbers of a remembered call are released though a CUDA graph reads them"),
    ),
    *changes(
        "program/graph.py", "product/test_device.py",
        ("before[old] > 1 == now[new]", "False", "a part of a graph fuses products that the whole does not"),
    ),
    *changes(
        "machines/cuda/launch.py", ON_CARD,
        ("(frame, own, where, function))", "(frame, own, function))", "a launch reads the places of addresses from memory that was released"),
        ("template[place] = offset", "template[place] = 0", "parts of a batch that takes several launches all begin at its first row"),
    ),
    *changes(
        "machines/cuda/dlpack.py", ON_CARD,
        ("  br i1 %taken, label %done, label %release", "  br i1 %taken, label %done, label %done", "a DLPack capsule that nobody took never gives its memory back"),
    ),
    *changes(
        "machines/webassembly/arithmetic.py", "machines/test_webassembly.py",
        ("%to.odd = and i1 %even, %inexact", "%to.odd = and i1 %even, false", "WebAssembly: the last sum of a fused product is rounded twice"),
        ("%e = fadd double %e3, %ll", "%e = fadd double %e3, 0.0", "WebAssembly: the error of a product lacks its lowest part"),
        ("%up1 = add i64 %up0, %mid2.up", "%up1 = add i64 %up0, 0", "WebAssembly: products of 128 bits lose a carry, and sines of large angles are wrong"),
    ),
    *changes(
        "machines/webassembly/code.py", "machines/test_webassembly.py",
        ("at += size", "at += 1", "WebAssembly: ports lie over one another"),
    ),
]  # fmt: skip
