"""docs/trust.md: every promise has a command, and every command exists."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
POLICY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.partition("\n\n## ")[0].splitlines() if line.startswith("| ")][1:]


def test_every_promise_has_a_command_that_exists():
    assert len(ROWS) > 15
    for row in ROWS:
        _, about, promise, command, _ = (cell.strip() for cell in row.split("|"))
        assert about and promise
        found = re.match(r"`(?:pytest|python -m|(CARDAN_CACHE=check)) ?([^`]*)`", command)
        assert found, command
        words = [word for word in found[2].split() if word.startswith("tests")]
        assert words or found[1], command
        for word in words:
            assert (ROOT / word).exists() if "/" in word else find_spec(word), f"{command}: {word} is not there"


def test_what_the_policy_promises_is_a_row():
    bullets = re.findall(r"^- .*?(?=^- |^$)", POLICY, re.MULTILINE | re.DOTALL)
    assert len(bullets) > 3
    for bullet in bullets:
        command = re.search(r"`((?:pytest|python -m) [^`]*)`", bullet)
        assert command, bullet
        assert any(f"`{command[1]}`" in row for row in ROWS), bullet


def test_limits_are_those_of_the_code():
    from cardan.io import text_file, xml_element
    from cardan.io.mjcf import item, solids
    from cardan.io.yaml import nodes, read
    from cardan.meshes import formats, measure
    from cardan.meshes import read as meshes

    numbers = [nodes.LARGEST, nodes.CALCULATED, text_file.BODIES, text_file.STATES]
    numbers += [xml_element.ELEMENTS, xml_element.ATTRIBUTES]
    numbers += [item.ELEMENTS, item.INCLUDES, item.SECTIONS, formats.TRIANGLES, measure.HULL]
    numbers += [formats.DISPLAYED]
    for number in numbers:
        assert f"{number:,}" in TEXT
    for size in (text_file.SIZE_LIMIT, read.SIZE_LIMIT, solids.FILES, meshes.SIZE):
        assert f"{size >> 20} MiB" in TEXT
