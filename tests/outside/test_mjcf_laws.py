"""Random defaults classes of actuators, included files, keyframes and polygons of meshes, as MuJoCo has them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import cardan as cd

from ..mjcf import inertias
from ..trees import close

mujoco = pytest.importorskip("mujoco")

KINDS = ("general", "motor", "position", "velocity")
ATTRIBUTES = {
    "general": {"gainprm": ("7", "3", "2 9"), "biasprm": ("0 0 -3", "0 -4 -5", "1 -2"), "biastype": ("none", "affine")},
    "motor": {},
    "position": {"kp": ("5", "11"), "kv": ("2", "13")},
    "velocity": {"kv": ("4", "6")},
}
HINGE = '<joint name="{0}" axis="0 1 0"/><geom size="0.1"/>'


def element(dice: random.Random, kind: str, **more: str) -> str:
    own = {name: dice.choice(values) for name, values in ATTRIBUTES[kind].items() if dice.random() < 0.4}
    if dice.random() < 0.3:
        own["gear"] = dice.choice(("2", "-3"))
    words = [f'{name}="{value}"' for name, value in (own | more).items()]
    return f"<{kind} {' '.join(words)}/>"


def classes(dice: random.Random, depth: int) -> str:
    """A class, of up to three actuators, and the one nested in it."""
    kinds = dice.sample(KINDS, dice.choice((0, 1, 1, 1, 2, 3)))
    inside = "".join(element(dice, kind) for kind in kinds)
    nested = f'<default class="c{depth - 1}">{classes(dice, depth - 1)}</default>' if depth else ""
    return inside + nested


def test_laws_of_actuators_in_random_classes_are_mujocos(tmp_path: Path) -> None:
    dice = random.Random(20)
    read = 0
    for _ in range(100):
        depth = dice.randrange(4)
        used = [(kind, f"c{dice.randrange(depth)}" if depth else "main") for kind in KINDS]
        actuators = "".join(
            element(dice, kind, name=f"a{k}", joint="j", **{"class": name}) for k, (kind, name) in enumerate(used)
        )
        again = f"<default>{element(dice, dice.choice(KINDS))}</default>" if dice.random() < 0.1 else ""
        text = (
            f"<mujoco><default>{classes(dice, depth)}</default>{again}<worldbody><body>{HINGE.format('j')}</body>"
            f"</worldbody><actuator>{actuators}</actuator></mujoco>"
        )
        (tmp_path / "m.xml").write_text(text)
        ours, theirs = cd.load(tmp_path / "m.xml"), mujoco.MjModel.from_xml_string(text)
        for actuator in ours.actuators:
            own = theirs.actuator(actuator.name)
            read += 1
            assert actuator.gain == own.gainprm[0], text
            close(actuator.bias, own.biasprm[:3] * (own.biastype[0] == 1))
            close(actuator.gear, own.gear[:1])
    assert read > 300


def test_a_zero_quaternion_of_a_keyframe_is_no_turn_as_in_mujoco(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for scale in (0.0, 1e-15, 1e-12, 1.0):
        qpos = " ".join(map(str, [*rng.normal(size=3), *(scale * rng.normal(size=8))]))
        text = (
            '<mujoco><worldbody><body><freejoint name="f"/><geom size="0.1"/></body><body><joint name="b" type="ball"/>'
            f'<geom size="0.1"/></body></worldbody><keyframe><key name="k" qpos="{qpos}"/></keyframe></mujoco>'
        )
        (tmp_path / "m.xml").write_text(text)
        close(cd.load(tmp_path / "m.xml").states["k"].q, mujoco.MjModel.from_xml_string(text).key_qpos[0])


def test_included_files_are_found_where_mujoco_finds_them(tmp_path: Path) -> None:
    """Beside the main file, or else beside the file that includes them."""
    dice = random.Random(3)
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    folders = ("", "sub/", "sub/deep/")
    outcomes = set()
    for _ in range(60):
        for old in tmp_path.rglob("*.xml"):
            old.unlink()
        for name in "abc":
            for folder in folders:
                if dice.random() < 0.5:
                    inner = chr(ord(name) + 1)
                    file = f"{dice.choice((*folders, '../'))}{inner}.xml"
                    include = f'<include file="{file}"/>' if inner < "d" else ""
                    body = f'<body name="{name} of {folder}x">{HINGE.format(name)}</body>'
                    (tmp_path / folder / f"{name}.xml").write_text(f"<x>{body}{include}</x>")
        first = f'<include file="{dice.choice(folders)}a.xml"/>'
        (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{first}</worldbody></mujoco>")
        try:
            theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
        except ValueError:
            with pytest.raises(cd.FileError, match=r"there is no such file|second time|outside the folder"):
                cd.load(tmp_path / "m.xml")
            outcomes.add("refused")
            continue
        names = tuple(theirs.body(k).name for k in range(1, theirs.nbody))
        assert cd.load(tmp_path / "m.xml").body_names == names
        outcomes.add(names)
    assert len(outcomes) > 5


def test_polygons_of_meshes_are_cut_as_mujoco_cuts_them(tmp_path: Path) -> None:
    """Corners that are not in a plane: a closed ring of quadrangles between two caps of many corners, some notched."""
    rng = np.random.default_rng(4)
    for k in range(24):
        n, rows = int(rng.integers(3, 9)), int(rng.integers(2, 5))
        angle, radius = 2 * np.pi * np.arange(n) / n, np.where(np.arange(n) % 2, rng.choice([0.5, 1.0]), 1.0)
        ring = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle], axis=1)
        points = np.concatenate([ring + np.array([0.0, 0.0, z]) for z in range(rows)])
        points = (points + 0.05 * rng.normal(size=points.shape)) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        points = 0.1 * points + rng.normal(size=3) * rng.choice([0.0, 1.0])
        faces = [[*range(n)][::-1], [*range(n * (rows - 1), n * rows)]]
        for row, i in np.ndindex(rows - 1, n):
            a, b = row * n + i, row * n + (i + 1) % n
            faces.append([a, b, b + n, a + n])
        lines = [
            *("v " + " ".join(map(str, p)) for p in points),
            *("f " + " ".join(str(c + 1) for c in f) for f in faces),
        ]
        (tmp_path / f"{k}.obj").write_text("\n".join(lines))
        mesh = f'<mesh name="m" file="{k}.obj" inertia="{rng.choice(["legacy", "shell"])}"/>'
        body = '<body><freejoint/><geom type="mesh" mesh="m"/></body>'
        (tmp_path / "m.xml").write_text(f"<mujoco><asset>{mesh}</asset><worldbody>{body}</worldbody></mujoco>")
        (mass, com, I), *_ = inertias(mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")))
        own = cd.load(tmp_path / "m.xml").bodies[0]
        assert abs(own.mass - mass) < 1e-12 * mass
        assert np.abs(own.com - com).max() < 1e-12
        assert np.abs(own.inertia - I).max() < 3e-7 * np.abs(I).max()  # where MuJoCo ends its search for principal axes


STILL = '<body name="c" pos="0.3 0.1 0" {}><geom name="g" type="box" size="0.1 0.2 0.3"/><site name="s"/>{}</body>'
REFERRING = {
    "nothing": "",
    "a sensor of the body": '<sensor><framepos objtype="xbody" objname="c"/></sensor>',
    "a sensor of a site": '<sensor><framepos objtype="site" objname="s"/></sensor>',
    "a sensor seen from it": '<sensor><framepos objtype="site" objname="so" reftype="body" refname="c"/></sensor>',
    "a pair of bodies": '<contact><exclude body1="c" body2="o"/></contact>',
    "a pair of geoms": '<contact><pair geom1="g" geom2="go"/></contact>',
    "a weld": '<equality><weld body1="o" body2="c"/></equality>',
    "points held": '<equality><connect site1="s" site2="so"/></equality>',
    "a keyframe": '<keyframe><key qpos="0 0 0 1 0 0 0 0"/></keyframe>',
}


@pytest.mark.parametrize("referring", REFERRING)
def test_a_free_body_is_moved_to_its_principal_axes_when_mujoco_moves_it(tmp_path: Path, referring: str) -> None:
    """Which depends on whether the bodies fixed to it have been made one with it."""
    other = '<body name="o"><joint name="h"/><geom name="go" size="0.1"/><site name="so"/></body>'
    for fuse in ("true", "false"):
        for own, inside in (("", ""), ('gravcomp="1"', ""), ("", "<body><geom size='0.1'/></body>"),
                            ("", "<body><joint/><geom size='0.1'/></body>"), ('fuse="false"', "")):  # fmt: skip
            if "<joint" in inside and referring == "a keyframe":
                continue
            body = '<body name="b" pos="1 2 3"><freejoint name="f"/><geom type="box" size="0.1 0.2 0.05" pos="1 0 0"/>'
            (tmp_path / "m.xml").write_text(
                f'<mujoco><compiler alignfree="true" fusestatic="{fuse}"/><worldbody>{body}'
                f"{STILL.format(own, inside)}</body>{other}</worldbody>{REFERRING[referring]}</mujoco>"
            )
            theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
            notes = cd.load(tmp_path / "m.xml").notes
            assert any("('align')" in note for note in notes) == (abs(theirs.qpos0[0] - 1) > 1e-9), (own, inside)
