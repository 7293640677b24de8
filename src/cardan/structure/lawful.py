"""Functions of a mechanism with laws at states: the modes of its rows are found for each, then a kernel is called.

A model that is built has no modes as numbers. What its rows do at a state follows from the state: by the accelerations
there. A state in which a closed gap closes further has no accelerations, but an impact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.model.model import Model
from cardan.model.modes import has_modes, with_modes
from cardan.on_card import require_host
from cardan.structure.kernels import parameter_arguments
from cardan.structure.law_state import law_rows_of


def finds_modes(model: Model) -> bool:
    """Whether the modes of a model's rows must be found at each state."""
    return bool(model.laws) and not has_modes(model)


class LawfulKernel:
    """A kernel of a model with laws, of `q, v, tau, (wrenches), (t)`; `make(model with modes)` gives the kernel."""

    def __init__(
        self, owner: str, model: Model, formulation: Formulation, loaded: bool, make: Callable[[Model], Any]
    ) -> None:
        self.owner, self.model, self.formulation, self.loaded, self.make = owner, model, formulation, loaded, make

    def __call__(self, q: Any, v: Any, tau: Any, *more: Any, out: Any = None, threads: Any = None) -> Any:
        """Evaluate at states; the modes are found for each."""
        for x in (q, v, tau):
            require_host(f"{self.owner} of a model with stops or friction that sticks", argument=x)
        moded = with_modes(self.model)
        q, v, tau = (np.asarray(x, dtype=float) for x in (q, v, tau))
        wrenches = np.asarray(more[0], dtype=float) if self.loaded else None
        t = np.asarray(more[-1] if self.model.depends_on_time else 0.0, dtype=float)
        p = parameter_arguments(moded)[0]
        shapes = [x.shape[:-1] for x in (q, v, tau, p)] + [t.shape]
        batch = np.broadcast_shapes(*shapes, *([wrenches.shape[:-2]] if wrenches is not None else []))
        loads = None if wrenches is None else _flat(wrenches, batch, 2)
        q1, v1, tau1, p1 = (_flat(x, batch, 1) for x in (q, v, tau, p))
        p = self._modes(_flat(t, batch, 0), q1, v1, tau1, p1, loads).reshape(*batch, -1)
        return self.make(moded._bound(p))(q, v, tau, *more, out=out, threads=threads)

    def _modes(self, t: Any, q: Any, v: Any, tau: Any, p: np.ndarray, wrenches: Any) -> np.ndarray:
        laws = law_rows_of(with_modes(self.model), self.formulation)
        s, closed = laws.state(t, q, v, tau, p, wrenches), laws.switched(p)
        if nowhere := laws.nowhere(s):
            raise InputError(f"{self.owner}: {nowhere}")
        hit = laws.hit(s, closed)
        if hit.any():
            k = int(np.argmax(hit))
            row = int(np.argmin(np.where(s.phi[k] <= 1e-9, s.u[k], np.inf)))
            P, found = laws.impact(s.of(hit), closed[hit], 0 * s.u[hit])
            after = s.u[hit] + np.einsum("kij,kj->ki", s.W[hit], P)
            remedy = "there is an impact, and no acceleration; cd.simulate goes through it"
            if np.abs(after[0, row]) > 1e-6 * (1 + np.abs(s.u[k, row])):
                remedy = "no impulse changes that, as a motion or a loop moves it; open it, or let the motion give way"
            why = laws.why(found, q[hit], "impulses")
            rate = f"{laws.names[row]!r} is closed and its rate is {s.u[k, row]:.6g}: {remedy}"
            raise InputError(f"{self.owner}: {why or rate}")
        found = laws.chosen(s, closed)
        why = laws.why(found, q, "forces") or laws.why_torn(s, found, laws.torn(s, found, closed))
        if why:
            raise InputError(f"{self.owner}: {why}")
        return laws.with_modes(p, found, s, q)

    def at_values(self, values: np.ndarray) -> LawfulKernel:
        """The kernel at other values (..., np) of the model's free parameters."""
        return LawfulKernel(self.owner, self.model.unbound._bound(values), self.formulation, self.loaded, self.make)

    def watch(self, look: Callable[[tuple[Any, ...]], None], closely: int = 0) -> None:
        """Nothing is watched: every call looks at its states."""


def _flat(x: np.ndarray, batch: tuple[int, ...], axes: int) -> np.ndarray:
    """An array broadcast to a batch, with one axis for it; the last `axes` axes are of one system."""
    own = x.shape[x.ndim - axes :]
    return np.ascontiguousarray(np.broadcast_to(x, (*batch, *own))).reshape(-1, *own)
