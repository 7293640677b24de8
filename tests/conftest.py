"""What every test shares: how Hypothesis searches, and a kernel cache that is not the user's."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# The same examples everywhere and every time; `make search` looks for new ones. No deadline: the first call compiles.
settings.register_profile("fixed", max_examples=30, deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("search", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Keep fixed examples fixed: Hypothesis also draws constants that it finds in the modules loaded so far.

    Which ones are loaded depends on the tests that a worker process has run before, and on every edit of the source.
    """
    if settings.get_current_profile_name() == "fixed":
        providers.is_local_module_file = lambda path: False  # type: ignore[assignment]


def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of garbage collection: it stays to the end, and is much."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One fresh cache for the whole run, shared by its worker processes, unless the caller names one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "cardan-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        if "CARDAN_CACHE_DIR" not in os.environ:
            patch.setenv("CARDAN_CACHE_DIR", str(folder))
            patch.setenv("CARDAN_SEAL", str(folder.with_name("cardan-seal") / "seal"))
        yield


@pytest.fixture(scope="module")
def quick_code(kernel_cache: None) -> Iterator[None]:
    """Kernels as LLVM makes them soonest, in a third of the time, for modules about what is computed.

    Graph and print are the same; the code that users get is compiled by all other modules. The cache is its own.
    """
    from llvmlite.binding import Target

    full = Target.create_target_machine

    def hurried(target: Target, **words: Any) -> Any:
        return full(target, **words | {"opt": 0})

    with pytest.MonkeyPatch.context() as patch:
        folder = Path(os.environ["CARDAN_CACHE_DIR"]) / "quick"
        folder.mkdir(mode=0o700, exist_ok=True)
        patch.setenv("CARDAN_CACHE_DIR", str(folder))
        patch.setattr(Target, "create_target_machine", hurried)
        yield
