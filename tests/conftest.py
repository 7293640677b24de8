"""What every test shares: how Hypothesis searches, and a kernel cache that is not the user's."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# In CI the same examples every time; on a desk new ones. No deadline: the first call compiles.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One fresh cache for the whole run, shared by its worker processes, unless the caller names one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "cardan-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        if "CARDAN_CACHE_DIR" not in os.environ:
            patch.setenv("CARDAN_CACHE_DIR", str(folder))
        yield
