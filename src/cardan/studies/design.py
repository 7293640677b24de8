"""Designs of experiments: which values the parameters have in each member of a study.

Arrays are spanned as a grid, or taken together as a list. Distributions are sampled: at random, by latin hypercubes, by
Sobol's or Halton's sequence (SciPy), or by the designs of sensitivity analysis (SALib). With both, every point of the
grid has the same samples, so that differences between points are not those of chance. `SAMPLERS` is the table of them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import FileError, InputError, UnknownNameError, nearest
from cardan.io.text_file import read_text
from cardan.lazy import cached_property
from cardan.model.values import floats, shown, whole
from cardan.studies.distribution import Distribution, as_distribution

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 400_000_000
"""Most numbers of a design, 3.2 GB."""
TABLE_LIMIT = 2**30
"""Largest file of a table, bytes."""
RESERVED = ("sample", "member", "time", "status")
END = 1e-12  # samples keep this distance from 0 and 1, where many distributions are infinite
MORRIS_LEVELS = 4
FAST_HARMONICS = 4


@dataclass(frozen=True, eq=False)
class Design:
    """Values of parameters in the members of a study.

    Args:
        names: the parameters (k,), in the order of columns; a component of a vector has its number in brackets.
        values: (n, k), SI units.
        dims: size of each axis of the study by name, in order; n is their product, the last varies fastest.
        coordinates: values of each parameter along its axes: `(axes, array)` by name.
        about: what made the design, as JSON takes it.

    """

    names: tuple[str, ...]
    values: np.ndarray
    dims: dict[str, int]
    coordinates: dict[str, tuple[tuple[str, ...], np.ndarray]]
    about: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of members."""
        return len(self.values)

    def __getitem__(self, name: str) -> np.ndarray:
        """Values (n,) of one parameter."""
        if name not in self.names:
            raise UnknownNameError(f"design: {name!r} is not one of its parameters{nearest(name, self.names)}")
        return self.values[:, self.names.index(name)]

    @property
    def kind(self) -> str:
        """How the members were chosen: a name in `KINDS`."""
        return str(self.about.get("design", "list"))

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of names, axes and values: equal for designs with the same members."""
        own = hashlib.blake2b(json.dumps([self.names, list(self.dims.items())]).encode(), digest_size=16)
        own.update(np.ascontiguousarray(self.values, dtype="<f8").tobytes())
        return own.hexdigest()

    def extends(self, other: Design) -> bool:
        """Whether the members of another design are the first of this one, so that their results can be kept."""
        one_axis = len(self.dims) == len(other.dims) == 1 and list(self.dims) == list(other.dims)
        if not one_axis or self.names != other.names or len(self) < len(other):
            return False
        return bool(np.array_equal(self.values[: len(other)], other.values))

    def to_dataframe(self) -> pd.DataFrame:
        """Values as a table, one row for each member."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))

    def __repr__(self) -> str:
        """Axes and parameters."""
        axes = " x ".join(f"{name} {size}" for name, size in self.dims.items())
        return f"Design({self.kind}: {len(self)} members, {axes}; parameters {', '.join(self.names)})"


def design(parameters: Any, kind: str | None = None, *, samples: int | None = None, seed: int = 0) -> Design:
    """The members of a study as data, to look at before `cd.sweep` computes them, or to change.

    Args:
        parameters: by name an array of values, (m,) or (m, 3) for a vector, a number that all members have, or a
            distribution: `cd.normal(mean, std)`, `cd.uniform(low, high)`, `cd.triangular(low, mode, high)`,
            `cd.lognormal(mean, std)`, a frozen one of `scipy.stats`. Or a table: a DataFrame, or the path of a CSV file
            whose first line has the names. SI units.
        kind: of arrays "grid" (all combinations, the default), "list" (the first of each, the second of each, ...) or
            "one_at_a_time" (each value of one array with the middle values of the others); of distributions "sobol"
            (default), "halton", "latin_hypercube", "random"; "saltelli", "morris" or "fast" for indices of
            sensitivity. Arrays beside sampled distributions are a grid.
        samples: how many samples of distributions; of "saltelli" N for N (parameters + 2) members, of "morris" the
            number of paths, each of (parameters + 1) members, of "fast" those of each parameter.
        seed: of the samples. The first samples of a longer "sobol", "halton", "random" or "saltelli" design are those
            of a shorter one.

    """
    return make_design("design", parameters, kind, samples=samples, seed=seed)


def make_design(
    owner: str, parameters: Any, kind: str | None = None, *, samples: int | None = None, seed: int = 0
) -> Design:  # fmt: skip
    """As `design`; messages begin with `owner`. A `Design` is returned as it is."""
    if isinstance(parameters, Design):
        if kind is not None or samples is not None:
            raise InputError(f"{owner}: the members are given by a Design; give no kind of design or samples with it")
        return parameters
    if kind is not None and kind not in KINDS:
        raise InputError(f"{owner}: design must be one of {', '.join(KINDS)}, got {kind!r}{nearest(str(kind), KINDS)}")
    table = _table(owner, parameters)
    if table is not None:
        if kind not in (None, "list"):
            raise InputError(f"{owner}: a table lists its members; design must be 'list', got {kind!r}")
        parameters, kind = table, "list"
    if not isinstance(parameters, Mapping) or not parameters:
        raise InputError(
            f"{owner}: parameters must be a dict of arrays or distributions by name, a DataFrame, or the path of a CSV "
            f"file, got {shown(parameters)}"
        )
    if strange := [name for name in parameters if not isinstance(name, str) or not name]:
        raise InputError(f"{owner}: a parameter is named by text, as 'crank.mass', got {shown(strange[0])}")
    if reserved := [name for name in parameters if name in RESERVED]:
        raise InputError(f"{owner}: {reserved[0]!r} is the name of an axis of studies; give the parameter another name")
    spread = {n: d for n, x in parameters.items() if (d := as_distribution(owner, n, x)) is not None}
    fixed = {n: _values(owner, n, x) for n, x in parameters.items() if n not in spread}
    chosen = _kind(owner, kind, spread, fixed, samples)
    about: dict[str, Any] = {"design": chosen}
    if spread:
        n, seed = whole(owner, "samples", samples), whole(owner, "seed", seed, least=0)
        _require_size(owner, f"{n:,} samples", n * (len(spread) + 2 if SAMPLERS[chosen].alone else 1), len(parameters))
        about |= {"samples": n, "seed": seed, "parameters": {name: d.described for name, d in spread.items()}}
        u = SAMPLERS[chosen].draw(owner, spread, n, seed)
        return _crossed(owner, list(parameters), fixed, _sampled(owner, spread, u), about)
    return ARRANGEMENTS[chosen](owner, list(parameters), fixed, None, about)


def _kind(
    owner: str, kind: str | None, spread: Mapping[str, Distribution], fixed: Mapping[str, Any], samples: int | None
) -> str:  # fmt: skip
    """The kind of a design, checked against what is given."""
    if not spread:
        if kind in SAMPLERS:
            raise InputError(
                f"{owner}: design {kind!r} samples distributions, and there are none; give cd.normal(mean, std) or "
                "cd.uniform(low, high)"
            )
        if samples is not None:
            raise InputError(f"{owner}: samples= is of distributions, and there are none; arrays have own lengths")
        return kind or "grid"
    if kind in ARRANGEMENTS and kind != "grid":
        raise InputError(
            f"{owner}: {next(iter(spread))!r} is a distribution, and design {kind!r} takes arrays; choose one of "
            f"{', '.join(SAMPLERS)}"
        )
    chosen = "sobol" if kind in (None, "grid") else str(kind)
    if samples is None:
        raise InputError(f"{owner}: {next(iter(spread))!r} is a distribution; give samples=, as samples=256")
    arrays = [name for name, x in fixed.items() if x.ndim]
    if SAMPLERS[chosen].alone and arrays:
        raise InputError(
            f"{owner}: design {chosen!r} takes distributions only, and {arrays[0]!r} is an array; give "
            "cd.uniform(low, high) for it"
        )
    return chosen


def _values(owner: str, name: str, given: Any) -> np.ndarray:
    """A number (), values (m,), or vectors (m, components)."""
    try:
        found = floats(given)
    except TypeError:
        raise InputError(
            f"{owner}: {name!r} must be an array of numbers or a distribution, as np.linspace(1, 2, 50) or "
            f"cd.normal(1, 0.1), got {shown(given)}"
        ) from None
    if found.ndim > 2 or found.size == 0:
        raise InputError(f"{owner}: {name!r} must be values (m,), or vectors (m, 3), got the shape {found.shape}")
    if not np.isfinite(found).all():
        at = [int(k) for k in np.argwhere(~np.isfinite(found))[0]]
        raise InputError(f"{owner}: {name!r}{at or ''} is {found[tuple(at)]}; every value must be finite")
    return found


def _columns(name: str, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Names and values () or (m,) of a parameter's columns."""
    if values.ndim < 2:
        return [(name, values)]
    return [(f"{name}[{k}]", values[:, k]) for k in range(values.shape[1])]


def _sampled(owner: str, spread: Mapping[str, Distribution], u: np.ndarray) -> dict[str, np.ndarray]:
    """Samples (n,) of distributions at points (n, k) of the unit cube."""
    found = {}
    for k, (name, distribution) in enumerate(spread.items()):
        own = u[:, k] if distribution.bounded else np.clip(u[:, k], END, 1 - END)
        x = distribution.quantile(own)
        if x.shape != own.shape or not np.isfinite(x).all():
            raise InputError(f"{owner}: {name!r}: {distribution!r} gives values that are not finite; check its numbers")
        found[name] = x
    return found


def _crossed(
    owner: str, order: list[str], fixed: Mapping[str, np.ndarray], sampled: Mapping[str, np.ndarray] | None,
    about: dict[str, Any],
) -> Design:  # fmt: skip
    """Every combination of the arrays, and all samples at each of them."""
    dims = {name: len(x) for name, x in fixed.items() if x.ndim}
    axes = {name: (name,) if name in dims else () for name in fixed}
    values = dict(fixed)
    if sampled:
        dims["sample"] = len(next(iter(sampled.values())))
        axes |= dict.fromkeys(sampled, ("sample",))
        values |= sampled
    return _design(owner, [(name, axes[name], values[name]) for name in order], dims, about)


def _listed(
    owner: str, order: list[str], fixed: Mapping[str, np.ndarray], sampled: None, about: dict[str, Any]
) -> Design:  # fmt: skip
    """The first of each array, the second of each, and so on; numbers are those of all members."""
    lengths = {name: len(x) for name, x in fixed.items() if x.ndim}
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            raise InputError(
                f"{owner}: a list takes one value of each parameter for a member: {first!r} has {lengths[first]} "
                f"values and {name!r} {length}; design='grid' takes all combinations"
            )
    dims = {"member": lengths.get(first, 1)}
    parts = [(name, ("member",) if name in lengths else (), fixed[name]) for name in order]
    return _design(owner, parts, dims, about)


def _one_at_a_time(
    owner: str, order: list[str], fixed: Mapping[str, np.ndarray], sampled: None, about: dict[str, Any]
) -> Design:  # fmt: skip
    """The middle value of every array, then each other value of one array with the others in the middle."""
    middles = {name: len(x) // 2 for name, x in fixed.items() if x.ndim}
    changes = [(name, k) for name, middle in middles.items() for k in range(len(fixed[name])) if k != middle]
    parts = {}
    for name, middle in middles.items():
        places = [middle, *(k if changed == name else middle for changed, k in changes)]
        parts[name] = fixed[name][places]
    columns = [(name, ("member",), parts[name]) if name in parts else (name, (), fixed[name]) for name in order]
    return _design(owner, columns, {"member": 1 + len(changes)}, about)


def _design(
    owner: str, parts: Sequence[tuple[str, tuple[str, ...], np.ndarray]], dims: dict[str, int], about: dict[str, Any]
) -> Design:  # fmt: skip
    """A design from each parameter's axes and values along them."""
    columns = [(own, axes, x) for name, axes, values in parts for own, x in _columns(name, values)]
    names = tuple(name for name, _, _ in columns)
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{owner}: {twice[0]!r} is given twice, as a whole and as a component")
    n = math.prod(dims.values())
    _require_size(owner, " x ".join(f"{size:,}" for size in dims.values()), n, len(names))
    shape, places = tuple(dims.values()), list(dims)
    values = np.empty((n, len(names)))
    for k, (_, axes, x) in enumerate(columns):
        own = [dims[axis] if axis in axes else 1 for axis in places]
        values[:, k] = np.broadcast_to(x.reshape(own), shape).reshape(-1)
    return Design(names, values, dims, {name: (axes, x) for name, axes, x in columns}, about)


def _require_size(owner: str, sizes: str, members: int, parameters: int) -> None:
    """Reject designs that would fill the memory."""
    if members * parameters > LARGEST:
        raise InputError(
            f"{owner}: {sizes}, {members:.3g} members of {parameters} parameters, are more than {LARGEST:.0e} numbers; "
            "give fewer values or samples, or sample distributions in place of a grid"
        )


def _table(owner: str, given: Any) -> dict[str, np.ndarray] | None:
    """Columns by name of a DataFrame or of a CSV file; None for anything else."""
    if isinstance(given, str | os.PathLike):
        return _read_csv(Path(given))
    if not (hasattr(given, "columns") and hasattr(given, "to_numpy")):
        return None
    columns = [str(name) for name in given.columns]
    if len(set(columns)) < len(columns):
        raise InputError(f"{owner}: two columns of the table have the same name")
    if not len(given):
        raise InputError(f"{owner}: the table has no rows")
    return {name: _values(owner, name, given.iloc[:, k].to_numpy()) for k, name in enumerate(columns)}


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of numbers by the names in the first line."""
    lines = csv.reader(read_text(path, TABLE_LIMIT).splitlines(), skipinitialspace=True)
    names = [name.strip() for name in next(lines)]
    if not all(names) or len(set(names)) < len(names):
        raise FileError(f"{path}: line 1: it must have a name for each column, each once, got {shown(names)}")
    rows = []
    for row in lines:
        if not row:
            continue
        if len(row) != len(names):
            raise FileError(f"{path}: line {lines.line_num}: it has {len(row)} values, and line 1 {len(names)} names")
        for name, cell in zip(names, row, strict=True):
            try:
                good = math.isfinite(float(cell))
            except ValueError:
                good = False
            if not good:
                raise FileError(f"{path}: line {lines.line_num}: {name!r} must be a finite number, got {cell!r}")
        rows.append([float(cell) for cell in row])
    if not rows:
        raise FileError(f"{path}: the table has names and no values")
    return dict(zip(names, np.array(rows).T, strict=True))


@dataclass(frozen=True)
class Sampler:
    """A way to choose points of the unit cube.

    Args:
        points: `(d, n, seed)` to points (members, d).
        about: in a few words.
        alone: whether all parameters must be distributions, since the members belong together.
        check: sentence on what is wrong with d distributions and n samples, or "".

    """

    points: Callable[[int, int, int], np.ndarray]
    about: str
    alone: bool = False
    check: Callable[[Mapping[str, Distribution], int], str] = lambda spread, n: ""

    def draw(self, owner: str, spread: Mapping[str, Distribution], n: int, seed: int) -> np.ndarray:
        """Points (members, d) for distributions."""
        if wrong := self.check(spread, n):
            raise InputError(f"{owner}: {wrong}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers of samples that are no power of two, and deprecations
            return np.asarray(self.points(len(spread), n, seed), dtype=float)


def _random(d: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, d))


def _latin_hypercube(d: int, n: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(d, seed=seed).random(n))


def _sobol(d: int, n: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(d, seed=seed).random(n))


def _halton(d: int, n: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(d, seed=seed).random(n))


def _saltelli(d: int, n: int, seed: int) -> np.ndarray:
    return np.asarray(salib("sample.sobol").sample(unit_problem(d), n, calc_second_order=False, seed=seed))


def _morris(d: int, n: int, seed: int) -> np.ndarray:
    return np.asarray(salib("sample.morris").sample(unit_problem(d), n, num_levels=MORRIS_LEVELS, seed=seed))


def _fast(d: int, n: int, seed: int) -> np.ndarray:
    return np.asarray(salib("sample.fast_sampler").sample(unit_problem(d), n, M=FAST_HARMONICS, seed=seed))


def unit_problem(d: int) -> dict[str, Any]:
    """What SALib calls a problem: d parameters between 0 and 1."""
    return {"num_vars": d, "names": [f"x{k}" for k in range(d)], "bounds": [[0.0, 1.0]] * d}


def salib(module: str) -> Any:
    """A module of SALib; one sentence if it is not installed."""
    from importlib import import_module

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(f"SALib.{module}")
    except ImportError:
        raise InputError(
            "designs 'saltelli', 'morris' and 'fast' need SALib; pip install 'cardan[sweep]'"
        ) from None  # fmt: skip


def _power_of_two(spread: Mapping[str, Distribution], n: int) -> str:
    return "" if n > 1 and n & (n - 1) == 0 else f"design 'saltelli' needs a power of two samples, as 1024, got {n}"


def _between_ends(spread: Mapping[str, Distribution], n: int) -> str:
    if n < 2:
        return f"design 'morris' needs at least two paths, got samples={n}"
    far = [name for name, distribution in spread.items() if not distribution.bounded]
    if not far:
        return ""
    return (
        f"design 'morris' visits both ends of every range, and {far[0]!r} is {spread[far[0]]!r}, which has none; give "
        "cd.uniform(low, high)"
    )


def _enough(spread: Mapping[str, Distribution], n: int) -> str:
    least = 4 * FAST_HARMONICS**2
    return "" if n > least else f"design 'fast' needs more than {least} samples of each parameter, got {n}"


SAMPLERS: dict[str, Sampler] = {
    "sobol": Sampler(_sobol, "Sobol's sequence, scrambled"),
    "halton": Sampler(_halton, "Halton's sequence, scrambled"),
    "latin_hypercube": Sampler(_latin_hypercube, "latin hypercube"),
    "random": Sampler(_random, "independent random samples"),
    "saltelli": Sampler(_saltelli, "Saltelli's design for Sobol's indices", True, _power_of_two),
    "morris": Sampler(_morris, "Morris' paths for elementary effects", True, _between_ends),
    "fast": Sampler(_fast, "Fourier amplitude sensitivity test", True, _enough),
}
"""Ways to sample distributions."""
ARRANGEMENTS: dict[str, Callable[..., Design]] = {"grid": _crossed, "list": _listed, "one_at_a_time": _one_at_a_time}
"""Ways to combine arrays."""
KINDS = (*ARRANGEMENTS, *SAMPLERS)
