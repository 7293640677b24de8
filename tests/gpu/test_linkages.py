"""Sweeps of linkages on a card have the bits of those on the CPU."""

import numpy as np

import cardan as cd
from cardan.machines.cuda import driver
from cardan.mechanisms import four_bar


def test_sweeps_searches_and_refinement(card: driver.Card) -> None:
    def bars(crank, coupler, rocker, x, y):  # type: ignore[no-untyped-def]
        lengths = {"B.at": (crank, 0, 0), "C.at": (coupler, 0, 0), "C.child_at": (rocker, 0, 0)}
        return lengths | {"point": (x, y), "coupler.mass": 2.0 * coupler}

    family = cd.LinkageFamily(four_bar().build(), "A", bars, body="coupler")
    designs = np.random.default_rng(0).uniform(0.2, 2, (5000, 5))
    here, there = (family.sweep(designs, device=device) for device in ("cpu", "gpu"))
    for name in ("closed", "forwards", "drive", "force", "speed", "gap"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    turn = 2 * np.pi * np.arange(50) / 50
    curve = np.stack([np.cos(turn), 0.5 * np.sin(turn)], axis=-1)
    bounds = {"crank": (0.1, 0.9), "coupler": (0.3, 2), "rocker": (0.3, 2), "x": (-1, 2), "y": (-1, 1)}
    found = [
        cd.search_linkages(family, bounds, 100_000, curve=curve, best=20, gradient=True, device=device)
        for device in ("cpu", "gpu")
    ]
    assert np.array_equal(found[0].numbers, found[1].numbers) and np.array_equal(found[0].error, found[1].error)
    assert found[0].complete == found[1].complete and found[0].assembled == found[1].assembled
    fine = [cd.refine_linkages(family, found[0].designs, curve=curve, steps=5, device=d) for d in ("cpu", "gpu")]
    assert np.array_equal(fine[0].designs, fine[1].designs)
