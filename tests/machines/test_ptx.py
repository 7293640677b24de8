"""PTX on any machine: programs of every kind, with one kernel and nothing from outside; assembled where it can be.

The whole catalogue is `make test-ptx`; its figures are in docs/gpu.md.
"""

import inspect
from functools import cache

import numpy as np
import pytest
from tests.ptx import (
    ARCHITECTURES,
    NO_PTXAS,
    assemble,
    collected,
    fault,
    find_ptxas,
    functions_of_a_state,
    make,
    sliding_block,
)  # fmt: skip

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda.ptx import _VERSIONS, OLDEST, architecture_for
from cardan.machines.ufunc.kernel import Kernel
from cardan.structure import kernels


class Stop(Exception):
    """A kernel was called."""


WAYS = ("rk4", "moreau")


@cache
def sample():
    """Programs of every kind, none of them compiled for the host: calling a kernel ends the function that made it."""

    def stop(*_, **__):
        raise Stop

    small, large, still = mechanisms.double_pendulum().build(), mechanisms.chain(6).build(), np.zeros(6)
    event, z = cd.Event("turns", lambda now: now.v[0]), still[:2]
    calls = {
        "graph": lambda: cd.forward_dynamics(small, z, z),
        "schedule": lambda: cd.forward_dynamics(large, still, still),
        "stages": lambda: cd.forward_dynamics(small, z, z, by=("q", "v", "tau")),
        "march": lambda: cd.simulate(small, 1.0),
        "march with events": lambda: cd.simulate(small, 1.0, events=[event]),
        "march of fixed steps": lambda: cd.simulate(small, 1.0, method="rk4", step=0.1),
        "implicit march": lambda: cd.simulate(small, 1.0, method="alpha", step=0.1),
        "march of a schedule": lambda: cd.simulate(large, 1.0, method="rk4", step=0.1),
    }
    programs = {}
    with pytest.MonkeyPatch.context() as patch, collected() as found:
        patch.setattr(Kernel, "__call__", stop)
        patch.setattr(kernels, "LOOP_PAST", 5)
        for name, call in calls.items():
            found.clear()
            with pytest.raises(Stop):
                call()
            programs[name] = next(iter(found.values()))
    return programs


KINDS = {
    "graph": "Graph", "schedule": "Schedule", "stages": "Stages", "march": "March", "march with events": "March",
    "march of fixed steps": "March", "implicit march": "March", "march of a schedule": "March",
}  # fmt: skip


@cache
def made(name):
    """PTX of a program of the sample; precisions and architectures take turns."""
    number = [*KINDS].index(name)
    dtype, architecture = ("double", "float")[number % 2], ARCHITECTURES[number % len(ARCHITECTURES)]
    return dtype, make(sample()[name], dtype, architecture)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_program(name):
    """One kernel, and nothing from outside."""
    dtype, found = made(name)
    assert found.kind == KINDS[name] and not fault(found.ptx, found.architecture)
    assert {"double": "fma.rn.f64", "float": "fma.rn.f32"}[dtype] in found.ptx


@pytest.mark.skipif(not find_ptxas(), reason=NO_PTXAS)
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_assembled(name):
    """Small mechanisms spill next to nothing."""
    _, found = made(name)
    code = assemble(found.ptx, found.architecture, find_ptxas())
    assert 0 < code.registers <= 255 and code.spills <= 128
    assert code.stack <= (8192 if "schedule" in name else 1024), "state of small mechanisms belongs into registers"


def test_all_functions_of_a_state_are_found():
    """`make test-ptx` runs what it finds by the signatures."""
    found = functions_of_a_state()
    assert {"forward_dynamics", "inverse_dynamics", "mass_matrix", "reactions", "jacobian", "plus"} <= found.keys()
    assert len(found) >= 28 and all(next(iter(inspect.signature(f).parameters)) == "model" for f in found.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".target sm_90\n.visible .entry rows(\n", ""),
        (".target sm_90\n.visible .func rows(\n", "there is no kernel"),
        (".target sm_80\n.visible .entry rows(\n", "another architecture"),
        (".target sm_90\n.visible .entry rows(\n.extern .func  (.param .b64 r) pow\n(\n", "pow"),
    ],
)
def test_faults_are_found(text, words):
    assert words in fault(text, 90) and bool(words) == bool(fault(text, 90))


def test_llvm_knows_every_architecture():
    """Each in the version of PTX that is asked for, which an old driver may be the limit of."""
    program = sample()["graph"]
    for architecture, version in _VERSIONS.items():
        text = make(program, "double", architecture).ptx
        assert f".version {version // 10}.{version % 10}\n" in text and not fault(text, architecture)
    assert [architecture_for(c) for c in (52, 60, 61, 75, 87, 90, 103, 121, 999)] == [
        OLDEST, 60, 60, 75, 86, 90, 100, 120, 120,
    ]  # fmt: skip


def test_marches_with_laws_and_tables(quick_code):
    """Of a block with stops, friction that sticks and a table; in modes, and by Moreau's rule."""
    with collected() as found:
        runs = [cd.simulate(sliding_block().build(), 0.1, [0.2], [1.0], method=way, step=1e-3) for way in WAYS]
    marches = [program for program in found.values() if program.name == "march"]
    assert len(marches) == len(WAYS) and abs(runs[0].q[-1] - runs[1].q[-1]) < 1e-3
    for program in marches:
        assert not fault(make(program).ptx, 90)
