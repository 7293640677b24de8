"""Runs ES modules that Cardan printed: in Node.js, or in a browser where there is no Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing")

# `jobs` is [[module, name, calls], ...]; a call is a list of arguments, numbers written as text
_RUNNER = """async function run(jobs) {
  const number = (x) => (Array.isArray(x) ? x.map(number) : Number(x));
  const text = (x) => (typeof x !== "number" ? Array.from(x, text) : Object.is(x, -0) ? "-0" : String(x));
  const results = [];
  for (const [module, name, calls] of jobs) {
    const loaded = await import("data:text/javascript;charset=utf-8," + encodeURIComponent(module));
    results.push(calls.map((call) => {
      try {
        return Object.values(loaded[name](...call.map(number))).map(text);
      } catch (error) {
        return String(error);
      }
    }));
  }
  return results;
}"""


@contextmanager
def open_browser() -> Iterator[Any]:
    """Chromium by Playwright; skips the test on a machine without them."""
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(BROWSERS)} is installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()


def called(jobs: Sequence[tuple[str, str, Sequence[Sequence[Any]]]]) -> list[list[Any]]:
    """What functions of modules return: for every call a list of arrays, one for each output, or its error as text.

    A job is the text of a module, the name of a function, and its calls, each with its arguments.
    """
    told = [[module, name, [[_text(a) for a in call] for call in calls]] for module, name, calls in jobs]
    if shutil.which("node"):
        script = (
            _RUNNER + "\nrun(JSON.parse(require('fs').readFileSync(0))).then((x) => console.log(JSON.stringify(x)))"
        )
        done = subprocess.run(
            ["node", "-e", script], input=json.dumps(told), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
    else:
        with open_browser() as browser:
            tab = browser.new_page()
            tab.goto("about:blank")
            found = tab.evaluate(f"(jobs) => {{ {_RUNNER}; return run(jobs); }}", told)
    return [[x if isinstance(x, str) else [np.array(y, dtype=float) for y in x] for x in calls] for calls in found]


def _text(x: Any) -> Any:
    """Numbers as text that both languages read: JSON has no infinities."""
    if np.ndim(x):
        return [_text(y) for y in np.asarray(x).ravel()]
    return repr(float(x)).replace("inf", "Infinity").replace("nan", "NaN")
