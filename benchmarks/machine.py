"""Description of the machine and the versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import cardan as cd
from cardan.machines.host import host


def machine_text() -> str:
    """Processor, lanes, cores, versions, and the load of the machine."""
    h = host()
    packages = ", ".join(
        f"{name} {_version(name)}" for name in ("numpy", "casadi", "llvmlite", "pin", "mujoco", "exudyn")
    )
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    lines = [
        f"- processor: {_processor()} (LLVM: {h.cpu}), {h.lanes('double')} lanes of float64, "
        f"{h.lanes('float')} of float32",
        f"- threads in measurements on all threads: {cd.get_threads()}; load average at the start: {load}",
        f"- {platform.system()} {platform.machine()}, Python {platform.python_version()}, {packages}",
        f"- cardan {cd.__version__}{_commit()}",
    ]
    return "\n".join(lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _commit() -> str:
    """The measured commit, and whether the package differs from it."""
    root = Path(__file__).parents[1]

    def git(*args: str) -> str:
        result = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
        return result.stdout.strip() if result.returncode == 0 else ""

    commit = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", "src")
    return f", commit {commit}{' with changes' if changed else ''}" if commit else ""
