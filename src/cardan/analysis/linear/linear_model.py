"""The linear model of a mechanism about a state: matrices with names, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.linear.operating_point import OperatingPoint
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.html import html_table
from cardan.model.model import Model
from cardan.model.values import batch, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

MATRICES = ("A", "B", "C", "D")
LARGEST = 1e12  # beside the inputs: a larger response is that of an eigenvalue, or rounding


@dataclass(frozen=True, eq=False)
class LinearModel:
    """`x' = A x + B u`, `y = C x + D u` about a state, exact to first order; `A, B, C, D = cd.linearise(...)`.

    `A` (..., nx, nx), `B` (..., nx, nu), `C` (..., ny, nx), `D` (..., ny, nu); SI units. All are changes: `x` of the
    state, `u` of the inputs, `y` of the outputs. The states are the independent coordinates `q.name`, along the
    tangent (`cd.plus`), then the independent rates `v.name`, then the variables with a rate, called as they are
    (`servo.integral`). In the descriptor form, `E x' = A x + B u`, they are all coordinates and rates of the tree, the
    variables, and the multipliers of the constraint rows.
    """

    A: NDArray[Any]
    B: NDArray[Any]
    C: NDArray[Any]
    D: NDArray[Any]
    states: tuple[str, ...]
    """Names of the states."""
    inputs: tuple[str, ...]
    """Names of the inputs."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    units: dict[str, str]
    """Unit of every state, input and output, by name."""
    drift: NDArray[Any]
    """Rates (..., nx) of the states at the point itself; zero at rest in equilibrium."""
    point: OperatingPoint
    """Where it was linearised."""
    E: NDArray[Any] | None = None
    """Of the descriptor form (..., nx, nx); None is the identity."""

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.point.model

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; `()` is a single system."""
        return self.A.shape[:-2]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """`A`, `B`, `C`, `D`."""
        return iter((self.A, self.B, self.C, self.D))

    def __getitem__(self, index: Any) -> LinearModel:
        """One system of a batch, or part of it: `linear[3]`."""
        if not self.batch:
            raise InputError("linear model: it is a single one and has no batch to take part of")
        try:
            parts = {name: getattr(self, name)[index] for name in (*MATRICES, "drift")}
        except IndexError:
            raise InputError(f"linear model: {index!r} is no place in a batch of shape {self.batch}") from None
        E = None if self.E is None else self.E[index]
        return replace(self, **parts, E=E, point=self.point.part(index))

    @property
    def eigenvalues(self) -> NDArray[Any]:
        """Eigenvalues (..., nx), 1/s, by size, those with positive imaginary part first; see `cd.modes`.

        Of the descriptor form those that are finite: (n,), of a single system.
        """
        from cardan.analysis.linear.eigenvalues import eigenvalues_of, finite_eigenvalues

        return eigenvalues_of(self.A) if self.E is None else finite_eigenvalues(self._one("eigenvalues"))

    def transfer(self, s: ArrayLike) -> NDArray[Any]:
        """`C (s - A)^-1 B + D` (..., n, ny, nu) at complex numbers `s` (n,), 1/s; for one number without that axis."""
        at = np.asarray(s, dtype=complex)
        E = np.eye(self.A.shape[-1]) if self.E is None else self.E
        shift = at.reshape(-1)[:, None, None] * E[..., None, :, :] - self.A[..., None, :, :]
        B = np.broadcast_to(self.B[..., None, :, :], (*shift.shape[:-1], self.B.shape[-1]))
        try:
            x = np.linalg.solve(shift, B)
        except np.linalg.LinAlgError:
            x = np.full(B.shape, np.inf)
        good = np.abs(x).max(axis=(-1, -2), initial=0.0) < LARGEST * max(1.0, np.abs(self.B).max(initial=0.0))
        if not good.all():
            where = at.reshape(-1)[int(np.argwhere(~good.reshape(-1, at.size).all(axis=0))[0, 0])]
            raise InputError(
                f"linear model: s = {where:.6g} 1/s is an eigenvalue, where the response has no bound; go beside it"
            )
        found = self.C[..., None, :, :] @ x + self.D[..., None, :, :]
        return found[..., 0, :, :] if at.ndim == 0 else found.reshape(*self.batch, *at.shape, *found.shape[-2:])

    def response(self, frequencies: ArrayLike) -> NDArray[Any]:
        """Frequency response (..., n, ny, nu), complex, at frequencies (n,) in Hz."""
        f = batch("response", "frequencies", frequencies)
        return self.transfer(2j * np.pi * f)

    def select(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> LinearModel:
        """The same with some of its inputs and outputs, in this order."""
        u = _places("input", inputs, self.inputs)
        y = _places("output", outputs, self.outputs)
        D = self.D[..., y, :][..., u]
        return replace(
            self, B=self.B[..., u], C=self.C[..., y, :], D=D, inputs=tuple(self.inputs[k] for k in u),
            outputs=tuple(self.outputs[k] for k in y),
        )  # fmt: skip

    # Other libraries.

    def control(self) -> Any:
        """The model as a `control.StateSpace` of python-control (`cardan[control]`), of a single system, with names.

        There a dot separates systems from signals, so that the dots and spaces in names become underscores.
        """
        one = self._one("control")
        matrices = one.explicit()
        try:
            import control
        except ImportError:
            raise InputError("control: python-control is not installed; pip install 'cardan[control]'") from None
        names = {what: [_plain(name) for name in getattr(one, what)] for what in ("states", "inputs", "outputs")}
        return control.ss(*matrices, **names, name=_plain(one.model.name))

    def scipy(self) -> Any:
        """The model as a `scipy.signal.StateSpace`, of a single system."""
        matrices = self._one("scipy").explicit()
        from scipy.signal import StateSpace

        return StateSpace(*matrices)

    def explicit(self) -> tuple[NDArray[Any], ...]:
        """`A, B, C, D`; a descriptor form has none."""
        if self.E is not None:
            raise InputError(
                "linear model: the descriptor form has no A, B, C, D of its own; linearise with form='independent'"
            )
        return tuple(self)

    def bode(self, frequencies: ArrayLike | None = None, **options: Any) -> Figure:
        """Magnitude and phase of every output by every input over frequency; see `analysis.response_plots.bode`."""
        from cardan.analysis.linear.response_plots import bode

        return bode(self._one("bode"), frequencies, **options)

    def nyquist(self, frequencies: ArrayLike | None = None, **options: Any) -> Figure:
        """Curves of the frequency response in the complex plane; see `analysis.response_plots.nyquist`."""
        from cardan.analysis.linear.response_plots import nyquist

        return nyquist(self._one("nyquist"), frequencies, **options)

    def _one(self, what: str) -> LinearModel:
        if self.batch:
            raise InputError(
                f"{what}: the linear model has a batch of shape {self.batch}; give one of it, as linear[0]"
            )
        return self

    def __repr__(self) -> str:
        """Sizes and names."""
        sizes = (
            f"{counted(len(self.states), 'state')}, {counted(len(self.inputs), 'input')}, "
            f"{counted(len(self.outputs), 'output')}"
        )
        of = f", {' x '.join(map(str, self.batch))} systems" if self.batch else ""
        lines = [f"LinearModel({self.model.name!r}{of}: {sizes})"]
        for what in ("states", "inputs", "outputs"):
            names = getattr(self, what)
            if names:
                lines.append(f"  {what}: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}")
        if np.abs(self.drift).max(initial=0.0) > 1e-9 * np.abs(self.A).max(initial=1.0):
            lines.append(f"  not at rest: the states change with up to {np.abs(self.drift).max():.3g} (SI units)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(what, ", ".join(getattr(self, what))) for what in ("states", "inputs", "outputs")]
        return html_table(f"Linear model of {self.model.name!r}", rows)


def _plain(name: str) -> str:
    return name.replace(".", "_").replace(" ", "_")


def _places(what: str, names: Any, known: tuple[str, ...]) -> list[int]:
    if names is None:
        return list(range(len(known)))
    found = []
    for name in (names,) if isinstance(names, str) or not isinstance(names, Iterable) else names:
        if name not in known:
            raise UnknownNameError(f"linear model: {name!r} is not an {what}{nearest(name, known)}")
        found.append(known.index(name))
    return found
