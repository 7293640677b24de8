"""Dimensions of a linkage for a path, a function or a motion: `cd.synthesise`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.kinematics.damped_least_squares import size_of
from cardan.analysis.kinematics.inverse_kinematics import Search
from cardan.analysis.kinematics.manipulability import free_motions, transmitting_joints
from cardan.analysis.kinematics.targets import Aim, read_targets
from cardan.analysis.synthesis.linkage_problem import Coordinate, LinkageProblem, Place, Transmission
from cardan.analysis.synthesis.search import (
    VIOLATED,
    Starts,
    better,
    bring_together,
    descend,
    follow_motion,
    lay_out,
)
from cardan.errors import InputError, ModelError, UnknownNameError, nearest
from cardan.functions.kinematics import body_poses, frame_pose
from cardan.model.body import Joint
from cardan.model.model import Model
from cardan.model.values import batch, counted, number, one, shown, whole
from cardan.results.progress import progress_bar
from cardan.structure.assemble import assemble
from cardan.structure.planarity import find_plane, is_planar

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

SAME = 1e-4  # of the mechanism's size: joints of two solutions that are nearer are the same
FAR = 6.0  # times the mechanism's size: where an unknown without bounds ends
TURN = 36  # positions over a whole turn
STRIDE = 0.05  # rad, or the size of the mechanism: steps of the input between positions
SHORTEST = {"crank-rocker": 0, "double-rocker": 1, "rocker-crank": 2, "double-crank": 3}
"""Which link is the shortest, of input, coupler, output and ground: Grashof's types."""


@dataclass(frozen=True, eq=False)
class SynthesisSolution:
    """One linkage that was found.

    Args:
        model: with these dimensions, as constants; its joints start at the first position.
        values: the free numbers by name, m.
        points: the point of each target's frame (targets, 3), m.
        offsets: unknown offsets of joint coordinates by joint, rad or m.
        q: configurations (positions, nq), loops closed.
        position_error: distance (positions,) by which frames and outputs that slide are off, m; the largest of them.
        angle_error: angle (positions,) by which frames and outputs that turn are off, rad; the largest of them.
        rms: root mean square of all errors, angles in rad and lengths by the mechanism's size.
        converged: whether the search ended by itself.
        defect: why a linkage of one freedom cannot run through the positions, although it can be assembled in each; or
            empty.
        found: how many starts led to it.

    """

    model: Model
    values: dict[str, np.ndarray]
    points: np.ndarray
    offsets: dict[str, float]
    q: np.ndarray
    position_error: np.ndarray
    angle_error: np.ndarray
    rms: float
    converged: bool
    defect: str
    found: int
    unknowns: np.ndarray = field(repr=False)
    """The unknowns of the search, in its units."""


@dataclass(frozen=True, eq=False)
class Synthesis:
    """What `cd.synthesise` found: the best linkage, all distinct ones, and why other starts failed.

    Args:
        solutions: distinct linkages, the best first; those that cannot run through all positions are last.
        failures: reasons for which starts gave no linkage, and how many each.
        starts: number of starts.
        unknowns: number of unknowns.
        equations: number of equations; with fewer than unknowns, solutions are not unique.

    """

    solutions: list[SynthesisSolution]
    failures: dict[str, int]
    starts: int
    unknowns: int
    equations: int
    problem: LinkageProblem = field(repr=False)

    @property
    def best(self) -> SynthesisSolution:
        """The linkage with the smallest errors among those that can run through all positions."""
        return self.solutions[0]

    @property
    def model(self) -> Model:
        """The best linkage."""
        return self.best.model

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Its dimensions by name, m."""
        return self.best.values

    def __str__(self) -> str:
        """A table of the solutions."""
        head = (
            f"{self.best.model.name!r}: {counted(len(self.solutions), 'linkage')} from {counted(self.starts, 'start')}"
        )
        lines = [f"{head}; {counted(self.unknowns, 'unknown')}, {counted(self.equations, 'equation')}"]
        if self.equations < self.unknowns:
            lines.append("  fewer equations than unknowns: each linkage may be one of a family")
        for k, s in enumerate(self.solutions[:8]):
            errors = f"rms {s.rms:.3g}, at most {s.position_error.max(initial=0.0):.3g} m"
            if s.angle_error.any() or not s.position_error.any():
                errors += f", {s.angle_error.max(initial=0.0):.3g} rad"
            more = "" if s.converged else "; not converged"
            lines.append(f"  {k}: {errors}, from {counted(s.found, 'start')}{more}{'; ' if s.defect else ''}{s.defect}")
        if len(self.solutions) > 8:
            lines.append(f"  and {len(self.solutions) - 8} more")
        lines += [f"  {n} of {self.starts} starts: {why}" for why, n in self.failures.items()]
        lines.append("dimensions of the best:")
        lines += [f"  {name}: {np.array2string(x, precision=6, separator=', ')} m" for name, x in self.values.items()]
        for aim, c, columns in zip(self.problem.aims, self.best.points, self.problem.points, strict=True):
            if columns:
                lines.append(f"  point of {aim.frame}: {np.array2string(c, precision=6, separator=', ')} m")
        lines += [f"  {joint} counts from {x:.6g}" for joint, x in self.best.offsets.items()]
        return "\n".join(lines)

    def plot(
        self, *, size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """What was asked and what the best linkage does, over its motion; a `matplotlib.figure.Figure`."""
        from cardan.analysis.synthesis.plots import plot_synthesis

        return plot_synthesis(self, size, path, overwrite)


def synthesise(
    model: Model, targets: Any = None, *, output: Mapping[str, ArrayLike] | None = None, input: str | None = None,
    at: ArrayLike | None = None, offsets: Sequence[str] = (), free_point: bool = False,
    along: Mapping[str, str] | None = None, bounds: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    motion: str | tuple[float, float] | None = None, transmission: Mapping[tuple[str, str], float] | None = None,
    grashof: str | None = None, q: ArrayLike | None = None, starts: int = 64, spread: float = 0.5, seed: int = 0,
    iterations: int = 200, progress: bool | None = None,
) -> Synthesis:  # fmt: skip
    """Find dimensions with which a linkage follows a path, a function or a motion, from many starts at once.

    Gradients are exact, through assembly: with other dimensions the loops are closed again. The sum of squares of all
    errors is made smallest, lengths in units of the mechanism's size.

    Args:
        model: a linkage with free dimensions, `model.free("B.at", ...)`: `at` and `child_at` of joints.
        targets: `cd.Target` with n positions, orientations or poses (a path or a motion), a list of them, or a dict of
            frames to poses (n, 4, 4) or positions (n, 3).
        output: for a function: values (n,) of output joints, rad or m.
        input: joint that drives; the first of one coordinate by default.
        at: its coordinates (n,) at the positions: prescribed timing. None: the input is free at each position.
        offsets: joints (input or outputs) whose values count from an unknown zero.
        free_point: whether the points of the targets' frames are unknown too; they begin at `Target.point`.
        along: axes of the body along which a number is unknown, by name: {"B.at": "x"}. By default all, in a planar
            mechanism those in the plane.
        bounds: lowest and highest values by name, m; "point" for the points of all targets.
        motion: "turn", or a range of the input (rad or m): the linkage must be assembled all over it.
        transmission: smallest transmission angle, rad, by (coupler, output body): see `cd.transmission_angle`. It holds
            at all positions and over the motion.
        grashof: of a four-bar, "crank-rocker", "double-crank", "rocker-crank" or "double-rocker".
        q: configuration (nq,) near the first position; where joints start by default.
        starts: sets of dimensions to start from: the model's own, and others within bounds.
        spread: where there are no bounds, how far starts are from the model's dimensions, by the mechanism's size.
        seed: of the starts.
        iterations: steps of one start at most.
        progress: whether to show a progress bar; by default on a terminal, after two seconds.

    """
    owner = "synthesise"
    starts, iterations = whole(owner, "starts", starts), whole(owner, "iterations", iterations)
    seed = whole(owner, "seed", seed, least=0)
    spread = number(owner, "spread", spread, above=0.0)
    for what, x in (("output", output), ("along", along), ("bounds", bounds), ("transmission", transmission)):
        if x is not None and not isinstance(x, Mapping):
            raise InputError(f"{owner}: {what} must be a dict by name, got {shown(x)}")
    task = _Task(owner, model)
    aims = () if targets is None else tuple(read_targets(owner, model, targets))
    problem, sweep = task.problem(
        aims,
        output or {},
        input,
        at,
        offsets,
        free_point,
        along or {},
        bounds or {},
        motion,
        transmission or {},
        grashof,
    )
    u = _first_unknowns(problem, task, starts, spread, seed)
    q0, others = _first_configurations(owner, model, q, starts)
    with progress_bar(progress, "synthesis", 1.0) as report:
        laid = lay_out(problem, u, q0, sweep, (others, np.roll(others, 1, axis=0)))
        rounds = 3 if problem.has_free_input else 1  # with better dimensions other inputs are nearest
        for turn in range(rounds):
            part = lambda x, turn=turn: report(0.3 * (turn + x) / rounds)
            u, laid = bring_together(problem, u, laid, min(60, iterations), part)
            if turn < rounds - 1:
                laid = better(problem, u, laid, lay_out(problem, u, laid[:, 0], sweep))
        found = descend(problem, u, laid, iterations, lambda x: report(0.3 + 0.7 * x))
    return _result(owner, problem, task, found)


class _Task:
    """Reads the arguments; keeps what names the unknowns."""

    def __init__(self, owner: str, model: Model) -> None:
        if not isinstance(model, Model):
            raise InputError(f"{owner}: model must be a cd.Model, got {shown(model)}")
        if not model.parameters:
            raise InputError(
                f"{owner}: model {model.name!r} has no free numbers; name the unknown dimensions, as in "
                f'cd.{owner}(model.free("{model.joints[-1].name}.at"), ...)'
            )
        for parameter in model.parameters:
            if parameter.place[0] != "joint":
                raise InputError(
                    f"{owner}: parameter {parameter.name!r} is no dimension; free `at` and `child_at` of joints only"
                )
        model.require_one(owner)
        model = model if model.values is None else model.settled().free(*model.parameters.names)
        if model.depends_on_time:
            raise InputError(f"{owner}: model {model.name!r} depends on time; leave prescribed motions out")
        self.owner, self.model, self.length = owner, model, size_of(model)
        self.offsets: list[str] = []
        self.names: list[str] = []

    def problem(
        self, aims: tuple[Aim, ...], output: Mapping[str, Any], input: str | None, at: Any, offsets: Sequence[str],
        free_point: bool, along: Mapping[str, str], bounds: Mapping[str, Any], motion: Any,
        transmission: Mapping[tuple[str, str], float], grashof: str | None,
    ) -> tuple[LinkageProblem, tuple[float, float] | None]:  # fmt: skip
        """The problem, and the range over which a free input is swept at first."""
        owner, model = self.owner, self.model
        if not aims and not output:
            raise InputError(f"{owner}: nothing is asked; give targets for a path or motion, or output= for a function")
        if isinstance(offsets, str):
            offsets = (offsets,)
        outputs = {name: np.atleast_1d(batch(owner, f"output {name!r}", x)) for name, x in output.items()}
        n = self._count(aims, outputs, at)
        aims = tuple(self._spread_out(aim, n) for aim in aims)
        chosen, low, high = self._unknown_numbers(along, bounds)
        points, low, high = self._unknown_points(aims, free_point, bounds, len(chosen), low, high)
        self.names = [f"{self._name_of(k)}" for k in chosen]
        driven = input if input is not None else self._first_input(aims)
        if at is not None and driven in outputs:
            raise InputError(f"{owner}: joint {driven!r} is both the input at= and an output; name another output")
        swept, values = self._input_values(driven, at, n, motion)
        column = len(low)
        given = None
        if driven is not None:
            given = self._coordinate(driven, values, column if driven in offsets else None)
            column += driven in offsets
        functions = []
        for name, x in outputs.items():
            functions.append(self._coordinate(name, x, column if name in offsets else None))
            column += name in offsets
        known = [driven, *outputs]
        for name in offsets:
            if name not in known:
                raise InputError(f"{owner}: offset of {name!r}: it is neither the input nor an output")
        if at is None and driven in offsets:
            raise InputError(f"{owner}: the input {driven!r} is free at each position; an offset needs at=")
        self.offsets = [name for name in known if name is not None and name in offsets]
        low = np.concatenate([low, np.full(len(self.offsets), -FAR)])
        high = np.concatenate([high, np.full(len(self.offsets), FAR)])
        limits = tuple(self._transmission(pair, least) for pair, least in transmission.items())
        loops = () if grashof is None else (self._grashof(grashof, driven),)
        problem = LinkageProblem(
            model, self.length, chosen, points, aims, tuple(functions), given, n, limits, loops, low, high
        )
        return problem, swept

    def _count(self, aims: tuple[Aim, ...], outputs: Mapping[str, np.ndarray], at: Any) -> int:
        """Number of positions, the same of everything that is given."""
        owner = self.owner
        counts: dict[str, int] = {}
        for aim in aims:
            for x in aim.data:
                if x.ndim > 2:
                    raise InputError(
                        f"{owner}: target of {aim.frame!r} must have one axis of positions, got {x.ndim - 1}"
                    )
                if x.ndim == 2:
                    counts[f"target of {aim.frame!r}"] = len(x)
            if aim.turns == "look_at":
                raise InputError(f"{owner}: target of {aim.frame!r}: look_at is not offered; give a direction")
        for name, x in outputs.items():
            if x.ndim != 1:
                raise InputError(f"{owner}: output {name!r} must have the shape (n,), got {x.shape}")
            counts[f"output {name!r}"] = len(x)
        if at is not None:
            if np.ndim(at) != 1:
                raise InputError(f"{owner}: at must be the input's values (n,), one for each position, got {shown(at)}")
            counts["at"] = len(at)
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{n} in {what}" for what, n in counts.items())
            raise InputError(f"{owner}: numbers of positions differ: {told}")
        n = next(iter(counts.values()), 1)
        if n < 2:
            raise InputError(
                f"{owner}: {counted(n, 'position')} given, two are the least; for one use cd.inverse_kinematics"
            )
        return n

    @staticmethod
    def _spread_out(aim: Aim, n: int) -> Aim:
        """What is given once counts at all positions."""
        return replace(aim, data=tuple(np.broadcast_to(x, (n, x.shape[-1])) for x in aim.data))

    def _name_of(self, k: int) -> str:
        for p in self.model.parameters:
            at = self.model.parameters.slice_of(p.name)
            if at.start <= k < at.stop:
                return f"{p.name}.{'xyz'[k - at.start]}"
        raise AssertionError(k)

    def _unknown_numbers(
        self, along: Mapping[str, str], bounds: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers in `p` that are unknown, and their bounds in units of the length."""
        owner, model, parameters = self.owner, self.model, self.model.parameters
        for name in (*along, *bounds):
            if name not in parameters.names and not (name == "point" and name in bounds):
                raise UnknownNameError(f"{owner}: {name!r} is not free{nearest(name, parameters.names)}")
        chosen, low, high = [], [], []
        for p in parameters:
            at = parameters.slice_of(p.name)
            a, b = self._bounds(p.name, bounds, p.nominal)
            letters = along.get(p.name)
            if letters is not None and (not isinstance(letters, str) or not letters or not set(letters) <= set("xyz")):
                raise InputError(
                    f"{owner}: along of {p.name!r} names axes of the body, as in 'xy', got {shown(letters)}"
                )
            _, joint, side = p.place
            body = model.joints[joint].parent if side == "at" else model.joints[joint].child
            across = self._across(body)
            for k in range(3):
                free = "xyz"[k] in letters if letters is not None else not across[k]
                if free and a[k] < b[k]:
                    chosen.append(at.start + k)
                    low.append(a[k] / self.length)
                    high.append(b[k] / self.length)
        if not chosen:
            raise InputError(f"{owner}: all free numbers are held by bounds or `along`; leave one unknown")
        return np.array(chosen), np.array(low), np.array(high)

    def _bounds(self, name: str, bounds: Mapping[str, Any], nominal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        owner = self.owner
        if name not in bounds:
            return nominal - FAR * self.length, nominal + FAR * self.length
        pair = bounds[name]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"{owner}: bounds of {name!r} must be (lowest, highest), got {shown(pair)}")
        a, b = (np.broadcast_to(batch(owner, f"bounds of {name!r}", x), (3,)) for x in pair)
        if (a > b).any():
            raise InputError(f"{owner}: bounds of {name!r}: the lowest {shown(a)} is above the highest {shown(b)}")
        return a, b

    def _across(self, body: int) -> np.ndarray:
        """Which axes of a body are normal to the plane of a planar mechanism."""
        model = self.model
        if not is_planar(model):
            return np.zeros(3, dtype=bool)
        normal = np.asarray(find_plane(model).ground.axes, dtype=float)[2]
        if body >= 0:
            normal = np.asarray(body_poses(model, model.start()))[body, :3, :3].T @ normal
        return np.asarray(np.abs(normal) > 1 - 1e-9)

    def _unknown_points(
        self, aims: tuple[Aim, ...], wanted: bool, bounds: Mapping[str, Any], column: int, low: np.ndarray,
        high: np.ndarray,
    ) -> tuple[tuple[tuple[tuple[int, int], ...], ...], np.ndarray, np.ndarray]:  # fmt: skip
        """For each target columns and axes of the unknown components of its point."""
        found: list[tuple[tuple[int, int], ...]] = []
        for aim in aims:
            own: list[tuple[int, int]] = []
            if wanted and aim.along:
                across = np.zeros(3, dtype=bool)
                if is_planar(self.model):
                    R = np.asarray(frame_pose(self.model, self.model.start(), aim.frame))[:3, :3]
                    normal = np.asarray(find_plane(self.model).ground.axes, dtype=float)[2]
                    across = np.abs(R.T @ normal) > 1 - 1e-9
                a, b = self._bounds("point", bounds, aim.point)
                for k in range(3):
                    if not across[k] and a[k] < b[k]:
                        own.append((column, k))
                        column += 1
                        low, high = np.append(low, a[k] / self.length), np.append(high, b[k] / self.length)
            found.append(tuple(own))
        return tuple(found), low, high

    def _first_input(self, aims: tuple[Aim, ...]) -> str | None:
        """The first joint of one coordinate that the tree begins with."""
        for link in self.model.tree.links:
            if link.kind.nq == 1:
                return self.model.joints[link.joint].name
        return None

    def _coordinate(self, joint: str, values: np.ndarray, column: int | None) -> Coordinate:
        model = self.model
        place, rate = model.q_slice(joint), model.v_slice(joint)
        kind = model.joint(joint).kind
        if kind.nq != 1:
            raise InputError(f"{self.owner}: joint {joint!r} has {kind.nq} coordinates; name one with one coordinate")
        unit = 1.0 if kind.q_units[0] == "rad" else self.length
        return Coordinate(joint, place.start, rate.start, unit, values, column)

    def _input_values(
        self, joint: str | None, at: Any, n: int, motion: Any
    ) -> tuple[tuple[float, float] | None, np.ndarray]:
        """Where a free input is swept, and the coordinates of the input: at positions, then over the motion."""
        owner = self.owner
        given = np.full(n, np.nan) if at is None else one(owner, "at", at, n)
        if joint is None:
            if at is not None or motion is not None:
                raise InputError(f"{owner}: no joint has one coordinate, so that none can be the input")
            return None, given
        turns = self._coordinate(joint, given, None).unit == 1.0
        start = float(self.model.start()[self.model.q_slice(joint).start])
        if motion is None:
            if at is None and not turns:
                raise InputError(f"{owner}: the input {joint!r} slides; give at=, or its range as motion=(low, high)")
            return (start, start + 2 * np.pi), given
        if isinstance(motion, str):
            if motion != "turn" or not turns:
                what = "'turn' or a range (low, high)" if turns else "a range (low, high) of the slide in m"
                raise InputError(f"{owner}: motion of {joint!r} must be {what}, got {motion!r}")
            return (start, start + 2 * np.pi), np.concatenate([given, start + np.arange(TURN) * 2 * np.pi / TURN])
        low, high = one(owner, "motion", motion, 2)
        if not low < high:
            raise InputError(f"{owner}: motion must be a range (low, high), got {shown(motion)}")
        return (low, high), np.concatenate([given, np.linspace(low, high, TURN)])

    def _transmission(self, pair: Any, least: Any) -> Transmission:
        owner, model = self.owner, self.model
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"{owner}: transmission is by (coupler, output body), got {shown(pair)}")
        least = number(owner, f"transmission angle of {pair}", least, "of radians", least=0.0, most=np.pi / 2)
        between, end, guide = transmitting_joints(owner, model, *pair)
        a, c = model.body_index(pair[0]), model.body_index(pair[1])
        S = np.asarray(guide.kind.S(np.asarray(guide.kind.neutral)), dtype=float)[:, 0]
        side = "at" if guide.parent == c else "child_at"
        R = np.asarray(getattr(guide, side).matrix, dtype=float)[:3, :3]
        return Transmission(
            *pair, _place(model, between, a), _place(model, end, a), _place(model, guide, c), R @ S[:3], R @ S[3:],
            least,
        )  # fmt: skip

    def _grashof(self, kind: Any, joint: str | None) -> tuple[tuple[Place, Place], ...]:
        """Pairs of places of the four links of a four-bar, the shortest first."""
        owner, model = self.owner, self.model
        if kind not in SHORTEST:
            raise InputError(f"{owner}: grashof must be one of {', '.join(map(repr, SHORTEST))}, got {shown(kind)}")
        driver = model.joint(joint) if joint is not None else None
        hinges = [j for j in model.joints if j.kind.name == "revolute"]
        plain = len(model.joints) == 4 == len(hinges) and all(len(_joints_on(model, b)) == 2 for b in (-1, 0, 1, 2))
        if not plain or driver is None or -1 not in (driver.parent, driver.child):
            raise InputError(
                f"{owner}: Grashof's rule is for four bars and four hinges, driven at the ground, and model "
                f"{model.name!r} is another linkage; ask for motion='turn' instead"
            )
        first = max(driver.parent, driver.child)
        last = next(max(j.parent, j.child) for j in _joints_on(model, -1) if j is not driver)
        order = [first, 3 - first - last, last, -1]
        links = [tuple(_place(model, j, body) for j in _joints_on(model, body)) for body in order]
        shortest = SHORTEST[kind]
        found = [links[shortest], *(x for k, x in enumerate(links) if k != shortest)]
        return tuple((a, b) for a, b in found)


def _place(model: Model, joint: Joint, body: int) -> Place:
    """Where a joint is on one of its bodies."""
    return model.joints.index(joint), "at" if joint.parent == body else "child_at"


def _joints_on(model: Model, body: int) -> list[Joint]:
    return [j for j in model.joints if body in (j.parent, j.child)]


def _first_unknowns(problem: LinkageProblem, task: _Task, starts: int, spread: float, seed: int) -> np.ndarray:
    """The model's own dimensions, and others spread evenly within bounds."""
    from scipy.stats import qmc

    own = np.zeros(len(problem.low))
    own[: len(problem.chosen)] = problem.model.parameters.nominal[problem.chosen] / problem.length
    for aim, columns in zip(problem.aims, problem.points, strict=True):
        for column, axis in columns:
            own[column] = aim.point[axis] / problem.length
    offsets = len(task.offsets)
    reach = np.full(len(own), spread)
    reach[len(own) - offsets :] = np.pi
    bounded = problem.high - problem.low < 1.9 * FAR
    low = np.where(bounded, problem.low, np.maximum(problem.low, own - reach))
    high = np.where(bounded, problem.high, np.minimum(problem.high, own + reach))
    more = qmc.Halton(len(own), seed=seed).random(starts - 1) if starts > 1 else np.zeros((0, len(own)))
    return np.concatenate([np.clip(own, problem.low, problem.high)[None], low + more * (high - low)])


def _first_configurations(owner: str, model: Model, q: Any, starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Guesses (starts, nq): the model's own configuration, for every other start one spread evenly; and spread ones."""
    home = model.unbound
    own = home.start() if q is None else one(owner, "q", q, model.nq)
    with suppress(ModelError):  # the dimensions that it begins with may be wrong ones
        own = assemble(home, own)[0]
    found = np.tile(own, (starts, 1))
    if q is not None or not model.has_rows:
        return found, found
    others = Search.closing(owner, home, 1, False, frozenset(), 0.0, None).spread(starts)
    found[2::2] = others[2::2]
    return found, others


def _result(owner: str, problem: LinkageProblem, task: _Task, found: Starts) -> Synthesis:
    failures: dict[str, int] = {}
    usable = found.closed & (found.violation <= 10 * VIOLATED)
    for k in np.flatnonzero(~usable):
        if not found.closed[k]:
            worst = int(found.gap[k].argmax())
            where = f"position {worst}" if worst < problem.count else "some positions of the motion"
            why = f"cannot be assembled at {where}"
        else:
            why = "transmission angle or Grashof's rule could not be kept"
        failures[why] = failures.get(why, 0) + 1
    if not usable.any():
        told = "; ".join(f"{n}: {why}" for why, n in failures.items())
        nearest_gap = found.gap.max(axis=-1, initial=0.0).min()
        raise ModelError(
            f"{owner}: none of {counted(len(found.u), 'start')} gave a linkage of model {problem.model.name!r} "
            f"({told}; the best leaves loops open by {nearest_gap:.2g} of their size); ask for less, widen bounds, or "
            "give a better start in the model or q="
        )
    order = [k for k in np.argsort(found.cost, kind="stable") if usable[k]]
    groups: list[list[int]] = []
    joints = _joints_in_ground(problem, found)
    for k in order:
        for group in groups:
            if np.abs(joints[k] - joints[group[0]]).max(initial=0.0) < SAME * problem.length:
                group.append(int(k))
                break
        else:
            groups.append([int(k)])
    first = np.array([group[0] for group in groups])
    defects = _defects(problem, found.u[first], found.q[first])
    solutions = [
        _solution(problem, task, found, int(k), defect, len(group))
        for k, defect, group in zip(first, defects, groups, strict=True)
    ]
    solutions.sort(key=lambda s: (bool(s.defect), s.rms))
    rows = problem.evaluate(found.u[first[:1]], found.q[first[:1]])
    live = int((np.abs(rows.e.u).max(axis=-1) + np.abs(rows.e.q).max(axis=-1) > 0)[0, : problem.count].sum())
    rotations = sum(6 for aim in problem.aims if aim.turns == "orientation") * problem.count
    planar = is_planar(problem.model)
    equations = live - rotations if not planar else live - _planar_surplus(problem)
    given = 0 if problem.input is None else int((~np.isnan(problem.input.values[: problem.count])).sum())
    free = problem.count * _freedoms(problem, found.q[first[0], :1]) - given
    return Synthesis(
        solutions, failures, len(found.u), found.u.shape[-1] + max(free, 0), max(equations, 0), problem
    )  # fmt: skip


def _freedoms(problem: LinkageProblem, q: np.ndarray) -> int:
    """In how many ways the linkage can move."""
    return int(free_motions(problem.model.unbound, q).shape[-1])


def _planar_surplus(problem: LinkageProblem) -> int:
    """Rows of targets in a plane that say nothing new: an orientation has four rows there for one angle."""
    return sum(3 * problem.count for aim in problem.aims if aim.turns == "orientation")


def _joints_in_ground(problem: LinkageProblem, found: Starts) -> np.ndarray:
    """Where all joints are (S, joints * 3) at the first position, m: it tells linkages apart."""
    poses = np.asarray(body_poses(problem.model_at(found.u), found.q[:, :1]))[:, 0]
    places = []
    for k, joint in enumerate(problem.model.joints):
        c, _ = problem.place_on_body((k, "at"), found.u)
        pose = poses[:, joint.parent] if joint.parent >= 0 else np.eye(4)
        places.append((pose[..., :3, :3] @ c[..., None])[..., 0] + pose[..., :3, 3])
    return np.concatenate(places, axis=-1)


def _defects(problem: LinkageProblem, u: np.ndarray, q: np.ndarray) -> list[str]:
    """Why linkages cannot run from position to position; empty where they can."""
    told = [""] * len(u)
    if problem.input is None or not problem.model.has_rows or _freedoms(problem, q[0, :1]) != 1:
        return told
    K, n, place, turns = q.shape[1], problem.count, problem.input.q, problem.input.unit == 1.0
    first = [*range(n - 1), *range(n, K - 1)]
    start, to = q[:, first], q[:, [k + 1 for k in first]].copy()
    if turns:  # the short way round
        to[..., place] = start[..., place] + (to[..., place] - start[..., place] + np.pi) % (2 * np.pi) - np.pi
    fine = follow_motion(problem, u, start, to, STRIDE)
    again = np.flatnonzero(~fine.all(axis=1))
    if turns and len(again):  # or the long one
        way = (to - start)[again, :, place]
        to[again, :, place] -= np.where(fine[again], 0.0, np.where(way >= 0, 2 * np.pi, -2 * np.pi))
        fine[again] |= follow_motion(problem, u[again], start[again], to[again], 2 * STRIDE)
    for k in again:
        for i in np.flatnonzero(~fine[k])[:1]:
            where = "over the motion" if first[i] >= n else f"from position {first[i]} to {first[i] + 1}"
            told[k] = f"turning {problem.input.joint!r} does not lead {where}: another branch or a dead point"
    return told


def _solution(
    problem: LinkageProblem, task: _Task, found: Starts, k: int, defect: str, count: int
) -> SynthesisSolution:
    model, n, u = problem.model, problem.count, found.u[k : k + 1]
    q, p = found.q[k, :n], problem.parameters(u)[0]
    values = {x.name: p[model.parameters.slice_of(x.name)] for x in model.parameters}
    points = np.array([aim.point for aim in problem.aims]).reshape(-1, 3)
    for k_aim, columns in enumerate(problem.points):
        for column, axis in columns:
            points[k_aim, axis] = u[0, column] * problem.length
    offsets = {}
    given = [problem.input] if problem.input is not None else []
    for x in (*given, *problem.functions):
        if x.column is not None:
            offsets[x.joint] = float(u[0, x.column] * x.unit)
    rows = problem.evaluate(u, found.q[k : k + 1])
    e, first = rows.e.value[0, :n], 0
    position, angle = np.zeros(n), np.zeros(n)
    for aim in problem.aims:
        turning = {"": 0, "orientation": 9}.get(aim.turns, 3)
        chord = np.linalg.norm(e[:, first : first + turning], axis=-1) / aim.weight
        angle = np.maximum(angle, 2 * np.arcsin(np.clip(chord / 2, 0, 1)))
        first += turning
        off = np.linalg.norm(e[:, first : first + len(aim.along)], axis=-1) / aim.weight * problem.length
        position, first = np.maximum(position, off), first + len(aim.along)
    for x, row in zip(problem.functions, e[:, first:].T, strict=True):
        if x.unit == 1.0:
            angle = np.maximum(angle, np.abs(row))
        else:
            position = np.maximum(position, np.abs(row) * x.unit)
    settled = model._bound(p).settled()
    joints = list(settled.joints)
    for link in model.tree.links:
        joints[link.joint] = replace(joints[link.joint], start=q[0, link.q].copy())
    settled = replace(settled, joints=tuple(joints))
    rms = float(np.sqrt(found.cost[k] / max(n, 1)))
    return SynthesisSolution(
        settled, values, points, offsets, q, position, angle, rms, bool(found.converged[k]), defect, count, u[0]
    )  # fmt: skip
