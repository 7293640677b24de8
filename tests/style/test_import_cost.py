"""`import cardan` is cheap: heavy parts come when they are used."""

import subprocess
import sys

LIMIT = 0.3  # s of the processor: a busy machine does not count
HEAVY = {"casadi", "llvmlite", "scipy", "typer", "matplotlib"}
PROBE = """
import sys, time
start = time.process_time()
import {module}
print(time.process_time() - start, *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def probe(module: str) -> tuple[float, set[str]]:
    """Processor seconds to import a module in a fresh process, and the top-level modules that are then present."""
    command = [sys.executable, "-c", PROBE.format(module=module)]
    seconds, *present = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), set(present)


def test_import_is_quick() -> None:
    assert min(probe("cardan")[0] for _ in range(5)) < LIMIT


def test_import_leaves_heavy_parts_alone() -> None:
    _, present = probe("cardan")
    assert "cardan" in present
    assert present & HEAVY == set()


def test_the_probe_sees_a_heavy_module() -> None:
    assert "llvmlite" in probe("llvmlite.binding")[1]


ON_THE_CPU = """
import pkgutil, sys, warnings
import cardan as cd
import cardan.machines.cuda
print(*(name for name in sys.modules if "cuda" in name))
model = cd.mechanisms.double_pendulum().build()
cd.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0])
print(*sorted(name for name in sys.modules if "cuda" in name))
for module in pkgutil.walk_packages(cardan.machines.cuda.__path__, "cardan.machines.cuda."):
    __import__(module.name)
cardan.machines.cuda.driver._open = lambda: cardan.machines.cuda.driver.ctypes.CDLL("libnone.so.1")
try:
    cd.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0], device="gpu")
except cd.DeviceError as error:
    print(error)
"""


def test_the_gpu_is_left_alone_until_it_is_asked_for() -> None:
    """Without one everything can be imported, and one sentence says what is missing."""
    done = subprocess.run([sys.executable, "-c", ON_THE_CPU], check=True, capture_output=True, text=True).stdout
    first, computed, said = done.splitlines()
    assert first == "cardan.machines.cuda"
    assert computed.split() == ["cardan.machines.cuda", "cardan.machines.cuda.place"]
    assert said == "device='gpu': no NVIDIA driver was found on this machine; install one, or compute on the CPU"
