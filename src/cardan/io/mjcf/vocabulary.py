"""The attributes of elements, as MJCF has them; an attribute that is in no list is a mistake of the file."""

from __future__ import annotations

from cardan.io.mjcf.placement import ROTATIONS

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
    "motor": (),
    "general": (
        "actdim", "actearly", "actlimited", "actrange", "biasprm", "biastype", "dynprm", "dyntype", "ffrange",
        "gainprm", "gaintype", "inheritrange", "input", "velrange",
    ),
}  # fmt: skip
"""Actuators whose force is `gain u + bias . (1, length, speed)`, and the attributes that they add to those of all."""
EQUALITY = ("active", "solimp", "solref")


def of_default(tag: str) -> tuple[str, ...] | None:
    """The attributes of an element in a class, where they are known."""
    if tag == "equality":
        return EQUALITY
    known = (*SHARED, *LAWS[tag]) if tag in LAWS else ATTRIBUTES.get(tag)
    outside = ("name", "class", "lengthrange", "refsite", *(TARGETS if tag in LAWS else ()))
    return None if known is None else tuple(name for name in known if name not in outside)
