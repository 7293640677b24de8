"""Random files as other programs read them: the same numbers, or a refusal by both."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .random_mjcf import MAIN, files
from .random_urdf import robots

pytest.importorskip("mujoco")
pytest.importorskip("pinocchio")

from .random_files import compare_mjcf, compare_urdf

HINGE, SOLID = '<joint name="j"/>', '<geom size="0.1" pos="0.3 0.1 0"/>'
BALL = '<body name="b" euler="20 30 40"><joint name="j" type="ball"/><geom size="0.1" pos="0.3 0.1 0"/></body>'
FREE = BALL.replace('"ball"', '"free"')


def world(inside: str, after: str = "", before: str = "") -> dict[str, str]:
    return {MAIN: f"<mujoco>{before}<worldbody>{inside}</worldbody>{after}</mujoco>"}


def body(inside: str = "", after: str = "", before: str = "") -> dict[str, str]:
    return world(f'<body name="b" euler="10 20 30">{HINGE}{SOLID}{inside}</body>', after, before)


# Files that were read wrongly once, as small as they get.
FOUND = {
    "site from one point to another": body('<site name="s" fromto="0 0 0 1 1 0" type="box" size="0.1"/>'),
    "actuator along axes of the parent": world(
        BALL, '<actuator><motor name="m" jointinparent="j" gear="1 2 3"/></actuator>'
    ),
    "actuator along axes of the world": world(
        FREE, '<actuator><motor name="m" joint="j" gear="1 2 3 4 5 6"/></actuator>'
    ),
    "hinge and then ball": world(
        f'<body><joint axis="1 0 0" pos="0 0 1"/><joint type="ball" pos="0 0.2 0"/>{SOLID}</body>'
    ),
    "first of several numbers over those of a class": body(
        before='<default><joint damping="1 2 3" stiffness="1 2 3"/><geom size="0.1 0.2 0.3"/><motor gear="1 2 3"/>'
        '<default class="k"><joint damping="4 5"/><geom size="0.05"/></default></default>',
        inside='<geom type="box" class="k"/><body name="c"><joint name="d" stiffness="7" class="k" pos="0.1 0 0"/>'
        '<geom type="box" size="0.2 0.1"/></body><body name="e"><joint name="f" type="ball"/><geom size="0.3"/></body>',
        after='<actuator><motor name="m" joint="f" gear="5"/></actuator>',
    ),
    "weight that is not carried, as it is negative": world(f'<body gravcomp="-1"><joint type="slide"/>{SOLID}</body>'),
    "weight that is not carried, as passive forces are off": world(
        f'<body gravcomp="1"><joint type="slide"/>{SOLID}</body>',
        before='<option><flag spring="disable" damper="disable"/></option>',
    ),
    "least mass of bodies of nothing": body(
        '<body pos="1 2 3" euler="30 0 0"><body pos="4 5 6"/><geom mass="0" size="1"/></body>',
        before='<compiler boundmass="0.1"/>',
    ),
    "least inertia of bodies of nothing": body(
        '<body pos="1 2 3" euler="30 0 0"/></body><body><body/>', before='<compiler boundinertia="0.1"/>'
    ),
    "weld that lets turn": world(FREE, '<equality><weld name="w" body1="b" torquescale="0"/></equality>'),
    "rotation of a class in a class that has another": body(
        before='<default><site zaxis="1 2 3"/><default class="k"><site quat="1 2 3 4"/></default></default>',
        inside='<site name="s" class="k"/>',
    ),
    "servo of a class with another": body(
        before='<default><position kp="3" kv="2"/><default class="k"><general gainprm="5"/></default></default>',
        after='<actuator><velocity name="v" joint="j"/><general name="g" joint="j"/>'
        '<general name="m" joint="j" class="k"/><general name="d" joint="j" biastype="affine" biasprm="1 -3 2"/>'
        "</actuator>",
    ),
    "limits and friction that a flag switches off": world(
        f'<body><joint name="j" range="0 5" frictionloss="0.05"/>{SOLID}</body>',
        before='<option><flag constraint="disable"/></option>',
    ),
    "servo of a class with a motor, in one with gains": body(
        before='<default><general gainprm="5"/><default class="k"><motor gear="3"/></default></default>',
        after='<actuator><velocity name="v" joint="j" class="k"/><position name="p" joint="j" class="k"/></actuator>',
    ),
    "free body with another fixed to it that are made one": world(
        f'<body name="b"><freejoint/>{SOLID}<body pos="1 0 0">{SOLID}</body></body>',
        before='<compiler alignfree="true" fusestatic="true"/>',
        after='<keyframe><key qpos="1 2 3 1 0 0 0"/></keyframe>',
    ),
}
# Mistakes that MuJoCo refuses and that were passed over once.
MISTAKES = {
    "axis of two numbers": world(f'<body><joint axis="1 0"/>{SOLID}</body>'),
    "place of two numbers": world(f'<body><joint pos="1 0"/>{SOLID}</body>'),
    "anchor of two numbers": body(after='<equality><connect body1="b" anchor="1 0"/></equality>'),
    "relpose of three numbers": body(after='<equality><weld body1="b" relpose="1 0 0"/></equality>'),
    "site at a place and between points": body('<site name="s" type="box" pos="1 0 0" fromto="0 0 0 1 1 0"/>'),
    "geom at a place and between points": body('<geom type="box" size="1" pos="1 0 0" fromto="0 0 0 1 1 0"/>'),
    "sphere between points": body('<site name="s" fromto="0 0 0 1 1 0"/>'),
    "one element twice in a class": body(before='<default><joint damping="1"/><joint damping="2"/></default>'),
    "word that no class has": body(before='<default><joint dampin="1"/></default>'),
    "word that no motor has": body(after='<actuator><motor joint="j" kp="3"/></actuator>'),
    "gain of a servo": body(after='<actuator><position joint="j" gainprm="3"/></actuator>'),
    "motor of nothing": body(after="<actuator><motor/></actuator>"),
    "two rotations in a class": body(before='<default><geom euler="1 2 3" quat="1 2 3 4"/></default>'),
    "flags twice": body(before='<option><flag gravity="disable"/><flag gravity="enable"/></option>'),
    "springdamper of one number": world(f'<body><joint springdamper="1"/>{SOLID}</body>'),
    "group range of one number": body(before='<compiler inertiagrouprange="1"/>'),
    "shell of a mesh by its geom": body(
        '<geom type="mesh" mesh="m" shellinertia="true"/>',
        before='<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
    ),
    "geom in a joint that is not closed": world('<body><joint><geom size="1"/></joint><geom size="0.1"/></body>'),
    "site in a class of geoms": body(before='<default><geom><site pos="1 2 3"/></geom></default>'),
    "motor in a motor": body(after='<actuator><motor joint="j"><motor joint="j"/></motor></actuator>'),
    "weld in a weld": body(after='<equality><weld body1="b"><weld body1="b"/></weld></equality>'),
    "word that no mesh has": body(before='<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scal="2"/></asset>'),
    "motor of a joint without a name": body(after='<actuator><motor joint=""/></actuator>'),
    "two constraints of one name": body(
        after='<equality><joint name="e" joint1="j"/><connect name="e" body1="b" anchor="0 0 0"/></equality>'
    ),
    "constraint of a class that is not there": body(after='<equality><joint class="nix" joint1="j"/></equality>'),
    "ball and then hinge": world(f'<body><joint type="ball"/><joint pos="0 0.2 0"/>{SOLID}</body>'),
}


def test_what_was_found_is_as_in_mujoco() -> None:
    outcomes = {name: compare_mjcf(texts) for name, texts in FOUND.items()}
    assert set(outcomes.values()) == {"they agree"}, outcomes


def test_what_mujoco_refuses_is_refused() -> None:
    outcomes = {name: compare_mjcf(texts) for name, texts in MISTAKES.items()}
    assert set(outcomes.values()) == {"both refuse it"}, outcomes


@given(files())
@settings(max_examples=40)
def test_random_mjcf_is_as_in_mujoco(texts: dict[str, str]) -> None:
    compare_mjcf(texts)


@given(robots(), st.sampled_from(["fixed", "free"]))
@settings(max_examples=40)
def test_random_urdf_is_as_in_pinocchio(text: str, root: str) -> None:
    compare_urdf(text, root)
