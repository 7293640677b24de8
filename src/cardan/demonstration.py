"""The demonstration of `make demo`: the two-body problem, a loop in every formulation, a simulation, and speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import cardan as cd
from cardan.mechanisms import four_bar, random_inertia


def show() -> None:
    """Run everything and print it."""
    console = Console(highlight=False)
    _two_bodies(console)
    _loop(console)
    _motion(console)
    _speed(console)


def _two_bodies(console: Console) -> None:
    console.print("[bold]1. Two bodies and a hinge, three ways[/bold]")
    console.print("A wrench acts on body B1, at rest, which carries B2 on a hinge. What is the acceleration of B1?\n")
    rng = np.random.default_rng(1)
    m1, m2 = rng.uniform(0.5, 2, 2)
    I1, I2 = random_inertia(rng), random_inertia(rng)
    P, c2 = rng.uniform(-0.5, 0.5, (2, 3))  # the hinge and B2's centre of mass, seen from B1's
    s = rng.standard_normal(3)
    s /= np.linalg.norm(s)
    wrench = rng.standard_normal(6)  # couple, force through B1's centre of mass

    six = cd.textbook.articulated_inertia(_inertia(m1, np.zeros(3), I1), _inertia(m2, c2, I2), np.r_[s, np.cross(P, s)])
    a6 = np.linalg.solve(six, wrench)
    three = cd.textbook.two_body_matrix(m1, I1, P, m2, I2, P - c2, s)
    a3 = np.linalg.solve(three, np.r_[wrench[3:], wrench[:3]])[[3, 4, 5, 0, 1, 2]]

    m = cd.Mechanism("two_body", gravity=(0, 0, 0))
    m.body("B1", mass=m1, inertia=I1)
    m.body("B2", mass=m2, com=c2 - P, inertia=I2)
    m.joint("root", cd.Free(), m.ground, "B1")
    m.joint("hinge", cd.Revolute(axis=s), "B1", "B2", at=P)
    model = m.build()
    wrenches = np.zeros((2, 6))
    wrenches[0] = wrench
    still = np.zeros(model.nv)
    table = Table("", "B1 angular, rad/s^2", "linear, m/s^2", box=None)
    answers = {"6-D vectors, F6(7)": a6, "3-D vectors, F3(26)": a3}
    for formulation in ("spatial", "newton_euler"):
        a = cd.forward_dynamics(model, model.neutral(), still, wrenches=wrenches, formulation=formulation)
        answers[f"engine, {formulation}"] = a[:6]
    for name, a in answers.items():
        table.add_row(name, _numbers(a[:3]), _numbers(a[3:]))
    console.print(table)
    worst = max(np.abs(a - a6).max() for a in answers.values()) / np.abs(a6).max()
    console.print(f"Largest relative difference: [bold]{worst:.1e}[/bold]\n")


def _loop(console: Console) -> None:
    console.print("[bold]2. A four-bar linkage, in every formulation[/bold]")
    model = four_bar().build()
    console.print(model.report() + "\n", markup=False)
    console.print(str(cd.check(model)) + "\n", markup=False)


def _motion(console: Console) -> None:
    console.print("[bold]3. The four-bar in motion[/bold]")
    model = four_bar().build()
    q, v = cd.assemble(model, v=np.ones(model.nv))
    table = Table("10 s by", "steps", "ms", "energy drift, J", "loop gap, m", box=None)
    for method, formulation in (("dormand_prince", "spatial"), ("dormand_prince", "points"), ("gear", "absolute")):
        run = partial(cd.simulate, model, 10.0, q, v, method=method, formulation=formulation, samples=51)
        done = run()
        ms = f"{_best(run, 3) * 1e3:.1f}"
        drift, gap = np.ptp(done.energy), done.residuals.position.max()
        table.add_row(f"{method}, {formulation}", str(done.statistics["steps"]), ms, f"{drift:.1e}", f"{gap:.1e}")
    speeds = np.linspace(0.5, 2.0, 4096)[:, None] * v
    many = partial(cd.simulate, model, 1.0, q, speeds, method="rk4", step=1e-3, samples=2)
    steps = many().statistics["steps"]
    console.print(table)
    rate = steps / _best(many, 3)
    console.print(f"A batch of 4,096, 1,000 steps of Runge-Kutta 4 each: [bold]{rate:,.0f}[/bold] steps per second.")
    console.print("To see the motion: `cardan simulate four_bar --time 10 --out run` writes data, a plot and a page.\n")


def _speed(console: Console) -> None:
    console.print("[bold]4. Speed, on a robot from URDF[/bold]")
    with as_file(files("cardan") / "data" / "arm.urdf") as path:
        model = cd.load(path)
    console.print(model.report() + "\n", markup=False)
    rng = np.random.default_rng(0)
    count = 65_536
    q, v = model.random_state(rng, count)
    x = rng.standard_normal((count, model.nv))
    rows: dict[str, Callable[..., Any]] = {
        "forward dynamics": lambda q, v, x, threads: cd.forward_dynamics(model, q, v, x, threads=threads),
        "inverse dynamics": lambda q, v, x, threads: cd.inverse_dynamics(model, q, v, x, threads=threads),
        "mass matrix": lambda q, v, x, threads: cd.mass_matrix(model, q, threads=threads),
    }
    table = Table("", "one call, us", "in a batch, ns", "on all threads, ns", box=None)
    for name, function in rows.items():
        one = _best(partial(_repeat, function, 200, q[0], v[0], x[0], None)) / 200
        alone, together = (_best(partial(function, q, v, x, n)) / count for n in (1, None))
        table.add_row(name, f"{one * 1e6:.2f}", f"{alone * 1e9:.0f}", f"{together * 1e9:.0f}")
    console.print(table)
    console.print(
        f"{count:,} random states, float64, on {cd.get_threads()} thread(s); `make bench` compares with other engines."
    )


def _inertia(m: float, c: np.ndarray, I_C: np.ndarray) -> np.ndarray:
    from cardan.algebra.spatial import inertia_about_origin, rigid_inertia

    return np.asarray(rigid_inertia(m, m * c, inertia_about_origin(m, c, I_C)))


def _numbers(x: np.ndarray) -> str:
    return " ".join(f"{value:.6f}" for value in x)


def _repeat(function: Callable[..., Any], times: int, *args: Any) -> None:
    for _ in range(times):
        function(*args)


def _best(work: Callable[[], object], repeats: int = 7) -> float:
    """Shortest of several times, s."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
