"""Sweeps of families of linkages, against closed forms of four-bars and six-bars, and the functions of a state."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.fake_card import fake_cards

import cardan as cd
from cardan.mechanisms import five_bar, four_bar, slider_crank

DENSITY = 2.0


def bar(name: str, length: Any) -> dict[str, Any]:
    about = DENSITY * length**3 / 12
    inertia = (1e-4, about, about, 0, 0, 0)
    return {f"{name}.mass": DENSITY * length, f"{name}.com": (length / 2, 0, 0), f"{name}.inertia": inertia}


def four_bars(crank: Any, coupler: Any, rocker: Any, x: Any, y: Any, start: Any) -> dict[str, Any]:
    lengths = {"B.at": (crank, 0, 0), "C.at": (coupler, 0, 0), "C.child_at": (rocker, 0, 0)}
    bars = bar("crank", crank) | bar("coupler", coupler) | bar("rocker", rocker)
    return lengths | bars | {"point": (x, y), "start": start}


@pytest.fixture(scope="module")
def family() -> cd.LinkageFamily:
    return cd.LinkageFamily(four_bar().build(), "A", four_bars, body="coupler")


def positions_of(crank: np.ndarray, start: np.ndarray, n: int) -> np.ndarray:
    """Pins B (..., n), as complex numbers."""
    return crank[:, None] * np.exp(1j * (start[:, None] + 2 * np.pi * np.arange(n) / n))


def dyad(
    first: np.ndarray, second: np.ndarray, a: np.ndarray, b: np.ndarray, side: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whether two bars reach from one point to another, and the direction of the first: circles that intersect."""
    d = second - first
    closes = (np.abs(a - b)[:, None] <= np.abs(d)) & (np.abs(d) <= (a + b)[:, None])
    cosine = (a[:, None] ** 2 + np.abs(d) ** 2 - b[:, None] ** 2) / (2 * a[:, None] * np.abs(d))
    return closes, d / np.abs(d) * np.exp(1j * side * np.arccos(np.clip(cosine, -1, 1)))


def ranges(closes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many positions are reached forwards from the first, and in both directions."""
    n, all_round = closes.shape[1], closes.all(axis=1)
    forwards = np.where(all_round, n, np.argmin(closes, axis=1))
    backwards = np.where(closes[:, 0], np.argmin(closes[:, ::-1], axis=1), 0)
    return forwards, np.where(all_round, n, forwards + backwards)


@pytest.mark.parametrize("side", [1, -1])
def test_which_four_bars_can_be_assembled_and_how_far_they_turn(family: cd.LinkageFamily, side: int) -> None:
    """Each of 100,000 verdicts on either branch, with the triangle inequalities and Grashof's rule."""
    rng, n = np.random.default_rng(17), 24
    designs = np.column_stack([rng.uniform(0.2, 2, (100_000, 3)), np.zeros((100_000, 3))])
    a, b, c = designs.T[:3]
    q = cd.assemble(four_bar().build())[0]
    if side < 0:  # the other way round
        q = next(x for x in cd.positions(four_bar().build(), "A", [q[0]])[0] if abs(x[2] - q[2]) > 0.1)
    found = family.sweep(designs, positions=n, q=q, guesses=4)
    B = positions_of(a, np.zeros(len(a)), n)
    closes, _ = dyad(B, np.ones_like(B), b, c, side)
    forwards, every = ranges(closes)
    assert np.array_equal(found.assembled, closes[:, 0])
    assert np.array_equal(found.complete, (np.abs(b - c) <= np.abs(1 - a)) & (1 + a <= b + c))  # positions 0 and pi
    assert np.array_equal(found.forwards, forwards)
    assert np.array_equal(found.closed, every)
    assert 0.1 < found.complete.mean() < 0.4 and found.gap.max() < 1e-12


def test_dead_points_between_positions(family: cd.LinkageFamily) -> None:
    """A linkage that reaches all positions from both sides of a dead point does not turn fully."""
    rng, n = np.random.default_rng(5), 40
    a = rng.uniform(0.2, 0.7, 20_000)
    b = rng.uniform(0.6, 1.4, 20_000)
    margin = rng.uniform(-2e-3, 2e-3, 20_000)  # of the bars at their longest, by which they reach or not
    designs = np.column_stack([a, b, 1 + a - b + margin, 0 * a, 0 * a, rng.uniform(0, 2 * np.pi, 20_000)])
    turn = 2 * np.pi * np.arange(20) / 20
    curve = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    able = np.abs(designs[:, 1] - designs[:, 2]) < np.abs(1 - a) - 1e-3
    found = family.sweep(designs[able], positions=n, curve=curve)
    margin, both = margin[able], found.closed == n
    assert found.error is not None and found.complete[margin > 0].all()
    assert (both & ~found.complete).sum() > 100 and (found.forwards[both & ~found.complete] < n).all()
    assert np.array_equal(np.isfinite(found.error), found.complete)
    assert found.complete[margin < 0].mean() < 0.05  # few steps lead over a gap by chance


def test_positions_and_forces_of_a_four_bar(family: cd.LinkageFamily) -> None:
    """Circle intersection; work over a turn; the functions of a state; both branches."""
    designs = np.array(
        [[0.4, 0.9, 0.7, 0.3, 0.4, 0.0], [0.3, 1.2, 0.8, -0.2, 0.5, 2.0], [1.7, 0.9, 1.1, 0.3, 0.4, 1.0]]
    )
    at = family.samples(designs, speed=3.0)
    assert at.closed[:2].all() and at.closed[2].sum() == family.sweep(designs[2], speed=3.0).closed < 200
    a, b, c, x, y, start = designs.T
    B = positions_of(a, start, 200)
    _, along = dyad(B, np.ones_like(B), b, c, 1)
    point = B + along * (x + 1j * y)[:, None]
    assert at.point is not None and at.velocity is not None
    closed = at.closed
    assert np.abs(at.point @ [1, 1j, 0] - point)[closed].max() < 1e-12
    speed = np.fft.ifft(np.fft.fft(point[:2]) * 3j * np.fft.fftfreq(200, 1 / 200))
    assert np.abs(at.velocity[:2] @ [1, 1j, 0] - speed).max() < 1e-9
    assert np.abs(at.drive[:2].mean(axis=1)).max() < 1e-9  # no work in a turn at constant speed, since nothing rubs
    rows = [k for k, ok in np.ndindex(closed.shape) if closed[k, ok]]
    models, q, v, acceleration = family.models(designs[rows]), at.q[closed], at.v[closed], at.a[closed]
    assert np.abs(cd.constraint_residual(models, q)).max() < 1e-12
    tau = cd.inverse_dynamics(models, q, v, acceleration, driven=["A"])
    assert np.allclose(v[:, 0], 3.0) and np.allclose(tau[:, 0], at.drive[closed][:, 0], rtol=1e-9, atol=1e-9)
    wrenches = cd.reactions(models, q, v, tau)
    assert np.allclose(wrenches, at.wrenches[closed], rtol=1e-9, atol=1e-9)
    assert np.allclose(cd.forward_dynamics(models, q, v, tau), acceleration, rtol=1e-8, atol=1e-8)
    found = family.sweep(designs, speed=3.0)
    assert found.speed is not None
    for k in range(3):
        own = np.array(rows) == k
        assert np.isclose(found.drive[k, 0], np.abs(tau[own]).max())
        assert np.allclose(found.force[k], np.linalg.norm(wrenches[own][..., 3:], axis=-1).max(axis=0))
        assert np.isclose(found.speed[k], np.linalg.norm(at.velocity[k][closed[k]], axis=-1).max())


def stephenson() -> cd.Model:
    """Stephenson's third: a four-bar, and two bars from its coupler to the ground."""
    m = cd.Mechanism("six_bar", gravity=(0, -9.81, 0))
    for name in ("crank", "coupler", "rocker", "link", "arm"):
        m.body(name, mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(1.0, 1.0))
    hinge = cd.Revolute(axis=(0, 0, 1))
    m.joint("A", hinge, m.ground, "crank", start=1.0)
    m.joint("B", hinge, "crank", "coupler", at=(0.4, 0, 0), start=-0.586)
    m.joint("C", hinge, "coupler", "rocker", at=(0.9, 0, 0), child_at=(0.7, 0, 0))
    m.joint("D", hinge, m.ground, "rocker", at=(1, 0, 0), start=1.514)
    m.joint("E", hinge, "coupler", "link", at=(0.5, 0.4, 0), start=0.5)
    m.joint("F", hinge, "link", "arm", at=(0.9, 0, 0), child_at=(0.8, 0, 0))
    m.joint("G", hinge, m.ground, "arm", at=(1.4, 0.3, 0), start=1.5)
    return m.build()


def test_six_bars() -> None:
    """Two dyads one after the other: assembly and full turns by closed form; forces by the functions of a state."""

    def six_bars(crank, coupler, rocker, ex, ey, gx, gy, link, arm, start):  # type: ignore[no-untyped-def]
        more = {"E.at": (ex, ey, 0), "G.at": (gx, gy, 0), "F.at": (link, 0, 0), "F.child_at": (arm, 0, 0)}
        base = {"B.at": (crank, 0, 0), "C.at": (coupler, 0, 0), "C.child_at": (rocker, 0, 0), "start": start}
        return base | more | bar("link", link)

    family = cd.LinkageFamily(stephenson(), "A", six_bars)
    rng = np.random.default_rng(3)
    low = np.array([0.1, 0.4, 0.4, -0.5, -1, -1, -1, 0.5, 0.5, 0])
    high = np.array([0.6, 1.5, 1.5, 1.5, 1, 2, 1.5, 2, 2, 2 * np.pi])
    designs = low + (high - low) * rng.random((2000, 10))
    a, b, c, ex, ey, gx, gy, link, arm, start = designs.T
    B = positions_of(a, start, 200)
    closes, along = dyad(B, np.ones_like(B), b, c, 1)
    E = B + along * (ex + 1j * ey)[:, None]
    closes &= dyad(E, np.broadcast_to((gx + 1j * gy)[:, None], E.shape), link, arm, 1)[0]
    found = family.sweep(designs)
    assert np.array_equal(found.assembled, closes[:, 0]) and np.array_equal(found.complete, closes.all(axis=1))
    assert 0.2 < found.complete.mean() < found.assembled.mean() < 0.9
    design = designs[np.flatnonzero(found.complete)[0]]
    model, at = family.models(design), family.samples(design, positions=20, speed=2.0)
    tau = cd.inverse_dynamics(model, at.q, at.v, at.a, driven=["A"])
    assert np.allclose(tau[:, 0], at.drive[:, 0], rtol=1e-8, atol=1e-8 * np.abs(tau).max())
    wrenches = cd.reactions(model, at.q, at.v, tau)
    assert np.allclose(wrenches, at.wrenches, atol=1e-8 * np.abs(wrenches).max())


def test_error_and_gradient(family: cd.LinkageFamily) -> None:
    """The distance from a curve, fitted by hand; its derivative against central differences."""
    true = np.array([0.4, 0.9, 0.7, 0.3, 0.4, 0.5])
    at = family.samples(true)
    assert at.point is not None
    w, designs = at.point @ [1, 1j, 0], true + np.random.default_rng(0).uniform(-0.05, 0.05, (4, 6))
    near = family.samples(designs)
    assert near.point is not None
    z = near.point @ [1, 1j, 0]
    curve = np.stack([w.real, w.imag], axis=-1)
    size = np.sqrt((np.abs(w - w.mean()) ** 2).mean())
    fitted = [np.linalg.lstsq(np.stack([x, np.ones(200)], axis=-1), w, rcond=None)[1][0] for x in z]
    for fit, expected in (("similar", np.sqrt(np.array(fitted) / 200) / size), ("in_place", None)):
        if expected is None:
            expected = np.sqrt((np.abs(z - w) ** 2).mean(axis=1)) / size
        found = family.sweep(designs, curve=curve, fit=fit, gradient=True)
        assert found.error is not None and found.slope is not None
        assert np.allclose(found.error, expected, rtol=1e-4)  # harmonics left out
        h = 1e-5
        steps = [[family.sweep(designs + s * h * e, curve=curve, fit=fit).error for s in (1, -1)] for e in np.eye(6)]
        numeric = np.stack([(a - b) / (2 * h) for a, b in steps], axis=-1)
        assert np.allclose(found.slope, numeric, atol=1e-6)


def test_a_linkage_is_found_again(family: cd.LinkageFamily) -> None:
    """Its curve, turned, enlarged and moved: a search and its refinement give it back."""
    true = np.array([0.37, 1.12, 0.93, 0.55, 0.62, 0.4])
    at = family.samples(true, positions=64)
    assert at.point is not None
    curve = 1.7 * at.point[:, :2] @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + [3, 1]
    bounds = {
        "crank": (0.1, 0.9),
        "coupler": (0.3, 2),
        "rocker": (0.3, 2),
        "x": (-1, 2),
        "y": (-1, 1.5),
        "start": (0, 6.3),
    }
    options: dict[str, Any] = {"curve": curve, "positions": 64, "speed": 2.0}
    found = cd.search_linkages(family, bounds, 4000, best=8, accept=lambda s: s.drive[:, 0] < 40, **options)
    assert (np.diff(found.error) >= 0).all() and found.accepted <= found.complete <= found.assembled <= found.count
    again = family.sweep(found.designs, **options)
    assert np.array_equal(again.error, found.error) and again.complete.all() and (again.drive[:, 0] < 40).all()
    fine = cd.refine_linkages(family, found.designs, **options)
    assert fine.error[0] < 1e-3 < found.error[0]
    assert np.abs(fine.designs - true).max(axis=1).min() < 1e-3
    assert all(a <= b for a, b in pairwise(fine.error)) and (fine.error <= fine.before).all()
    with fake_cards():  # the kernel of a card, compiled for the host
        there = cd.search_linkages(family, bounds, 100, best=8, device="gpu", **options)
    here = cd.search_linkages(family, bounds, 100, best=8, **options)
    assert np.array_equal(there.numbers, here.numbers) and np.array_equal(there.error, here.error)


def test_several_drives_and_slides() -> None:
    """Two cranks that turn against each other, and a slider that drives a crank."""

    def five_bars(link):  # type: ignore[no-untyped-def]
        return {"C.at": (link, 0, 0)}

    family = cd.LinkageFamily(five_bar().build(), {"A": -1.0, "E": 1.0}, five_bars)
    at = family.samples([[0.7], [0.75]], positions=16, span=0.4, speed=2.0)
    assert at.closed.all() and np.allclose(at.angle[:, -1] - at.angle[:, 0], [-0.4, 0.4])
    model = family.models([0.75])
    tau = cd.inverse_dynamics(model, at.q[1], at.v[1], at.a[1], driven=["A", "E"])
    assert family.sweep([0.7], span=-0.8).closed < 200  # the links come in line
    places = [model.v_slice(name).start for name in ("A", "E")]
    assert np.allclose(tau[:, places], at.drive[1], atol=1e-9) and np.allclose(at.v[..., places], [-2, 2])

    slider = slider_crank().build()
    rods = cd.LinkageFamily(slider, "guide", lambda rod: {"wrist.child_at": (rod, 0, 0)})
    at = rods.samples([0.5], positions=10, span=0.02, speed=0.1)
    assert at.closed.all()
    model = rods.model_at([0.5])  # its numbers constants
    tau = cd.inverse_dynamics(model, at.q, at.v, at.a, driven=["guide"])
    assert np.allclose(tau[:, model.v_slice("guide").start], at.drive[:, 0], atol=1e-9)
    with pytest.raises(cd.InputError, match=r"sweep: a driven joint slides; give the range of its coordinate in m"):
        rods.sweep([0.5])


def test_massless_bodies_and_space() -> None:
    """A coupler without mass; a slider-crank with a ball and a universal joint, and how it depends on its crank."""
    m = four_bar()
    light = cd.Mechanism("light", gravity=(0, -9.81, 0))
    for body in m.build().bodies:
        own = {} if body.name == "coupler" else {"mass": body.mass, "com": body.com, "inertia": body.inertia}
        light.body(body.name, **own)
    for joint in m.build().joints:
        names = [m.build().body_names[b] if b >= 0 else light.ground for b in (joint.parent, joint.child)]
        light.joint(joint.name, joint.type, *names, at=joint.at, child_at=joint.child_at, start=joint.start)
    family = cd.LinkageFamily(light.build(), "A", lambda b: {"C.at": (b, 0, 0)})
    at, model = family.samples([0.9], positions=12, speed=2.0), family.models([0.9])
    tau = cd.inverse_dynamics(model, at.q, at.v, at.a, driven=["A"])
    assert at.closed.all() and np.allclose(tau[:, 0], at.drive[:, 0], atol=1e-10)
    assert np.allclose(cd.reactions(model, at.q, at.v, tau), at.wrenches, atol=1e-9)

    cranks = cd.LinkageFamily(slider_crank(variant="spatial").build(), "bearing", lambda r: {"pin.at": (r, 0, 0)})
    at = cranks.samples([[0.2], [0.2 + 1e-6], [0.2 - 1e-6]], positions=12, gradient=True)
    assert at.closed.all() and at.q_by is not None
    assert np.allclose((at.q[1] - at.q[2]) / 2e-6, at.q_by[0, ..., 0], atol=1e-7)
    assert np.abs(cd.constraint_residual(cranks.models([0.2]), at.q[0])).max() < 1e-12


def test_bad_input(family: cd.LinkageFamily) -> None:
    model, circle = four_bar().build(), np.array([[1, 0], [0, 1], [-1, 0], [0, -1.0]])
    cases = [
        (lambda: cd.LinkageFamily(five_bar().build(), "A", lambda x: {}), r"has 2 freedoms and 1 driven joint \('A'\)"),
        (lambda: cd.LinkageFamily(model, "A", lambda x: {"point": (x, 0)}), "name the body that carries it"),
        (lambda: cd.LinkageFamily(model, "A", lambda x: {"B.at": x}), "1 numbers for 'B.at', which has 3"),
        (lambda: cd.LinkageFamily(model, "A", lambda x: {"B.att": x}), "'B.att' is not a number of 'B'"),
        (lambda: cd.LinkageFamily(model, "A", 3.0), "design must be a function of the design variables"),  # type: ignore[arg-type]
        (lambda: cd.LinkageFamily(model.free("B.at"), "A", lambda x: {}), "has free numbers"),
        (lambda: family.sweep([[1.0] * 5]), "designs"),
        (lambda: family.sweep([[np.nan] * 6]), "designs.*is nan"),
        (lambda: family.sweep([1.0] * 6, gradient=True), "give a curve"),
        (lambda: family.sweep([1.0] * 6, curve=circle, fit="best"), "fit must be one of 'similar', 'in_place'"),
        (lambda: family.sweep([1.0] * 6, curve=np.zeros((5, 2))), "all points of the curve are the same"),
        (lambda: family.sweep([1.0] * 6, device="tpu"), "device must be 'cpu', 'gpu'"),
        (lambda: cd.search_linkages(family, {"crank": (0, 1)}, 10, curve=circle), "bounds of 'coupler' are missing"),
        (lambda: cd.search_linkages(family, {"krank": (0, 1)}, 10, curve=circle), "did you mean 'crank'"),
        (lambda: cd.refine_linkages(family, [5, 1, 1, 0, 0, 0], curve=circle), "does not turn fully"),
        (lambda: family.model_at([5, 1, 1, 0, 0, 0]), "cannot be assembled"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(cd.CardanError, match=message):
            call()
