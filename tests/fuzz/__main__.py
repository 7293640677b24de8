"""`python -m tests.fuzz TARGET --seconds 600`: fuzz a loader, guided by coverage where atheris is installed.

Crashes go to a folder, with one line each; the end tells executions. Run from the repository's root with `src` on
the path. Exit status 1 if anything but a refusal was met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("target", choices=("urdf", "yaml", "mjcf", "mesh", "shape", "expression", "units"))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for crashes; a new one by default")
    parser.add_argument("--plain", action="store_true", help="use the small mutator although atheris is there")
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix=f"fuzz-{given.target}-"))
    try:
        import atheris
    except ImportError:
        atheris = None
    if atheris is None or given.plain:
        return _plain(given.target, given.seconds, given.seed, out)
    return _guided(atheris, given.target, given.seconds, given.seed, out)


def _plain(name: str, seconds: float, seed: int, out: Path) -> int:
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import TARGETS
    from tests.fuzz.watch import Watch

    target = TARGETS[name]
    watch = Watch(target, out)
    start = time.monotonic()
    for data in mutated(list(target.seeds()), target.words, seed):
        watch.run(data)
        if time.monotonic() - start > seconds:
            break
    return _told(watch, name, time.monotonic() - start, out, "own mutator")


def _guided(atheris: object, name: str, seconds: float, seed: int, out: Path) -> int:
    """LibFuzzer leaves by itself only on a crash of the interpreter: we catch the rest, and leave when time is up."""
    with atheris.instrument_imports(include=["cardan.io", "cardan.model"]):  # type: ignore[attr-defined]
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.watch import Watch

    target = TARGETS[name]
    corpus = out / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for k, data in enumerate(target.seeds()):
        (corpus / f"seed-{k:03}").write_bytes(data)
    words = out / "words"
    escaped = ("".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogateescape")) for word in target.words)
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    watch, start = Watch(target, out), time.monotonic()

    def one(data: bytes) -> None:
        watch.run(data)
        if time.monotonic() - start > seconds:
            sys.stdout.flush()
            os._exit(_told(watch, name, time.monotonic() - start, out, "atheris"))

    options = [
        f"-seed={seed}",
        "-max_len=6000",
        "-rss_limit_mb=0",
        "-timeout=60",
        "-print_final_stats=0",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, f"-dict={words}", str(corpus)], one)  # type: ignore[attr-defined]
    atheris.Fuzz()  # type: ignore[attr-defined]
    return 0


def _told(watch: object, name: str, seconds: float, out: Path, how: str) -> int:
    from tests.fuzz.watch import Watch, peak

    assert isinstance(watch, Watch)
    print(
        f"{name}: {watch.executions} executions ({watch.read} read, the others refused) in {seconds:.0f} s by {how}; "
        f"slowest {watch.slowest:.2f} s, memory {peak():.0f} MB; {len(watch.crashes)} crashes in {out}",
        flush=True,
    )
    return 1 if watch.crashes else 0


if __name__ == "__main__":
    sys.exit(main())
