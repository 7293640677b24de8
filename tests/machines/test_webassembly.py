"""Programs as WebAssembly give what their kernels on the host give; run by Node.js, loaded as pages load them."""

import base64
import json
import shutil
import subprocess
from fractions import Fraction
from importlib.resources import files

import casadi as ca
import numpy as np
import pytest
from tests.elementary import NAMES, SPECIAL, program_of

from cardan.errors import CardanError
from cardan.machines.build import Builder
from cardan.machines.ufunc.kernel import compile_program
from cardan.machines.webassembly.arithmetic import FMA
from cardan.machines.webassembly.binary import HEADER, module_of, sections
from cardan.machines.webassembly.code import SCRATCH, STACK, WebAssemblyCode, _compiled, compile_for_browser
from cardan.program.march import March
from cardan.program.program import Port, Program

from .conftest import arm

pytestmark = pytest.mark.usefixtures("quick_code")
LOADER = (files("cardan") / "data" / "page" / "webassembly.js").read_text(encoding="utf-8")
RUNNER = """
(async () => {
  const { jobs, stack } = JSON.parse(require("fs").readFileSync(0));
  const found = [];
  for (const { program, code, calls } of jobs) {
    const run = await loadedProgram(program, Buffer.from(code, "base64"), stack);
    found.push(calls.map((call) => {
      const given = Object.fromEntries(Object.entries(call).map(([name, x]) => {
        const bytes = Buffer.from(x, "base64");
        return [name, new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))];
      }));
      return Object.values(run(given)).map((x) => Buffer.from(x.buffer).toString("base64"));
    }));
  }
  console.log(JSON.stringify(found));
})();
"""


def run(*jobs):
    """Outputs, one array (calls, size) each, of programs, compiled or not, at inputs (calls, size) by name."""
    if not shutil.which("node"):
        pytest.skip("no Node.js on this machine")
    told = []
    for program, inputs in jobs:
        code = program if isinstance(program, WebAssemblyCode) else compile_for_browser(Builder(program))
        calls = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
        encoded = [{name: text(np.asarray(x, float)) for name, x in call.items()} for call in calls]
        told.append({"program": code.described(), "code": text(code.code), "calls": encoded})
    given = json.dumps({"jobs": told, "stack": STACK})
    done = subprocess.run(["node", "-e", LOADER + RUNNER], input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [
        [np.array([np.frombuffer(base64.b64decode(x)) for x in port]) for port in zip(*calls, strict=True)]
        for calls in json.loads(done.stdout)
    ]


def text(data) -> str:
    return base64.b64encode(data if isinstance(data, bytes) else data.tobytes()).decode()


def test_elementary_functions_have_the_bits_of_the_kernels() -> None:
    """At special numbers, and at random ones of all sizes: products and sums that round once are exact there too."""
    rng = np.random.default_rng(3)
    x = np.concatenate([np.repeat(SPECIAL, 3), rng.normal(size=300), 10.0 ** rng.uniform(-12, 12, 300)])
    y = np.concatenate([np.tile(SPECIAL, 3), rng.uniform(-4, 4, 600)])
    program = program_of(NAMES)
    with np.errstate(all="ignore"):
        expected = compile_program(program)(x, y)
    ((found,),) = run((program, {"x": x, "y": y}))
    differs = (found != expected) & ~(np.isnan(found) & np.isnan(expected))
    assert not differs.any(), [(NAMES[k], x[i], y[i]) for i, k in np.argwhere(differs)[:5]]


FUSED = """define void @call(ptr %ports) {
  %b.at = getelementptr double, ptr %ports, i32 1
  %c.at = getelementptr double, ptr %ports, i32 2
  %r.at = getelementptr double, ptr %ports, i32 3
  %a = load double, ptr %ports
  %b = load double, ptr %b.at
  %c = load double, ptr %c.at
  %r = call double @fma(double %a, double %b, double %c)
  store double %r, ptr %r.at
  ret void
}
declare double @llvm.fabs.f64(double)
"""


def test_products_and_sums_round_once() -> None:
    """Against rational arithmetic, with sums near to half of the last digit, where rounding twice goes wrong."""
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 2000)) * 2.0 ** rng.integers(-40, 40, (2, 2000))
    a[:1000] = np.ldexp(rng.integers(1, 2**27, 1000), -13)
    b[:1000] = np.ldexp(2 * rng.integers(1, 2**26, 1000) + 1.0, 3)
    c = np.where(np.arange(2000) % 2, a * b * 2.0 ** rng.integers(-56, 56, 2000), 2.0 ** rng.integers(-40, 100, 2000))
    c = c * rng.choice([-1.0, 1.0, 2.0**-60], 2000)
    exact = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    module = _compiled(f"{SCRATCH}0\n{FMA}{FUSED}")[4:]
    ports = tuple(Port(name, ()) for name in "abcr")
    ((found,),) = run((WebAssemblyCode(module, ports[:3], ports[3:], 0), {"a": a, "b": b, "c": c}))
    np.testing.assert_array_equal(found[:, 0], exact)


def test_graphs_and_marches() -> None:
    """A straight line of the length of a robot's, and a loop with data, each as on the host but for rounding."""
    rng = np.random.default_rng(4)

    def straight():
        symbols = [ca.SX.sym(name, 7) for name in ("q", "v", "tau")]
        a = symbols
        for _ in range(4):
            a = [a[1], a[2], ca.tanh(arm(*a))]
        return ca.Function("straight", symbols, [a[2]])

    inputs = tuple(Port(name, (7,)) for name in ("q", "v", "tau"))
    line = Program("straight", inputs, (Port("a", (7,)),), "test webassembly straight", straight)

    def newton():
        x, k, c = ca.SX.sym("x", 2), ca.SX.sym("k"), ca.SX.sym("c", 2)
        return March(((ca.Function("step", [x, k, c], [(x + c / x) / 2, k + 1, k < 19]), 1),), carried=2)

    state = (Port("x", (2,)), Port("k", ()))
    root = Program("root", (*state, Port("c", (2,)), Port("limit", ())), state, "test webassembly root", newton)
    given = {name: rng.normal(size=(5, 7)) for name in ("q", "v", "tau")}
    c = rng.uniform(1, 9, (5, 2))
    marched = {"x": c, "k": np.zeros((5, 1)), "c": c, "limit": np.full((5, 1), 50.0)}
    (a,), (x, k) = run((line, given), (root, marched))
    np.testing.assert_allclose(a, compile_program(line)(*given.values()), rtol=1e-12)
    np.testing.assert_allclose(x, np.sqrt(c), rtol=1e-15)
    assert (k == 20).all()


def test_what_is_no_object_file_is_refused() -> None:
    with pytest.raises(CardanError, match="something else"):
        module_of(b"\x7fELF and so on", "call")
    with pytest.raises(CardanError, match="no function 'call'"):
        module_of(HEADER, "call")
    code = compile_for_browser(Builder(program_of(["sin"]))).code
    assert [number for number, _ in sections(code)] == [1, 2, 3, 7, 12, 10, 11] and code.count(b"reloc") == 0
