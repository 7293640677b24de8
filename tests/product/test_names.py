"""Names and sentences of others: what a browser, a terminal, TeX or matplotlib would obey is only shown."""

import re
from http.client import HTTPConnection

import numpy as np
import pytest

import cardan as cd
from cardan.errors import OBEYED, visible
from cardan.readable.symbols import _escaped

pytestmark = pytest.mark.usefixtures("quick_code")

ATTACKS = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "<!--",
    r"\input{/etc/passwd}", r"a\write18{ls}", "%", "}{", "~^_#&",
    "$\\frac{1}{$", "$$", "[bold red]x[/]", "{{x}}", "`x`",
    "${alert(1)}",
)  # fmt: skip
HEAD = "cardan: 1\nname: x\n"
ARM = """
bodies: {a: {mass: 1}}
joints: {j: {type: rigid, parent: ground, child: a}}
notes: ["TEXT"]
losses: ["TEXT"]
"""


def model_of(name: str) -> cd.Model:
    """A double pendulum whose every part has the name in its own."""
    m = cd.Mechanism(name)
    m.body(name, mass=1.0, com=(0.3, 0, 0), inertia=np.eye(3))
    m.body(name + "2", mass=1.0, com=(0.3, 0, 0), inertia=np.eye(3))
    m.joint(name, cd.Revolute(), m.ground, name)
    m.joint(name + "2", cd.Revolute(), name, name + "2", at=(1.0, 0, 0))
    m.frame(name + "3", name, at=(0, 0, 1))
    m.torsion(name, name, stiffness=1.0, rest=0.0)
    return m.build()


def test_in_pages_and_notebooks():
    """No name becomes an element of HTML."""
    from cardan.results.page.page import html

    hostile, plain = model_of(" ".join(ATTACKS)), model_of("plain")
    assert html(hostile).count("<") == html(plain).count("<")
    assert hostile._repr_html_().count("<") == plain._repr_html_().count("<")


def test_in_pictures():
    """Signs of the dollar begin no formula."""
    from cardan.results.figure import image

    for name in ("$$", "$\\frac{1}{$"):
        model = model_of(name)
        run = cd.Trajectory(model, np.linspace(0, 1, 5), np.zeros((5, 2)), np.zeros((5, 2)))
        for figure in (run.plot("coordinates"), model.draw()):
            assert image(figure, "png", dpi=20)


def test_in_latex():
    """Every command in the legend is one of those that write a single character."""
    for name in ATTACKS:
        commands = set(re.findall(r"\\([a-zA-Z]+|.)", _escaped(name)))
        assert commands <= {"backslash", "sim", *"_&%#${}^"}
        assert _escaped(name).count("{") == _escaped(name).count("}") or "{" in name or "}" in name


@pytest.mark.parametrize("character", ["\0", "\n", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e", "\ud800"])
def test_in_terminals(character):
    """Names have no character that a terminal obeys; what else a file says shows it written out."""
    m = cd.Mechanism("m")
    for add in (lambda name: m.body(name, mass=1.0), cd.Mechanism):
        with pytest.raises(cd.ModelError, match="control character"):
            add(f"a{character}b")
    assert not OBEYED.search(visible(character)) and ascii(character)[1:-1] == visible(character)
    assert not OBEYED.search(str(cd.FileError(f"x{character}").args[0].replace("\n", "")))


def test_sentences_of_a_file(tmp_path):
    """Notes, losses and expressions come from the file, and go to the terminal."""
    path = tmp_path / "x.yaml"
    path.write_text(HEAD + ARM.replace("TEXT", r"\e]0;title\a \x9b31m \n forged"))
    model = cd.load(path)
    assert all("\\x1b]0;title\\x07" in text and not OBEYED.search(text) for text in (*model.notes, *model.losses))
    path.write_text(HEAD + 'parameters: {a: "=1 + \\e[31m"}\nbodies: {}\n')
    with pytest.raises(cd.FileError, match=r"\\x1b") as caught:
        cd.load(path)
    assert not OBEYED.search(str(caught.value).replace("\n", ""))


def test_of_hosts():
    """The viewer answers to the names of this computer, not to a page of the net that took its address."""
    with cd.view(model_of("plain"), open_browser=False) as viewer:
        address = viewer.url.split("/")[2]
        port = address.partition(":")[2]
        for host, status in ((address, 200), (f"localhost:{port}", 200), (f"evil.example:{port}", 403), ("", 403)):
            connection = HTTPConnection(address, timeout=10)
            connection.request("GET", "/", headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()
