"""Loops and gears beside the tree of URDF: every way to write them gives the mechanism that the builder gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan.io.urdf import read_urdf

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")
ZERO = np.zeros(3)


def words(values: object) -> str:
    return " ".join(map(str, np.asarray(values, dtype=float)))


class Linkage:
    """Three links: one chain of two from the base, another of one; their ends are to be held together.

    `at` are the places of the joints A, B (on the first link) and D, `P` and `Q` the points held, on links 2 and 3. In
    the configuration of the file all axes are parallel and the points coincide.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.rpy = rng.uniform(-1, 1, 3)
        self.R = cd.Pose(rpy=self.rpy).rotation  # of the links in the base
        A, B, C, D = rng.normal(size=(4, 3)) * [1.0, 1.0, 0.0]  # in the plane of the links
        self.at = {"A": A, "B": B - A, "D": D}
        self.P, self.Q = C - B, C - D
        self.masses = rng.uniform(1, 2, 3)
        self.centres = rng.normal(size=(3, 3)) * 0.2
        self.moments = rng.uniform(1, 1.5, (3, 3))
        self.axis = np.array([0.0, 0.0, 1.0])

    def tree(self) -> str:
        """Links and joints; the frames of the links are turned in the base by `rpy`."""
        links = [
            f'<link name="l{k + 1}"><inertial><origin xyz="{words(self.centres[k])}"/><mass value="{self.masses[k]}"/>'
            f'<inertia ixx="{I[0]}" iyy="{I[1]}" izz="{I[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            for k, I in enumerate(self.moments)
        ]
        joints = [
            f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{words(self.R @ self.at[name] if parent == "base" else self.at[name])}" '
            f'rpy="{words(self.rpy if parent == "base" else ZERO)}"/><axis xyz="0 0 1"/></joint>'
            for name, parent, child in (("A", "base", "l1"), ("B", "l1", "l2"), ("D", "base", "l3"))
        ]
        return '<link name="base"/>' + "".join(links + joints)

    def built(self, closing: Callable[[], cd.JointType] | None) -> cd.Model:
        """The same by the builder."""
        m = cd.Mechanism("r")
        m.body("base")
        m.joint("root", cd.Rigid(), m.ground, "base")
        for k in range(3):
            m.body(f"l{k + 1}", mass=self.masses[k], com=self.centres[k], inertia=self.moments[k])
        for name, parent, child in (("A", "base", "l1"), ("B", "l1", "l2"), ("D", "base", "l3")):
            at = cd.Pose(self.R @ self.at[name], self.R) if parent == "base" else self.at[name]
            m.joint(name, cd.Revolute(axis=self.axis), parent, child, at=at)
        if closing is not None:
            m.joint("C", closing(), "l2", "l3", at=self.P, child_at=self.Q)
            m.cut = ("C",)
        return m.build()


def robot(*parts: str, head: str = "") -> str:
    return f'<robot name="r" {head}>{"".join(parts)}</robot>'


WAYS: dict[str, tuple[Callable[[], cd.JointType], str, str]] = {
    "loop": (
        lambda: cd.Revolute(axis=(0, 0, 1)), "",
        '<loop name="C" type="{0}"><predecessor link="l2"><origin xyz="{P}"/></predecessor>'
        '<successor link="l3"><origin xyz="{Q}"/></successor><axis xyz="0 0 1"/></loop>',
    ),
    "loop_joint": (
        lambda: cd.Revolute(axis=(0, 0, 1)), "",
        '<loop_joint name="C" type="{0}"><link1 link="l2" xyz="{P}" rpy="0 0 0"/><link2 link="l3" xyz="{Q}"/>'
        '<axis xyz="0 0 1"/></loop_joint>',
    ),
    "loop_joint, spherical": (
        cd.Spherical, "",
        '<loop_joint name="C" type="spherical"><link1 link="l2" xyz="{P}"/><link2 link="l3" xyz="{Q}"/></loop_joint>',
    ),
    "gazebo": (
        lambda: cd.Revolute(axis=(0, 0, 1)), "",
        '<gazebo><joint name="C" type="revolute"><parent>l2</parent><child>l3</child><pose>{Q} 0 0 0</pose>'
        "<axis><xyz>0 0 1</xyz></axis></joint></gazebo>",
    ),
    "gazebo, ball": (
        cd.Spherical, "",
        '<gazebo><joint name="C" type="ball"><parent>l2</parent><child>l3</child><pose>{Q} 0 0 0</pose></joint>'
        "</gazebo>",
    ),
    "drake": (
        cd.Spherical, 'xmlns:drake="http://drake.mit.edu"',
        '<drake:ball_constraint><drake:ball_constraint_body_A name="l2"/><drake:ball_constraint_body_B name="l3"/>'
        '<drake:ball_constraint_p_AP value="{P}"/><drake:ball_constraint_p_BQ value="{Q}"/></drake:ball_constraint>',
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_close_a_loop_is_the_builders(way: str) -> None:
    closing, head, text = WAYS[way]
    linkage = Linkage(len(way))
    inside = text.format("continuous", P=words(linkage.P), Q=words(linkage.Q))
    read, built = read_urdf(robot(linkage.tree(), inside, head=head)).build(), linkage.built(closing)
    assert read.losses == () and read.notes == ()
    (cut,), (own,) = ([model.joints[j] for j in model.cuts] for model in (read, built))
    assert (cut.kind, read.body_names[cut.parent], read.body_names[cut.child]) == (own.kind, "l2", "l3")
    close(cut.at.matrix, own.at.matrix, 1e-12)
    close(cut.child_at.matrix, own.child_at.matrix, 1e-12)
    q, v = cd.assemble(read, np.zeros(3), linkage.rng.normal(size=3))
    close(q, np.zeros(3), 1e-12)
    if way == "loop":
        a = cd.forward_dynamics(read, q, v)
        close(a, cd.forward_dynamics(built, q, v), 1e-8)
        assert np.abs(a - cd.forward_dynamics(linkage.built(None), q, v)).max() > 1e-3


def test_a_coupling_turns_the_rotor_by_the_sum_of_the_joints_on_the_way() -> None:
    """URDF+: ratio * (sum of angles to the predecessor) = sum of angles to the successor, from where they part."""
    ratio = 6.5
    spinning = (
        '<link name="r"><inertial><mass value="0"/><inertia ixx="1e-3" iyy="2e-3" izz="3e-3" ixy="0" ixz="0" iyz="0"/>'
    )
    rotor = (
        spinning + '</inertial></link><joint name="R" type="continuous" independent="false"><parent link="{}"/>'
        '<child link="r"/><origin xyz="0.1 0.2 0"/><axis xyz="0 0 1"/></joint>'
    )
    coupling = f'<coupling name="gear"><predecessor link="l2"/><successor link="r"/><ratio value="{ratio}"/></coupling>'
    for carrier, on_the_way in (("base", ("A", "B")), ("l1", ("B",))):
        linkage = Linkage(7)
        text = robot(linkage.tree(), rotor.format(carrier), coupling)
        with pytest.raises(cd.ModelError, match="mass is zero but its inertia is not"):
            read_urdf(text).build()
        model = read_urdf(text, policy="warn").build()
        q, v = linkage.rng.normal(size=(2, model.nv))
        q, v = cd.assemble(model, q, v)
        a = cd.forward_dynamics(model, q, v)
        for x in (q, v, a):
            at = {joint: float(x[model.v_slice(joint)][0]) for joint in ("A", "B", "R")}
            close(at["R"], ratio * sum(at[joint] for joint in on_the_way), 1e-9)
        # the rotor's reflected inertia: kinetic energy of its spin in the mass matrix of the moving joints
        M, plain = (cd.mass_matrix(each, q[: each.nv]) for each in (model, linkage.built(None)))
        G = np.zeros((model.nv, 3))
        for joint in ("A", "B", "D"):
            G[model.v_slice(joint), "ABD".index(joint)] = 1.0
        G[model.v_slice("R")] = [ratio * (joint in on_the_way) for joint in "ABD"]
        spin = np.array([ratio * (joint in on_the_way) + (carrier == "l1") * (joint == "A") for joint in "ABD"])
        close(G.T @ M @ G, plain + 3e-3 * np.outer(spin, spin), 1e-9)


FOUR = Linkage(1).tree()
HELD = '<predecessor link="l2"/><successor link="l3"/>'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('<loop name="C" type="revolute"><predecessor link="l9"/><successor link="l3"/></loop>', r"'l9' is not a link"),
        (
            f'<loop name="C" type="floating">{HELD}</loop>',
            r"loop 'C': type 'floating' is not a type of joint that clos",
        ),
        (f'<loop name="A" type="fixed">{HELD}</loop>', r"joint 'A': the name is taken by another joint"),
        (f"<loop>{HELD}</loop>", r"<loop> number 1: <loop> has no attribute 'name'"),
        ('<loop name="C" type="fixed"><successor link="l3"/></loop>', r"loop 'C': it has no <predecessor>; add one"),
        (f'<coupling name="g">{HELD}</coupling>', r"coupling 'g': it has no <ratio>; add one, such as"),
        (
            '<coupling name="g"><predecessor link="l2"/><successor link="l2"/><ratio value="2"/></coupling>',
            r"no joint moves 'l2' and 'l2' against each other",
        ),
        ('<loop_joint name="C" type="revolute"><link1 link="l2"/><link2 link="l3"/></loop_joint>', r"has no <axis>"),
        (
            '<gazebo><joint name="C" type="gearbox"><parent>l2</parent><child>l3</child></joint></gazebo>',
            r"joint 'C' of <gazebo>: type 'gearbox' is not a type",
        ),
        (
            '<gazebo><joint name="C" type="ball"><parent>l2</parent><child>l3</child><pose>1 2</pose></joint></gazebo>',
            r"of <pose> must be 6 numbers",
        ),
    ],
)
def test_what_is_wrong_with_a_loop_is_said(text: str, sentence: str) -> None:
    with pytest.raises(cd.CardanError, match=sentence):
        read_urdf(robot(FOUR, text))


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ('<constraint name="c" type="position"/>', "<constraint> in <robot>"),
        ("<gazebo><plugin/></gazebo>", "<plugin> in <gazebo>"),
        ('<gazebo reference="l1"><turnGravityOff>true</turnGravityOff></gazebo>', "<turnGravityOff> in <gazebo>"),
        ('<transmission name="t"><actuator><rotor_inertia value="1"/></actuator></transmission>', "<rotor_inertia>"),
        ('<loop name="C" type="fixed"><dynamics damping="1"/>' + HELD + "</loop>", "<dynamics> in <loop>"),
    ],
)
def test_what_may_concern_dynamics_is_a_loss(text: str, loss: str) -> None:
    losses = read_urdf(robot(FOUR, text)).losses
    assert [sentence for sentence in losses if loss in sentence and "may concern dynamics" in sentence], losses


def test_what_does_not_concern_dynamics_is_none() -> None:
    text = (
        '<transmission name="t"/><gazebo reference="l1"><material>Gazebo/Red</material><mu1>0.2</mu1></gazebo><gazebo/>'
    )
    mechanism = read_urdf(robot(FOUR, text))
    assert mechanism.losses == ()
    assert [note.partition(" was")[0] for note in mechanism.notes] == ["<transmission> in <robot>"]


def test_a_joint_of_gazebo_holds_to_the_world() -> None:
    linkage = Linkage(2)
    text = '<gazebo><joint name="W" type="fixed"><parent>world</parent><child>l3</child></joint></gazebo>'
    model = read_urdf(robot(linkage.tree(), text)).build()
    a = cd.forward_dynamics(model, np.zeros(3), np.zeros(3))
    close(a[model.v_slice("D")], [0.0], 1e-12)
