"""What a cached kernel depends on besides its program: the processor, the versions of the tools, Cardan's source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import llvmlite
import llvmlite.binding
import numpy as np
import pytest

from cardan.machines import cache
from cardan.machines.host import host


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """The digest is computed once in a process; here it is computed anew, and forgotten afterwards."""
    cache._producer.cache_clear()
    yield
    cache._producer.cache_clear()


def digest(of_host: bool = True) -> bytes:
    cache._producer.cache_clear()
    return cache.entry_digest("a kernel", of_host=of_host)


@pytest.mark.parametrize("what", ["triple", "cpu", "features"])
def test_code_of_another_processor_is_another_entry(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    here = digest()
    other = replace(host(), **{what: f"{getattr(host(), what)}, another"})
    monkeypatch.setattr(cache, "host", lambda: other)
    assert digest() != here


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (np, "__version__", "1.0.0"),
        (llvmlite, "__version__", "0.1.0"),
        (llvmlite.binding, "llvm_version_info", (3, 2, 1)),
        (cache, "_folders_of", lambda package: f"{package}-1.0.0.dist-info"),
        (cache, "_source", lambda: b"another source"),
    ],
)
def test_code_of_other_tools_is_another_entry(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any
) -> None:
    here = digest(), digest(of_host=False)
    monkeypatch.setattr(module, name, value)
    assert digest() != here[0]
    assert (digest(of_host=False) != here[1]) == (module is not llvmlite.binding)


def test_code_for_another_machine_does_not_depend_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    here = digest(of_host=False)
    monkeypatch.setattr(cache, "host", lambda: replace(host(), cpu="another"))
    assert digest(of_host=False) == here != digest()


def test_the_versions_of_tools_are_known() -> None:
    import casadi

    for package in (casadi, llvmlite):
        assert package.__version__.split(".")[0] in cache._folders_of(package.__name__)


def test_the_digest_is_the_same_each_time() -> None:
    assert digest() == digest()
