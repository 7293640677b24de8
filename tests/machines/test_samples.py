"""The loop over times around a march as PTX: one kernel, nothing from outside, and all of it in registers."""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.ptx import NO_PTXAS, assemble, find_ptxas

from cardan import mechanisms
from cardan.integrate.explicit.card_run import sample_ports
from cardan.integrate.explicit.step import equations_of
from cardan.integrate.explicit.stepper import explicit_kernels
from cardan.integrate.explicit.tableau import DORMAND_PRINCE, KUTTA
from cardan.machines.build import Builder
from cardan.machines.cuda.ptx import to_ptx
from cardan.machines.cuda.samples import print_samples
from cardan.structure.formulation import formulation_of

CASES = {"chosen steps": (DORMAND_PRINCE, False), "fixed steps": (KUTTA, False), "in float32": (KUTTA, True)}


@cache
def ptx(case: str) -> str:
    tableau, paired = CASES[case]
    model = mechanisms.double_pendulum().build()
    kernels = explicit_kernels(equations_of(model, formulation_of(model, "spatial")), tableau, (), paired)
    builder = Builder(kernels.march.program)
    ports = sample_ports(fixed=not tableau.adaptive, paired=paired)
    text = print_samples(builder.recorded(), builder.compiled, ports, "float" if paired else "double")
    return to_ptx(text, 90)


@pytest.mark.parametrize("case", CASES)
def test_one_kernel_and_nothing_from_outside(case: str) -> None:
    text = ptx(case)
    assert re.findall(r"\.visible \.entry (\w+)\(", text) == ["samples"]
    assert ".extern" not in text


@pytest.mark.parametrize("case", ["fixed steps", "in float32"])
def test_times_of_fixed_steps_are_rounded_as_on_the_cpu(case: str) -> None:
    """`origin + n step` in float64, without a fused operation."""
    steps = r"cvt\.rpi\.f64[^@]*?selp\.f64\s+(%\w+),[^\n]*"
    assert re.search(steps + r"\s*mul\.rn\.f64\s+(%\w+), \1, %\w+;\s*add\.rn\.f64\s+%\w+, %\w+, \2;", ptx(case))


@pytest.mark.skipif(not find_ptxas(), reason=NO_PTXAS)
@pytest.mark.parametrize("case", CASES)
def test_hardly_anything_is_spilled(case: str) -> None:
    """A kernel held to 128 registers may spill a few numbers: twice the threads are worth more (decision 67)."""
    found = assemble(ptx(case), 90, find_ptxas() or "")
    assert found.spills <= (64 if found.registers == 128 else 0)
    assert found.registers <= {"in float32": 128}.get(case, 200)
