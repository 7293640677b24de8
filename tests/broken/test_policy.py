"""Files that break a rule slightly, under each policy: refused, kept, repaired, and always told."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardan as cd
from cardan.io.policy import RULES, SLIGHT, Way
from cardan.model.inertia import check_inertia

from ..trees import close, random_rotation, seeds

HERE = Path(__file__).parent

# File, words of the refusal, what a note says under "warn" and under "repair"; where it is empty the file is refused.
SLIGHTLY = """
triangle.urdf | triangle rule: 2.02 > 1 + 1 | kept as given | repaired: the nearest that a body can have
triangle_gross.urdf | triangle rule: 5 > 1 + 1 | kept as given |
negative_inertia.urdf | is not positive: principal values -0.5, 1, 1 | |
negative_mass.urdf | mass is negative: -1 kg | |
quaternion.urdf | has length 0.989949, not 1: '0 0 0.7 0.7' | | repaired: normalised
limits_reversed.urdf | its lower limit 1 is above its upper limit -1 | kept as given | repaired: exchanged
negative_effort.urdf | its limit of velocity is negative: -2 | kept as given | repaired: the magnitude taken
negative_damping.urdf | its damping is negative: -0.5 | kept as given |
infinite_limit.urdf | 'lower' of <limit> must be finite, got '-inf' | read as no limit | repaired: no limit
twin_links.urdf | the name is given to two links | | repaired: the second, which is the same, is left out
unequal_twins.urdf | the name is given to two links | |
mimics_nowhere.urdf | it mimics 'k', which is not a joint | it moves by itself | repaired: it moves by itself
triangle.yaml | triangle rule: 2.02 > 1 + 1 | kept as given | repaired: the nearest that a body can have
not_symmetric.yaml | entries differ by 0.02 | the rules hold | repaired: the nearest that a body can have
quaternion.yaml | has length 0.989949, not 1 | | repaired: normalised
rotation.yaml | not a rotation matrix, R^T R = 1 is off by 0.0201 | | repaired: the nearest rotation
limits_reversed.yaml | its lower limit 1 is above its upper limit -1 | kept as given | repaired: exchanged
triangle.xml | triangle rule: 2.02 > 1 + 1 | kept as given | repaired: the nearest that a body can have
triangle_gross.xml | triangle rule: 5 > 1 + 1 | kept as given |
slightly_negative.xml | least principal value is -0.01 kg m^2 | | repaired: the nearest that a body can have
negative_inertia.xml | its least principal value is -0.5 kg m^2 | |
negative_mass.xml | its mass is negative: -1 kg | |
range_reversed.xml | must go from the smaller to the larger number, got '1 -1' | kept as given | repaired: exchanged
range_of_nothing.xml | 'range' must go from the smaller to the larger number, got '1 1' | kept as given |
infinite_range.xml | 'range' of <joint> must be finite, got 'inf' | read as no limit | repaired: no limit
control_reversed.xml | 'ctrlrange' must go from the smaller | kept as given | repaired: exchanged
negative_damping.xml | its damping is negative: -0.5 | kept as given |
negative_damping_of_a_ball.xml | its damping is negative: -0.5 | kept as given |
negative_stiffness.xml | its stiffness is negative: -2 | kept as given |
negative_stiffness_of_a_ball.xml | its stiffness is negative: -2 | |
negative_friction.xml | its frictionloss is negative: -0.1 | kept as given |
negative_armature.xml | its armature is negative: -0.01 | |
"""
ROWS = [[part.strip() for part in line.split("|")] for line in SLIGHTLY.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_slight_breach_is_refused_kept_or_repaired(row: list[str]) -> None:
    name, words, *outcomes = row
    file = HERE / "slight" / name
    with pytest.raises(cd.FileError) as refused:
        cd.load(file)
    assert words in str(refused.value)
    for policy, outcome in zip(("warn", "repair"), outcomes, strict=True):
        if outcome:
            model = cd.load(file, policy=policy)  # type: ignore[arg-type]
            note = model.notes[0]
            assert words in note
            assert note.endswith(f"; {outcome}") or outcome == "the rules hold"
            assert f"note: {note}" in model.report()
        else:
            with pytest.raises(cd.FileError) as error:
                cd.load(file, policy=policy)  # type: ignore[arg-type]
            assert str(error.value) == str(refused.value)


def test_every_file_has_a_row() -> None:
    assert {file.name for file in (HERE / "slight").iterdir()} == {row[0] for row in ROWS}


# What was repaired or kept is what is computed with.


def slightly(name: str, policy: str) -> cd.Model:
    return cd.load(HERE / "slight" / name, policy=policy)  # type: ignore[arg-type]


def test_values_after_a_repair() -> None:
    assert slightly("limits_reversed.urdf", "repair").joint("j").data.lower == -1
    assert slightly("limits_reversed.urdf", "warn").joint("j").data.lower == 1
    repaired = slightly("negative_effort.urdf", "repair").joint("j").data
    assert (repaired.effort, repaired.velocity) == (5, 2)
    assert slightly("infinite_limit.urdf", "warn").joint("j").data.upper is None
    assert slightly("mimics_nowhere.urdf", "repair").joint("j").data.mimic is None
    close(slightly("quaternion.urdf", "repair").joint("j").at.position, [1, 2, 3], 0)
    turned = cd.Pose(rpy=(0, 0, np.pi / 2)).rotation
    close(slightly("rotation.yaml", "repair").joint("A").at.rotation, turned, 1e-15)
    for file in ("triangle.urdf", "triangle.xml"):
        close(slightly(file, "warn").body("b").inertia, np.diag([1, 1, 2.02]), 0)
        close(slightly(file, "repair").body("b").inertia, np.diag([1.01, 1.01, 2.02]), 1e-15)
    check_inertia("b", 1.0, slightly("slightly_negative.xml", "repair").body("b").inertia)
    turned = slightly("range_reversed.xml", "repair").joint("j").data
    assert (turned.lower, turned.upper) == (-1, 1)
    half = slightly("infinite_range.xml", "warn").joint("j").data
    assert (half.lower, half.upper) == (-1, None)
    assert slightly("control_reversed.xml", "repair").actuators[0].control == (-3, 2)


def test_an_inertia_that_is_kept_survives_saving(tmp_path: Path) -> None:
    model = slightly("triangle_gross.urdf", "warn")
    cd.save(model, tmp_path / "a.yaml")
    again = cd.load(tmp_path / "a.yaml")
    close(again.body("b").inertia, model.body("b").inertia, 0)
    assert again.notes == model.notes


@given(seeds, st.floats(0, 0.2), st.floats(0.1, 1))
def test_the_nearest_inertia_obeys_the_rules_and_is_near(seed: int, excess: float, ratio: float) -> None:
    R = random_rotation(np.random.default_rng(seed))
    a, b = ratio, 1.0
    I = R @ np.diag([a, b, (a + b) * (1 + excess)]) @ R.T
    way = RULES["inertia"].repair
    assert isinstance(way, Way)
    found = way.apply(I)
    if found is None:
        assert (a + b) * excess / 2 > SLIGHT * np.abs(I).max() / 4
    else:
        check_inertia("body", 1.0, found)
        assert np.abs(found - I).max() <= SLIGHT * np.abs(I).max()
    if excess == 0:
        close(found, I, 1e-14)


def test_a_word_that_is_no_policy() -> None:
    with pytest.raises(cd.InputError, match="policy must be 'strict', 'warn' or 'repair', got 'lenient'"):
        cd.load(HERE / "slight" / "triangle.urdf", policy="lenient")  # type: ignore[arg-type]


# What is odd but right: read as it is meant, and told where that is not plain.

ODD = {
    "link_with_two_parents.urdf": "loops: 1 cut joint",
    "mimics_a_fixed_joint.urdf": "joint 'bc' mimics 'ab', but 'ab' is fixed and has no angle or stroke; ignored",
    "placeholder_inertia.urdf": "note: body 'sensor': inertia about the centre of mass breaks the triangle rule",
    "link_called_ground.urdf": "note: link 'ground' is called 'ground_' here",
    "axis_not_of_unit_length.urdf": "nv = 1",
    "unknown_elements.urdf": "note: <transmission> in <robot> was not read (1 time)",
    "quaternion_not_of_unit_length.xml": "nv = 1",
    "range_of_zero.xml": "nv = 1",
    "inertia_that_the_file_balances.xml": "nv = 1",
}


@pytest.mark.parametrize("file", ODD)
def test_an_odd_file_is_read_as_it_is_meant(file: str) -> None:
    assert ODD[file] in cd.load(HERE / "odd" / file).report()
