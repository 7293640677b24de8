"""One input after another: counted, timed, its memory watched; what is no refusal of ours is kept as a crash."""

from __future__ import annotations

import resource
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.targets import REFUSALS, Target

SECONDS = 1.0
MEGABYTES = 200.0
LONGEST = 5000
"""Characters of a refusal."""


def peak() -> float:
    """The most memory that this process ever held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held() -> float:
    """The memory that this process holds now, MB; where the system does not say, the most it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize() / 2**20


@dataclass
class Watch:
    """Counts executions; `crashes` has, for each place that went wrong, the first input that led there."""

    target: Target
    kept: Path | None = None
    executions: int = 0
    read: int = 0
    slowest: float = 0.0
    crashes: dict[str, bytes] = field(default_factory=dict)

    def run(self, data: bytes) -> None:
        """Read one input."""
        self.executions += 1
        before, highest, start = held(), peak(), time.process_time()
        try:
            self.target.read(data)
            self.read += 1
        except REFUSALS as error:
            if len(str(error)) > LONGEST:
                self.crash("a sentence without end", data, f": {len(str(error))} characters")
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            self.crash(place, data, f": {str(error)[:80]}")
        took = time.process_time() - start
        self.slowest = max(self.slowest, took)
        if took > SECONDS and self.executions > 1:  # the first one imports
            self.crash(f"slow: {took:.0f} s or more", data)
        grown = peak() - before  # beside what the fuzzer itself has gathered by now
        if grown > MEGABYTES and peak() > highest:
            self.crash(f"memory: {grown // 100:.0f}00 MB more", data)

    def crash(self, what: str, data: bytes, more: str = "") -> None:
        """Keep the first input of each kind."""
        if what not in self.crashes:
            self.crashes[what] = data
            if self.kept is not None:
                self.kept.mkdir(parents=True, exist_ok=True)
                (self.kept / f"crash-{len(self.crashes):03}").write_bytes(data)
                print(f"crash-{len(self.crashes):03}: {what}{more}", flush=True)
