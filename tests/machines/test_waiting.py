"""The line that says what takes long: where somebody looks on, and gone at the end."""

import inspect
import io
import re
import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import cardan as cd
from cardan.functions import check
from cardan.machines import waiting
from cardan.mechanisms import double_pendulum
from cardan.results.progress import progress_bar


class Terminal(io.StringIO):
    """A stream that somebody may look at."""

    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(waiting, "DELAY", 0.0)
    monkeypatch.setattr(waiting, "AGAIN", 0.005)
    monkeypatch.setenv("COLUMNS", "200")


def lines(stream: Terminal) -> list[str]:
    return stream.getvalue().split("\r\x1b[2K")


def wait_for(stream: Terminal, text: str) -> None:
    end = time.monotonic() + 60
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.002)


@pytest.mark.usefixtures("at_once")
def test_the_line_follows_what_is_done_and_is_erased(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ZeroDivisionError), waiting.doing("checking arm"):
        wait_for(stream, "checking arm")
        with waiting.doing("compiling it"):
            wait_for(stream, "checking arm: compiling it")
        raise ZeroDivisionError
    first, *shown, last = lines(stream)
    assert (first, last) == ("", "")
    assert all(re.fullmatch(r"cardan, \d+ s: checking arm(: compiling it)?", line) for line in shown)
    assert any(line.endswith("compiling it") for line in shown)
    assert not waiting._said


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("why", ["pipe", "closed", "quiet"])
def test_nothing_is_said_where_nobody_looks_on(why, monkeypatch):
    stream = Terminal(is_terminal=why != "pipe")
    monkeypatch.setattr(sys, "stderr", None if why == "closed" else stream)
    monkeypatch.setenv("CARDAN_QUIET", "1" if why == "quiet" else "0")
    monkeypatch.setattr("cardan.results.progress.DELAY", 0.0)
    with waiting.doing("checking arm"), progress_bar(None, "drawing arm", 2.0) as report:
        report(1.0)
        time.sleep(0.03)
    assert stream.getvalue() == ""


def test_what_is_short_is_not_said(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with waiting.doing("checking arm"):
        pass
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("at_once")
def test_a_check_says_what_it_checks_and_compiles(monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(check, "IDENTITIES", {"energy": lambda m, *state: 0 * cd.kinetic_energy(m, *state[:2]).sum()})
    monkeypatch.setattr(check, "DIFFERENCES", {})
    monkeypatch.setattr(check, "AGREEMENT", {})
    monkeypatch.setattr(check, "_formulation_rows", lambda *given: [])
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert cd.check(double_pendulum().build(), states=2).passed
    assert re.search(r"checking double_pendulum: energy: compiling kinetic_energy", stream.getvalue())
    assert lines(stream)[-1] == ""


@pytest.mark.usefixtures("at_once")
def test_in_a_notebook_the_line_is_a_display_that_ends_empty(monkeypatch):
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda page: shown.append(page.data))
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=True)
    display.HTML = lambda text: SimpleNamespace(data=text)
    display.display = lambda page, display_id: shown.append(page.data) or handle
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with waiting.doing("a < b"):
        end = time.monotonic() + 60
        while not shown and time.monotonic() < end:
            time.sleep(0.002)
    assert "a &lt; b" in shown[0]
    assert shown[-1] == ""
    assert np.all([re.match(r"<small>cardan, \d+ s", line) for line in shown[:-1]])


@pytest.mark.usefixtures("at_once")
def test_functions_that_take_long_say_so(monkeypatch):
    """Their results, names, arguments and the line that warnings name stay theirs."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    @waiting.said("counting sheep")
    def slow(count: int) -> int:
        """Count."""
        wait_for(stream, "counting sheep")
        return count

    assert slow(3) == 3 and "counting sheep" in stream.getvalue() and slow.__doc__ == "Count."
    for function in (cd.branches, cd.workspace, cd.identify, cd.equilibrium, cd.balance, cd.search_linkages):
        assert "model" in inspect.signature(function).parameters or "family" in inspect.signature(function).parameters
