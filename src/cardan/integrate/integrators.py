"""The integrators: one class each, with its options as fields, and a registry of them by name.

To add one, subclass `Integrator` and register an object of it with `add_method`, or give the object itself as
`cd.simulate(..., method=...)`. No other file knows the integrators by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.integrate.explicit.tableau import DORMAND_PRINCE, KUTTA, ONE_STAGE, SEMI_IMPLICIT_EULER, Tableau
from cardan.machines.cuda.place import Place
from cardan.model.elements import read_name
from cardan.model.values import batch, number, shown, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cardan.formulation.formulation import Formulation
    from cardan.integrate.events import Event
    from cardan.integrate.explicit.recording import RecordingStepper
    from cardan.integrate.stepper import Stepper
    from cardan.model.model import Model


DOUBLE, SINGLE = PRECISIONS = ("float64", "float32")
EVENTS, STEPS = "events", "steps"  # how an integrator treats rows with laws
IMPACTS = ("newton", "poisson", "sequential")


@dataclass(frozen=True)
class Request:
    """What a run asks of any integrator; names and units are those of `cd.simulate`.

    `threads` is a `Place` where a GPU is to compute. `stops` are times in order, s, that no step may cross: just before
    each break, and the end of the run.
    """

    step: float | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf
    max_steps: int | None = None
    events: tuple[Event, ...] = ()
    threads: int | Place | None = None
    stops: tuple[float, ...] = ()
    precision: str = DOUBLE

    def __post_init__(self) -> None:
        """Reject NaN and non-numbers."""
        if self.step is not None:
            number("simulate", "step", self.step, "of seconds", above=0)
        number("simulate", "rtol", self.rtol, above=0)
        number("simulate", "atol", self.atol, above=0)
        if not np.array_equal(self.max_step, np.inf):
            number("simulate", "max_step", self.max_step, "of seconds", above=0)
        for name, count in (("max_steps", self.max_steps), ("threads", self.threads)):
            if count is not None and not isinstance(count, Place):
                whole("simulate", name, count)


class Integrator:
    """An integration method with its options.

    A subclass is a frozen dataclass whose fields are the options, with these class attributes:

        name: the name under which `cd.simulate(..., method=name)` finds it.
        summary: what it is, in a few words.
        chooses_steps: whether it chooses its steps by a tolerance; otherwise `step` must be given.
        one_at_a_time: whether its stepper takes a single system; the systems of a batch are then run one by one.
        for_stiff: whether it is meant for stiff mechanisms.
        has_derivatives: whether its runs can be differentiated: it has a `recorder`.
        has_float32: whether it can take its steps in float32.
        has_states: whether it integrates variables of the model that have rates.
        falls_exactly: whether its error of a motion with constant forces is rounding; else bounces lower than its
            tolerance are lost in it.
        laws: how it treats rows with laws (`model.laws`): by "events" at which rows change their modes, by "steps"
            that solve a complementarity problem each, or "" if it cannot.
        has_gpu: whether it hands `request.threads` to its kernels, so that they run on a GPU.
        elsewhere: what methods of its kind are called in other programs, in lower case, for messages.
    """

    name: str
    summary: str = ""
    chooses_steps: bool = True
    one_at_a_time: bool = False
    for_stiff: bool = False
    has_derivatives: bool = False
    has_gpu: bool = False
    has_float32: bool = False
    has_states: bool = False
    falls_exactly: bool = True
    laws: str = ""
    elsewhere: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options that are set, by name, as plain numbers, strings and lists."""
        values = {name: getattr(self, name) for name in option_names(self)}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in values.items()
            if value is not None
        }

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, or on a batch of them by its parameters, with drives `tau` (B, nv)."""
        raise NotImplementedError(f"{type(self).__name__} has no stepper")

    def recorder(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> RecordingStepper:
        """The same, but keeping its steps for derivatives of the run."""
        raise NotImplementedError(f"{type(self).__name__} has no recorder")


def _require_impact(integrator: Integrator, impact: str | None) -> None:
    """Reject an unknown law of impacts."""
    if impact not in (None, *IMPACTS):
        raise InputError(
            f"{type(integrator).__name__}: impact must be 'newton', 'poisson' or 'sequential', got {shown(impact)}"
        )


# Explicit methods


class _Explicit(Integrator):
    """An explicit Runge-Kutta method; with `baumgarte` loops are stabilised by feedback instead of projected."""

    tableau: Tableau
    baumgarte: float | None
    has_states = True
    has_derivatives = True
    has_gpu = True
    laws = EVENTS
    impact: str | None

    def __post_init__(self) -> None:
        if self.baumgarte is not None:
            number(type(self).__name__, "baumgarte", self.baumgarte, "of 1/s", least=0)
        _require_impact(self, self.impact)

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, or on a batch of them by its parameters, with drives `tau` (B, nv)."""
        from cardan.integrate.explicit.step import equations_of
        from cardan.integrate.explicit.stepper import ExplicitStepper

        return ExplicitStepper(equations_of(model, formulation, self.baumgarte), self.tableau, tau, request)

    def recorder(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> RecordingStepper:
        """The same, but keeping its steps for derivatives of the run."""
        from cardan.integrate.explicit.recording import RecordingStepper
        from cardan.integrate.explicit.step import equations_of

        return RecordingStepper(equations_of(model, formulation, self.baumgarte), self.tableau, tau, request)


@dataclass(frozen=True)
class DormandPrince(_Explicit):
    """Dormand and Prince's explicit Runge-Kutta method of order 5, which chooses its steps by a tolerance.

    Args:
        baumgarte: rate, 1/s, of Baumgarte's feedback on loops; None to project onto them after every step.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "dormand_prince"
    elsewhere = ("rk45", "ode45", "dopri5", "dop853", "tsit5", "runge_kutta")
    summary = "explicit, order 5, chooses its steps"
    tableau = DORMAND_PRINCE
    baumgarte: float | None = None
    impact: str | None = None


@dataclass(frozen=True)
class RK4(_Explicit):
    """The classical explicit Runge-Kutta method of order 4, with steps of fixed length.

    Args:
        baumgarte: rate, 1/s, of Baumgarte's feedback on loops; None to project onto them after every step.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "rk4"
    elsewhere = ("rungekutta4", "runge_kutta_4")
    summary = "explicit, order 4, fixed steps"
    chooses_steps = False
    has_float32 = True
    tableau = KUTTA
    baumgarte: float | None = None
    impact: str | None = None


@dataclass(frozen=True)
class SemiImplicitEuler(_Explicit):
    """The semi-implicit Euler method of order 1, with steps of fixed length and one evaluation each.

    Args:
        baumgarte: rate, 1/s, of Baumgarte's feedback on loops; None to project onto them after every step.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "euler"
    elsewhere = ("semi_implicit_euler", "symplectic_euler", "verlet", "leapfrog")
    summary = "semi-implicit Euler, order 1, fixed steps"
    chooses_steps = False
    has_float32 = True
    tableau = SEMI_IMPLICIT_EULER
    baumgarte: float | None = None
    impact: str | None = None


@dataclass(frozen=True, eq=False)
class RungeKutta(_Explicit):
    """An explicit Runge-Kutta method of your own, from its Butcher tableau.

    With an error estimate `e` it chooses its steps; its last stage must then be the first of the next step.

    Args:
        name: name of the method.
        order: order of accuracy.
        A: coefficients (s, s) of the stages, zero on and above the diagonal.
        b: weights (s,), which add up to 1.
        e: weights (s,) of the error estimate, which add up to 0; None for steps of fixed length.
        baumgarte: rate, 1/s, of Baumgarte's feedback on loops; None to project onto them after every step.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name: str
    order: int
    A: ArrayLike
    b: ArrayLike
    e: ArrayLike | None = None
    baumgarte: float | None = None
    impact: str | None = None
    chooses_steps: bool = field(init=False, repr=False)
    has_float32: bool = field(init=False, repr=False)
    tableau: Tableau = field(init=False, repr=False)

    summary = "explicit Runge-Kutta method of your own"

    def __post_init__(self) -> None:
        """Check the coefficients."""
        super().__post_init__()
        owner = f"method {read_name('method', self.name)!r}"
        whole(owner, "order", self.order)
        A, b = batch(owner, "A", self.A), batch(owner, "b", self.b)
        e = None if self.e is None else batch(owner, "e", self.e)
        s = b.size
        if b.shape != (s,) or A.shape != (s, s) or np.triu(A).any():
            raise InputError(f"{owner}: A must be ({s}, {s}) with zeros on and above the diagonal: it is explicit")
        if abs(b.sum() - 1) > 1e-12:
            raise InputError(f"{owner}: the weights b must add up to 1, they add up to {b.sum():g}")
        if e is not None and (e.shape != b.shape or abs(e.sum()) > 1e-12):
            raise InputError(f"{owner}: the weights e of the error must be {s} numbers that add up to 0")
        if e is not None and not np.allclose(A[-1], b, atol=1e-14):
            raise InputError(f"{owner}: with an error estimate the last row of A must be b, as in Dormand and Prince's")
        for array in (A, b, e):
            if array is not None:
                array.flags.writeable = False
        made = {
            "A": A,
            "b": b,
            "e": e,
            "chooses_steps": e is not None,
            "has_float32": e is None,
            "tableau": Tableau(A, b, e),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Moreau(Integrator):
    """Moreau's midpoint rule of order 1, with steps of fixed length, for stops, contacts and friction that sticks.

    Impacts and friction are part of the step: it stops at none of them, however many there are.

    Args:
        impact: law of impacts: "newton", "poisson", or "sequential": of several contacts one after the other by
            Newton's law, always the one that closes fastest, as in Newton's cradle.

    """

    name = "moreau"
    elsewhere = ("moreau_jean", "time_stepping", "timestepping", "nonsmooth", "siconos")
    summary = "time stepping with impacts and friction, order 1, fixed steps"
    chooses_steps = False
    has_states = True
    has_gpu = True
    laws = STEPS
    rules = ("newton", "poisson", "sequential")
    impact: str = "newton"

    def __post_init__(self) -> None:
        """Check the options."""
        if self.impact not in self.rules:
            raise InputError(
                f"Moreau: impact must be {', '.join(map(repr, self.rules[:-1]))} or {self.rules[-1]!r}, got "
                f"{shown(self.impact)}"
            )

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, or on a batch of them by its parameters, with drives `tau` (B, nv)."""
        from cardan.integrate.moreau.step import MoreauEquations
        from cardan.integrate.moreau.stepper import MoreauStepper
        from cardan.structure.rows import kept_rows

        motion = MoreauEquations(model, formulation, tuple(kept_rows(model, formulation)), rule=self.impact)
        return MoreauStepper(motion, ONE_STAGE, tau, request)


# Implicit methods


@dataclass(frozen=True)
class Alpha(Integrator):
    """The generalised-alpha method of order 2, with steps of fixed length and adjustable damping, for stiff mechanisms.

    Args:
        damping: spectral radius at infinite frequency, 0 (most damping of fast vibrations) to 1 (none).
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "alpha"
    elsewhere = ("hht", "newmark", "generalized_alpha", "generalised_alpha", "implicitfast")
    has_states = True
    summary = "generalised-alpha, order 2, fixed steps"
    chooses_steps = False
    for_stiff = True
    has_gpu = True
    laws = EVENTS
    damping: float = 0.9
    impact: str | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        number("Alpha", "damping", self.damping, least=0, most=1)
        _require_impact(self, self.impact)

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, or on a batch of them by its parameters, with drives `tau` (B, nv)."""
        from cardan.integrate.alpha.large import LargeAlphaStepper
        from cardan.integrate.alpha.stepper import AlphaStepper
        from cardan.integrate.large import is_sum, takes_sums
        from cardan.machines.cuda.place import Place

        # a card, variables with rates, and rows with laws have the straight line alone
        recorded = isinstance(request.threads, Place) and not is_sum(formulation)
        recorded |= bool(model.parameters.states or model.laws)
        if takes_sums(model, formulation, newton_recorded=True) and not recorded:
            return LargeAlphaStepper(model, formulation, tau, request, self.damping)
        return AlphaStepper(model, formulation, tau, request, self.damping)


class _Multistep(Integrator):
    """A multistep method of variable order and step, by SUNDIALS."""

    one_at_a_time = True
    falls_exactly = False
    laws = EVENTS
    highest_order: int
    max_order: int | None
    impact: str | None

    def __post_init__(self) -> None:
        _require_impact(self, self.impact)
        if self.max_order is not None:
            owner = type(self).__name__
            number(owner, "max_order", whole(owner, "max_order", self.max_order), least=1, most=self.highest_order)

    @property
    def _order(self) -> int:
        return self.highest_order if self.max_order is None else self.max_order


@dataclass(frozen=True)
class Gear(_Multistep):
    """Gear's method: BDF on the differential-algebraic equations (SUNDIALS IDA), for stiff mechanisms.

    Args:
        form: "stabilised" (Gear-Gupta-Leimkuhler, index 2: positions and velocities both on the constraints) or
            "index1" (constraints on accelerations only).
        max_order: highest order, 1 to 5; 5 by default.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "gear"
    elsewhere = ("radau", "lsoda", "ode15s", "ida", "dassl", "gstiff", "wstiff", "implicit", "stiff")
    summary = "BDF on the differential-algebraic equations, for stiff mechanisms"
    for_stiff = True
    has_states = True
    highest_order = 5
    forms = ("stabilised", "index1")
    form: str = "stabilised"
    max_order: int | None = None
    impact: str | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.form not in self.forms:
            raise InputError(f"Gear: form must be one of {', '.join(map(repr, self.forms))}, got {shown(self.form)}")

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, with drives `tau` (1, nv)."""
        from cardan.formulation.spatial import SPATIAL
        from cardan.integrate.large import takes_sums
        from cardan.integrate.passages import PassingStepper
        from cardan.integrate.sundials.stepper import GearStepper
        from cardan.structure.large import is_divided

        recorded = bool(model.parameters.states or model.laws)
        if not recorded and takes_sums(model, formulation, newton_recorded=False):
            from cardan.integrate.sundials.large import LargeGearStepper  # which small models do without

            large = LargeGearStepper(model, formulation, request, tau=tau, form=self.form, max_order=self._order)
            passes = model.has_rows and is_divided(model, SPATIAL)
            return PassingStepper(model, SPATIAL, request, tau, large) if passes else large

        gear = GearStepper(model, formulation, request, tau=tau, form=self.form, max_order=self._order)
        return PassingStepper(model, formulation, request, tau, gear) if model.has_rows else gear


class _Cvode(_Multistep):
    """A method of SUNDIALS CVODE, for trees without couplings."""

    formula: str
    has_states = True

    def stepper(self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        """The integrator at work on a model, with drives `tau` (1, nv)."""
        from cardan.integrate.sundials.stepper import MultistepStepper, require_open_tree

        require_open_tree(model, formulation, self.name)
        return MultistepStepper(model, self.formula, request, tau=tau, max_order=self._order)


@dataclass(frozen=True)
class BDF(_Cvode):
    """Backward differentiation formulas (SUNDIALS CVODE), for stiff trees without couplings.

    Args:
        max_order: highest order, 1 to 5; 5 by default.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "bdf"
    summary = "BDF, trees only, for stiff ones"
    for_stiff = True
    formula = "BDF"
    highest_order = 5
    max_order: int | None = None
    impact: str | None = None


@dataclass(frozen=True)
class Adams(_Cvode):
    """Adams' formulas (SUNDIALS CVODE), for trees without couplings.

    Args:
        max_order: highest order, 1 to 12; 12 by default.
        impact: law of impacts of hard stops and contacts: "newton", also by default, "poisson", or "sequential":
            Newton's of one contact after the other, the one that closes fastest first.

    """

    name = "adams"
    summary = "Adams, trees only"
    formula = "Adams"
    highest_order = 12
    max_order: int | None = None
    impact: str | None = None


# The registry

INTEGRATORS: dict[str, Integrator] = {
    integrator.name: integrator
    for integrator in (DormandPrince(), RK4(), SemiImplicitEuler(), Moreau(), Gear(), Alpha(), BDF(), Adams())
}
OWN = tuple(INTEGRATORS)


def add_method(integrator: Integrator) -> None:
    """Register an integrator of your own: `cd.simulate(..., method=integrator.name)` then finds it.

    It replaces an earlier one of the same name.
    """
    if not isinstance(integrator, Integrator):
        raise InputError(
            f"add_method: give an integrator, e.g. cd.RungeKutta(name, order, A, b); got {shown(integrator)}"
        )
    name = read_name("method", getattr(integrator, "name", None))
    if name in OWN:
        raise InputError(f"method {name!r} is Cardan's own; give yours another name")
    INTEGRATORS[name] = integrator


def find_integrator(method: Any) -> Integrator:
    """The integrator of a name, with its default options; an integrator is returned as it is."""
    if isinstance(method, Integrator):
        read_name("method", getattr(method, "name", None))
        return method
    if isinstance(method, type) and issubclass(method, Integrator):
        raise InputError(f"method {method.__name__} is a class; give an object of it: {method.__name__}()")
    if not isinstance(method, str) or method not in INTEGRATORS:
        like = [known for known in INTEGRATORS.values() if str(method).lower() in known.elsewhere]
        hint = f"; take {like[0].name!r}: {like[0].summary}" if like else nearest(method, INTEGRATORS)
        raise UnknownNameError(f"method {method!r} is not an integrator{hint}")
    return INTEGRATORS[method]


def require_step(integrator: Integrator, step: float | None) -> None:
    """Reject a method of fixed steps without its step."""
    if step is None and not integrator.chooses_steps:
        raise InputError(
            f"simulate: method {integrator.name!r} takes steps of fixed length; give it, e.g. step=1e-3 (s)"
        )


def require_gpu(integrator: Integrator, place: Any) -> None:
    """Reject a method that computes on the CPU only, if a GPU is to compute."""
    if isinstance(place, Place) and not integrator.has_gpu:
        able = ", ".join(repr(name) for name, known in INTEGRATORS.items() if known.has_gpu)
        raise InputError(
            f"simulate: method {integrator.name!r} computes on the CPU; leave out device='{place}', or take {able}"
        )


def require_precision(integrator: Integrator, precision: Any) -> None:
    """Reject an unknown precision, and float32 for methods that do not compute their steps in it."""
    if precision not in PRECISIONS:
        raise InputError(f"simulate: precision must be 'float64' or 'float32', got {shown(precision)}")
    if precision == SINGLE and not integrator.has_float32:
        able = ", ".join(repr(name) for name, known in INTEGRATORS.items() if known.has_float32)
        raise InputError(
            f"simulate: method {integrator.name!r} computes in float64 only; leave out precision='float32', or take "
            f"{able} with a step"
        )


# Options


def option_names(integrator: Any) -> tuple[str, ...]:
    """Names of the options of an integrator: the fields of its dataclass."""
    if not is_dataclass(integrator):
        return ()
    return tuple(f.name for f in fields(integrator) if f.init and f.name != "name")


def with_options(integrator: Integrator, options: Mapping[str, Any]) -> Integrator:
    """The integrator with some options changed; the error for a wrong one names the methods that have it."""
    for name in options:
        if name not in option_names(integrator):
            others = [repr(other.name) for other in INTEGRATORS.values() if name in option_names(other)]
            having = f"; methods that have it: {', '.join(others)}" if others else ""
            raise InputError(f"method {integrator.name!r} has no option {name!r}{having}")
    return replace(integrator, **options) if options else integrator  # type: ignore[type-var]


def option_example(method: Any, name: str, value: Any) -> str:
    """How to give an option, as `cd.Alpha(damping=0.8)`: to the method asked for, or else to one that has it."""
    asked = INTEGRATORS.get(method) if isinstance(method, str) else method
    for integrator in (asked, *(INTEGRATORS[own] for own in OWN)):
        if isinstance(integrator, Integrator) and integrator.name in OWN and name in option_names(integrator):
            return f"cd.{type(integrator).__name__}({name}={shown(value)})"
    return ""
