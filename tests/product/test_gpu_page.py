"""docs/gpu.md: every error of its table is raised, in those words, and its figures come from whole outputs."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import cli, mechanisms
from cardan.machines.cuda import driver
from cardan.machines.cuda.arrays import to_device

from ..fake_card import fake_cards
from ..machines.stand_in_driver import StandInDriver, use

__all__ = ["use"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
SAID = dict(re.findall(r"^\| ([^|`]+) \| `([^`]+)` \|$", PAGE.partition("## Errors")[2], re.MULTILINE))
Use = Callable[[StandInDriver], StandInDriver]


class Half:
    """An array in float16 on the first card."""

    __cuda_array_interface__: dict[str, Any] = {"shape": (5, 3), "typestr": "<f2", "data": (0, False), "version": 3}  # noqa: RUF012


@cache
def model() -> cd.Model:
    return mechanisms.chain(3).build()


def compute(*args: Any, **more: Any) -> Any:
    return cd.forward_dynamics(model(), *(args or (np.zeros(3), np.zeros(3))), **more)


def without_driver(use: Use) -> None:
    use(StandInDriver())
    driver._open = lambda: ctypes.CDLL("libnone.so.1")  # `use` puts it back
    compute(device="gpu")


def with_driver(fails: dict[str, int] | None = None, device: str = "gpu", **about: Any) -> Callable[[Use], None]:
    def act(use: Use) -> None:
        use(StandInDriver(**about)).fails = fails or {}
        compute(device=device)

    return act


def forked(use: Use) -> None:
    use(StandInDriver()).fails = {"cuInit": 3}  # what the driver itself says in such a process
    compute(device="gpu")


def on_cards(act: Callable[..., Any], memory: int = 2**22) -> Callable[[Use], None]:
    def run(use: Use) -> None:
        with fake_cards(cards=2, memory=memory):
            act(*(to_device(np.zeros((5, 3)), card) for card in (0, 1)))

    return run


CASES: dict[str, Callable[[Use], None]] = {
    "no driver": without_driver,
    "an old driver": with_driver(version=11080),
    "no card": with_driver({"cuInit": 100}),
    "a card that does not exist": with_driver(cards=(90, 90), device="gpu:2"),
    "an old card": with_driver(cards=(52,)),
    "too little memory": on_cards(lambda q, _: to_device(np.zeros(2**20)), 2**22 + 240),
    "too little memory for a result": on_cards(lambda q, _: compute(to_device(np.zeros((300_000, 3))), q[0]), 2**23),
    "an array on another device": on_cards(lambda q, other: compute(q, other)),
    "a mixture of devices": on_cards(lambda q, _: compute(q, np.zeros((5, 3)))),
    "another card asked for": on_cards(lambda q, _: compute(q, q, device="gpu:1")),
    "float16": on_cards(lambda q, _: compute(Half(), q)),
    "mixed precision": on_cards(lambda q, _: compute(q, to_device(np.zeros((5, 3), np.float32)))),
    "PTX that the driver is too old for": with_driver({"cuLinkComplete": 222}, version=12020, cards=(120,)),
    "a forked process": forked,
    "a kernel that failed": with_driver({"cuLaunchKernel": 700}),
}


@pytest.fixture(autouse=True)
def nothing_stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CARDAN_CACHE", "0")
    monkeypatch.setattr(driver, "_open", driver._open)  # so that it is put back
    yield


@pytest.mark.parametrize("case", SAID)
def test_every_error_is_said_as_shown(case: str, use: Use) -> None:
    with pytest.raises(cd.CardanError) as error:
        CASES[case](use)
    said = str(error.value)
    assert SAID[case] in said and "\n" not in said, said
    assert isinstance(error.value, MemoryError) == case.startswith("too little memory")


def test_what_the_issue_of_gpus_asks_for_is_shown() -> None:
    assert CASES.keys() == SAID.keys()


OUTPUT = """
tests/gpu/test_kernels.py::test_float32[chain of 70] PASSED              [ 50%]
tests/gpu/test_kernels.py::test_batches[(0,)] FAILED                     [ 60%]
=================== 1 failed, 1 passed in 60.31s (0:01:00) ===================
tests/gpu/test_page.py::test_what_is_shown_runs[jax] SKIPPED (jax ...)   [100%]
2026-11-16 09:00 UTC; Python 3.12.3, NumPy 2.5.2, llvmlite 0.50.0
gpu:0: NVIDIA H200, sm_90 (code for sm_90), 139.0 GiB free; driver for CUDA 13.0; 3 kernels kept
SKIPPED [1] tests/gpu/test_page.py:14: jax is not installed
================== 1 skipped in 0.45s ===================
"""


def test_output_of_a_run_becomes_a_section() -> None:
    spec = importlib.util.spec_from_file_location("make_gpu", ROOT / "docs" / "make_gpu.py")
    assert spec is not None and spec.loader is not None
    make_gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_gpu)
    page = make_gpu.replaced(PAGE, "test-gpu", make_gpu.tests(OUTPUT))
    assert "    gpu:0: NVIDIA H200, sm_90" in page and "| `tests/gpu/test_kernels.py` | 1 | 1 | 0 |" in page
    assert "Skipped in `tests/gpu/test_page.py`: jax is not installed." in page and "\n61 s in all." in page
    assert make_gpu.replaced(page, "test-gpu", make_gpu.tests(OUTPUT)) == page
    for whole in ("", OUTPUT.replace("gpu:0", "gpu"), OUTPUT.replace("1 skipped in", "")):
        with pytest.raises(SystemExit, match="not the whole output"):
            make_gpu.tests(whole)
    for section in ("measured", "ptx"):
        assert make_gpu.replaced(PAGE, section, "x").count("\nx\n") == 1
    assert make_gpu.measured("# Title\n\n## One\n| a |\n") == "\n### One\n| a |\n"


def test_the_command_line_says_it_in_one_line(
    use: Use, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(StandInDriver(version=11080))
    monkeypatch.setattr(sys, "argv", ["cardan", "simulate", "pendulum", "--time", "1", "--device", "gpu"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == f"cardan: {SAID['an old driver']}\n"
