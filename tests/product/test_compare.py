"""`cd.compare`: runs of one motion agree to their accuracy, whatever their samples; differences are where they are."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import pendulum

pytestmark = pytest.mark.usefixtures("quick_code")
MODEL = pendulum().build()


def swing(w: float, t: np.ndarray, model: cd.Model = MODEL, **about: object) -> cd.Trajectory:
    """A made-up motion: what is compared is how the runs differ, not whether they are right."""
    q, v = 0.1 * np.cos(w * t), -0.1 * w * np.sin(w * t)
    return cd.Trajectory(model, t, q[:, None], v[:, None], **about)  # type: ignore[arg-type]


def test_the_largest_difference_is_found_where_it_is() -> None:
    t = np.linspace(0.0, 2.0, 41)
    one, other = swing(3.0, t, method="rk4"), swing(3.1, t, method="gear")
    found = cd.compare(one, other, names=["q", "pivot.reaction_force", "energy"])
    off = np.abs(one.q - other.q)[:, 0]
    row = found["q"]
    assert (row.run, row.name, row.unit) == ("gear", "q.pivot", "rad")
    assert row.difference == off.max() and row.time == t[off.argmax()] and np.isclose(row.relative, off.max() / 0.1)
    forces = np.abs(one["pivot.reaction_force"] - other["pivot.reaction_force"]).max(axis=0)
    rows = {r.name: r for r in found.rows}
    assert all(rows[f"pivot.reaction_force.{x}"].difference == forces[k] for k, x in enumerate("xyz"))
    text = str(found).splitlines()
    assert text[0] == "'gear' compared with 'rk4', 0 s to 2 s" and found.largest.name in text[2]
    assert "gear" in found._repr_html_()
    assert [at.get_ylabel() for at in found.plot("q", "energy").axes] == ["q\n(rad)", "energy\n(J)"]


def test_other_samples_and_other_models_are_compared() -> None:
    """Samples that differ are interpolated, in the time that all have in common; models may differ."""
    few, many = (cd.simulate(MODEL, end, [0.1], samples=n) for end, n in ((1.0, 21), (1.5, 400)))
    found = cd.compare(few, many, names=["q", "kinetic"])
    assert found.span == (0.0, 1.0) and found["q"].relative < 1e-6 and found["kinetic"].relative < 1e-5
    t, rod = np.linspace(0.0, 1.0, 5), MODEL.bodies[0]
    heavy = swing(3.0, t, MODEL.free("rod.mass").at({"rod.mass": rod.mass + 2.0}))
    found = cd.compare(swing(3.0, t), heavy, names="kinetic", labels=["light", "heavy"])
    about_pivot = float(np.asarray(cd.mass_matrix(MODEL, [0.0]))[0, 0])
    assert np.isclose(found["kinetic"].relative, 2.0 * rod.com @ rod.com / about_pivot)


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        (1, {}, r"give two or more runs, as cd.compare\(one, other\), got Trajectory$"),
        (2, {"names": "enrgy"}, r"did you mean 'energy'"),
        (2, {"labels": ["a", "a"]}, r"labels must be 2 different names"),
    ],
)
def test_nonsense_is_refused(runs: int, options: dict[str, object], message: str) -> None:
    with pytest.raises(cd.CardanError, match=message):
        cd.compare(*[swing(3.0, np.linspace(0, 1, 5))] * runs, **options)  # type: ignore[arg-type]


def test_runs_that_share_nothing_are_refused() -> None:
    t = np.linspace(0.0, 1.0, 5)
    with pytest.raises(cd.InputError, match=r"one begins at 3 s, one ends at 1 s"):
        cd.compare(swing(3.0, t), swing(3.0, t + 3))
    batch = cd.Trajectory(MODEL, t, np.zeros((2, 5, 1)), np.zeros((2, 5, 1)))
    with pytest.raises(cd.InputError, match=r"batches of shapes \(\), \(2,\); give one system of each"):
        cd.compare(swing(3.0, t), batch)
