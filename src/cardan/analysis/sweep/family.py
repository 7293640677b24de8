"""A family of linkages: one mechanism whose numbers follow from a few design variables.

All linkages of a family are one program: the numbers of the mechanism are written as functions of the design, and the
turn of the crank is recorded from the model's own equations (`analysis.sweep.march`). Linkage number k of a box of
designs is point k of an additive recurrence, so that a hundred million of them need no memory.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.analysis.sweep import march
from cardan.analysis.sweep.coupler_curve import FITS, SLOPE, Curve, harmonics_of
from cardan.errors import InputError, ModelError
from cardan.machines.cuda.place import place_of
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.graph_digest import graph_digest
from cardan.model.model import Model
from cardan.model.values import batch, number, one, shown, whole
from cardan.program.program import Port, Program
from cardan.structure.assemble import assemble
from cardan.structure.driven import DrivenMechanism, signs_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

STEPS_PER_POSITION = 40  # of the march, at most: near dead points the crank takes short steps
POINT, START = "point", "start"


@dataclass(frozen=True, eq=False)
class KinetostaticSweep:
    """What linkages (...,) do over all positions of their crank.

    Args:
        positions: number of positions in the range of the crank.
        closed: how many of them (...,) are reached from the first one without passing a dead point, forwards and, if
            they are those of a whole turn, backwards; 0 where the linkage cannot be assembled at the first.
        forwards: how many of them (...,) lie forwards, the first included.
        drive: largest size (..., driven joints) of the driving torque or force, N m or N.
        force: largest force (..., joints) in each joint, N.
        speed: largest speed (...,) of the point, m/s; None without one.
        gap: largest residual (...,) of the loops by the size of the mechanism, of the positions reached.
        error: root mean square distance (...,) from the given curve by its size, inf where the crank does not pass all
            positions; None without a curve.
        slope: derivative (..., variables) of `error` by the design, 0 where it is inf; None unless asked for.

    """

    positions: int
    closed: np.ndarray
    forwards: np.ndarray
    drive: np.ndarray
    force: np.ndarray
    speed: np.ndarray | None
    gap: np.ndarray
    error: np.ndarray | None = None
    slope: np.ndarray | None = None

    @property
    def assembled(self) -> np.ndarray:
        """Which linkages (...,) can be put together at the first position."""
        return np.asarray(self.closed > 0)

    @property
    def complete(self) -> np.ndarray:
        """Which linkages (...,) pass all positions in one go: the crank turns fully.

        One with a dead point between two positions may reach all of them, but from both sides.
        """
        return np.asarray(self.forwards == self.positions)


@dataclass(frozen=True, eq=False)
class SweepSamples:
    """What linkages (...,) do at each of n positions of the crank; NaN where a position is not reached.

    Args:
        angle: driven coordinates (..., n, driven joints), rad or m.
        q: configurations (..., n, nq).
        v: rates (..., n, nv).
        a: accelerations (..., n, nv).
        drive: driving torques or forces (..., n, driven joints), N m or N.
        wrenches: of all joints (..., n, joints, 6) on their children, as `cd.reactions` gives them, N m and N.
        point: position (..., n, 3) of the point in ground axes, m; None without one.
        velocity: its velocity (..., n, 3), m/s.
        q_by: derivatives (..., n, nv, variables) of the configuration along its rates, by the design; None unless asked
            for.
        point_by: derivatives (..., n, 3, variables) of the point.

    """

    angle: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    drive: np.ndarray
    wrenches: np.ndarray
    point: np.ndarray | None = None
    velocity: np.ndarray | None = None
    q_by: np.ndarray | None = None
    point_by: np.ndarray | None = None

    @property
    def closed(self) -> np.ndarray:
        """Which positions (..., n) are reached."""
        return np.asarray(np.isfinite(self.q).all(axis=-1))


class LinkageFamily:
    """Linkages of one mechanism whose numbers follow from a few design variables, driven at a crank.

    Args:
        model: the mechanism, nothing in it free. Its start chooses the branch: which way its dyads are put together.
        driven: joint of one coordinate that is driven, or several with the ratios of their speeds: `{"A": 1, "E": -1}`.
        design: a function of the design variables, which are its arguments. It returns the numbers that depend on them
            by name (`"B.at"`, `"crank.mass"`; see `Model.free`), `"point"`, the point (2,) or (3,) on `body`, m, and
            `"start"`, the driven coordinate (or coordinates) at the first position, rad or m. It is called once with
            CasADi symbols: use arithmetic and CasADi's functions.
        body: body or frame with the point.

    """

    def __init__(
        self, model: Model, driven: str | Mapping[str, float], design: Callable[..., Mapping[str, Any]], *,
        body: str | None = None,
    ) -> None:  # fmt: skip
        owner = "LinkageFamily"
        if model.parameters:
            raise InputError(f"{owner}: model {model.name!r} has free numbers; name them in what `design` returns")
        self.ratios = {driven: 1.0} if isinstance(driven, str) else dict(driven)
        if not self.ratios:
            raise InputError(f"{owner}: name a driven joint")
        for joint, ratio in self.ratios.items():
            number(owner, f"ratio of {joint!r}", ratio)
        self.variables = _variables(owner, design)
        self.design, self.body = design, body
        if body is not None:
            model.placement(body)  # refuses a name that is none
        written = self._written(owner)
        names = [name for name in written if name not in (POINT, START)]
        self.model = model.free(*names)
        self.mechanism = DrivenMechanism(owner, self.model, tuple(self.ratios))
        self._write = self._graph(owner, written)
        self._kernels: dict[Any, tuple[Kernel, march.Layout]] = {}
        self._blocks: Any = None
        self._designs: Kernel | None = None

    def __repr__(self) -> str:
        """The mechanism and the variables."""
        return f"LinkageFamily({self.model.name!r}, driven at {', '.join(self.ratios)}: {', '.join(self.variables)})"

    # what the design says

    def _written(self, owner: str) -> dict[str, Any]:
        """What `design` returns for symbols."""
        import casadi as ca

        self._x = ca.SX.sym("x", len(self.variables))
        found = self.design(*(self._x[k] for k in range(len(self.variables))))
        if not isinstance(found, Mapping):
            raise InputError(f"{owner}: design must return a dict of names and values, got {shown(found)}")
        return dict(found)

    def _graph(self, owner: str, written: dict[str, Any]) -> Any:
        """The function `x -> p, point, start`."""
        import casadi as ca

        p = ca.SX(self.model.parameters.nominal)
        for name, value in written.items():
            if name not in (POINT, START):
                p[self.model.parameters.slice_of(name)] = _column(
                    owner, name, value, (self.model.parameters[name].size,)
                )
        point = ca.SX(3, 1)
        if POINT in written:
            if self.body is None:
                raise InputError(f"{owner}: design gives a point; name the body that carries it, as body=")
            given = _column(owner, POINT, written[POINT], (2, 3))
            point[: given.shape[0]] = given
        q = self.model.start()[self.mechanism.q_places]
        start = _column(owner, START, written[START], (len(q),)) if START in written else ca.SX(q)
        return ca.Function("design", [self._x], [p, point, start])

    def numbers(self, design: ArrayLike) -> dict[str, np.ndarray]:
        """The numbers of the mechanism for one design (variables,), by name, with `point` and `start`."""
        x = one("LinkageFamily", "design", design, len(self.variables))
        p, point, start = (np.asarray(part).ravel() for part in self._write(x))
        found = {item.name: p[self.model.parameters.slice_of(item.name)] for item in self.model.parameters}
        return found | ({POINT: point} if self.body is not None else {}) | {START: start}

    def models(self, designs: ArrayLike) -> Model:
        """The model at the numbers of designs (..., variables): a batch that broadcasts with that of q, v and tau."""
        x = batch("models", "designs", designs, len(self.variables))
        rows = [np.asarray(self._write(row)[0]).ravel() for row in x.reshape(-1, x.shape[-1])]
        p = np.array(rows).reshape(*x.shape[:-1], -1)
        parts = {item: p[..., self.model.parameters.slice_of(item.name)] for item in self.model.parameters}
        return self.model.at({item.name: x.reshape((*x.shape[:-1], *item.shape)) for item, x in parts.items()})

    def model_at(self, design: ArrayLike, *, q: ArrayLike | None = None) -> Model:
        """The linkage of one design (variables,), put together at its first position, its numbers constants.

        `q` chooses the branch, as in `sweep`.
        """
        settled = self.models(one("model_at", "design", design, len(self.variables))).settled()
        found = self.samples(design, positions=1, span=0.0, q=q)
        if not found.closed[0]:
            raise ModelError(
                f"model_at: the linkage of {self.model.name!r} cannot be assembled with design {shown(design)}"
            )
        joints = list(settled.joints)
        for link in self.model.tree.links:
            joints[link.joint] = replace(joints[link.joint], start=found.q[0, link.q].copy())
        return replace(settled, joints=tuple(joints))

    # programs

    @property
    def _closed_start(self) -> np.ndarray:
        """The mechanism's own start (nq,), its loops closed."""
        return assemble(self.model)[0]

    def _branch(self, owner: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        """A guess (nq,) with closed loops, and the signs of its dyads (blocks,)."""
        guess = self._closed_start if q is None else assemble(self.model, one(owner, "q", q, self.model.nq))[0]
        return guess, signs_at(self.mechanism, self._structure()[0], guess, [self.model.parameters.nominal])

    def _structure(self) -> Any:
        if self._blocks is None:
            self._blocks = self.mechanism.structure([self._write(self._x)[0]])
        return self._blocks

    def _kernel(self, curve: Curve | None, by: str = "", *, samples: bool = False, boxed: bool = False) -> Any:
        """The compiled march, and its layout."""
        key = (curve, by, samples, boxed)
        if key not in self._kernels:
            layout = march.Layout(
                self.mechanism, self._structure(), len(self.variables), self.body, curve, by, samples, boxed
            )  # fmt: skip
            facts = f"{self.model.key} {graph_digest(self._write)} {tuple(self.ratios)} {self.body} {key}"
            rows = f"{self.mechanism.rows} {self.mechanism.sizes.tolist()} {self.mechanism.scale.tolist()}"
            state = tuple(_port(name, size) for name, size in layout.state.items())
            data = tuple(_port(name, size) for name, size in layout.data.items())
            program = Program(
                "kinetostatic_sweep", (*state, *data, Port("limit", ())), state,
                hashlib.sha256(f"{facts} {rows}".encode()).hexdigest(), lambda: march.record(layout, self._parts),
                repeats=3 if samples else 220,
            )  # fmt: skip
            self._kernels[key] = compile_program(program), layout
        return self._kernels[key]

    def _parts(self, x: Matrix) -> tuple[list[Matrix], Matrix, Matrix]:
        """Free numbers, point and start for a design."""
        p, point, start = self._write(x)
        return [p] if self.model.parameters else [], point, start

    def _designs_of(self, numbers: ArrayLike, low: np.ndarray, high: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Designs (..., variables) of linkages by their numbers (...,) in a box, to the bit as marches make them."""
        if self._designs is None:
            ports = {"number": 1, "low": len(self.variables), "high": len(self.variables), "shift": len(self.variables)}

            def recorded() -> Any:
                import casadi as ca

                s = {name: ca.SX.sym(name, size) for name, size in ports.items()}
                return ca.Function("designs", [*s.values()], [march.design_of(s)])

            inputs = tuple(_port(name, size) for name, size in ports.items())
            key = hashlib.sha256(f"designs in a box {len(self.variables)}".encode()).hexdigest()
            program = Program("designs", inputs, (_port("design", len(self.variables)),), key, recorded)
            self._designs = compile_program(program)
        return np.asarray(self._designs(batch("designs_of", "numbers", numbers)[..., None], low, high, shift))

    # sweeps

    def sweep(
        self, designs: ArrayLike, *, positions: int = 200, span: float | None = None, speed: float = 1.0,
        curve: ArrayLike | None = None, fit: str = "similar", gradient: bool = False, q: ArrayLike | None = None,
        guesses: int = 10, threads: int | None = None, device: str | None = None,
    ) -> KinetostaticSweep:  # fmt: skip
        """Take linkages through all positions of their crank, each in one march: largest forces, range, error.

        A gap in the range of the crank that is narrower than the step between two positions may be passed unseen.

        Args:
            designs: (..., variables).
            positions: number of positions, evenly spaced.
            span: range of the driven coordinate, rad or m, both ends included; a whole turn by default.
            speed: of the driven joint, constant, rad/s or m/s; of several, times their ratios.
            curve: points (n, 2), m, of a closed curve in the plane of the mechanism at even parts of the crank's turn.
            fit: "similar" compares shapes: scale, rotation and place are free. "in_place" compares the curves as they
                are.
            gradient: the derivative of the error by the design too.
            q: configuration (nq,) of the model that chooses the branch; its start by default.
            guesses: configurations from which a linkage is put together, spread evenly.
            threads: number of threads.
            device: "gpu" to compute on a graphics card.

        """
        owner = "sweep"
        x = batch(owner, "designs", designs, len(self.variables))
        task = self._task(owner, positions, span, speed, curve, fit, q, guesses)
        if gradient and task.curve is None:
            raise InputError(f"{owner}: the gradient is that of the error; give a curve")
        kernel, layout = self._kernel(task.curve, SLOPE if gradient else "")
        place = place_of(owner, device, threads)
        return task.gathered(run_march(kernel, layout, {**task.data, "design": x}, task, place))

    def samples(
        self, designs: ArrayLike, *, positions: int = 200, span: float | None = None, speed: float = 1.0,
        gradient: bool = False, q: ArrayLike | None = None, guesses: int = 10, threads: int | None = None,
        device: str | None = None,
    ) -> SweepSamples:  # fmt: skip
        """Everything at each position of the crank. The arguments are those of `sweep`; `gradient` adds `q_by`."""
        owner = "samples"
        x = batch(owner, "designs", designs, len(self.variables))
        task = self._task(owner, positions, span, speed, None, FITS[0], q, guesses)
        kernel, layout = self._kernel(None, SLOPE if gradient else "", samples=True)
        place = place_of(owner, device, threads)
        rows = x.reshape(-1, x.shape[-1])
        state = [np.zeros((len(rows), size)) for size in layout.state.values()]
        ends = np.cumsum([0, *layout.sample.values()])
        places = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(layout.sample)}
        found = np.full((len(rows), positions, int(ends[-1])), np.nan)
        left, closed = np.arange(len(rows)), 0
        while len(left):  # a call takes all linkages to their next position
            data = {**task.data, "design": rows[left], "until": np.array([closed + 1.0])}
            state = _call(kernel, layout, state, data, task.limit, place)
            named = dict(zip(layout.state, state, strict=True))
            new = named["closed"][:, 0] > closed
            found[left[new], named["sample"][new, 0].astype(int) % positions] = named["sample"][new]
            busy = new & (named["phase"][:, 0] != march.DONE)
            left, state, closed = left[busy], [x[busy] for x in state], closed + 1
        found = found.reshape(*x.shape[:-1], positions, -1)
        return self._sampled(task, rows.reshape(x.shape), found, places)

    def _sampled(self, task: Task, x: np.ndarray, found: np.ndarray, places: dict[str, slice]) -> SweepSamples:
        """Arrays from what a march knew at its samples."""

        def get(name: str, *shape: int) -> np.ndarray:
            return found[..., places[name]].reshape(*found.shape[:-1], *shape)

        model, n = self.model, len(self.variables)
        q = get("q", model.nq)
        own = self.body is not None
        return SweepSamples(
            q[..., self.mechanism.q_places], q, get("v", model.nv), get("a", model.nv), get("drive", len(self.ratios)),
            get("wrenches", len(model.joints), 6), get("point", 3) if own else None,
            get("velocity", 3) if own else None, get("q_by", model.nv, n) if "q_by" in places else None,
            get("point_by", 3, n) if "point_by" in places else None,
        )  # fmt: skip

    def _task(
        self, owner: str, positions: Any, span: Any, speed: Any, curve: Any, fit: Any, q: Any, guesses: Any
    ) -> Task:
        """Checked arguments of a sweep, as data of its march."""
        positions, speed = whole(owner, "positions", positions), number(owner, "speed", speed)
        guesses = whole(owner, "guesses", guesses)
        turning = all(self.model.joint(name).kind.q_units[0] == "rad" for name in self.ratios)
        if span is None:
            if not turning:
                raise InputError(f"{owner}: a driven joint slides; give the range of its coordinate in m as span=")
            stride = 2 * np.pi / positions
        else:
            stride = number(owner, "span", span) / max(positions - 1, 1)
        guess, branch = self._branch(owner, q)
        data = {"omega": np.array([speed]), "q_guess": guess, "branch": branch}
        data |= {"ratio": np.array([*self.ratios.values()], float)}
        data |= {"grid": np.array([positions, stride, guesses, span is None], float)}
        found = None
        if curve is not None:
            if fit not in FITS:
                raise InputError(f"{owner}: fit must be one of {', '.join(map(repr, FITS))}, got {shown(fit)}")
            if self.body is None:
                raise InputError(f"{owner}: the family has no point to follow the curve; name its body, as body=")
            if span is not None:
                raise InputError(f"{owner}: a curve is compared over a whole turn of the crank; leave span out")
            count, target = harmonics_of(owner, curve)
            if positions <= 2 * count:
                raise InputError(f"{owner}: {positions} positions are too few for a curve of {count} harmonics")
            found = Curve(count, fit, self._plane_axes(owner))
            data |= {"target": target}
        return Task(positions, found, data, STEPS_PER_POSITION * positions + 100 * guesses)

    def _plane_axes(self, owner: str) -> tuple[int, int]:
        """The two ground axes in which the mechanism moves."""
        from cardan.structure.planarity import find_plane, is_planar

        if not is_planar(self.model):
            raise InputError(f"{owner}: model {self.model.name!r} is not planar; a curve in a plane is compared")
        normal = np.abs(np.asarray(find_plane(self.model).ground.axes, dtype=float)[2])
        if normal.max() < 1 - 1e-9:
            raise InputError(f"{owner}: the plane of model {self.model.name!r} is not along two ground axes; turn it")
        found = [k for k in range(3) if k != int(normal.argmax())]
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Task:
    """A sweep's number of positions, its curve, the data of its march, and the most steps that it takes."""

    positions: int
    curve: Curve | None
    data: dict[str, np.ndarray]
    limit: int

    def gathered(self, found: dict[str, np.ndarray]) -> KinetostaticSweep:
        """What a march gathered."""
        one_each = {name: x[..., 0] for name, x in found.items()}
        for name in ("force", "speed"):  # squares until now; in place, since there may be millions
            if name in found:
                np.sqrt(found[name], out=found[name])
        error = one_each.get("error")
        if error is not None:
            error[error >= march.FAR] = np.inf
        return KinetostaticSweep(
            self.positions, one_each["closed"].astype(int), one_each["forwards"].astype(int), found["drive"],
            found["force"], one_each.get("speed"), one_each["gap"], error, found.get("slope"),
        )  # fmt: skip


def run_march(
    kernel: Kernel, layout: march.Layout, data: dict[str, np.ndarray], task: Task, place: Any
) -> dict[str, Any]:
    """What a march gathers from the start on."""
    start = [np.zeros(size) for size in layout.state.values()]
    return dict(zip(layout.state, _call(kernel, layout, start, data, task.limit, place), strict=True))


def _call(
    kernel: Kernel, layout: march.Layout, state: list[np.ndarray], data: dict[str, np.ndarray], limit: int, place: Any
) -> list[np.ndarray]:
    with np.errstate(all="ignore"):  # a linkage that cannot be assembled divides by zero, and is left out
        return list(kernel(*state, *(data[name] for name in layout.data), np.asarray(float(limit)), threads=place))


def _port(name: str, size: int) -> Port:
    return Port(name, (size,))


def _variables(owner: str, design: Any) -> tuple[str, ...]:
    """The arguments of a design function."""
    if not callable(design):
        raise InputError(f"{owner}: design must be a function of the design variables, got {shown(design)}")
    parameters = inspect.signature(design).parameters.values()
    if not parameters or any(x.kind not in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD) for x in parameters):
        raise InputError(f"{owner}: design must have the design variables as its arguments, one or more, by position")
    return tuple(x.name for x in parameters)


def _column(owner: str, name: str, value: Any, sizes: tuple[int, ...]) -> Any:
    """A value as a column of symbols of one of these sizes."""
    import casadi as ca

    try:
        parts = [value] if not isinstance(value, (tuple, list, np.ndarray)) else list(value)
        column = ca.vertcat(*(ca.SX(x) for x in parts))
    except Exception:
        raise InputError(f"{owner}: design gives {name!r} as {shown(value)}; give numbers or expressions") from None
    if column.shape[0] not in sizes or column.shape[1] != 1:
        wanted = " or ".join(map(str, sizes))
        raise InputError(f"{owner}: design gives {column.shape[0]} numbers for {name!r}, which has {wanted}")
    return column
