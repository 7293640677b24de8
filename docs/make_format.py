"""Write what is made from the tables of the YAML format: `python docs/make_format.py`.

The JSON Schema, the tables of docs/format.md, and those files of the catalogue that are not written by hand: their
numbers come out of the geometry of a closed position.
"""

from __future__ import annotations

import json
from pathlib import Path

from cardan.io.yaml import schema
from cardan.io.yaml.units import PREFIXES, QUANTITIES, TABLE
from cardan.io.yaml.write import write_yaml
from cardan.mechanisms import CATALOGUE

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "docs" / "schema" / "cardan.schema.json"
PAGE = ROOT / "docs" / "format.md"
FILES = ROOT / "src" / "cardan" / "data" / "mechanisms"
MARK = "<!-- the tables below are made by docs/make_format.py; do not edit -->\n"
MADE = (
    "two_body", "five_bar", "parallelogram", "n_four_bar", "cardan_joint", "drive_line", "rscr", "bennett", "sarrus",
    "stewart_platform", "delta_robot", "differential", "double_wishbone", "excavator", "gyroscope", "hoeken",
    "jansen_leg", "pantograph", "peaucellier", "planetary_gear", "quick_return", "scara", "scissor_lift",
    "stephenson_six_bar", "v_engine", "watt_six_bar", "lattice", "net", "track",
    "rolling_disc", "chaplygin_sleigh", "snakeboard", "ball_on_turntable", "vehicle", "cam_follower", "rzeppa",
)  # fmt: skip


def schema_text() -> str:
    """The JSON Schema."""
    return json.dumps(schema.json_schema(), indent=1) + "\n"


def page(text: str) -> str:
    """The page with its tables made anew; what is above the mark is written by hand."""
    return text.partition(MARK)[0] + MARK + tables()


def tables() -> str:
    """Every element of the format and its entries, and every unit."""
    lines = ["", "### The file", "", *_table(schema.SECTIONS)]
    lines += ["", "### Tables", "", *_table(schema.TABLES)]
    lines += ["", "### Bodies", "", *_table(schema.BODIES)]
    lines += ["", "`shape` of a body, or of `ground`; one, or a list of them:", "", *_shapes()]
    lines += ["", "### Joints", "", *_table(schema.JOINTS)]
    lines += ["", "Besides, by type:", "", *_types(schema.own_joints()), "", "`data` of a joint:", ""]
    lines += [*_table(schema.DATA), "", "### Frames", "", *_table(schema.FRAMES)]
    for title, types in (("Forces", schema.own_forces()), ("Constraints", schema.own_constraints())):
        lines += ["", f"### {title}", "", *_types(types)]
    lines += ["", "### Variables", "", *_table(schema.VARIABLES), "", "Each of `reads` of a variable has one of:", ""]
    lines += _table(schema.READS)
    lines += ["", "### Controllers", "", *_table(schema.CONTROLLERS), "", "Besides, by type:", ""]
    lines += _types(schema.CONTROLLER_TYPES)
    units = ", ".join(f"`{name}`" for name in TABLE)
    prefixed = ", ".join(f"`{name}`" for name, (_, takes) in TABLE.items() if takes)
    prefixes = ", ".join(f"`{name}`" for name in PREFIXES)
    lines += ["", "### Units", "", f"Units: {units}. The prefixes {prefixes} go with {prefixed}.", ""]
    rows = [f"| {name} | {', '.join(f'`{unit}`' for unit in units)} |" for name, units in QUANTITIES.items()]
    return "\n".join([*lines, "| quantity | measured in |", "|---|---|", *rows]) + "\n"


def _table(entries: schema.Entries) -> list[str]:
    rows = [f"| `{name}` | {'yes' if entry.needed else ''} | {entry.doc} |" for name, entry in entries.items()]
    return ["| entry | needed | what it is |", "|---|---|---|", *rows]


def _shapes() -> list[str]:
    rows = []
    for name, (_, forms, needed) in schema.SHAPES.items():
        entries = ", ".join(f"`{key}`" if key in needed else f"[`{key}`]" for key in (*forms, *schema.ANY_SHAPE))
        rows.append(f"| `{name}` | {entries} |")
    return ["| shape | entries, in brackets those that may be left out |", "|---|---|", *rows]


def _types(types: dict[str, schema.Entries]) -> list[str]:
    rows = [
        f"| `{type}` | `{name}` | {'yes' if entry.needed else ''} | {entry.doc} |"
        for type, entries in types.items()
        for name, entry in (entries or {"": schema.Entry(None, "no more entries")}).items()
    ]
    return ["| type | entry | needed | what it is |", "|---|---|---|---|", *(row.replace("``", "") for row in rows)]


def mechanism_text(name: str) -> str:
    """A file of the catalogue: the first line of its description, and the mechanism."""
    make = CATALOGUE[name]
    first = (make.__doc__ or "").strip().partition("\n")[0]
    return f"# {first}\n{write_yaml(make())}"


if __name__ == "__main__":
    SCHEMA.parent.mkdir(exist_ok=True)
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for name in MADE:
        (FILES / f"{name}.yaml").write_text(mechanism_text(name), encoding="utf-8")
