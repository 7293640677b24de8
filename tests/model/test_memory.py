"""What is remembered about a model: each thing has one owner, and no function changes what another one gives."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.model.memory import KernelSlot, RecentSlot, Slot

pytestmark = pytest.mark.usefixtures("quick_code")


def sprung_chain(links: int) -> cd.Model:
    """A chain that is too long to be unrolled, with springs along its joints."""
    m = cd.mechanisms.chain(links)
    for joint in m.joints[::7]:
        m.torsion(f"spring {joint.name}", joint.name, stiffness=3.0)
    return m.build()


CALLS = {
    "inverse_mass_matrix": lambda m, q, v: cd.inverse_mass_matrix(m, q),
    "mass_matrix": lambda m, q, v: cd.mass_matrix(m, q),
    "forward_dynamics": lambda m, q, v: cd.forward_dynamics(m, q, v),
    "inverse_dynamics": lambda m, q, v: cd.inverse_dynamics(m, q, v, v),
    "bias_force": lambda m, q, v: cd.bias_force(m, q, v),
    "potential_energy": lambda m, q, v: cd.potential_energy(m, q),
}


def test_no_function_changes_the_answer_of_another() -> None:
    model = sprung_chain(70)
    q, v = np.random.default_rng(0).standard_normal((2, model.nv))
    alone = {name: call(sprung_chain(70), q, v) for name, call in CALLS.items()}
    for one, other in itertools.permutations(CALLS, 2):
        CALLS[one](model, q, v)
        np.testing.assert_array_equal(CALLS[other](model, q, v), alone[other], err_msg=f"{other} after {one}")


def test_slots_of_one_description_are_two_places() -> None:
    model, first, second = cd.mechanisms.pendulum().build(), Slot[str, int]("numbers"), Slot[str, int]("numbers")
    assert first.find(model, "a", lambda: 1) == 1
    assert second.find(model, "a", lambda: 2) == 2
    assert first.find(model, "a", lambda: 3) == 1
    assert repr(first) == "Slot('numbers')"
    assert first.first_time(model, "b")
    assert not first.first_time(model, "b")


def test_everything_remembered_has_an_owner() -> None:
    """After many calls the memory of a model has slots as keys, and nothing under a bare string."""
    model = cd.mechanisms.four_bar().build()
    q, v = cd.assemble(model, v=[1.0, 0, 0])
    for formulation in ("spatial", "absolute", "points"):
        cd.reactions(model, q, v, formulation=formulation)
    cd.simulate(model, 0.1, q, v)
    cd.redundancy(model)
    assert model.memory
    assert all(isinstance(place[0], Slot | RecentSlot | KernelSlot) for place in model.memory)


@pytest.mark.parametrize("settings", [{}, {"method": "alpha", "step": 0.01}, {"method": "gear"}])
def test_events_of_old_runs_are_forgotten(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has an event of its own; those of the last few are kept, with their kernels, for a run that repeats."""
    from cardan.integrate.kernel import EVENT_KERNELS

    monkeypatch.setattr(EVENT_KERNELS, "most", 1)
    model = cd.mechanisms.pendulum().build()
    alive = []
    for k in range(4):
        event = cd.Event("passes", lambda s, at=0.1 * k: s.q[0] - at)
        alive.append(weakref.ref(event.when))
        run = cd.simulate(model, 1.0, [0.5], events=[event], samples=3, **settings)
        assert len(run.events) == 1
        del run, event
    gc.collect()
    assert [when() is not None for when in alive[:3]] == [False] * 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, q, v: cd.forward_dynamics(m, q, v, frame="body"), "formulation='absolute_body'"),  # type: ignore[arg-type]
        (lambda m, q, v: cd.reactions(m, q, v, frame="body"), "formulation='absolute_body'"),  # type: ignore[arg-type]
        (lambda m, q, v: cd.equations(m, frame="body"), "formulation='absolute_body'"),  # type: ignore[arg-type]
        (lambda m, q, v: cd.simulate(m, 0.1, q, v, frame="body"), "formulation='absolute_body'"),
        (lambda m, q, v: cd.condition(m, q, frame="body"), "formulation='absolute_body'"),  # type: ignore[arg-type]
        (lambda m, q, v: cd.forward_dynamics(m, q, v, farme=1), "there is no argument 'farme'"),  # type: ignore[call-arg]
        (lambda m, q, v: cd.jacobian(m, "coupler", q), r"cd\.jacobian\(model, q, "),
        (lambda m, q, v: cd.frame_pose(m, "coupler", q), r"cd\.frame_pose\(model, q, "),
    ],
)
def test_what_was_removed_says_what_it_is_now(call, words: str) -> None:  # type: ignore[no-untyped-def]
    model = cd.mechanisms.four_bar().build()
    with pytest.raises(cd.InputError, match=words):
        call(model, *cd.assemble(model))
