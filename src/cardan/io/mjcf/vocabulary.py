"""The sections, elements and attributes of MJCF, and how many numbers an attribute has.

An attribute that is in no list is a mistake of the file. Source: MuJoCo's XML reference.
"""

from __future__ import annotations

ROTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
"""The ways to write a rotation."""
TOP = (
    "compiler", "option", "size", "statistic", "visual", "default", "extension", "asset", "worldbody", "deformable",
    "contact", "tendon", "equality", "actuator", "sensor", "custom", "keyframe",
)  # fmt: skip
"""Sections of a file."""
POSED = ("pos", *ROTATIONS)
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "worldbody": (),
    "frame": ("name", "childclass", *POSED),
    "body": ("name", "childclass", "fuse", "gravcomp", "mocap", "simple", "sleep", "user", *POSED),
    "inertial": ("mass", "diaginertia", "fullinertia", *POSED),
    "freejoint": ("name", "group", "align"),
    "joint": (
        "actuatorfrclimited", "actuatorfrcrange", "actuatorgravcomp", "armature", "axis", "class", "damping",
        "frictionloss", "group", "limited", "margin", "name", "pos", "range", "ref", "solimpfriction", "solimplimit",
        "solreffriction", "solreflimit", "springdamper", "springref", "springyield", "stiffness", "type", "user",
    ),
    "geom": (
        "adhesion", "axisangle", "castshadow", "class", "conaffinity", "condim", "contype", "density", "euler",
        "fitscale", "fluidcoef", "fluidshape", "friction", "fromto", "gap", "group", "hfield", "margin", "mass",
        "material", "mesh", "name", "pos", "priority", "quat", "rgba", "shellinertia", "size", "solimp", "solmix",
        "solref", "surfacevel", "type", "user", "xyaxes", "zaxis",
    ),
    "site": (
        "axisangle", "class", "euler", "fromto", "group", "material", "mesh", "name", "pos", "quat", "rgba", "size",
        "type", "user", "xyaxes", "zaxis",
    ),
    "mesh": (
        "builtin", "class", "content_type", "face", "file", "inertia", "material", "maxhullvert", "name", "normal",
        "octree", "params", "refpos", "refquat", "scale", "smoothnormal", "texcoord", "vertex",
    ),
}  # fmt: skip
TARGETS = ("joint", "jointinparent", "tendon", "site", "body", "slidersite", "cranksite")
"""What an actuator acts on."""
SHARED = (
    "armature", "class", "cranklength", "ctrllimited", "ctrlrange", "damping", "delay", "forcelimited", "forcerange",
    "gear", "group", "interp", "lengthrange", "name", "nsample", "refsite", "user", *TARGETS,
)  # fmt: skip
LAWS: dict[str, tuple[str, ...]] = {
    "position": ("kp", "kv", "dampratio", "timeconst", "inheritrange"),
    "velocity": ("kv",),
    "intvelocity": ("kp", "kv", "dampratio", "actlimited", "actrange", "inheritrange"),
    "damper": ("kv",),
    "cylinder": ("timeconst", "area", "diameter", "bias"),
    "motor": (),
    "general": (
        "actdim", "actearly", "actlimited", "actrange", "biasprm", "biastype", "dynprm", "dyntype", "ffrange",
        "gainprm", "gaintype", "inheritrange", "input", "velrange",
    ),
}  # fmt: skip
"""Actuators whose force is `gain u + bias . (1, length, speed)`, and the attributes that only they have."""
EQUALITY = ("active", "solimp", "solref")

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
"""How many numbers an attribute has, in whatever element it is."""
UP_TO = {
    "biasprm": 10, "damping": 3, "dynprm": 10, "fluidcoef": 5, "friction": 3, "gainprm": 10, "gear": 6,
    "o_friction": 5, "o_solimp": 5, "o_solref": 2, "polycoef": 5, "size": 3, "solimp": 5, "solimpfriction": 5,
    "solimplimit": 5, "solref": 2, "solreffriction": 2, "solreflimit": 2, "stiffness": 3,
}  # fmt: skip
"""The same of attributes that may have fewer; numbers missing at the end are those of the default."""


def of_default(tag: str) -> tuple[str, ...] | None:
    """The attributes of an element in a class, where they are known."""
    if tag == "equality":
        return EQUALITY
    known = (*SHARED, *LAWS[tag]) if tag in LAWS else ATTRIBUTES.get(tag)
    outside = ("name", "class", "lengthrange", "refsite", *(TARGETS if tag in LAWS else ()))
    return None if known is None else tuple(name for name in known if name not in outside)
