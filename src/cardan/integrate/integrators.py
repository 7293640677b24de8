"""The integrators by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit.motion import Motion
from cardan.integrate.explicit.step import METHODS, Method
from cardan.integrate.explicit.stepper import Marching
from cardan.integrate.stepper import Stepper
from cardan.model.elements import read_name
from cardan.model.model import Model
from cardan.model.values import number, whole
from cardan.structure.kernels import parameter_arguments
from cardan.structure.rows import kept_rows, position_rows

IMPLICIT = ("gear", "alpha", "bdf", "adams")
OWN = (*METHODS, *IMPLICIT)
SERIAL = ("gear", "bdf", "adams")  # these take one system at a time


@dataclass(frozen=True)
class Request:
    """What a run asks of its integrator; the words are those of `cd.simulate`."""

    formulation: str
    method: str
    step: float | None
    rtol: float
    atol: float
    longest: float
    most: int | None
    events: tuple[Event, ...]
    baumgarte: float | None
    damping: float
    form: str
    threads: int | None

    def __post_init__(self) -> None:
        """Refuse numbers that are none."""
        number("simulate", "rtol", self.rtol, above=0)
        number("simulate", "atol", self.atol, above=0)
        if not np.array_equal(self.longest, np.inf):
            number("simulate", "longest_step", self.longest, "of seconds", above=0)
        number("simulate", "damping", self.damping, least=0, most=1)
        if self.baumgarte is not None:
            number("simulate", "baumgarte", self.baumgarte, "of 1/s", least=0)
        for name, count in (("most_steps", self.most), ("threads", self.threads)):
            if count is not None:
                whole("simulate", name, count)


def require_method(method: str, step: float | None) -> None:
    """Refuse a method that is not one, and a fixed-step method without its step."""
    names = (*METHODS, *IMPLICIT)
    if not isinstance(method, str) or method not in names:
        raise UnknownNameError(f"method {method!r} is not an integrator{nearest(method, names)}")
    if step is not None:
        number("simulate", "step", step, "of seconds", above=0)
    if step is None and not chooses_steps(method):
        raise InputError(f"simulate: method {method!r} takes steps of one length; give it, e.g. step=1e-3 (s)")


def chooses_steps(method: str) -> bool:
    """Whether a method chooses the length of its steps."""
    return METHODS[method].adaptive if method in METHODS else method != "alpha"


def add_method(method: Method) -> None:
    """Let `cd.simulate(..., method=method.name)` mean an explicit Runge-Kutta method of your own.

    With an error estimate `e` it chooses its steps; its last stage must then be the first of the next step.
    """
    if not isinstance(method, Method):
        raise InputError(f"add_method: a Method(name, order, A, b) is added, got {method!r}")
    owner, A, b, e = f"method {read_name('method', method.name)!r}", method.A, method.b, method.e
    if not all(isinstance(x, np.ndarray) and np.isfinite(x).all() for x in (A, b, *(() if e is None else (e,)))):
        raise InputError(f"{owner}: A, b and e must be NumPy arrays of finite numbers")
    if method.name in OWN:
        raise InputError(f"{owner} is Cardan's own; give yours another name")
    if A.shape != (len(b), len(b)) or np.triu(A).any():
        raise InputError(
            f"{owner}: A must be ({len(b)}, {len(b)}) with zeros on and above the diagonal: it is explicit"
        )
    if abs(b.sum() - 1) > 1e-12:
        raise InputError(f"{owner}: the weights b must add up to 1, they are {b.sum():g}")
    if e is not None and (e.shape != b.shape or abs(e.sum()) > 1e-12):
        raise InputError(f"{owner}: the weights e of the error must be {len(b)} numbers that add up to 0")
    if e is not None and not np.allclose(A[-1], b, atol=1e-14):
        raise InputError(f"{owner}: with an error estimate the last row of A must be b, as in Dormand and Prince's")
    METHODS[method.name] = method


def make_stepper(model: Model, request: Request, tau: np.ndarray) -> Stepper:
    """The integrator for a model, or a batch of them by its parameters, with drives `tau` (B, nv)."""
    if request.baumgarte is not None and request.method not in METHODS:
        raise InputError(
            f"simulate: baumgarte goes with {', '.join(METHODS)}; {request.method!r} keeps loops its own way"
        )
    if request.method in METHODS:
        method = METHODS[request.method]
        return Marching(
            motion_of(model, request.formulation, request.baumgarte),
            method,
            tau,
            step=request.step,
            rtol=request.rtol,
            atol=request.atol,
            longest=request.longest,
            events=request.events,
            most=request.most,
            threads=request.threads,
        )
    if request.method == "alpha":
        from cardan.integrate.alpha.stepper import Alpha

        assert request.step is not None
        return Alpha(
            model,
            request.formulation,
            tau,
            step=request.step,
            rho=request.damping,
            events=request.events,
            most=request.most,
            threads=request.threads,
        )
    return _multistep(model, request, tau)


def motion_of(model: Model, formulation: str, baumgarte: float | None = None) -> Motion:
    """The equations of a model for the explicit integrators."""
    free = model.unbound
    plain = free.is_plain and formulation in ("spatial", "newton_euler")
    rows = () if plain else tuple(kept_rows(free, formulation))
    return Motion(model, formulation, rows, tuple(position_rows(free)), baumgarte)


def _multistep(model: Model, request: Request, tau: np.ndarray) -> Stepper:
    from cardan.integrate.sundials.gear import Gear
    from cardan.integrate.sundials.multistep import Multistep

    settings: dict[str, Any] = {
        "rtol": request.rtol,
        "atol": request.atol,
        "max_step": request.longest,
        "tau": tau,
        "events": _events_of(model, request.events) if request.events else None,
        "directions": [event.direction for event in request.events] or None,
    }
    if request.step is not None:
        settings["first_step"] = request.step
    if request.most is not None:
        settings["max_steps"] = request.most
    frame = "body" if request.formulation == "absolute_body" else "fixed"
    formulation = request.formulation.removesuffix("_body")
    if request.method == "gear":
        return Gear(model, formulation, frame=frame, form=request.form, **settings)
    return Multistep(model, request.method, formulation=formulation, **settings)


def _events_of(model: Model, events: tuple[Event, ...]) -> Any:
    """The events as a function of (t, q, v), at the parameters of this one system."""
    import casadi as ca

    traced = trace_events(model, events)
    values = [np.asarray(p).reshape(-1) for p in parameter_arguments(model)]
    if not values:
        return traced
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    return ca.Function("events", [t, q, v], [traced(t, q, v, *map(ca.DM, values))])
