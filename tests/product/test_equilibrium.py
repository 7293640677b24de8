"""`cd.equilibrium` and `cd.equilibrium_path` as a user sees them: batches, results in print, errors, the command."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import double_pendulum, four_bar

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(scope="module")
def pendulum() -> cd.Model:
    """A pendulum whose gravity may be any."""
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("rod", mass=2.0, com=(0.5, 0, 0), inertia=0.1 * np.eye(3))
    m.joint("pivot", cd.Revolute(axis=(0, 0, 1)), m.ground, "rod")
    m.torsion("spring", "pivot", stiffness=1.0)
    m.friction("bearing", "pivot", viscous=0.1)
    return m.build()


def test_batches_of_starts_gravity_and_parameters(pendulum: cd.Model) -> None:
    free = pendulum.free("gravity", "spring.stiffness")
    angles = np.linspace(-3, 3, 7)
    g = 9.81 * np.stack([np.cos(angles), np.sin(angles), np.zeros(7)], axis=-1)
    k = np.array([[1e-9], [50.0]])
    found = cd.equilibrium(free.at({"gravity": g, "spring.stiffness": k}), [0.1], stable=True)
    assert found.shape == (2, 7) and found.is_stable.all() and found.found.all()
    q = found.coordinate("pivot")
    assert np.abs(k * q - 2.0 * 0.5 * 9.81 * np.sin(angles - q)).max() < 1e-12
    assert np.abs(q[0] - angles).max() < 1e-8
    one = found[1, 3]
    assert one.shape == () and one.q == found.q[1, 3] and "at rest, stable" in repr(one)
    assert abs(np.linalg.norm(one.reaction("pivot")[3:]) - 2.0 * 9.81) < 1e-12  # its weight
    assert found.potential_energy.shape == (2, 7)
    assert found[0].shape == (7,) and "7 stable" in repr(found[0])
    upright = cd.equilibrium(free.at({"spring.stiffness": 1.0}), [1.4])
    assert upright.unstable == 1 and (upright.eigenvalues.real > 0).sum() == 1


def test_where_there_is_none_it_says_what_is_left_and_where(pendulum: cd.Model) -> None:
    m = cd.Mechanism("lift", gravity=(0, 0, -9.81))
    m.body("car", mass=10.0, inertia=np.eye(3))
    m.joint("rail", cd.Prismatic(axis=(0, 0, 1)), m.ground, "car")
    lift = m.build()
    with pytest.raises(
        cd.EquilibriumError, match=r"a force of -98.1 N along 'rail' is left, and it does not fall"
    ) as why:
        cd.equilibrium(lift)
    assert not why.value.partial.found and abs(why.value.partial.residual - 98.1) < 1e-12
    some = cd.equilibrium(lift, tau={"rail": [98.1, 50.0]}, strict=False)
    assert (
        some.found.tolist() == [True, False] and "-48.1 N" in some.why[1] and some.kind.tolist() == ["neutral", "none"]
    )
    with pytest.raises(cd.EquilibriumError, match=r"1 of 2 systems failed; at index 1: .*strict=False"):
        cd.equilibrium(lift, tau={"rail": [98.1, 50.0]})
    # a follower load: the only equilibrium near the start is unstable, and nothing leads to a stable one
    m = cd.Mechanism("motor", gravity=(0, -9.81, 0))
    m.body("rod", mass=1.0, com=(0, 1.0, 0), inertia=np.eye(3))
    m.joint("pivot", cd.Revolute(axis=(0, 0, 1)), m.ground, "rod")
    m.drive("push", "pivot", lambda t, q, v: 5.0 * v)
    with pytest.raises(cd.EquilibriumError, match=r"a stable equilibrium was asked for, .* has 2 unstable directions"):
        cd.equilibrium(m.build(), stable=True)
    with pytest.raises(cd.EquilibriumError, match="'pivot' have no drive unless solve_for names them"):
        cd.equilibrium(pendulum, [0.5], hold="pivot", solve_for=())
    with pytest.raises(cd.EquilibriumError, match=r"a value that cannot be: parameter 'spring.stiffness' must"):
        cd.equilibrium(pendulum.free("spring.stiffness"), [0.5], hold="pivot", solve_for="spring.stiffness")
    with pytest.raises(cd.EquilibriumError, match="equilibrium_path: at the first value, model 'lift' has no"):
        cd.equilibrium_path(lift, "rail", (0.0, 1.0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"q": [0.0, 1.0]}, r"q must have the shape \(..., 1\)"),
        ({"q": [np.nan]}, "every entry must be a finite number"),
        ({"hold": "pivt"}, "'pivt' is not a joint; did you mean 'pivot'"),
        ({"hold": 3}, "hold must be a list of names, got 3"),
        ({"rates": {"pivot": "fast"}}, "rates of 'pivot' must be numbers"),
        ({"rates": [1.0]}, "rates must name the joints"),
        ({"tau": {"pivot": [1.0, 2.0]}, "q": np.zeros((3, 1))}, "the batches do not fit together"),
        ({"solve_for": "spring.stiffness"}, r"is a constant of model 'pendulum'; free it first: model.free"),
        ({"solve_for": "pivot.q"}, "coordinates are unknown unless they are held"),
        ({"solve_for": "moon"}, "'moon' is neither a free parameter nor a joint"),
        ({"tolerance": 0.0}, "tolerance must be a positive number"),
        ({"stable": "yes"}, "stable and strict are True or False"),
        ({"formulation": "spacial"}, "did you mean 'spatial'"),
    ],
)
def test_bad_input_is_one_sentence(pendulum: cd.Model, given: dict[str, Any], words: str) -> None:
    with pytest.raises(cd.CardanError, match=words) as why:
        cd.equilibrium(pendulum, **given)
    assert "\n" not in str(why.value)


@pytest.mark.parametrize(
    ("along", "to", "words"),
    [
        ("pivot", (1.0, 1.0), "there is nothing to follow"),
        ("pivot", 3.0, "to must be the first and the last value"),
        ("gravity", (0.0, 1.0), "is a constant of model 'pendulum'; free it first"),
        ("tau", (0.0, 1.0), "a factor on the drives tau, and none are given"),
    ],
)
def test_bad_input_of_a_path_is_one_sentence(pendulum: cd.Model, along: str, to: Any, words: str) -> None:
    with pytest.raises(cd.InputError, match=words):
        cd.equilibrium_path(pendulum, along, to)


def test_a_path_in_print_and_as_a_plot(pendulum: cd.Model, tmp_path: Path) -> None:
    path = cd.equilibrium_path(pendulum, "pivot.q", (-1.0, 1.0), max_step=0.3)
    assert "along   pivot.q, -1 to 1 rad" in repr(path) and len(path) == len(path.values)
    expected = path.values + 9.81 * np.cos(path.values)
    assert np.abs(path.drive("pivot") - expected).max() < 1e-12
    assert abs(path[-1].drive("pivot") - expected[-1]) < 1e-12
    assert "stable while drives hold pivot" in repr(path[0])
    figure = path.plot(path=tmp_path / "path.png")  # the drive, since the coordinate over itself is a straight line
    assert (tmp_path / "path.png").stat().st_size > 5000 and figure.axes[0].get_ylabel() == "drive of pivot (N m)"
    with pytest.raises(cd.InputError, match="this path has 0 bifurcations"):
        path.branch()


def test_held_loops_and_over_actuation_agree_with_inverse_dynamics() -> None:
    model = four_bar().build()
    for drives in (["A"], ["D"], ["A", "D"]):
        found = cd.equilibrium(model, hold="A", solve_for=drives)
        wanted = cd.inverse_dynamics(model, found.q, found.v, found.a, driven=drives)
        assert np.abs(found.tau - wanted).max() < 1e-12
    lengths = model.free("B.at").at({"B.at": [[0.4, 0, 0], [5.0, 0, 0]]})
    some = cd.equilibrium(lengths, strict=False)  # no crank of 5 m
    assert some.found.tolist() == [True, False] and "cannot be assembled: joint 'C' stays open" in some.why[1]
    for given in ({"rates": {"A": 5.0, "B": 3.0}}, {"rates": {"A": 5.0}, "hold": "D"}):
        with pytest.raises(cd.EquilibriumError, match="the rates given and held contradict each other \\(A = 5, "):
            cd.equilibrium(model, **given)
    arm = double_pendulum().build()
    held = cd.equilibrium(arm, [0.4, 0.7], hold=arm.joint_names)
    assert np.abs(held.tau - cd.gravity_force(arm, [0.4, 0.7])).max() < 1e-13
