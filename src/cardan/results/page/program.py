"""What a page needs to simulate: the programs of a model as WebAssembly, and the numbers that its sliders move.

The programs are recorded by the same text as those of `cd.simulate` and compiled from the same LLVM IR:

    march     steps of Dormand and Prince, with their control of the error and the projection onto loops; of a model
              with stops, contacts, friction that sticks or locks, Moreau's steps (`steps`)
    evaluate  accelerations and power at a state, from which steps begin
    locate, change k   events that change the run, and what they change (`events`)
    update k  next values of sampled variables; where there are any
    careful   the same steps near a singular position, each stage brought onto the loops; where there are loops
    project   Newton's method from a state near the loops onto them; where there are loops
    close     the same with the independent joints held where the sliders put them; where there are loops
    show      poses of the bodies, energies, the largest gap of a loop; gaps and rates of rows with laws

All take the free parameters `p`: those of the model, those that the page frees for its sliders, and those of the spring
by which the pointer pulls (`pull`). `data/page/simulate.js` calls them and contains no mechanics.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.rotation import quaternion_of_rotation
from cardan.errors import InputError, ModelError
from cardan.formulation.complementarity import lawful_state
from cardan.formulation.dynamics import constraint_state, time_port
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.readings import contact_lines, touching
from cardan.formulation.spatial import SPATIAL
from cardan.functions.equations import equations
from cardan.integrate.events import Event
from cardan.integrate.explicit.step import equations_of
from cardan.integrate.explicit.stepper import RECOVERED
from cardan.integrate.stepper import Outcome
from cardan.machines.build import Builder
from cardan.machines.webassembly.code import STACK, WebAssemblyCode, compile_for_browser
from cardan.model.field import FRACTION, INERTIA, NOT_NEGATIVE, POSITIVE, STIFFNESS
from cardan.model.force import Coupling
from cardan.model.model import Model
from cardan.model.modes import without_modes
from cardan.model.parameter import JOINT_FIELDS, Parameter, free_fields, with_motion_inputs
from cardan.model.row import Law
from cardan.model.tree import GROUND
from cardan.model.variable import Variable
from cardan.program.program import Port, Program
from cardan.results.page.events import (
    acting_events,
    event_programs,
    switches,
    told_of_events,
    why_no_events,
    with_switches,
)
from cardan.results.page.pull import with_pull
from cardan.results.page.samples import contact_names
from cardan.results.page.steps import CALLED, kernels_of, plain_python, rule_of, told_of_steps, update_programs
from cardan.results.progress import progress_bar
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import assemble
from cardan.structure.kernels import function_of, symbolic, tree_kernel
from cardan.structure.projection import NEWTON_STEPS, projection_kernel
from cardan.structure.rows import generic_configurations, independent_rows, scaled_rows, settle_rows

MOST_RATES = 64  # of a model that a page simulates with sliders: programs with free numbers are not looped
MOST_LOOPED = 256  # of a plain tree
MOST_DEFAULTS = 16  # sliders of numbers that the user did not name
MOST_CURVES = 7  # in one chart
FEW_BODIES = 8  # of a model whose masses are among them
MOST_CAREFUL = 16  # rates of a model with loops that passes singular positions in a page: twice the program
WELL_APART = 0.02  # smallest singular value of the part of all freedoms that held joints have
CONTROL = {"rtol": 1e-6, "atol": 1e-8, "max_step": 1e300, "pause": 1e300}  # of the steps
LOOP_CLOSED = 1e-9  # m or rad: a larger gap means that loops did not close
NO_LINE = 1e-9  # where no line says where a force acts, along its own line, it acts nearest to the origin of its body
VARIABLE = "variable"  # what a parameter that is a variable belongs to

SENTENCES = {
    Outcome.SMALL_STEP: "Stopped: the motion is too stiff or not smooth here, the step size went below rounding.",
    Outcome.NOT_FINITE: "Stopped: a force or the state is no longer a finite number. Try other values{shorter}, and "
    "start again.",
    Outcome.DEAD_POINT: "Stopped at a singular position, where the loops leave the motion undetermined.",
    Outcome.TOO_MANY_STEPS: "Stopped: too many steps.",
}
OPEN = "The loops cannot be closed on the way to these values; everything stays where they last could."
COARSE = "In a step the laws of the stops and of friction were not solved exactly; take a shorter time step."
DRAWN = "Bodies are drawn as they were given; a length that was changed shows in the motion, not in their shapes."


@dataclass(frozen=True, eq=False)
class PageProgram:
    """What a page simulates with, as JSON; only `reason`, a sentence, where it does not simulate."""

    description: dict[str, Any]

    @property
    def reason(self) -> str:
        """Why the page does not simulate; empty if it does."""
        return str(self.description.get("reason", ""))


def page_program(thing: Model | Trajectory, sliders: Sequence[str] | None = None) -> PageProgram:
    """The programs and sliders of a model, or of a run, whose start and drives they then begin with.

    Args:
        thing: a model, or a run of one system.
        sliders: numbers to free for the page beside the model's own free parameters, named as in `Model.free`; by
            default, for a model without free parameters, gravity, the numbers of its force elements and, if there are
            few bodies, their masses.

    """
    model = thing if isinstance(thing, Model) else thing.model
    if sliders is not None and isinstance(sliders, str):
        raise InputError(f"page: sliders is a list of names such as ['crank.mass'], got {sliders!r}")
    model = without_modes(model)
    if reason := _cannot(thing, model):
        return PageProgram({"reason": reason})
    if not model.nv or (model.nv > MOST_RATES and (sliders or not _is_looped(model))):
        if sliders:
            model.unbound.free(*(name for name in sliders if name not in model.parameters.names))
        return PageProgram({"reason": _left_out(model)})
    found = simulated(thing, sliders)
    programs: dict[str, WebAssemblyCode] = {}
    with progress_bar(None, "compiling for the browser", len(found.programs)) as report:
        for k, (name, program) in enumerate(found.programs.items()):
            report(k)
            programs[name] = compile_for_browser(Builder(program))
    code = b"".join(program.code for program in programs.values())
    start, named = found.start, found.named
    return PageProgram(
        {
            "programs": _described(programs),
            "code": base64.b64encode(zlib.compress(code, 9)).decode(),
            "stack": STACK,
            "p": found.p.tolist(),
            "pull": {name: [at.start, at.stop] for name, at in found.pull.items()},
            "sliders": [
                one
                for parameter in named.parameters
                if named.parameters.slice_of(parameter.name).start not in found.steps["again"]
                for one in _sliders(parameter, found.p, named)
            ],
            "coordinates": _coordinates(model, found.holds, start),
            "curves": list(_curves(named, found.steps["again"])),
            "start": {"t": start.t, "q": start.q.tolist(), "v": start.v.tolist(), "tau": start.tau.tolist()},
            "control": CONTROL,
            "careful": {"h": RECOVERED, "outcome": int(Outcome.SINGULAR)},
            **found.steps,
            "told": _differs(thing),
            "touches": [contact_names(model).index(law.name) for law, _ in touching(model)],
            "newton": NEWTON_STEPS,
            "closed": LOOP_CLOSED,
            "longest": _longest(model),
            "sentences": {
                str(int(outcome)): text.replace("{shorter}", " or a shorter time step" if found.steps["step"] else "")
                for outcome, text in SENTENCES.items()
            },
            "open": OPEN,
            "coarse": COARSE,
            "drawn": DRAWN,
            "mass": model.total_mass,
            "size": _reach(model),
            "floating": _floating(model),
        }
    )


@dataclass(frozen=True, eq=False)
class Simulated:
    """What is simulated: the programs, the model with its free numbers `named`, and the values `p` of all of them.

    `pull` tells where in `p` the numbers of the pointer's spring are, `holds` which joints are held to close loops,
    `steps` what the page is told of its steps.
    """

    programs: dict[str, Program]
    named: Model
    p: np.ndarray
    pull: dict[str, slice]
    holds: list[int]
    start: _Start
    steps: dict[str, Any]


def simulated(thing: Model | Trajectory, sliders: Sequence[str] | None = None) -> Simulated:
    """The programs of `page_program`, not compiled."""
    whole = thing if isinstance(thing, Model) else thing.model
    whole.require_one("page")
    model, start = without_modes(whole), _start_of(thing)
    if model.nv > MOST_RATES:
        steps = {"step": 0.0, "tries": [], "laws": [], "states": [], "updates": [], "again": [], "events": []}
        return Simulated(_looped_programs(model), model, np.zeros(0), {}, [], start, steps)
    events = acting_events(thing)
    holds, named = _held(model), with_switches(_with_sliders(model, sliders), events)
    pulled, pull = with_pull(named)
    p, values = pulled.parameters.nominal.copy(), _first_values(thing, model)
    p[: len(values)] = values
    updates = update_programs(pulled)
    programs = _programs(model, pulled, holds, start.q, rule_of(thing), events)
    more, changed = event_programs(pulled, events, kernels_of(pulled, rule_of(thing), events))
    programs |= more | {name: program for name, (_, program) in updates.items()}
    steps = told_of_steps(thing, pulled) | told_of_events(events) | {
        "states": list(pulled.parameters.states),
        "updates": [{"program": name, "every": every} for name, (every, _) in updates.items()],
        "again": _of_themselves(named, changed),
    }  # fmt: skip
    return Simulated(programs, named, p, pull, holds, start, steps)


def _first_values(thing: Model | Trajectory, model: Model) -> np.ndarray:
    """Free parameters (np,) at the start: those of the model, with the inputs of a run at its start."""
    whole = thing if isinstance(thing, Model) else thing.model
    size = model.parameters.size
    values = np.array(whole.parameters.nominal if whole.values is None else whole.values)[:size]
    if isinstance(thing, Trajectory) and thing.parameters is not None:
        given = thing.parameters[0]
        for name in thing.settings.get("inputs", []):
            values[model.parameters.slice_of(name)] = given[model.parameters.slice_of(name)]
    return values


INPUTS = "The inputs of the run, {names}, are not given again here: each keeps its first value until its slider moves."


def _cannot(thing: Model | Trajectory, model: Model) -> str:
    """Why programs of a page cannot move the model as it moved in the run; empty if they can."""
    if name := plain_python(model):
        return CALLED.format(name=name)
    return why_no_events(thing, model)


def _differs(thing: Model | Trajectory) -> str:
    """What is otherwise here than in the run, as a sentence; empty if nothing is."""
    names = [] if isinstance(thing, Model) else list(thing.settings.get("inputs", []))
    return INPUTS.format(names=", ".join(names)) if names else ""


def _left_out(model: Model) -> str:
    if not model.nv:
        return "This page does not simulate: nothing in the model can move."
    return (
        f"This page does not simulate: the model has {model.nv} coordinates. With more than {MOST_RATES}, only trees "
        f"of at most {MOST_LOOPED} without force elements, free parameters and sliders are written for a browser."
    )


@dataclass(frozen=True, eq=False)
class _Start:
    """Time (s), configuration (nq,), velocity (nv,), constant drives (nv,), and the largest rates (nv,) of the run."""

    t: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    fastest: np.ndarray


def _start_of(thing: Model | Trajectory) -> _Start:
    if isinstance(thing, Model):
        q, v = assemble(thing)
        return _Start(0.0, q, v, np.zeros(thing.nv), np.abs(v))
    if len(thing.time) == 1:  # a model at rest
        t = float(thing.time[0])
        q, v = assemble(thing.model, thing.q[0], t=t)
        return _Start(t, q, v, np.zeros(thing.model.nv), np.abs(v))
    tau = np.zeros(thing.model.nv) if thing.tau is None else np.asarray(thing.tau, dtype=float)
    fastest = np.abs(thing.v[thing.valid]).max(axis=0)
    return _Start(float(thing.time[0]), np.asarray(thing.q[0]), np.asarray(thing.v[0]), tau, fastest)


# Numbers that sliders move.


def _with_sliders(model: Model, names: Sequence[str] | None) -> Model:
    """The model at nominal values, with the numbers free that sliders move."""
    free = model.unbound
    if names is not None:
        return free.free(*(name for name in dict.fromkeys(names) if name not in free.parameters.names))
    if any(parameter.place[0] != VARIABLE and parameter.name not in switches(model) for parameter in model.parameters):
        return free
    most = len(free.parameters) + MOST_DEFAULTS
    for name in _usual_names(model):
        try:
            free = free.free(name)
        except ModelError:  # a name with two meanings
            continue
        if len(free.parameters) == most:
            break
    return free


def _variable(model: Model, parameter: Parameter) -> Variable | None:
    """The variable that a parameter is; None if it belongs to an element."""
    return model.variables[parameter.place[1]] if parameter.place[0] == VARIABLE else None


def _of_themselves(model: Model, changed: set[int]) -> list[int]:
    """Places in `p` of what changes by itself, which begins again where the motion does, and has no slider.

    These are variables with a rate or that are sampled, slopes of inputs, and what events have `changed`.
    """
    slopes = {variable.slope for variable in model.variables}
    found: list[int] = []
    for parameter in model.parameters:
        x = _variable(model, parameter)
        places = range(model.parameters.size)[model.parameters.slice_of(parameter.name)]
        own = x is not None and (x.name in slopes or x.every > 0 or (x.rate is not None and not x.slope))
        found += places if own or changed.intersection(places) else []
    return found


def _usual_names(model: Model) -> Iterator[str]:
    """Gravity, if there is some, the single numbers of force elements, and the masses of few bodies."""
    if np.any(model.gravity):
        yield "gravity"
    for force in model.forces:
        for name in free_fields(force):
            if force.numbers[name].size == 1:
                yield f"{force.name}.{name}"
    if model.nb <= FEW_BODIES:
        carried = zip(model.bodies, model.tree.body_link, strict=True)  # a body fixed to ground weighs on nothing
        yield from (f"{body.name}.mass" for body, link in carried if body.mass and link != GROUND)


def _sliders(parameter: Parameter, p: np.ndarray, model: Model) -> Iterator[dict[str, Any]]:
    """Sliders of a parameter: one for each of its numbers that is not 0, or one factor for all of them together."""
    at = model.parameters.slice_of(parameter.name)
    first, values = at.start, p[at]
    if parameter.rule in (INERTIA, STIFFNESS):
        yield {
            "name": parameter.name, "unit": "times", "at": list(range(first, first + values.size)),
            "base": values.tolist(), "low": 0.2, "high": 3.0, "value": 1.0, "moves": False, "rule": POSITIVE,
        }  # fmt: skip
        return
    shown = [k for k in range(values.size) if values[k] or not values.any()]
    locks = switches(model)
    axes = "xyz" if values.size == 3 else [f"[{k}]" for k in range(values.size)]
    for k in shown:
        low, high = _range(parameter, float(values[k]))
        name = parameter.name if values.size == 1 else f"{parameter.name} {axes[k]}"
        yield {
            "name": name, "unit": parameter.unit, "at": [first + k], "base": [1.0], "low": low, "high": high,
            "value": float(values[k]), "moves": parameter.place[2] in JOINT_FIELDS, "rule": parameter.rule,
            "switch": parameter.name in locks,
        }  # fmt: skip


def _range(parameter: Parameter, x: float) -> tuple[float, float]:
    """Ends of a slider at `x`."""
    size = abs(x) or 1.0
    if parameter.rule == FRACTION:
        return 0.0, 1.0
    if parameter.rule == POSITIVE:
        return 0.1 * size, 3.0 * size
    if parameter.rule == NOT_NEGATIVE:
        return 0.0, 3.0 * size
    if parameter.place[0] in ("joint", "body") and x:
        return min(0.5 * x, 1.5 * x), max(0.5 * x, 1.5 * x)
    return -2.0 * size, 2.0 * size


def _held(model: Model) -> list[int]:
    """Joints, by number, that are held while loops are closed: single coordinates that determine all others.

    Joints on the ground come first, since people think of cranks as given.
    """
    from scipy.linalg import null_space

    if not model.has_rows:
        return []
    free = null_space(scaled_rows(model.unbound, generic_configurations(model)[0]), rcond=1e-8)
    links = [link for link in model.tree.links if link.kind.nq == link.kind.nv == 1]
    links.sort(key=lambda link: model.joints[link.joint].parent != GROUND)
    found: list[int] = []
    chosen = np.zeros((0, free.shape[1]))
    for link in links:
        more = np.vstack([chosen, free[link.v]])
        if np.linalg.svd(more, compute_uv=False).min(initial=1.0) > WELL_APART and len(more) <= free.shape[1]:
            chosen, found = more, [*found, link.joint]
    return sorted(found)


def _coordinates(model: Model, holds: list[int], start: _Start) -> list[dict[str, Any]]:
    """The numbers that sliders start with: all coordinates and rates of a tree, those of held joints with loops.

    `hold` is the place of a held one among those held, -1 in a tree. `q` is -1 where only the rate has a slider:
    quaternions have none.
    """
    found, reach = [], _reach(model)
    for link in model.tree.links:
        joint, kind = model.joints[link.joint], link.kind
        if model.has_rows and link.joint not in holds:
            continue
        for k, rate_unit in enumerate(kind.v_units):
            i, j = link.q.start + k if kind.nq == kind.nv else -1, link.v.start + k
            q, v, angle = float(start.q[i]) if i >= 0 else 0.0, float(start.v[j]), rate_unit == "rad/s"
            limits = (joint.data.lower, joint.data.upper) if kind.nv == 1 else (None, None)
            low, high = (
                x if x is not None and math.isfinite(x) else q + sign * (math.pi if angle else reach)
                for x, sign in zip(limits, (-1, 1), strict=True)
            )
            fast = max(2 * float(start.fastest[j]), 2 * abs(v), 2 * math.pi if angle else reach)
            found.append({
                "name": model.coordinate_names[j], "q": i, "v": j, "hold": holds.index(link.joint) if holds else -1,
                "unit": "rad" if angle else "m", "rate_unit": rate_unit, "low": min(low, q), "high": max(high, q),
                "value": q, "fast": fast, "rate": v,
            })  # fmt: skip
    return found


def _curves(model: Model, changing: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What can be plotted while the page simulates: coordinates and rates that have the same unit."""
    for kind, what in (("q", "coordinates"), ("v", "rates")):
        by_unit: dict[str, list[tuple[str, int]]] = {}
        for link in model.tree.links:
            units, at = (link.kind.q_units, link.q) if kind == "q" else (link.kind.v_units, link.v)
            name = model.joints[link.joint].name
            for k, unit in enumerate(units):
                if unit != "1":  # quaternions
                    label = name if len(units) == 1 else f"{name}[{k}]"
                    by_unit.setdefault(unit, []).append((label, at.start + k))
        for unit, found in sorted(by_unit.items(), key=lambda item: -len(item[1])):
            for first in range(0, len(found), MOST_CURVES):
                some = found[first : first + MOST_CURVES]
                numbers = f"{first + 1}" if len(some) == 1 else f"{first + 1} to {first + len(some)}"
                name = what if len(found) <= MOST_CURVES else f"{what} {numbers}"
                yield _chart(kind, name, unit, some)
    yield from _charts_of_laws(model)
    yield from _charts_of_variables(model, set(changing))


def _chart(kind: str, name: str, unit: str, found: list[tuple[str, int]]) -> dict[str, Any]:
    """Curves of one unit, each a name and its place in the numbers of a kind."""
    names, at = [label for label, _ in found], [k for _, k in found]
    return {"kind": kind, "name": name, "unit": unit, "curves": names, "at": at}


def _charts_of_laws(model: Model) -> Iterator[dict[str, Any]]:
    """Forces of rows with laws, and gaps, those of one unit together."""
    rows = list(enumerate(model.lawful_rows))
    for unit in dict.fromkeys(row.force_unit for _, row in rows):
        some = [(row.name, k) for k, row in rows if row.force_unit == unit]
        yield _chart("forces", "forces of stops and friction", unit, some)
    gaps = [(k, row) for k, row in rows if row.law is Law.UNILATERAL]
    for unit in dict.fromkeys(row.unit for _, row in gaps):
        yield _chart("gaps", "gaps", unit, [(row.name, k) for k, row in gaps if row.unit == unit])


def _charts_of_variables(model: Model, own: set[int]) -> Iterator[dict[str, Any]]:
    """Parameters that change by themselves, at places `own` of `p`, those of one element together."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for parameter in model.parameters:
        at = model.parameters.slice_of(parameter.name)
        element, _, what = parameter.name.rpartition(".")
        names = [what] if parameter.size == 1 else [f"{what}[{k}]" for k in range(parameter.size)]
        places = [(name, k) for name, k in zip(names, range(at.start, at.stop), strict=True) if k in own]
        found.setdefault((element or "variables", parameter.unit), []).extend(places)
    for (element, unit), places in found.items():
        if places:
            yield _chart("p", element, unit, places[:MOST_CURVES])


def _reach(model: Model) -> float:
    """The farthest that a joint or a centre of mass is from the origin of a body, m; at least a millimetre."""
    ends = [x.position for joint in model.joints for x in (joint.at, joint.child_at)] + [b.com for b in model.bodies]
    return max([1e-3, *(float(np.linalg.norm(x)) for x in ends)])


def _longest(model: Model) -> list[float]:
    """How far each coordinate (nq,) may move at once while loops are closed: a radian, or the size of the model, m."""
    units = [unit for link in model.tree.links for unit in link.kind.q_units]
    return [_reach(model) if unit == "m" else 1.0 for unit in units]


def _floating(model: Model) -> int:
    """A body that nothing ties to the ground, which a picture should follow; -1 if there is none."""
    ties = [joint for joint in model.joints if GROUND in (joint.parent, joint.child)]
    free = bool(ties) and all(joint.kind.nv == 6 for joint in ties)
    return max(ties[0].parent, ties[0].child) if free else -1


# Programs.


def _programs(
    model: Model, pulled: Model, holds: list[int], q: np.ndarray, rule: str, events: tuple[Event, ...]
) -> dict[str, Program]:
    """The programs of a model with the pointer's spring; `q` (nq,) is where held joints are nominally.

    `rule` is the law of impacts.
    """
    if model.has_rows:
        settle_rows(pulled, generic_configurations(model), independent_rows(model))
    kernels = kernels_of(pulled, rule, events)
    found = {"march": kernels.march, "evaluate": kernels.evaluate}
    if model.has_rows:
        found |= {"project": projection_kernel(pulled), "close": projection_kernel(_holding(pulled, holds, q))}
        if model.nv <= MOST_CAREFUL:
            found["careful"] = kernels_of(pulled, rule, events, careful=True).march
    return {name: kernel.program for name, kernel in found.items()} | {"show": _show(pulled)}


def _is_looped(model: Model) -> bool:
    """Whether steps of a model are loops over its links, which makes programs of large plain trees short."""
    plain = model.is_plain and not model.parameters.names
    return plain and model.nv <= MOST_LOOPED and equations_of(model, SPATIAL).looped


def _looped_programs(model: Model) -> dict[str, Program]:
    """The programs of a large tree; they have no free numbers, so that nothing can be pulled."""
    march = kernels_of(model).march.program
    return {"march": march, "evaluate": tree_kernel(model, "forward_dynamics").program, "show": _show(model)}


def _holding(model: Model, holds: list[int], q: np.ndarray) -> Model:
    """The model with some joints held: value and rate that each has more than at `q` are free, and its acceleration."""
    more = []
    for j in holds:
        at = model.q_slice(model.joints[j].name)
        more.append(Coupling(f"{model.joints[j].name} held", "motion", (j,), np.ones(1), float(q[at][0])))
    count = len(model.couplings)
    held = with_motion_inputs(replace(model, couplings=(*model.couplings, *more)), range(count, count + len(more)))
    kept = {model.rows[row].name for row in independent_rows(model)} | {coupling.name for coupling in more}
    settle_rows(held, [q], [k for k, name in enumerate(held.rows.names) if name in kept])
    return held


def _show(model: Model) -> Program:
    """`q, v, t, p` to poses (nb, 7), position (m) and quaternion (w, x, y, z), energies (J), and gap (m or rad).

    Where rows have laws, with forces x (m,) in the last step, also their gaps (m or rad, zero in rows without one) and
    rates, and of each contact between bodies the point and the force (6,), m and N, in ground axes.
    """
    free = (Port("p", (model.parameters.size,)),) if model.parameters else ()
    inputs = (Port("q", (model.nq,)), Port("v", (model.nv,)), Port("t", ()), *free)
    m, touches = len(model.lawful_rows), touching(model)
    inputs += (Port("x", (m,)),) if m else ()
    outputs = [Port("poses", (model.nb, 7)), Port("kinetic", ()), Port("potential", ()), Port("gap", ())]
    outputs += [Port("gaps", (m,)), Port("rates", (m,))] if m else []
    outputs += [Port("touching", (len(touches), 6))] if touches else []

    def record() -> Any:
        import casadi as ca

        symbols = [ca.SX.sym(port.name, port.size) for port in inputs]
        q, v, t, *p = symbols[: len(symbols) - (m > 0)]
        written, own_p = symbolic(model)
        kin = kinematics_of_tree(written, q, v)
        poses = [kin.pose(b) for b in range(model.nb)]
        rows = ca.vertcat(*(ca.horzcat(r.T, quaternion_of_rotation(R).T) for R, r in poses))
        eq = equations(model)
        energies = [eq.graph("kinetic_energy")(q, v, *p), eq.graph("potential_energy")(q, *p)]
        gap = ca.SX(0)
        time = (t,) if time_port(model) else ()
        if model.has_rows:
            gap = ca.norm_inf(function_of(model, constraint_state(model))(q, *time, *p)[0])
        rows = ca.substitute(rows, own_p, p[0]) if p else rows
        state = function_of(model, lawful_state(model)).call([q, v, *time, *p]) if m else []
        if touches:
            state.append(_touching(model, function_of(model, contact_lines(model))(q, v, *time, *p), rows, symbols[-1]))
        return ca.Function("show", symbols, [rows, *energies, gap, *state])

    key = hashlib.sha256(f"{model.key} shown in a page".encode()).hexdigest()
    return Program("show", inputs, tuple(outputs), key, record)


def _touching(model: Model, lines: Any, poses: Any, x: Any) -> Any:
    """Points and forces (c, 6) of contacts, from the `contact_lines`, the poses (nb, 7), and the forces x (m,)."""
    import casadi as ca

    found, line = [], 0
    first = {law.name: sum(len(other.rows) for other in model.laws[:k]) for k, law in enumerate(model.laws)}
    for law, body in touching(model):
        N, b, force = NO_LINE * ca.SX.eye(3), ca.SX(3, 1), ca.SX(3, 1)
        for k in range(len(law.rows)):
            m, f = lines[line, :3].T, lines[line, 3:].T  # p x f = m of all rows, p nearest to the origin of the body
            N, b = N + ca.dot(f, f) * ca.SX.eye(3) - f @ f.T, b + ca.cross(f, m)
            force, line = force + x[first[law.name] + k] * f, line + 1
        found.append(ca.horzcat(poses[body, :3] + ca.solve(N, b).T, force.T))
    return ca.vertcat(*found)


def _described(programs: dict[str, WebAssemblyCode]) -> dict[str, Any]:
    """Compiled programs as JSON, with where each is in the code of all."""
    found: dict[str, Any] = {}
    at = 0
    for name, program in programs.items():
        found[name] = {**program.described(), "code": [at, at + len(program.code)]}
        at += len(program.code)
    return found
