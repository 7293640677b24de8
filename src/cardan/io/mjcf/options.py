"""The settings of `<compiler>` and `<option>`; later elements override earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cardan.io.mjcf.item import Angles, Item
from cardan.io.mjcf.solids import Rules

COMPILER = (
    "alignfree", "angle", "assetdir", "autolimits", "balanceinertia", "boundinertia", "boundmass", "conflict",
    "convexhull", "coordinate", "discardvisual", "eulerseq", "exactmeshinertia", "fitaabb", "fusestatic",
    "inertiafromgeom", "inertiagrouprange", "meshdir", "passthrough", "savecanonical", "savecompiled", "saveinertial",
    "settotalmass", "strippath", "texturedir", "usethread",
)  # fmt: skip
OPTION = (
    "actuatorgroupdisable", "apirate", "ccd_iterations", "ccd_tolerance", "cone", "density", "gravity", "impratio",
    "integrator", "iterations", "jacobian", "ls_iterations", "ls_tolerance", "magnetic", "mpr_iterations",
    "mpr_tolerance", "noslip_iterations", "noslip_tolerance", "o_friction", "o_margin", "o_solimp", "o_solref",
    "sdf_initpoints", "sdf_iterations", "sleep_tolerance", "solver", "timestep", "tolerance", "viscosity", "wind",
)  # fmt: skip
FLAGS = (
    "actuation", "autoreset", "clampctrl", "constraint", "contact", "damper", "diagexact", "energy", "equality",
    "eulerdamp", "filterparent", "frictionloss", "fwdinv", "gravity", "invdiscrete", "ipc", "island", "limit",
    "midphase", "multiccd", "nativeccd", "override", "passive", "refsafe", "sensor", "sleep", "speculative", "spring",
    "warmstart",
)  # fmt: skip
READ_FLAGS = ("constraint", "contact", "damper", "equality", "frictionloss", "gravity", "limit", "spring")


class Options:
    """Settings of a file that concern dynamics; `losses` lists unsupported ones, `base` is the file's folder."""

    def __init__(self, top: Item) -> None:
        self.losses: list[str] = []
        self.base = Path()
        compilers = [item for item in top.children if item.tag == "compiler"]
        options = [item for item in top.children if item.tag == "option"]
        for item in compilers:
            item.check(COMPILER, ("lengthrange",))
        for item in options:
            item.check(OPTION, ("flag",))
            if len(item.children) > 1:
                raise item.error("it has two <flag> elements; give all flags in one")
        self._compile(_last(top, compilers))
        self._choose(_last(top, options), [flag for item in options for flag in item.children])

    def _compile(self, item: Item) -> None:
        if item.choice("coordinate", ("local", "global"), "local") == "global":
            raise item.error('coordinate="global" is no longer part of MJCF; save the model with local coordinates')
        unit = np.pi / 180 if item.choice("angle", ("degree", "radian"), "degree") == "degree" else 1.0
        sequence = item.get("eulerseq", "xyz")
        if len(sequence) != 3 or not set(sequence) <= set("xyzXYZ"):
            raise item.error(f"'eulerseq' must be three letters of xyzXYZ, got {sequence!r}")
        self.angles = Angles(unit, sequence)
        self.autolimits = item.yes("autolimits", True)
        first, last = item.exactly("inertiagrouprange", (0.0, 5.0))
        from_geoms = item.choice("inertiafromgeom", ("true", "false", "auto"), "auto")
        least = item.number_or("boundmass", 0.0), item.number_or("boundinertia", 0.0)
        self.rules = Rules(from_geoms, (int(first), int(last)), *least, item.yes("balanceinertia"))
        self.total_mass = item.number_or("settotalmass", -1.0)
        self.mesh_directory = item.get("meshdir") or item.get("assetdir")
        self.strip, self.fit_aabb = item.yes("strippath"), item.yes("fitaabb")
        self.align, self.fuse = item.yes("alignfree"), item.yes("fusestatic")

    def _choose(self, item: Item, flags: list[Item]) -> None:
        self.flags = dict.fromkeys(READ_FLAGS, True)
        for flag in flags:
            flag.check(FLAGS, ())
            for name in FLAGS:
                if flag.has(name):
                    on = flag.choice(name, ("enable", "disable"), "enable") == "enable"
                    # older files switch springs and dampers by one flag
                    names = ("spring", "damper") if name == "passive" else (name,)
                    self.flags |= {name: on for name in names if name in READ_FLAGS}
        given = item.numbers("gravity", 3) if item.has("gravity") else np.array([0.0, 0.0, -9.81])
        self.gravity = given if self.flags["gravity"] else np.zeros(3)
        for what in ("density", "viscosity"):
            if item.number_or(what, 0.0) > 0:
                self.losses.append(f"forces of the fluid that bodies move in, of {what} {item.number(what):g}")


def _last(top: Item, items: list[Item]) -> Item:
    """Several elements as one; the last one that gives an attribute decides it."""
    if not items:
        node: Any = type(top.node)("mujoco")
        node.line, node.file = top.line, top.source
        return Item(node, "mujoco")
    merged: dict[str, str] = {}
    for item in items:
        merged |= item.own
    return Item(items[-1].node, "", merged)
