"""Random four-bars and six-bars: which turn, what they need to be driven, and which walks like a given foot.

python examples/16_hundred_million_linkages.py
python examples/16_hundred_million_linkages.py --device gpu --linkages 100000000 --gradients
"""

import argparse
import time

import numpy as np

import cardan as cd

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--linkages", type=int, default=20_000, help="how many, half of them four-bars")
options.add_argument("--positions", type=int, default=200, help="of the crank, each")
options.add_argument("--best", type=int, default=6, help="how many of each kind are refined")
options.add_argument("--steps", type=int, default=15, help="of the refinement, at most")
options.add_argument("--device", default="cpu", help="cpu or gpu")
options.add_argument("--gradients", action="store_true", help="all linkages again, with the gradient of each")
options.add_argument("--pictures", action="store_true", help="of the best of each kind, as PNG files here")
given = options.parse_args()

DENSITY = 2.0  # kg/m of all bars
HINGE = cd.Revolute(axis=(0, 0, 1))


def four_bar(m: cd.Mechanism) -> None:
    """Crank AB, coupler BC and rocker DC on the base AD of 1 m."""
    m.joint("A", HINGE, m.ground, "crank", start=1.0)
    m.joint("B", HINGE, "crank", "coupler", at=(0.4, 0, 0), start=-0.586)
    m.joint("C", HINGE, "coupler", "rocker", at=(0.9, 0, 0), child_at=(0.7, 0, 0))
    m.joint("D", HINGE, m.ground, "rocker", at=(1, 0, 0), start=1.514)


def six_bar(name: str, carrier: str | None) -> cd.Model:
    """A four-bar with two bars EF and GF more: from its coupler to the ground, or to its rocker."""
    m = cd.Mechanism(name, gravity=(0, -9.81, 0))
    for body in ("crank", "coupler", "rocker", "link", "arm"):
        m.body(body, mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(1.0, 1.0))
    four_bar(m)
    m.joint("E", HINGE, "coupler", "link", at=(0.5, 0.4, 0), start=0.5)
    m.joint("F", HINGE, "link", "arm", at=(0.9, 0, 0), child_at=(0.8, 0, 0))
    on_ground = carrier is None
    m.joint("G", HINGE, carrier or m.ground, "arm", at=(1.4, 0.3, 0) if on_ground else (0.5, -0.3, 0), start=1.5)
    return m.build()


def plain_four_bar() -> cd.Model:
    """A four-bar alone."""
    m = cd.Mechanism("four-bar", gravity=(0, -9.81, 0))
    for body in ("crank", "coupler", "rocker"):
        m.body(body, mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(1.0, 1.0))
    four_bar(m)
    return m.build()


def bar(name: str, length):
    """Mass, centre of mass and inertia of a bar."""
    about = DENSITY * length**3 / 12
    return {
        f"{name}.mass": DENSITY * length,
        f"{name}.com": (length / 2, 0, 0),
        f"{name}.inertia": (1e-3 * about, about, about, 0, 0, 0),
    }


def four_bars(crank, coupler, rocker, x, y, start):
    """What the design variables of a four-bar say about it."""
    lengths = {"B.at": (crank, 0, 0), "C.at": (coupler, 0, 0), "C.child_at": (rocker, 0, 0)}
    bars = bar("crank", crank) | bar("coupler", coupler) | bar("rocker", rocker)
    return lengths | bars | {"point": (x, y), "start": start}


def six_bars(crank, coupler, rocker, ex, ey, gx, gy, link, arm, x, y, start):
    """The same of a six-bar; its point is on the link EF."""
    more = {"E.at": (ex, ey, 0), "G.at": (gx, gy, 0), "F.at": (link, 0, 0), "F.child_at": (arm, 0, 0)}
    return four_bars(crank, coupler, rocker, x, y, start) | more | bar("link", link) | bar("arm", arm)


FOUR = {"crank": (0.1, 0.7), "coupler": (0.4, 1.6), "rocker": (0.4, 1.6), "x": (-1, 2), "y": (-1.5, 1.5)}
SIX = FOUR | {"ex": (-0.5, 1.5), "ey": (-1, 1), "gx": (-1, 2), "gy": (-1.5, 1.5), "link": (0.4, 2), "arm": (0.4, 2)}
families = [
    (cd.LinkageFamily(plain_four_bar(), "A", four_bars, body="coupler"), FOUR, 2),
    (cd.LinkageFamily(six_bar("Watt I", "rocker"), "A", six_bars, body="link"), SIX, 4),
    (cd.LinkageFamily(six_bar("Stephenson III", None), "A", six_bars, body="link"), SIX, 4),
]

# the foot of a walking machine: half of the time on the ground, at constant speed, then lifted and brought forward
turn = np.arange(100) / 100
stands, swings = turn < 0.5, np.pi * (2 * turn - 1)
foot = np.where(stands, 0.25 - turn, -0.25 * np.cos(swings)), np.where(stands, 0.0, 0.1 * np.sin(swings))
curve = np.stack(foot, axis=-1)

common = {"curve": curve, "positions": given.positions, "device": given.device, "speed": 5.0}
common["accept"] = lambda s: (s.drive[:, 0] < 30) & (s.force.max(axis=1) < 300)  # N m, N
best = []
total = {"swept": 0.0, "with gradients": 0.0, "refined": 0.0}
for family, lengths, share in families:
    bounds = lengths | {"start": (0, 2 * np.pi)}
    began = time.perf_counter()
    for gradient in (False, True)[: 1 + given.gradients]:
        cd.search_linkages(family, bounds, 64, best=1, gradient=gradient, **common)  # compiles
    print(f"\ncompiled in {time.perf_counter() - began:.2f} s")
    found = cd.search_linkages(family, bounds, given.linkages // share, best=given.best, **common)
    total["swept"] += found.seconds
    print(found)
    if given.gradients:
        again = cd.search_linkages(family, bounds, found.count, best=given.best, gradient=True, **common)
        total["with gradients"] += again.seconds
        print(f"  with gradients of all: {again.seconds:.3g} s")
        assert np.array_equal(again.numbers, found.numbers)
    began = time.perf_counter()
    fine = cd.refine_linkages(family, found.designs, bounds=lengths, steps=given.steps, **common)
    total["refined"] += time.perf_counter() - began
    print(f"  {len(fine.error)} refined in {fine.steps} steps: {found.error[0]:.3%} -> {fine.error[0]:.3%} of its size")
    drive, force = fine.sweep.drive[0, 0], fine.sweep.force[0].max()
    print(f"  the best needs {drive:.3g} N m at 5 rad/s; largest pin force {force:.3g} N")
    assert fine.sweep.complete.all() and fine.error[0] < found.error[0] * (1 + 1e-9)
    if given.pictures:
        fine.plot(path=f"{family.model.name}.png", overwrite=True)
    best.append((family, fine.designs[0], fine.error[0]))

print("\n" + ", ".join(f"{what}: {seconds:.3g} s" for what, seconds in total.items() if seconds))

# the best one again, position by position, by the functions of a state
family, design, _ = min(best, key=lambda x: x[2])
model, at = family.model_at(design), family.samples(design, speed=5.0, positions=given.positions)
assert np.abs(cd.constraint_residual(model, at.q)).max() < 1e-11
torque = cd.inverse_dynamics(model, at.q, at.v, at.a, driven=["A"])
assert np.allclose(torque[:, 0], at.drive[:, 0], atol=1e-9 * np.abs(at.drive).max())
assert np.allclose(cd.reactions(model, at.q, at.v, torque), at.wrenches, atol=1e-9 * np.abs(at.wrenches).max())
