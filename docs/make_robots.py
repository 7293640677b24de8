"""Write docs/robots.md, every robot of example-robot-data compared with Pinocchio: `python docs/make_robots.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import cardan as cd
from cardan.io.policy import RULES

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.outside.test_urdf_robots import EVERY, ROBOTS, STILL, largest_errors

PAGE = Path(__file__).with_name("robots.md")
TEXT = """# Robots from files, and files from models

Made by `python docs/make_robots.py`; do not edit.

## Every robot of example-robot-data

Each of the {count} URDF files of the package `example-robot-data` is read: {loaded} load, and the others say why not.
Those that load are compared with Pinocchio at random states. The table has the largest relative difference of mass
matrix, inverse and forward dynamics; mimic joints are free, as in Pinocchio, and robots without moving joints are on a
free base. With mimic joints coupled, mass matrix and bias force of Baxter, Panda, PR2 and Tiago Pro also agree. Every
robot that loads is written as URDF and read again, with the same links to 1e-13.

| file | links | freedoms | mimics | odd inertias | largest difference |
|---|---|---|---|---|---|
{robots}

| file | why it is refused | with `policy="warn"` |
|---|---|---|
{refused}

## Files that break a rule

`cd.load(file, policy=...)` selects what happens if a file of any format breaks a rule. What was kept or repaired is
listed in `model.notes` and in `model.report()`. Only slight breaches are repaired: a number that is off by up to 5 % of
its size. Rules that are not in the table are enforced under every policy: a negative mass is always rejected.

| rule | `"strict"` | `"warn"` | `"repair"` |
|---|---|---|---|
{rules}

A quaternion or a rotation matrix within 0.1 % is taken for rounding and normalised under every policy. So are axes of
any length and, in MJCF, quaternions of any length except 0, as that format requires. Inertias of bodies that are fixed
to one another are checked together, see [decision 0007](decisions/0007-inertias-are-checked-for-rigid-groups.md).

## Writing URDF and MJCF

`cd.save(model, "robot.urdf")` and `cd.save(model, "robot.xml")` write what the format can express. The
rest is returned, one sentence each, and listed in a comment at the head of the file; with `strict=True` it is an error.

```python
import cardan as cd
from cardan import mechanisms

for loss in cd.save(mechanisms.four_bar().build(), "four_bar.urdf", overwrite=True):
    print(loss)
```

| | URDF | MJCF |
|---|---|---|
| revolute, prismatic, rigid | yes | yes |
| free | yes | on the world; elsewhere three slides and a ball |
| planar | yes | two slides and a hinge |
| universal, cylindrical | two joints, a link without mass between them | two joints of one body |
| spherical | three hinges | yes |
| screw | a hinge and a slider that mimics it | a hinge and a slide held to it |
| loops | no | points and welds; a hinge as two points |
| couplings | of two joints, as mimic | of two joints |
| armature, gravity, start | no | yes; a ball has no start |
| springs, dampers, drives, forces of your own | no | torsion springs along joints only |
| constraints of your own | no | no |
| frames | links without mass | sites |

A link of URDF has its frame at its joint. If the frame of a body is elsewhere it is moved, and this is listed. MuJoCo
needs positive inertias: where that of a body fixed to another is not positive, it is added to the other's.
"""


def main() -> None:
    """Read and compare everything."""
    robots, refused = [], []
    for file in EVERY:
        try:
            model = cd.load(ROBOTS / file)
        except cd.FileError as error:
            refused.append(f"| `{file}` | refused: {_said(error, file)} | {_kept(file)} |")
            continue
        odd = sum("the rules hold" in note for note in model.notes)
        try:
            error = max(largest_errors(ROBOTS / file, "free" if file in STILL else "fixed", snapping=0.0).values())
            difference = f"{error:.0e}"
        except cd.FileError:  # only its mimics hold a link without mass
            difference = "refused without its mimics"
        mimics = len(model.couplings) or ""
        robots.append(f"| `{file}` | {model.nb} | {model.nv} | {mimics} | {odd or ''} | {difference} |")
        print(robots[-1], flush=True)
    rules = [
        f"| {rule.says} | refused | {rule.keep.done if rule.keep else 'refused'} | "
        f"{rule.repair.done.removeprefix('repaired: ') if rule.repair else 'refused'} |"
        for rule in RULES.values()
    ]
    page = TEXT.format(
        count=len(EVERY), loaded=len(robots), robots="\n".join(robots), refused="\n".join(refused),
        rules="\n".join(rules),
    )  # fmt: skip
    PAGE.write_text(page, encoding="utf-8")


def _said(error: Exception, file: str) -> str:
    return str(error).removeprefix(f"{ROBOTS / file}: ").partition("; ")[0].replace("|", "/").replace("<", "&lt;")


def _kept(file: str) -> str:
    try:
        cd.load(ROBOTS / file, policy="warn")
    except cd.FileError as error:
        return f"refused: {_said(error, file)}"
    return "loads"


if __name__ == "__main__":
    main()
