"""The state about which a mechanism is linearised, from whatever a user has: arrays, a state, an instant, a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.model import Model
from cardan.model.values import batch, shown
from cardan.results.trajectory.quantities import with_time_axis, with_values
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import assemble

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS = ("q", "v", "tau", "wrenches", "t")


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """Configuration `q` (..., nq), rates `v`, drives `tau` (..., nv), `wrenches` (..., nb, 6) or None, time `t` (...).

    `model` has the values of its free parameters in axes that broadcast with these.
    """

    model: Model
    q: NDArray[Any]
    v: NDArray[Any]
    tau: NDArray[Any]
    wrenches: NDArray[Any] | None
    t: NDArray[Any]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        loads = () if self.wrenches is None else self.wrenches.shape[:-2]
        parts = (self.q.shape[:-1], self.v.shape[:-1], self.tau.shape[:-1], loads, self.t.shape, self.model.batch)
        return np.broadcast_shapes(*parts)

    def part(self, index: Any) -> OperatingPoint:
        """Part of the batch."""
        shape = self.batch

        def own(x: NDArray[Any], axes: int) -> NDArray[Any]:
            return np.broadcast_to(x, (*shape, *x.shape[x.ndim - axes :]))[index]

        wrenches = None if self.wrenches is None else own(self.wrenches, 2)
        model = self.model if self.model.values is None else self.model.unbound._bound(own(self.model.values, 1))
        return OperatingPoint(model, own(self.q, 1), own(self.v, 1), own(self.tau, 1), wrenches, own(self.t, 0))


def operating_point(owner: str, model: Model, at: Any, beside: Mapping[str, Any]) -> OperatingPoint:
    """Read a state: None is the assembled start at rest; what `beside` has of v, tau, wrenches and t goes before."""
    if not isinstance(model, Model):
        raise InputError(f"{owner}: model must be a cd.Model, got {type(model).__name__}; use build() first")
    model = _with_values_of(model, at)
    if isinstance(at, Trajectory):
        model, found = _of_run(owner, model, at)
    else:
        found = _parts(owner, model, at)
    found |= {name: x for name, x in beside.items() if x is not None}
    if found.get("q") is None:
        found["q"], found["v"] = assemble(model, None, found.get("v"), t=found.get("t", 0.0))
    elif isinstance(found["q"], Mapping):  # coordinates by name
        v = found.get("v")
        found["q"], follows = assemble(model, found["q"], v if isinstance(v, Mapping) else None, t=found.get("t", 0.0))
        found["v"] = follows if v is None or isinstance(v, Mapping) else v
    q = batch(owner, "q", found["q"], model.nq)
    _require_unit(owner, model, q)
    loads = found.get("wrenches")
    loads = loads if np.any(loads) else None
    point = OperatingPoint(
        model, q,
        batch(owner, "v", _or(found.get("v"), np.zeros(model.nv)), model.nv),
        batch(owner, "tau", _or(found.get("tau"), np.zeros(model.nv)), model.nv),
        None if loads is None else batch(owner, "wrenches", loads, model.nb, 6),
        batch(owner, "t", _or(found.get("t"), 0.0)),
    )  # fmt: skip
    try:
        point.batch  # noqa: B018, looks whether the shapes fit
    except ValueError:
        shapes = f"q {point.q.shape}, v {point.v.shape}, tau {point.tau.shape}, t {point.t.shape}"
        raise InputError(
            f"{owner}: the batches do not fit together: {shapes}, values of parameters {model.batch}"
        ) from None
    return point


def _with_values_of(model: Model, at: Any) -> Model:
    """The model with the values of free parameters that the state was found with, where it has none itself."""
    of = getattr(at, "model", None)
    if not isinstance(of, Model) or of.values is None or model.values is not None or model.key != of.key:
        return model
    return model._bound(of.values)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _parts(owner: str, model: Model, at: Any) -> dict[str, Any]:
    """The parts of a state by name."""
    if at is None:
        return {}
    if isinstance(at, str):
        if at not in model.states:
            raise UnknownNameError(
                f"{owner}: model {model.name!r} has no state {at!r}{nearest(at, model.states)}; give q, or a cd.State"
            )
        at = model.states[at]
    if isinstance(at, Mapping):
        for name in at:
            if name not in PARTS:
                raise UnknownNameError(f"{owner}: {name!r} is not part of a state{nearest(name, PARTS)}")
        if "q" not in at:
            raise InputError(f"{owner}: the configuration 'q' is missing in the state")
        return dict(at)
    if hasattr(at, "q"):
        found = {name: getattr(at, name, None) for name in ("q", "v", "tau", "wrenches", "t")}
        if found["t"] is None:
            found["t"] = getattr(at, "time", None)
        return {name: x for name, x in found.items() if x is not None}
    if isinstance(at, tuple):
        if not 1 <= len(at) <= 3:
            raise InputError(f"{owner}: a state given as a tuple is (q, v) or (q, v, tau), got {len(at)} parts")
        return dict(zip(PARTS, at, strict=False))
    if isinstance(at, np.ndarray | list | float | int):
        return {"q": at}
    raise InputError(
        f"{owner}: `at` must be q, (q, v), a cd.State, a dict of q, v, tau, wrenches and t, or a run; got {shown(at)}"
    )


def _of_run(owner: str, model: Model, run: Trajectory) -> tuple[Model, dict[str, Any]]:
    """All samples of a run: one more axis, that of time, after its batch."""
    if not run.valid.all():
        raise InputError(
            f"{owner}: some systems of the run ended before its last sample; give one system of it, as run[0]"
        )
    if run.q.shape[-1] != model.nq or run.v.shape[-1] != model.nv:
        raise InputError(f"{owner}: the run is that of another model: nq = {run.q.shape[-1]}, here {model.nq}")
    tau = None if run.tau is None else run.tau[..., None, :]
    p = run.parameters  # with the variables as they were
    changed = p is not None and p.shape[-1] == model.parameters.size
    return with_values(model, np.asarray(p)) if changed else with_time_axis(model), {
        "q": run.q,
        "v": run.v,
        "tau": tau,
        "t": run.time,
    }


def _require_unit(owner: str, model: Model, q: np.ndarray) -> None:
    for at in model.quaternions:
        off = np.abs(np.linalg.norm(q[..., at], axis=-1) - 1.0).max(initial=0.0)
        if off > 1e-6:
            raise InputError(
                f"{owner}: the quaternion at q[{at.start}:{at.stop}] has a length that differs from 1 by {off:.3g}; "
                "normalise it"
            )
