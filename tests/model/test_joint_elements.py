"""Elements along coordinates of joints: names, labels, files, and what is refused."""

import numpy as np
import pytest

import cardan as cd


def joints() -> cd.Mechanism:
    """A cylindrical joint A, a ball B, a free joint F and a hinge H."""
    m = cd.Mechanism("joints")
    for name, type in (("A", cd.Cylindrical()), ("B", cd.Spherical()), ("F", cd.Free()), ("H", cd.Revolute())):
        m.body(name.lower(), mass=1.0, inertia=(1.0, 1.0, 1.0))
        m.joint(name, type, m.ground, name.lower())
    return m


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda m: m.stop("s", "A[2]", lower=0.0), "stop 's': joint 'A' (cylindrical) has no coordinate 'A[2]'"),
        (lambda m: m.stop("s", "A[0]", lower=1.0, upper=0.5), "stop 's': lower 1 is above upper 0.5; exchange them"),
        (lambda m: m.stop("s", "A", lower=(0, 2), upper=(1, 1)), "lower[1] 2 is above upper[1] 1; exchange them"),
        (lambda m: m.stop("s", "A", lower=(0, 1, 2)), "lower must be 2 numbers, None where there is no limit"),
        (lambda m: m.stop("s", "A", lower=(None, np.inf)), "stop 's': it has no limit; give lower or upper"),
        (lambda m: m.stop("s", "A[1]", lower=np.nan), "stop 's': lower"),
        (lambda m: m.stop("s", "B[1]", lower=0.0), "joint 'B' (spherical) has a quaternion, and 'B[1]' is no"),
        (lambda m: m.stop("s", "B", lower=0.0), "has a quaternion, whose numbers have no limits; limit its angle with"),
        (lambda m: m.stop("s", "A", angle=1.0), "joint 'A' (cylindrical) has no quaternion; angle, swing and twist"),
        (lambda m: m.stop("s", "B", angle=0.0), "angle must be above 0 and below pi, half a turn, got 0 rad"),
        (lambda m: m.stop("s", "B", swing=30.0), "got 30 rad; cd.deg(30) is 30 degrees in rad"),
        (lambda m: m.stop("s", "B", twist=(0.5, -0.5)), "twist_lower 0.5 is above twist_upper -0.5; exchange them"),
        (lambda m: m.stop("s", "B", twist=(1, 2, 3)), "stop 's': twist must be 2 numbers"),
        (lambda m: m.stop("s", "B", swing=1.0, axis=(0, 0, 0)), "its axis has no direction, got [0.0, 0.0, 0.0]"),
        (lambda m: m.stop("s", "B", swing=1.0, lower=0.0), "swing is of a rotation; give lower, upper or gap"),
        (lambda m: m.stop("s", "B", swing=1.0, damping=1.0), "it has damping and no stiffness"),
        (lambda m: m.stop("s", "F[5]", lower=0.0), "joint 'F' (free) has a quaternion, and 'F[5]' is no coordinate"),
        (lambda m: m.stop("s", "F[2]", lower=1.0, upper=0.0), "z_lower 1 is above z_upper 0; exchange them"),
        (lambda m: m.stop("s", "F", lower=(0.0, None)), "lower must be 3 numbers, None where there is no limit"),
        (lambda m: m.stop("s", ["a"], lambda t, P, T: P[0].position[0], lower=1, upper=0), "lower 1 is above upper 0"),
        (lambda m: m.stop("s", ["a"], lambda t, P, T: P[0].position[0], unit="N"), "unit must be 'm' or 'rad'"),
        (lambda m: m.friction("f", "A[1]", coulomb=-1.0, stick=True), "coulomb must not be negative, got -1"),
        (lambda m: m.friction("f", "A", coulomb=(1.0, 0.0), stick=True), "nothing of 'A[1]' sticks; name the"),
        (lambda m: m.friction("f", "A", coulomb=(1.0, 2.0), static=(2.0, 1.0), stick=True), "static 1 is below"),
        (lambda m: m.friction("f", "A", coefficient=0.1, stick=True), "give the radius (m) of its pin"),
        (lambda m: m.motion("f", "A", 0.0), "joint 'A' (cylindrical) has 2 coordinates; it must have one, or name one"),
        (lambda m: m.couple("f", {"A": 1.0, "H": 1.0}), "it must have one, or name one of them, 'A[0]'"),
        (lambda m: m.build().free("free.lower"), "cannot be freed: one of its numbers is no limit"),
    ],
)  # fmt: skip
def test_bad_input_is_told(add, words) -> None:
    m = joints()
    m.stop("free", "A", lower=(None, -1.0))
    with pytest.raises(cd.CardanError) as caught:
        add(m)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_files_keep_elements_along_coordinates(tmp_path) -> None:
    """Written, read and written again: the same text; and the same rows, names and units."""
    m = joints()
    m.stop("ends", "A", lower=(None, -1.0), upper=(2.0, 3.0), restitution=0.5)
    m.stop("cone", "B", swing=0.7, twist=0.4, axis=(1, 0, 0))
    m.stop("soft", "F", angle=1.2, stiffness=50.0, damping=0.1)
    m.stop("floor", "F", lower=(None, None, -2.0), restitution=0.3)
    m.stop("reach", ["a", "b"], lambda t, P, T: P[0].position[0] - P[1].position[1], lower=-1.0, upper=2.0)
    m.stop("lean", ["a"], lambda t, P, T: P[0].rotation[0, 2], unit="rad", lower=-0.5, stiffness=3.0)
    m.friction("rub", "A", coulomb=(1.0, 2.0), static=(1.5, 2.5), stick=True)
    m.torsion("spring", "A[1]", stiffness=5.0, rest=0.1)
    m.drive("motor", "A[0]", lambda t, q, v: 2 * t - q[0] - 3 * v[0])
    m.lock("brake", "A[0]")
    m.motion("turn", "A[0]", lambda t: 0.1 * t)
    m.couple("gear", {"A[1]": 2.0, "H": -0.1}, unit="m")
    model = m.build()
    assert not cd.save(model, tmp_path / "m.yaml")
    again = cd.load(tmp_path / "m.yaml")
    assert cd.save(again, tmp_path / "n.yaml") == []
    assert (tmp_path / "n.yaml").read_text() == (tmp_path / "m.yaml").read_text()
    assert again.lawful_rows == model.lawful_rows and again.key == model.key
    names = dict(zip(model.lawful_rows.names, model.lawful_rows, strict=True))
    assert names["ends: lower[1]"].unit == "m" and names["ends: upper[0]"].force_unit == "N m"
    assert names["cone: twist lower"].unit == "rad" and names["rub: sliding[1]"].level == "rate"
    text = (tmp_path / "m.yaml").read_text().replace("lower: [none, -1]", "lower: [none, -10 mm]")
    (tmp_path / "m.yaml").write_text(text.replace("rest: 0.1", "rest: 10 mm"))
    read = {force.name: force for force in cd.load(tmp_path / "m.yaml").forces}
    assert read["ends"].numbers["lower"][1] == -0.01 and read["spring"].numbers["rest"].tolist() == [0.01]
    assert read["ends"].owner == "stop 'ends'" and read["cone"].owner == "rotation stop 'cone'"


def test_readings_are_along_the_coordinate() -> None:
    m = joints()
    m.torsion("spring", "A[1]", stiffness=5.0)
    m.torsion("both", "A", stiffness=(1.0, 2.0))
    m.motion("turn", "A[0]", lambda t: 0.5 * t)
    model = m.build()
    run = cd.simulate(model, 0.2, {"A": (0.0, 0.3)}, {"A": (0.5, 0.0)}, samples=3)
    np.testing.assert_allclose(run["spring.force"], -5.0 * run["A.coordinate"][:, 1])
    np.testing.assert_allclose(run["turn.rate"], 0.5)
    np.testing.assert_allclose(run["both.force"], -run["A.coordinate"] * [1.0, 2.0], atol=1e-12)
