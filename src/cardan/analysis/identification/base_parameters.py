"""Base parameters: the combinations of parameters that forces depend on, each with its name.

The columns of the regressor are taken one after the other, in an order that leaves masses and the parameters they hide
behind for last (as in Gautier and Khalil's regrouping): a column that depends on those before it adds nothing, and its
parameter is regrouped into theirs. With `W_2 = W_1 K`,

    W theta = W_1 (theta_1 + K theta_2)

The coefficients `K` are dimensions of the mechanism, their products and plain numbers. They come from states chosen at
random, in which a dependence that does not hold everywhere does not hold at all; what is left of a dependent column is
rounding, many orders below what is left of an independent one. That gap is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.motions import freedoms
from cardan.analysis.identification.random_motions import random_motions
from cardan.analysis.identification.regressor import regressor, require_linear
from cardan.analysis.identification.standard_parameters import OF_BODY, StandardParameters, standard_parameters
from cardan.analysis.identification.tall_qr import triangle
from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.values import batch, counted, whole
from cardan.structure.rounding import warn_outside

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Parameters that others absorb come last: an inner body's moments absorb an outer body's mass.
ORDER = ("Izz", "Ixx", "Ixy", "Ixz", "Iyz", "mx", "my", "mz", "Iyy", "mass")
NOTHING = 1e-12  # a column smaller than this part of the largest is none
DEPENDENT = 1e-9  # what may be left of a dependent column, of its size
CLEAR = 1e3  # least ratio between what is left of independent and of dependent columns

_BASE: Slot[Any, BaseParameters] = Slot("base parameters")


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations `combinations @ theta` (base, parameters) that data can tell.

    `names` are the combinations as text, `independent` the parameters that stand first in them, with their places
    `columns` in `parameters`. `without_influence` have no effect; `only_in_combination` are told only together with
    others; `alone` are told by themselves. `gap` is how clearly dependent columns differ from independent ones: the
    smallest rest of an independent column over the largest of a dependent one.
    """

    names: tuple[str, ...]
    combinations: NDArray[Any]
    columns: tuple[int, ...]
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    gap: float

    @property
    def independent(self) -> tuple[str, ...]:
        """The parameters that stand first in the combinations."""
        return tuple(self.parameters[k] for k in self.columns)

    @property
    def without_influence(self) -> tuple[str, ...]:
        """Parameters that no combination holds."""
        used = np.abs(self.combinations).sum(axis=0)
        return tuple(name for name, x in zip(self.parameters, used, strict=True) if x == 0)

    @property
    def alone(self) -> tuple[str, ...]:
        """Parameters that are a base parameter by themselves."""
        single = np.count_nonzero(self.combinations, axis=1) == 1
        return tuple(self.parameters[k] for k, s in zip(self.columns, single, strict=True) if s)

    @property
    def only_in_combination(self) -> tuple[str, ...]:
        """Parameters that are told only together with others."""
        out = {*self.without_influence, *self.alone}
        return tuple(name for name in self.parameters if name not in out)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.columns)

    def of(self, theta: Any) -> NDArray[Any]:
        """Values (..., base) of the combinations for parameters `theta` (..., parameters)."""
        return np.einsum("bp,...p->...b", self.combinations, batch("of", "theta", theta, len(self.parameters)))

    def regressor(self, W: Any) -> NDArray[Any]:
        """The columns (..., rows, base) of a regressor (..., rows, parameters) that stand for the combinations."""
        return np.asarray(W)[..., list(self.columns)]

    def __str__(self) -> str:
        """A line for each combination, then what is not told."""
        lines = [f"{counted(len(self), 'base parameter')} of {len(self.parameters)} parameters"]
        lines += [f"  {name}  [{self.units[k]}]" for name, k in zip(self.names, self.columns, strict=True)]
        if self.without_influence:
            lines.append(f"without influence: {', '.join(self.without_influence)}")
        return "\n".join(lines)

    __repr__ = __str__


def base_parameters(
    model: Model, *, of: str = "inverse_dynamics", driven: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None, formulation: str | Formulation = "spatial", seed: int = 0,
) -> BaseParameters:  # fmt: skip
    """The combinations of parameters on which forces (or energy, or momentum) depend, found and named.

    Args:
        model: the mechanism.
        of: what is measured, as in `cd.regressor`.
        driven: with loops, the joints that are driven, as in `cd.regressor`.
        parameters: bodies and elements whose numbers are parameters, as in `cd.regressor`.
        formulation: whose equations are used.
        seed: of the random states.

    Returns:
        A `cd.BaseParameters`; print it.

    """
    standard = standard_parameters("base_parameters", model, parameters)
    require_linear("base_parameters", model, of)
    whole("base_parameters", "seed", seed, least=0)
    if model.batch:
        raise InputError("base_parameters: values of free parameters are a batch; take one with model.one_of(index)")
    key = (
        of,
        str(driven),
        standard.names,
        str(formulation),
        seed,
        None if model.values is None else model.values.tobytes(),
    )

    def find() -> BaseParameters:
        rng = np.random.default_rng(seed)
        q, v, a = random_motions("base_parameters", model, _count(model, standard, of), rng)
        W = regressor(model, q, v, a, of=of, driven=driven, parameters=parameters, formulation=formulation).matrix
        found = base_of(model, standard, W.reshape(-1, W.shape[-1]))
        if found.gap < CLEAR:
            warn_outside(
                f"base_parameters: in model {model.name!r} dependent columns of the regressor are told from others "
                f"by a factor of {found.gap:.1e} only; very different masses or lengths? try another seed"
            )
        return found

    return _BASE.find(model.unbound, key, find)


def _count(model: Model, standard: StandardParameters, of: str) -> int:
    """Number of states: some three equations for each parameter."""
    rows = 1 if "energy" in of else max(freedoms(model), 1)
    return max(3 * standard.size // rows, 20)


def ordered(names: Sequence[str]) -> list[int]:
    """Columns in the order in which they are taken; numbers of elements first."""
    rank = {what: k for k, what in enumerate(ORDER)}
    return sorted(range(len(names)), key=lambda k: (rank.get(names[k].rpartition(".")[2], -1), k))


def base_of(
    model: Model, standard: StandardParameters, W: NDArray[Any], tolerance: float = DEPENDENT
) -> BaseParameters:
    """Base parameters of a stacked regressor (rows, parameters)."""
    W = triangle(W)  # the same columns, turned
    sizes = np.linalg.norm(W, axis=0)
    basis: list[NDArray[Any]] = []
    kept: list[int] = []
    dropped: list[int] = []
    least, most = np.inf, 1e-17
    for k in ordered(standard.names):
        if sizes[k] <= NOTHING * sizes.max(initial=0.0):
            continue
        left = W[:, k] / sizes[k]
        for _ in range(2):  # a second time removes what rounding left
            for b in basis:
                left = left - b * (b @ left)
        size = float(np.linalg.norm(left))
        if size > tolerance:
            basis.append(left / size)
            kept.append(k)
            least = min(least, size)
        else:
            dropped.append(k)
            most = max(most, size)
    B = np.zeros((len(kept), W.shape[1]))
    B[range(len(kept)), kept] = 1.0
    if kept and dropped:
        K = np.linalg.lstsq(W[:, kept] / sizes[kept], W[:, dropped] / sizes[dropped], rcond=None)[0]
        K = np.where(np.abs(K) > max(1e-9, tolerance), K, 0.0)
        B[:, dropped] = _rounded(K * sizes[dropped] / sizes[kept][:, None])
    order = np.argsort(kept)
    kept, B = [kept[k] for k in order], B[order]
    words = _Dimensions(model)
    names = tuple(_combination(standard, row, k, words) for row, k in zip(B, kept, strict=True))
    return BaseParameters(names, B, tuple(kept), standard.names, standard.units, least / most)


def _rounded(K: NDArray[Any]) -> NDArray[Any]:
    """Coefficients, those that agree with a number of seven digits, as someone wrote it down, as that number."""
    size = np.where(K == 0, 1.0, np.abs(K))
    unit = 10.0 ** (6 - np.floor(np.log10(size)))
    short = np.round(K * unit) / unit
    return np.where(np.abs(K - short) <= 2e-10 * size, short, K)


class _Dimensions:
    """Names of coefficients that are a dimension of the mechanism, a product or a ratio of two, by power of metres."""

    def __init__(self, model: Model) -> None:
        single: dict[str, float] = {}
        for joint in model.joints:
            for what in ("at", "child_at"):
                for axis, x in zip("xyz", getattr(joint, what).position, strict=True):
                    if abs(x) > 1e-12:
                        single[f"{joint.name}.{what}.{axis}"] = float(x)
        names = list(single)[:24]
        pairs = [(a, b) for a in names for b in names if a != b]
        products = {f"{a}^2": single[a] ** 2 for a in names}
        products |= {f"{a} {b}": single[a] * single[b] for k, a in enumerate(names) for b in names[k + 1 :]}
        ratios = {f"{a}/{b}": single[a] / single[b] for a, b in pairs}
        ratios |= {f"{a}^2/{b}^2": (single[a] / single[b]) ** 2 for a, b in pairs}
        self.tables: dict[int, tuple[dict[str, float], ...]] = {
            1: (single, {f"{a}^2/{b}": single[a] ** 2 / single[b] for a, b in pairs}),
            2: (products,),
            0: (ratios,),
            -1: (
                {f"1/{a}": 1 / single[a] for a in names},
                {f"{a}/{b}^2": single[a] / single[b] ** 2 for a, b in pairs},
            ),
        }

    def word(self, x: float, power: int | None) -> str | None:
        """A name for a positive coefficient in m^power, if one and only one dimension explains it."""
        if power == 0 and min(abs(x - 1), abs(x - 2)) < 1e-9:  # a number of geometry, not of this mechanism
            return None
        for table in self.tables.get(power, ()) if power is not None else ():
            for factor in (1.0, 2.0):
                found = [name for name, value in table.items() if abs(abs(factor * value) - x) <= 2e-9 * x]
                if len(found) == 1:
                    sign = "" if table[found[0]] > 0 else "-"
                    return f"{sign}{'' if factor == 1 else '2 '}{found[0]}"
                if found:
                    return None
        return None


def _power(unit: str, by: str) -> int | None:
    """Power of metres in the ratio of two units; None if it has others."""
    metres = {"kg": 0, "kg m": 1, "kg m^2": 2}
    if unit == by:
        return 0
    return metres[unit] - metres[by] if unit in metres and by in metres else None


def _combination(standard: StandardParameters, row: NDArray[Any], first: int, words: _Dimensions) -> str:
    names, units = standard.names, standard.units
    text = names[first]
    for k in np.flatnonzero(row).tolist():
        if k == first:
            continue
        x = float(row[k])
        power = _power(units[first], units[k])
        word = words.word(abs(x), power)
        negative = (x < 0) != (word is not None and word.startswith("-"))
        plain = power == 0 and abs(abs(x) - 1) < 1e-12
        factor = word.lstrip("-") if word else "" if plain else f"{abs(x):.10g}"
        text += f" {'-' if negative else '+'} {factor}{' ' * bool(factor)}{names[k]}"
    return text


assert set(ORDER) == set(OF_BODY)
