"""Hypothesis strategies of files that are well formed and mean nothing: the structure is right, the content is not."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

from cardan.io.mjcf.options import COMPILER
from cardan.io.mjcf.vocabulary import TOP
from cardan.io.mjcf.world import ATTRIBUTES, INSIDE
from cardan.io.yaml import schema
from cardan.io.yaml.expression import COMPARISONS, FUNCTIONS
from cardan.io.yaml.units import PREFIXES, TABLE

NUMBERS = st.sampled_from(
    ["0", "1", "-1", "0.5", "1e300", "-1e300", "1e-300", "1e999999", "nan", "inf", "1e60", "0x1", "1_0", "", " "]
)
NAMES = st.sampled_from(["a", "b", "c", "ground", "world", "root", "", "é", "a b", "main"])
VECTORS = st.lists(NUMBERS, min_size=1, max_size=7).map(" ".join)


def xml(top: str, tags: list[str], attributes: list[str], words: list[str]) -> st.SearchStrategy[str]:
    """XML with the tags, the attributes and the words of a format, anywhere."""
    values = st.one_of(NUMBERS, NAMES, VECTORS, st.sampled_from(words))
    given = st.dictionaries(st.sampled_from(attributes), values, max_size=5).map(
        lambda found: "".join(f" {name}={quoteattr(value)}" for name, value in found.items())
    )
    element = st.recursive(
        st.builds("<{0}{1}/>".format, st.sampled_from(tags), given),
        lambda inner: st.builds(
            lambda tag, own, inside: f"<{tag}{own}>{''.join(inside)}</{tag}>",
            st.sampled_from(tags), given, st.lists(inner, max_size=4),
        ),
        max_leaves=12,
    )  # fmt: skip
    return st.lists(element, max_size=6).map(lambda inside: f"<{top}>{''.join(inside)}</{top}>")


URDF = xml(
    "robot",
    [
        "link",
        "joint",
        "inertial",
        "origin",
        "mass",
        "inertia",
        "axis",
        "limit",
        "dynamics",
        "mimic",
        "parent",
        "child",
        "visual",
        "transmission",
    ],
    [
        "name",
        "type",
        "link",
        "joint",
        "value",
        "xyz",
        "rpy",
        "quat_xyzw",
        "ixx",
        "ixy",
        "ixz",
        "iyy",
        "iyz",
        "izz",
        "lower",
        "upper",
        "effort",
        "velocity",
        "damping",
    ],
    ["revolute", "continuous", "prismatic", "planar", "fixed", "floating"],
)
MJCF = xml(
    "mujoco",
    [*TOP, *INSIDE, "key", "mesh", "motor", "position", "connect", "weld", "flag", "include"],
    sorted({*sum(ATTRIBUTES.values(), ()), *COMPILER, "qpos", "body1", "joint1", "file", "childclass"}),
    [
        "hinge",
        "slide",
        "ball",
        "free",
        "sphere",
        "box",
        "capsule",
        "mesh",
        "true",
        "false",
        "auto",
        "degree",
        "xyz",
        "legacy",
        "in.xml",
        "m.obj",
        "model.xml",
    ],
)
UNITS = st.recursive(
    st.builds("{}{}".format, st.sampled_from(["", *PREFIXES]), st.sampled_from(sorted(TABLE))),
    lambda inner: st.one_of(
        st.builds("{}{}{}".format, inner, st.sampled_from(["*", "/", " ", "·", "//"]), inner),
        st.builds("({})^{}".format, inner, st.integers(-100, 100)),
    ),
    max_leaves=8,
)
EXPRESSIONS = st.recursive(
    st.one_of(
        NUMBERS, st.sampled_from(["t", "q[0]", "pi", "x", "2 mm", "3 [N/m]", "1 deg"]), UNITS.map("2 [{}]".format)
    ),
    lambda inner: st.one_of(
        st.builds("{}({})".format, st.sampled_from(sorted(FUNCTIONS)), st.lists(inner, max_size=3).map(", ".join)),
        st.builds("{} {} {}".format, inner, st.sampled_from([*"+-*/^", "**", *COMPARISONS]), inner),
        st.builds("-({})".format, inner),
    ),
    max_leaves=20,
)


def _flow(entries: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries) + "}"


def yaml() -> st.SearchStrategy[str]:
    """Files with the sections and the keys of the format, and values of every kind."""
    joints, forces = schema.own_joints(), schema.own_forces()
    tables = [schema.BODIES, schema.JOINTS, schema.FRAMES, schema.DATA, *joints.values(), *forces.values(),
              *schema.own_constraints().values()]  # fmt: skip
    keys = sorted({key for table in tables for key in table} | {"type"})
    types = sorted({*joints, *forces, *schema.own_constraints()})
    scalar = st.one_of(
        NUMBERS, st.sampled_from(["a", "b", "ground", *types]), EXPRESSIONS.map(lambda text: f'"={text}"'),
        UNITS.map("'2 {}'".format),
    )  # fmt: skip
    lists = st.lists(scalar, max_size=4).map(lambda items: f"[{', '.join(items)}]")
    inner = st.lists(st.tuples(st.sampled_from(keys), st.one_of(scalar, lists)), max_size=4).map(_flow)
    element = st.lists(
        st.tuples(st.sampled_from(keys), st.one_of(scalar, lists, inner)), max_size=5, unique_by=lambda entry: entry[0]
    ).map(_flow)
    section = st.lists(st.tuples(st.sampled_from("abc"), element), max_size=3, unique_by=lambda e: e[0]).map(_flow)
    sections = st.dictionaries(st.sampled_from(sorted(schema.SECTIONS)), st.one_of(section, lists, scalar), max_size=6)
    return sections.map(
        lambda found: "".join(f"{key}: {value}\n" for key, value in ({"cardan": "1", "name": "x"} | found).items())
    )


STRATEGIES = {
    "urdf": URDF,
    "mjcf": MJCF,
    "yaml": yaml(),
    "expression": EXPRESSIONS,
    "units": UNITS.map("1.5 {}".format),
}
