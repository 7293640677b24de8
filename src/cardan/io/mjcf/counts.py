"""How many numbers the attributes of MJCF have, in whatever element they are.

Source: MuJoCo's XML reference.
"""

from __future__ import annotations

EXACTLY = {
    "actuatorfrcrange": 2, "anchor": 3, "armature": 1, "axis": 3, "axisangle": 4, "boundinertia": 1, "boundmass": 1,
    "conaffinity": 1, "condim": 1, "contype": 1, "ctrlrange": 2, "density": 1, "diaginertia": 3, "euler": 3,
    "fitscale": 1, "forcerange": 2, "frictionloss": 1, "fromto": 6, "fullinertia": 6, "gap": 1, "gravcomp": 1,
    "gravity": 3, "group": 1, "impratio": 1, "inertiagrouprange": 2, "kp": 1, "kv": 1, "magnetic": 3, "margin": 1,
    "mass": 1, "o_margin": 1, "offset": 3, "pos": 3, "priority": 1, "quat": 4, "range": 2, "ref": 1, "refpos": 3,
    "refquat": 4, "relpose": 7, "rgba": 4, "scale": 3, "settotalmass": 1, "solmix": 1, "springdamper": 2,
    "springref": 1, "springyield": 1, "time": 1, "timestep": 1, "torquescale": 1, "viscosity": 1, "wind": 3,
    "xyaxes": 6, "zaxis": 3,
}  # fmt: skip
UP_TO = {
    "biasprm": 10, "damping": 3, "dynprm": 10, "fluidcoef": 5, "friction": 3, "gainprm": 10, "gear": 6,
    "o_friction": 5, "o_solimp": 5, "o_solref": 2, "polycoef": 5, "size": 3, "solimp": 5, "solimpfriction": 5,
    "solimplimit": 5, "solref": 2, "solreffriction": 2, "solreflimit": 2, "stiffness": 3,
}  # fmt: skip
"""Those that may be fewer; what is missing at the end is that of the default."""
