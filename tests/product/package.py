"""Build the distributions and try them: `python -m tests.product.package [--python python3.12 ...] [--lower]`.

Each is installed in a clean environment of its own, where a smoke test runs away from the checkout; `--lower` takes
every dependency at the lower bound that pyproject.toml states, and runs part of the test suite too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PART = [
    "tests/machines/test_operations.py", "tests/closed_form", "tests/product/test_simulate.py",
    "tests/product/test_cli.py", "tests/product/test_run_files.py", "tests/product/test_examples.py",
    "tests/model/test_forces.py",
]  # fmt: skip

SMOKE = """
import numpy as np
import cardan as cd
from cardan.io.load import write_mechanisms
from cardan.mechanisms import four_bar

print(cd.__file__, cd.__version__)
model = four_bar().build()
q, v = cd.assemble(model, v=np.ones(model.nv))
run = cd.simulate(model, 1.0, q, v, samples=11)
assert np.ptp(run.energy) < 1e-6
assert np.allclose(cd.forward_dynamics(model, q, v), cd.forward_dynamics(model, q, v, formulation="absolute"))
[file] = [path for path in write_mechanisms("mechanisms", overwrite=True) if path.name == "four_bar.yaml"]
assert cd.load(file).key == model.key
"""

# A run of a mechanism with a function of the user: written at the lower bounds, read with what is installed here.
RUN = """
import sys
import numpy as np
import cardan as cd

m = cd.mechanisms.double_pendulum()
m.drive("motor", "pivot", lambda t, q, v: np.sin(3 * t) - 0.1 * np.abs(v) * v)
model = m.build()
if sys.argv[1] == "write":
    cd.simulate(model, 1.0, [0.5, 0.2], samples=11).save(sys.argv[2])
else:
    assert cd.load_run(sys.argv[2], model).a.shape == (11, 2)
"""


def build(root: Path, out: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of a checkout, without an environment of their own."""
    out.mkdir(parents=True, exist_ok=True)
    code = (
        "import sys\nfrom hatchling import build\n"
        "print(build.build_wheel(sys.argv[1]))\nprint(build.build_sdist(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    wheel, source = done.stdout.split()[-2:]
    return out / wheel, out / source


def lower_bounds(root: Path) -> list[str]:
    """Every runtime dependency pinned at its lower bound."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return [re.sub(r">=([^,]+).*", r"==\1", requirement) for requirement in project["dependencies"]]


def main() -> None:
    """Build, install, try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=[sys.executable], help="interpreters to try")
    parser.add_argument("--lower", action="store_true", help="dependencies at their lower bounds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        distributions = build(ROOT, place / "dist")
        for python in given.python:
            for distribution in distributions if not given.lower else distributions[:1]:
                try_in(place / f"{Path(python).name}-{distribution.suffix[1:]}", python, distribution, given.lower)


def try_in(place: Path, python: str, distribution: Path, lower: bool) -> None:
    """Install a distribution in a clean environment and run the smoke test there."""
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    own = place / "bin" / "python"
    pip = [str(own), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    pins = lower_bounds(ROOT) if lower else []
    subprocess.run([*pip, str(distribution), *pins], check=True)
    environment = {**os.environ, "CARDAN_CACHE_DIR": str(place / "cache")}
    subprocess.run([str(own), "-c", SMOKE], check=True, cwd=place, env=environment)
    subprocess.run([str(place / "bin" / "cardan"), "--help"], check=True, cwd=place, stdout=subprocess.DEVNULL)
    if lower:
        subprocess.run([str(own), "-c", RUN, "write", "run.nc"], check=True, cwd=place, env=environment)
        subprocess.run([sys.executable, "-c", RUN, "read", "run.nc"], check=True, cwd=place, env=environment)
        subprocess.run([*pip, "pytest", "hypothesis", "pytest-xdist", "mpmath", "sympy", "pyarrow"], check=True)
        as_pinned = "not has_help_with_an_example"  # whose page shows the layout of the pinned version of typer
        tests = [str(own), "-m", "pytest", "-q", "-n", "0", "-k", as_pinned, *PART]
        subprocess.run(tests, check=True, cwd=ROOT, env=environment)
    print(f"{distribution.name} on {python}{' at lower bounds' if lower else ''}: good")


if __name__ == "__main__":
    main()
