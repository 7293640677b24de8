"""Derivatives of a run by its start, its drives and the free parameters of the model: sensitivities and gradients.

They are those of the computed run, exact to rounding: of the steps that were taken, the lengths of steps that a
tolerance chose being constants. The start is `cd.assemble(model, q0, v0)`: with loops its change follows from the
implicit function theorem,

    dq = dq0 - phi_q^+ (phi_q dq0 + phi_p dp)      dv = dv0 - J^+ (J dv0 + (J v - beta)_q dq + (J v - beta)_p dp)

`phi_q^+`, `J^+` being pseudo-inverses, as in assembly, so that `cd.simulate(..., assemble=True)` moves likewise.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.formulation import tangent
from cardan.formulation.spatial import SPATIAL
from cardan.functions.along_constraints import rate_of_rows, residual_of_rows
from cardan.functions.derivatives import Derivatives, with_derivatives
from cardan.integrate.course import course_of
from cardan.integrate.driver import drive
from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit.recording import RecordingStepper, tape_memory
from cardan.integrate.explicit.sweep import Moving, Sweep
from cardan.integrate.integrators import Integrator
from cardan.integrate.stepper import Outcome
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.machines.ufunc.threads import get_threads
from cardan.model.model import Model
from cardan.model.modes import without_modes
from cardan.model.values import floats, shown
from cardan.program.program import Port, Program
from cardan.results.replay import Replay
from cardan.structure.kernels import parameter_arguments, time_argument
from cardan.structure.row_sets import is_settled

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

NAMES = ("q0", "v0", "tau", PARAMETERS)
NEAR_SINGULAR = 0.15  # distance from a singular position, about 1 where it is usual, below which a warning is given
LARGEST_RESULT = 4 << 30  # bytes
CHUNK = 512  # systems for each thread whose derivatives are computed together: their steps stay in the cache


class Sensitivity(NamedTuple):
    """Derivatives of the samples of a run by the numbers of one name, a column for each."""

    q: np.ndarray
    """(..., samples, nv, columns): of the configurations, along the tangent."""
    v: np.ndarray
    """(..., samples, nv, columns): of the velocities."""
    t: np.ndarray
    """(..., samples, columns): of the times, s; not zero where an event stopped the run."""
    p: np.ndarray
    """(..., samples, np, columns): of `run.parameters`: states, what events and inputs set; np = 0 without changes."""


@dataclass(frozen=True)
class RunDerivatives:
    """Derivatives of a run that is taken again; batch axes are one, (B,)."""

    run: Replay

    def sensitivities(self, names: tuple[str, ...], samples: int) -> dict[str, Sensitivity]:
        """Of all samples, by each of `names`."""
        require_names(self.run.model, names)
        columns = [self._columns(name) for name in names]
        B, nv, m = len(self.run.q), self.run.model.nv, sum(columns)
        more = self.run.model.parameters.size if self.run.changes else 0
        size = 8 * B * samples * m * (2 * nv + 1 + more)
        if size > LARGEST_RESULT:
            raise InputError(
                f"simulate: sensitivities of {B} systems at {samples} times by {m} numbers take {size / 1e9:.1f} GB; "
                "take fewer samples or systems, or run.gradient, which needs none of this"
            )
        Q, V, T, P = self._carried(samples, m, lambda sweep, at: self._started(sweep, names, columns, at))
        found, first = {}, 0
        for name, count in zip(names, columns, strict=True):
            own = slice(first, first + count)
            q, v, p = (np.swapaxes(x[:, :, own], 2, 3) for x in (Q, V, P))
            found[name] = Sensitivity(q, v, T[:, :, own], p)
            first += count
        return found

    def rates(self, along: Moving, samples: int) -> Moving:
        """Rates `q`, `v` (B, n, nv), `t` (B, n) of all samples, where the start and what is given move `along`.

        That has `q0`, `v0`, `tau` (B, nv) and, with parameters, `parameters` (B, size).
        """

        def started(sweep: Sweep, at: slice) -> Moving:
            d = {name: x[at] for name, x in along.items()}
            none = np.zeros((sweep.systems, self.run.model.parameters.size))
            found = {"q": d["q0"], "v": d["v0"], "tau": d["tau"], "p": d.get(PARAMETERS, none)}
            start = self._start(at)
            if start is not None:
                moved = [[(D @ d[name][..., None])[..., 0] for D in start[name]] for name in d if name != "tau"]
                found["q"], found["v"] = (np.sum(x, axis=0) for x in zip(*moved, strict=True))
            return {name: x[:, None, :] for name, x in found.items()}

        Q, V, T, _ = self._carried(samples, 1, started)
        return {"q": Q[:, :, 0], "v": V[:, :, 0], "t": T[:, :, 0]}

    def _carried(
        self, samples: int, m: int, started: Callable[[Sweep, slice], Moving]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Carry m directions to all samples: `q`, `v` (B, n, m, nv), `t` (B, n, m), `p` (B, n, m, np) that change."""
        B, nv = len(self.run.q), self.run.model.nv
        Q, V = np.full((2, B, samples, m, nv), np.nan)
        T = np.full((B, samples, m), np.nan)
        P = np.full((B, samples, m, self.run.model.parameters.size if self.run.changes else 0), np.nan)
        for lo, sweep in self._sweeps(samples, m):
            for mask, numbers, along in sweep.forward(started(sweep, slice(lo, lo + sweep.systems))):
                rows = np.flatnonzero(mask)
                Q[lo + rows, numbers[rows]], V[lo + rows, numbers[rows]] = along["q"][rows], along["v"][rows]
                T[lo + rows, numbers[rows]] = along["t"][rows]
                if self.run.changes:
                    P[lo + rows, numbers[rows]] = along["p"][rows]
        return Q, V, T, P

    def gradient(self, weights: Moving) -> dict[str, np.ndarray]:
        """The sum of all samples' numbers times `weights` `q`, `v` (B, n, nv), `t` (B, n), (`p`), differentiated."""
        B, samples = weights["t"].shape
        names = NAMES if self._columns(PARAMETERS) else NAMES[:-1]
        found = {name: np.zeros((B, self._columns(name))) for name in names}
        for lo, sweep in self._sweeps(samples, 1):
            at = slice(lo, lo + sweep.systems)
            back = sweep.backward({name: w[at] for name, w in weights.items()})
            found["tau"][at] = back["tau"]
            if PARAMETERS in names:
                found[PARAMETERS][at] = back["p"][:, : self._columns(PARAMETERS)]
            start = self._start(at)
            if start is None:
                found["q0"][at], found["v0"][at] = back["q"], back["v"]
                continue
            for name in names:
                if name != "tau":
                    dq, dv = start[name]
                    found[name][at] += _against(dq, back["q"]) + _against(dv, back["v"])
        return found

    def _columns(self, name: str) -> int:
        """How many numbers a name has; modes of rows with laws, at the end of the parameters, are not the user's."""
        return without_modes(self.run.model).parameters.size if name == PARAMETERS else self.run.model.nv

    def _sweeps(self, samples: int, directions: int) -> Iterator[tuple[int, Sweep]]:
        """Take the run again, some systems at a time; the first of each, and what carries derivatives along it."""
        model = self.run.model
        require_derivatives(self.run.integrator)
        require_settled(model)
        each = 8 * (self.run.steps * (model.nq + 2 * model.nv + 3) + samples * (model.nq + 4 * model.nv + 20))
        threads = self.run.request.threads
        # as many as fit a card, whose threads want many; on the CPU so many that their steps stay in the cache
        most = len(self.run.q) if isinstance(threads, Place) else CHUNK * (threads or get_threads())
        size = int(np.clip(tape_memory(threads) // (each * directions), 1, max(most, 1)))
        for lo in range(0, len(self.run.q), size):
            at = slice(lo, lo + size)
            p = parameter_arguments(self.run.model_at(at))
            yield lo, Sweep(self.taped(at), samples, self.run.changes, *p)

    def taped(self, at: slice) -> RecordingStepper:
        """The stepper of some systems after the run, with the tape of its steps."""
        run = self.run
        model, part = run.model_at(at), run.part(np.arange(len(run.q))[at])
        stepper = run.integrator.recorder(model, run.formulation, run.request, part.tau)
        course = course_of(
            model, run.formulation, run.integrator, run.request, part.tau, run.times, run.breaks, part.inputs,
            run.sampled,
        )  # fmt: skip
        kept = drive(
            stepper, part.q, part.v, run.times, breaks=run.breaks, sampled=stepper.sampled, changed=stepper.changed,
            **course.arguments,
        )  # fmt: skip
        if kept.interrupted:
            raise KeyboardInterrupt
        if stepper.distance < NEAR_SINGULAR:
            warnings.warn(
                f"derivatives of a run: model {run.model.name!r} comes near a singular position, where its constraints "
                "lose rank; if motions branch there, the derivatives are those of the steps, but not of the motion",
                RuntimeWarning,
                stacklevel=2,
            )
        return stepper

    def _start(self, at: slice) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
        """`dq` and `dv` (B, nv, columns) of the start by q0, v0 and parameters; None where it is what is given."""
        model = self.run.model_at(at)
        if not model.has_rows:
            return None
        t, q, v, nv = float(self.run.times[0]), self.run.q[at], self.run.v[at], model.nv
        by: tuple[str, ...] = ("q", PARAMETERS) if self._columns(PARAMETERS) else ("q",)
        time = time_argument(model, t)
        phi = with_derivatives("run", model, by, "tangent", residual_of_rows(model), SPATIAL, (q, *time))
        rate = with_derivatives("run", model, (*by, "v"), "tangent", rate_of_rows(model), SPATIAL, (q, v, *time))
        back_q, back_v = (np.linalg.pinv(D, rcond=1e-10) for D in (phi["q"], rate["v"]))

        def moved(dq0: np.ndarray, dv0: np.ndarray, phi_p: Any, rate_p: Any) -> tuple[np.ndarray, np.ndarray]:
            dq = dq0 - back_q @ (phi["q"] @ dq0 + phi_p)
            return dq, dv0 - back_v @ (rate["v"] @ dv0 + rate["q"] @ dq + rate_p)

        one, none = np.eye(nv), np.zeros((nv, nv))
        found = {"q0": moved(one, none, 0.0, 0.0), "v0": moved(none, one, 0.0, 0.0)}
        if PARAMETERS in by:
            n = self._columns(PARAMETERS)
            still = np.zeros((nv, n))
            found[PARAMETERS] = moved(still, still, phi[PARAMETERS][..., :n], rate[PARAMETERS][..., :n])
        return found

    def _started(self, sweep: Sweep, names: tuple[str, ...], columns: list[int], at: slice) -> Moving:
        """Directions (B, m, n) at the start, those of all names one after the other."""
        B, nv, m = sweep.systems, self.run.model.nv, sum(columns)
        sizes = {"q": nv, "v": nv, "tau": nv, "p": self.run.model.parameters.size}
        found = {name: np.zeros((B, m, n)) for name, n in sizes.items()}
        start, first = self._start(at), 0
        for name, count in zip(names, columns, strict=True):
            own, one = slice(first, first + count), np.eye(count)
            if name in ("tau", PARAMETERS):
                found["tau" if name == "tau" else "p"][:, own, :count] = one
            elif start is None:
                found[name[0]][:, own] = one
            if start is not None and name != "tau":
                dq, dv = start[name]
                found["q"][:, own], found["v"][:, own] = np.swapaxes(dq, 1, 2), np.swapaxes(dv, 1, 2)
            first += count
        return found


def require_derivatives(integrator: Integrator) -> None:
    """Reject a method whose steps are not differentiated."""
    if not integrator.has_derivatives:
        raise InputError(
            f"derivatives of a run: method {integrator.name!r} has none; take 'rk4', 'euler', 'dormand_prince' or a "
            "cd.RungeKutta of your own"
        )


def require_settled(model: Model) -> None:
    """Reject a model whose equations change from step to step."""
    if not is_settled(model):
        raise InputError(
            f"derivatives of a run: which constraints of model {model.name!r} are redundant depends on the "
            "configuration, so that the equations change from step to step; there are no derivatives of such runs"
        )


def require_names(model: Model, names: tuple[str, ...]) -> None:
    """Reject names of which a run has no sensitivities."""
    for name in names:
        if not isinstance(name, str) or name not in NAMES:
            hint = nearest(name, NAMES)
            if isinstance(name, str) and name in model.parameters.names:
                hint = "; it is a free parameter: 'parameters' has a column for each"
            raise UnknownNameError(f"simulate: sensitivities by {name!r} are not known{hint}")
    if len(set(names)) < len(names):
        raise InputError(f"simulate: sensitivities={list(names)} names something twice")
    if PARAMETERS in names and not without_modes(model).parameters:
        raise InputError(
            f"simulate: sensitivities by 'parameters', but model {model.name!r} has no free parameter; free some with "
            "model.free(...)"
        )


def _against(D: np.ndarray, w: np.ndarray) -> np.ndarray:
    """`D^T w` of D (B, nv, columns) and w (B, nv)."""
    return np.asarray((w[:, None, :] @ D)[:, 0, :])


# Of a trajectory.


def sensitivities_of(run: Trajectory, names: tuple[str, ...]) -> dict[str, Sensitivity]:
    """Sensitivities of all samples of a run."""
    found = RunDerivatives(replay_of(run, "sensitivities")).sensitivities(names, run.q.shape[-2])
    return {name: Sensitivity(*(x.reshape(*run.batch, *x.shape[1:]) for x in own)) for name, own in found.items()}


def vjp_of(run: Trajectory, dq: Any, dv: Any, dt: Any, dp: Any = None) -> dict[str, np.ndarray]:
    """Gradients of a loss from its derivatives by the samples."""
    replay = replay_of(run, "vjp")
    shape, nv = run.valid.shape, run.v.shape[-1]
    weights = {}
    wanted: list[Any] = [("q", dq, (*shape, nv)), ("v", dv, (*shape, nv)), ("t", dt, shape)]
    if dp is not None and run.parameters is None:
        raise InputError("run.vjp: dp is given, but no parameter of this run changes on the way")
    wanted += [] if dp is None else [("p", dp, (*shape, run.model.parameters.size))]
    for name, given, own in wanted:
        try:
            w = np.zeros(()) if given is None else floats(given)
            w = np.broadcast_to(w, own)
        except (TypeError, ValueError):
            raise InputError(
                f"run.vjp: d{name} must be numbers of shape {own}, one for each of the samples' {name}, got "
                f"{shown(given)}"
            ) from None
        w = np.where(run.valid.reshape(*shape, *([1] * (w.ndim - len(shape)))), w, 0.0)
        if not np.isfinite(w).all():
            raise InputError(f"run.vjp: d{name} must be finite numbers, got NaN or infinity")
        weights[name] = w.reshape(-1, *w.shape[len(run.batch) :])
    found = RunDerivatives(replay).gradient(weights)
    return {name: x.reshape(*run.batch, x.shape[-1]) for name, x in found.items()}


def gradient_of(run: Trajectory, loss: Any, over: str) -> Derivatives:
    """Value and gradient of a loss that is a function of an instant."""
    if over not in ("samples", "end"):
        raise InputError(f"run.gradient: over must be 'samples' or 'end', got {over!r}")
    replay_of(run, "gradient")
    model, kept = run.model, run.valid
    if over == "end":
        kept = kept & (np.cumsum(kept, axis=-1) == kept.sum(axis=-1, keepdims=True))
    kernel = _loss_kernel(model, loss)
    t = np.broadcast_to(run.time, kept.shape)
    p = [np.broadcast_to(x[..., None, :], (*kept.shape, x.shape[-1])) for x in parameter_arguments(model)]
    p = p if run.parameters is None else [run.parameters]
    values, dt, dq, dv, *dp = kernel(t, run.q, run.v, *p)
    each = kept[..., None]
    w = [np.where(each, dq, 0.0), np.where(each, dv, 0.0), np.where(kept, dt, 0.0)]
    found = vjp_of(run, *w, *([] if run.parameters is None else [np.where(each, dp[0], 0.0)]))
    if dp and run.parameters is None:
        found[PARAMETERS] = found[PARAMETERS] + np.where(each, dp[0], 0.0).sum(axis=-2)
    return Derivatives(np.where(kept, values, 0.0).sum(axis=-1), found)


def _loss_kernel(model: Model, loss: Any) -> Kernel:
    """Value of a loss at an instant, and its derivatives: `t, q, v, (p)` to `value, t, q (nv,), v, (p)`."""
    if not callable(loss):
        raise InputError(
            f"run.gradient: the loss must be a function of an instant, e.g. lambda s: s.q[0] ** 2, got {shown(loss)}; "
            "for derivatives of a loss by the samples there is run.vjp"
        )
    import casadi as ca

    try:
        traced = trace_events(
            model.unbound, [Event("loss", loss)], loaded=False
        )  # a scalar of an instant, as events are
    except InputError as error:
        raise InputError(str(error).replace("event 'loss': its expression", "run.gradient: the loss")) from None
    size = model.parameters.size
    t, q, v, p = (ca.SX.sym(name, n) for name, n in (("t", 1), ("q", model.nq), ("v", model.nv), ("p", size)))
    x = [t, q, v, *([p] if size else [])]
    value = traced(*x)
    by = [ca.gradient(value, y) for y in x]
    by[1] = tangent(model, q).T @ by[1]
    function = ca.Function("loss", x, [ca.densify(y) for y in (value, *by)])
    inputs = (Port("t", ()), Port("q", (model.nq,)), Port("v", (model.nv,)), *([Port("p", (size,))] if size else []))
    outputs = (
        Port("value", ()),
        *(Port(f"d{port.name}", (model.nv,) if port.name == "q" else port.shape) for port in inputs),
    )
    key = hashlib.sha256(f"{model.unbound.key} loss {traced.serialize()}".encode()).hexdigest()
    return compile_program(Program("loss", inputs, outputs, key, lambda: function))


def replay_of(run: Trajectory, what: str) -> Replay:
    """The steps of a run; reject one that cannot be taken again."""
    if run._replay is None:
        raise InputError(
            f"run.{what}: this run does not know its steps; derivatives are those of a run that cd.simulate returned, "
            "in memory"
        )
    failed = [o for o in np.unique(np.asarray(run.outcome)) if o not in ("", Outcome.EVENT.text)]
    if failed:
        raise InputError(f"run.{what}: a system ended early ({failed[0]}), so that there is no derivative of it")
    return run._replay
