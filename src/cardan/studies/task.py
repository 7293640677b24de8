"""What is computed of the members of a study: their numbers enter the model and its start, all of them as one batch.

A member's results depend on its own numbers alone, to the bit: kernels compute every row of a batch alike, and what is
done in NumPy here treats each row by itself. So it does not matter which members are computed together, or where.

Members that cannot be computed have a reason. Where something raises for a batch of members, the batch is halved until
the member is found, and the others go on.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.errors import CardanError, DeviceError, InputError, UnknownNameError, nearest
from cardan.integrate.integrators import find_integrator
from cardan.integrate.stepper import Outcome
from cardan.model.joint import NUMBERED
from cardan.model.model import Model, State
from cardan.model.named_state import coordinates_by_name
from cardan.model.parameter import JOINT_FIELDS, find_parameter, free_fields
from cardan.model.values import shown
from cardan.results.simulate import simulate
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import named_state, project_velocity, read_configuration, read_rates
from cardan.structure.closing import close_each, ranks_that_differ
from cardan.studies.measure import WHOLE, Described, Measure, measures_of, require_name
from cardan.studies.run import Run
from cardan.studies.study import DONE, FAILED

RATE = ".rate"
INDEX = re.compile(r" at index \(?0,?\)?|, system 0\b| of system 0\b| \(system 0\)")


@dataclass(frozen=True)
class Column:
    """What a column of a design means: a free parameter's number, a joint's coordinate or its rate."""

    name: str
    sort: str  # "parameter", "coordinate", "rate", or "value" of a function without a model
    place: Any = None  # number in `p`, or the joint's coordinate by name
    unit: str = ""
    moves_start: bool = False


@dataclass
class Results:
    """Results of k members: measures (k, ...) by name, what they are, status (k,), reasons and warnings by number.

    `first` is the number, in the study, of the first of them; it is for messages.
    """

    values: dict[str, np.ndarray]
    about: dict[str, Described]
    state: np.ndarray
    reasons: dict[int, str] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    first: int = 0

    @classmethod
    def empty(cls, members: int, first: int = 0) -> Results:
        """Nothing computed yet."""
        return cls({}, {}, np.zeros(members, dtype=np.uint8), first=first)

    def put(self, name: str, rows: np.ndarray, values: np.ndarray, about: Described) -> None:
        """Keep a measure of some of the members."""
        if name not in self.values:
            self.values[name] = np.full((len(self.state), *values.shape[1:]), np.nan)
            self.about[name] = about
        if self.values[name].shape[1:] != values.shape[1:]:
            raise other_shape(name, self.first + rows, values.shape[1:], self.values[name].shape[1:])
        self.values[name][rows] = values

    def fail(self, member: int, why: str) -> None:
        """Keep why a member failed."""
        self.state[member] = FAILED
        self.reasons.setdefault(member, why)

    def join(self, other: Results, first: int) -> None:
        """Take over results of other members, from the number `first` on."""
        rows = np.arange(first, first + len(other.state))
        if other.values and self.values and other.values.keys() != self.values.keys():
            raise other_names(other.values, self.values, self.first + rows)
        for name, values in other.values.items():
            self.put(name, rows, values, other.about[name])
        self.state[rows] = other.state
        self.reasons |= {first + k: why for k, why in other.reasons.items()}
        for text, member in other.warned.items():
            self.warned.setdefault(text, first + member)


def other_names(some: Iterable[str], others: Iterable[str], members: np.ndarray) -> InputError:
    """The error of a function that does not measure the same of all members; `members` (k,) have `some`."""
    return InputError(
        f"sweep: the function returns {', '.join(map(repr, some))} for {_numbered(members)} and "
        f"{', '.join(map(repr, others))} for others; it must be the same for all"
    )


def other_shape(name: str, members: np.ndarray, shape: tuple[int, ...], others: tuple[int, ...]) -> InputError:
    """The error of a measure whose shape is not the same for all members."""
    return InputError(
        f"sweep: measure {name!r} has the shape {shape} for {_numbered(members)} and {others} for others; it must be "
        "the same for all"
    )


def _numbered(members: np.ndarray) -> str:
    """Members that follow one another, in words."""
    return f"member {members[0]}" if len(members) == 1 else f"members {members[0]} to {members[-1]}"


def failed_results(members: int, why: str) -> Results:
    """Results of members all of which failed for the same reason."""
    found = Results.empty(members)
    for k in range(members):
        found.fail(k, why)
    return found


@dataclass(frozen=True, eq=False)
class Task:
    """All that a worker needs to compute members of a study; it can be pickled if the user's functions can.

    Args:
        model: with the parameters of the design free; None: the function gets arrays by name.
        columns: what the columns of the design mean.
        run: settings of runs, or a function of a model, or of a model and its configurations and velocities.
        measures: what is kept of a run; none of a function.

    """

    model: Model | None
    columns: tuple[Column, ...]
    run: Run | Callable[..., Any]
    measures: Mapping[str, Measure]
    samples: int = 0
    """Samples of each run."""

    def compute(self, values: np.ndarray, card: int = 0, first: int = 0) -> Results:
        """Results of members with these values (k, columns), of which the first has the number `first` in the study.

        `card` is the GPU of this worker, if it has one.
        """
        found = Results.empty(len(values), first)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for rows, arguments in self._started(values, found):
                if isinstance(self.run, Run):
                    self._simulated(rows, arguments, found, card)
                else:
                    self._called(rows, arguments, found)
        for warning in caught:
            if issubclass(warning.category, RuntimeWarning):
                found.warned.setdefault(str(warning.message), 0)
        found.state[found.state == 0] = DONE
        return found

    # The start of each member.

    def _started(self, values: np.ndarray, found: Results) -> Iterator[tuple[np.ndarray, tuple[Any, ...]]]:
        """Members whose start is known, in one batch if nothing raises, and what their run or function begins with."""
        every = np.arange(len(values))
        if self.model is None:
            columns = {column.name: values[:, k] for k, column in enumerate(self.columns)}
            yield every, (columns,)
            return
        wants_start = isinstance(self.run, Run) or number_of_arguments(self.run) > 1
        for rows, bound in _halving(every, lambda rows: self._bound(values[rows]), found):
            if not wants_start:
                yield rows, (bound,)
                continue
            q, v, reasons = self._starts(bound, values[rows])
            for k, why in reasons.items():
                found.fail(int(rows[k]), why)
            good = np.array([k for k in range(len(rows)) if k not in reasons], dtype=int)
            if len(good):
                yield rows[good], (bound if len(good) == len(rows) else _part(bound, good), q[good], v[good])

    def _bound(self, values: np.ndarray) -> Model:
        """The model at the members' values (k, columns) of its free parameters."""
        assert self.model is not None
        free = self.model.parameters
        if not free:
            return self.model
        p = np.tile(free.nominal if self.model.values is None else self.model.values, (len(values), 1))
        for k, column in enumerate(self.columns):
            if column.sort == "parameter":
                p[:, column.place] = values[:, k]
        parts = {each.name: p[:, free.slice_of(each.name)].reshape(len(p), *each.shape) for each in free}
        return self.model.unbound.at(parts)

    def _given(self, values: np.ndarray, sort: str) -> dict[str, np.ndarray]:
        """Coordinates or rates of the members by name, each (k,)."""
        return {c.place: values[:, k] for k, c in enumerate(self.columns) if c.sort == sort}

    def _starts(self, bound: Model, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
        """Configurations (k, nq) and velocities (k, nv) that fit the loops, and reasons where there are none.

        Members that differ only in numbers which move no loop, masses for example, have the same start.
        """
        moving = [k for k, column in enumerate(self.columns) if column.moves_start]
        if moving:
            _, first, same = np.unique(values[:, moving], axis=0, return_index=True, return_inverse=True)
            same = same.reshape(-1)
        else:
            first, same = np.zeros(1, dtype=int), np.zeros(len(values), dtype=int)
        part, own, found = _part(bound, first), values[first], Results.empty(len(first))
        q, free = self._guess(own)
        q, reasons = close_each(part, q, free, self._start_time)
        closed = np.array([k for k in range(len(q)) if k not in reasons], dtype=int)
        changed = ranks_that_differ(_part(part, closed), q[closed]) if len(closed) else {}
        reasons |= {int(closed[k]): why for k, why in changed.items()}
        v = np.zeros((len(q), bound.nv))
        good = np.array([k for k in range(len(q)) if k not in reasons], dtype=int)
        for keep, rates in _halving(good, lambda k: self._velocities(_part(part, k), q[k], own[k]), found):
            v[keep] = rates
        reasons |= found.reasons
        bad = np.flatnonzero(np.isin(same, list(reasons))) if reasons else np.zeros(0, dtype=int)
        return q[same], v[same], {int(k): reasons[int(same[k])] for k in bad}

    @property
    def _start_time(self) -> float:
        return self.run.start if isinstance(self.run, Run) else 0.0

    def _guess(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configurations (k, nq) before the loops are closed, and which rates (nv,) may move them."""
        assert self.model is not None
        model, given = self.model.unbound, self._given(values, "coordinate")
        q0 = self.run.q0 if isinstance(self.run, Run) else None
        if isinstance(q0, Mapping):
            apart = {name: value for name, value in q0.items() if name not in given}
            found, free = read_configuration("sweep", "q0", model, {**apart, **given})
        else:
            base, free = read_configuration("sweep", "q0", model, q0)
            if base.ndim != 1:
                raise InputError(f"sweep: q0 of a run must have the shape ({model.nq},), the same for all members")
            found, held = coordinates_by_name("sweep", "q0", model, given, base) if given else (base, [])
            free[held] = False
        return np.array(np.broadcast_to(found, (len(values), model.nq))), free

    def _velocities(self, bound: Model, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Velocities (k, nv) that fit the loops."""
        model, given = bound.unbound, self._given(values, "rate")
        q0, v0 = (self.run.q0, self.run.v0) if isinstance(self.run, Run) else (None, None)
        if isinstance(q0, str):
            q0 = named_state("sweep", "q0", model, q0)
        if v0 is None and isinstance(q0, State):
            v0 = q0.v
        if given and v0 is not None and not isinstance(v0, Mapping):
            raise InputError("sweep: give v0 of a run by name, since rates of the study are by name too")
        if given:
            apart = {name: value for name, value in (v0 or {}).items() if name not in given}  # type: ignore[union-attr]
            v0 = {**apart, **given}
        v, free = read_rates("sweep", "v0", model, None, v0)
        return project_velocity(bound, q, np.broadcast_to(v, (len(q), model.nv)), free, self._start_time)

    # Runs and functions.

    def _simulated(self, rows: np.ndarray, start: tuple[Any, ...], found: Results, card: int) -> None:
        """Run members (k,) from their start and keep the measures."""
        run, (bound, q, v) = self.run, start
        assert isinstance(run, Run)
        device = device_here(run, card)

        def batch(keep: np.ndarray) -> Trajectory:
            return simulate(
                _part(bound, keep), run.duration, q[keep], v[keep], tau=run.tau, failures="keep", device=device,
                progress=False, **run.settings,
            )  # fmt: skip

        for keep, runs in _halving(np.arange(len(rows)), batch, found, rows):
            ended = np.asarray(runs.outcome)
            fine = (ended == "") | (ended == Outcome.EVENT.text)
            last = np.nanmax(np.broadcast_to(runs.time, runs.valid.shape), axis=1)
            for k in np.flatnonzero(~fine):
                found.fail(int(rows[keep[k]]), f"{ended[k]} at t = {last[k]:.6g} s")
            if fine.any():
                self._measured(rows[keep], runs, fine, found)

    def _measured(self, rows: np.ndarray, runs: Trajectory, fine: np.ndarray, found: Results) -> None:
        """Keep the measures of the runs that did not fail."""
        assert isinstance(self.run, Run)
        stopped = any(event.action == "stop" for event in self.run.events)

        def all_of(keep: np.ndarray) -> dict[str, tuple[np.ndarray, Described]]:
            lo, hi = int(keep[0]), int(keep[-1]) + 1
            part = runs if len(keep) == len(rows) else runs[lo:hi]
            made = {}
            for name, measure in self.measures.items():
                values = measure.values(part)
                about = measure.about(part, values.shape[1:])
                if about.dims[:1] == ("time",):
                    values = _padded(values, self.samples)
                    about = about if not stopped else Described(("sample", *about.dims[1:]), *_rest(about))
                made[name] = (values, about)
            if stopped and any(m.over == WHOLE for m in self.measures.values()):
                time = np.broadcast_to(part.time, part.valid.shape)
                made["t"] = (_padded(time, self.samples), Described(("sample",), (None,), "s", "time"))
            return made

        for keep, made in _halving(np.arange(len(rows)), all_of, found, rows):
            for name, (values, about) in made.items():
                good = fine[keep]
                found.put(name, rows[keep][good], values[good], about)
                if about.dims[:1] not in (("time",), ("sample",)):
                    _note_not_finite(name, rows[keep][good], values[good], found)

    def _called(self, rows: np.ndarray, arguments: tuple[Any, ...], found: Results) -> None:
        """Call the user's function with members (k,) and keep what it returns."""
        assert callable(self.run)
        call, count = self.run, number_of_arguments(self.run)

        def some(keep: np.ndarray) -> dict[str, np.ndarray]:
            given = [_part(x, keep) if isinstance(x, Model) else _rows_of(x, keep) for x in arguments[:count]]
            answer = call(*given)
            named = answer if isinstance(answer, Mapping) else {"value": answer}
            return {name: _one_for_each(name, x, len(keep)) for name, x in named.items()}

        for keep, made in _halving(np.arange(len(rows)), some, found, rows):
            if found.values and made.keys() != found.values.keys():
                raise other_names(made, found.values, found.first + rows[keep])
            for name, values in made.items():
                require_name(name, [column.name for column in self.columns])
                dims = tuple(f"{name} {k}" for k in range(values.ndim - 1))
                found.put(name, rows[keep], values, Described(dims, (None,) * len(dims)))
                _note_not_finite(name, rows[keep], values, found)


def columns_of(model: Model, names: tuple[str, ...]) -> tuple[Model, tuple[Column, ...]]:
    """The model with the parameters of a design free, and what the columns mean."""
    found: list[tuple[str, str, Any]] = []
    for name in names:
        stem, number = (m[1], int(m[2])) if (m := NUMBERED.fullmatch(name)) else (name, None)
        joint = stem.removesuffix(RATE)
        if joint in model.joint_names and (joint != stem or f"{stem}" in model.joint_names):
            sort = "rate" if joint != stem else "coordinate"
            found.append((name, sort, joint if number is None else f"{joint}[{number}]"))
        else:
            found.append((name, "parameter", (stem, number)))
    wanted = dict.fromkeys(place[0] for _, sort, place in found if sort == "parameter")
    for stem in wanted:
        if stem not in model.parameters.names:
            _require_free(model, stem)
    model = model.free(*(stem for stem in wanted if stem not in model.parameters.names))
    return model, tuple(_column(model, *each) for each in found)


def _require_free(model: Model, name: str) -> None:
    """Reject a name of a design that is no parameter, joint or rate of the model."""
    try:
        find_parameter(model, name)
    except UnknownNameError as error:
        joints = [model.joints[link.joint].name for link in model.tree.links if link.kind.nv]
        own = [f"{x.name}.{f}" for group in (model.bodies, model.joints, model.forces) for x in group
               for f in free_fields(x)]  # fmt: skip
        known = [*joints, *(f"{joint}{RATE}" for joint in joints), *own, "gravity"]
        if "." in name and name.rpartition(".")[0] in {each.rpartition(".")[0] for each in known}:
            raise UnknownNameError(
                str(error).replace(f"model {model.name!r}", f"sweep: model {model.name!r}")
            ) from None
        raise UnknownNameError(
            f"sweep: {name!r} is neither a parameter of model {model.name!r} that can be freed ('crank.mass'), nor a "
            f"joint ('A'), nor a joint's rate ('A.rate'){nearest(name, known)}"
        ) from None


def _column(model: Model, name: str, sort: str, place: Any) -> Column:
    if sort != "parameter":
        joint = NUMBERED.fullmatch(place)
        stem, k = (joint[1], int(joint[2])) if joint else (place, 0)
        # reads the name as a run does, and says what is wrong with it
        if sort == "coordinate":
            read_configuration("sweep", "q0", model.unbound, {place: 0.0})
        else:
            read_rates("sweep", "v0", model.unbound, None, {place: 0.0})
        kind = model.joint(stem).kind
        return Column(name, sort, place, (kind.q_units if sort == "coordinate" else kind.v_units)[k], True)
    stem, number = place
    parameter, at = model.parameters[stem], model.parameters.slice_of(stem)
    if number is None and parameter.size != 1:
        raise InputError(f"sweep: {name!r} has {parameter.size} numbers; name one of them, as in '{stem}[0]'")
    if number is not None and number >= parameter.size:
        raise InputError(f"sweep: {name!r}: its components are numbered 0 to {parameter.size - 1}")
    sort_of, _, what = parameter.place
    return Column(name, sort, at.start + (number or 0), parameter.unit, sort_of == "joint" and what in JOINT_FIELDS)


def make_task(model: Any, names: tuple[str, ...], run: Any, measure: Any) -> Task:
    """The task of a study, with everything checked that can be checked before members are computed."""
    if not isinstance(run, Run) and not callable(run):
        raise InputError(f"sweep: run must be a cd.Run(duration=...) or a function of a model, got {shown(run)}")
    if not isinstance(run, Run):
        if measure is not None:
            raise InputError("sweep: measure is of runs; a function given as run returns what is kept, by name")
        if not 1 <= number_of_arguments(run) <= (3 if model is not None else 1):
            raise InputError("sweep: a function given as run takes a model, or a model and q, or a model, q and v")
    if model is None:
        if isinstance(run, Run):
            raise InputError("sweep: there is no run without a model; give a model, or a function of values by name")
        return Task(None, tuple(Column(name, "value") for name in names), run, {})
    if not isinstance(model, Model):
        from cardan.model.memory import require_model

        require_model("sweep", model)
    model.require_one("sweep")
    free, columns = columns_of(model, names)
    if not isinstance(run, Run):
        return Task(free, columns, run, {})
    if measure is None:
        raise InputError("sweep: say what is kept of each run: measure={'peak': cd.peak('A.reaction_force')}, or ['q']")
    times = run.times(free)
    task = Task(free, columns, run, measures_of(measure), len(times))
    q = np.broadcast_to(model.start(), (1, 2, model.nq))
    example = Trajectory(free, times[[0, -1]], q, np.zeros((1, 2, model.nv)))
    for name, each in task.measures.items():
        if isinstance(each.of, str) and each.of not in example:
            raise UnknownNameError(f"sweep: measure {name!r}: {str(example._unknown(each.of)).partition(': ')[2]}")
    return task


def number_of_arguments(function: Any) -> int:
    """How many arguments a function must be given by position."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given) or 1


def device_here(run: Run, card: int) -> str | None:
    """Where a worker computes: for "auto" on a GPU if it has one that the integrator can use."""
    if run.device not in ("auto", "gpu"):
        return run.device
    if run.device == "auto" and not find_integrator(run.method).has_gpu:
        return None
    from cardan.machines.cuda import driver

    count = driver.card_count()
    if not count:
        return None if run.device == "auto" else "gpu"  # which says what is missing
    return f"gpu:{card % count}"


def _halving(
    rows: np.ndarray, work: Callable[[np.ndarray], Any], found: Results, numbers: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, Any]]:
    """Do work on members together; where it raises on halves of them, until the member is found, which then has failed.

    `numbers` are those of the members among the results, where `rows` count only some of them.
    """
    left = [rows] if len(rows) else []
    while left:
        some = left.pop()
        try:
            answer = work(some)
        except (KeyboardInterrupt, MemoryError, DeviceError):
            raise
        except Exception as error:  # the user's functions may raise anything
            if len(some) == 1:
                found.fail(int(some[0] if numbers is None else numbers[some[0]]), reason_of(error))
                continue
            left += [some[len(some) // 2 :], some[: len(some) // 2]]
            continue
        yield some, answer


def reason_of(error: BaseException) -> str:
    """Why a member failed, as one line; numbers of batches that the user does not see are left out."""
    text = " ".join(str(error).split())
    return INDEX.sub("", text) if isinstance(error, CardanError) else f"{type(error).__name__}: {text}"


def _part(model: Model, keep: np.ndarray) -> Model:
    """The model with the values of some of the members."""
    return model if model.values is None or model.values.ndim == 1 else model.unbound._bound(model.values[keep])


def _rows_of(x: Any, keep: np.ndarray) -> Any:
    return {name: each[keep] for name, each in x.items()} if isinstance(x, Mapping) else x[keep]


def _rest(about: Described) -> tuple[Any, ...]:
    return about.labels, about.units, about.description


def _padded(values: np.ndarray, samples: int) -> np.ndarray:
    """Values (k, n, ...) with NaN up to the number of samples of a whole run."""
    if values.shape[1] == samples:
        return values
    more = np.full((len(values), samples - values.shape[1], *values.shape[2:]), np.nan)
    return np.concatenate([values, more], axis=1)


def _one_for_each(name: str, x: Any, members: int) -> np.ndarray:
    values = np.asarray(x)
    if values.dtype.kind not in "fiub" or values.shape[:1] != (members,):
        raise InputError(
            f"sweep: the function must return numbers with one entry for each of {members} members first, got "
            f"{shown(x) if values.dtype.kind not in 'fiub' else values.shape} for {name!r}"
        )
    return values.astype(float)


def _note_not_finite(name: str, rows: np.ndarray, values: np.ndarray, found: Results) -> None:
    """Members whose measure is no finite number have failed; what was computed is kept."""
    for k in np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1)):
        found.fail(int(rows[k]), f"measure {name!r} is not a finite number")
