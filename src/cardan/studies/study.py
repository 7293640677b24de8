"""The results of a study: a dataset with names and units, which members failed and why, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.lazy import cached_property

if TYPE_CHECKING:
    import xarray

    from cardan.studies.design import Design

TODO, DONE, FAILED = 0, 1, 2
"""Status of a member: not computed yet, computed, failed."""


@dataclass(frozen=True)
class Status:
    """How far a study is: numbers of members, and the chunks in which they are computed."""

    members: int
    done: int
    failed: int
    chunks: int
    chunks_done: int

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return self.chunks_done == self.chunks

    def __str__(self) -> str:
        """One sentence."""
        left = self.members - self.done - self.failed
        more = f", {left:,} to be computed" if left else ""
        return f"{self.members:,} members: {self.done:,} computed, {self.failed:,} failed{more}"


@dataclass(frozen=True, eq=False)
class Study:
    """Results of `cd.sweep`, or of a store that `cd.load_study` opened.

    Args:
        design: the members.
        variables: by name dimensions, array and attributes (units, long_name); the first dimension is `member`, and the
            array may be read lazily.
        coords: of the dimensions after `member`.
        state: status of each member (n,): 0 not computed, 1 computed, 2 failed.
        reasons: by the number of a failed member, why it failed.
        chunk: members that are computed together.
        about: name of the model, settings and units of the parameters.

    """

    design: Design
    variables: Mapping[str, tuple[tuple[str, ...], Any, dict[str, Any]]]
    coords: Mapping[str, Any]
    state: np.ndarray
    reasons: Mapping[int, str]
    chunk: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """Measures along the dimensions of the design, with names, units and coordinates; NaN of failed members."""
        import xarray

        shape, dims = tuple(self.design.dims.values()), tuple(self.design.dims)
        units = self.about.get("units", {})
        coords = {
            name: (along, values, {"units": units.get(name, "")} if units.get(name) else {})
            for name, (along, values) in self.design.coordinates.items()
        }
        made = {
            name: ((*dims, *of[1:]), values.reshape(*shape, *values.shape[1:]), words)
            for name, (of, values, words) in self.variables.items()
        }
        made["status"] = (dims, self.state.reshape(shape), {"long_name": "0 not computed, 1 computed, 2 failed"})
        return xarray.Dataset(made, {**coords, **self.coords}, {k: v for k, v in self.about.items() if k != "units"})

    @property
    def failed(self) -> np.ndarray:
        """Which members failed, in the shape of the design."""
        return np.asarray(self.state == FAILED).reshape(tuple(self.design.dims.values()))

    @property
    def status(self) -> Status:
        """How far the study is."""
        ends = range(0, len(self.state), self.chunk)
        done = sum(bool(self.state[lo : lo + self.chunk].all()) for lo in ends)
        return Status(
            len(self.state), int((self.state == DONE).sum()), int((self.state == FAILED).sum()), len(ends), done
        )

    def __getitem__(self, name: str) -> xarray.DataArray:
        """A measure by name."""
        return self.dataset[name]

    def __repr__(self) -> str:
        """How far it is, and what it holds."""
        lines = [f"Study of {self.about.get('model', 'a function')!r}: {self.status}"]
        lines += [f"  over {', '.join(f'{k} ({n})' for k, n in self.design.dims.items())}"]
        lines += [f"  {name}: {words.get('long_name', '')}" for name, (_, _, words) in self.variables.items()]
        for number, reason in list(self.reasons.items())[:3]:
            lines.append(f"  member {number} failed: {reason}")
        return "\n".join(lines)
