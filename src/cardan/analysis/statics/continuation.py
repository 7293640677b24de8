"""`cd.equilibrium_path`: equilibria along a parameter, a load, a rate or a held coordinate, past turning points.

Pseudo-arclength continuation: a step along the tangent of the path, then Newton's method across it, with the exact
derivatives of the balance. With `A = (F_z, F_s)`, `z` along the mechanism's own directions and `s` along the parameter:

    turning point     F_z singular with left null vector u, u . F_s not zero: the path turns back in s
    bifurcation       the same with u . F_s zero: another branch crosses
    flutter           eigenvalues of the motion leave the imaginary axis, F_z regular

Each is located by a root finder on the path itself, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.statics.balance import (
    CLOSED,
    Change,
    Point,
    Task,
    displacement_sizes,
    length_of,
    moved,
    point_at,
    weighted,
)
from cardan.analysis.statics.equilibrium import ITERATIONS, TOLERANCE, Equilibrium, assembled, finished, model_found
from cardan.analysis.statics.newton import FOUND, Search, search
from cardan.analysis.statics.stability import SYMMETRIC, Stability, stability
from cardan.analysis.statics.task import (
    along_rates,
    change_of,
    coordinates_of,
    names_of,
    read_task,
    require_no_samples,
    start_of,
)
from cardan.errors import EquilibriumError, InputError
from cardan.formulation.formulation import Formulation
from cardan.machines.waiting import said
from cardan.model.html import html_table
from cardan.model.model import Model
from cardan.model.values import batch, number, one, whole

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

FIRST, LEAST = 0.01, 1e-9  # steps of arclength: of angles, lengths over the mechanism's, and the range together
STRAIGHT = 0.9  # cosine between tangents of neighbouring points
FARTHEST = 0.3  # of a step: the correction after it
STIFFENING = 0.5  # of the largest stiffness so far: the change between neighbouring points
NEAR = 1e-3  # of a test's values at both ends of a step, where branches cross
CORRECTIONS = 50  # where branches cross, each halves the distance
TURNING, BIFURCATION, FLUTTER = "turning point", "bifurcation", "flutter"


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A point of a path where stability changes: its kind, the value there, `q` (nq,), and the points before and after.

    `kind` is "turning point", "bifurcation" or "flutter"; `after` is the number of the path's point that follows.
    """

    kind: str
    value: float
    q: np.ndarray
    after: int
    node: Node = field(repr=False)
    critical: np.ndarray = field(repr=False)
    """Displacement (nv,) along which the stiffness vanishes there."""

    def __repr__(self) -> str:
        """Kind and value."""
        return f"{self.kind} at {self.value:.12g}"


@dataclass(frozen=True, eq=False)
class Node:
    """A point of a path, with its tangent in the columns of `point.A`."""

    point: Point
    tangent: np.ndarray
    stability: Stability

    @property
    def s(self) -> float:
        """Where it is in the range, 0 to 1."""
        return float(self.point.x[0, -1])

    @property
    def unstable(self) -> int:
        """How many directions are unstable."""
        return int(self.stability.unstable[0])


@dataclass(frozen=True, eq=False)
class EquilibriumPath:
    """Equilibria one after the other along a path, in SI units.

    Args:
        along: what was varied; `unit` is its unit.
        values: (n,) of it; where a vector was varied, from 0 to 1.
        q: configurations (n, nq).
        v: rates (n, nv).
        tau: drives (n, nv), given and found: the load where a coordinate was varied.
        unstable: (n,) how many directions are unstable.
        neutral: (n,) how many are neutral.
        special: turning points, bifurcations and flutter, in the order of the path.
        end: why the path ends.

    """

    model: Model
    along: str
    unit: str
    values: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    unstable: np.ndarray
    neutral: np.ndarray
    special: tuple[SpecialPoint, ...]
    end: str
    _walk: Walk = field(repr=False)
    _nodes: tuple[Node, ...] = field(repr=False)

    def __len__(self) -> int:
        """How many points."""
        return len(self.values)

    def __getitem__(self, index: int) -> Equilibrium:
        """One of its points as an equilibrium, with stability and reactions."""
        return self._walk.equilibrium(self._nodes[index])

    @property
    def is_stable(self) -> np.ndarray:
        """Whether (n,) no direction is unstable."""
        return np.asarray(self.unstable == 0)

    @property
    def turning_points(self) -> tuple[SpecialPoint, ...]:
        """Where it turns back: limit loads, snap-through."""
        return tuple(p for p in self.special if p.kind == TURNING)

    @property
    def bifurcations(self) -> tuple[SpecialPoint, ...]:
        """Where other branches cross: buckling loads, critical speeds."""
        return tuple(p for p in self.special if p.kind == BIFURCATION)

    def coordinate(self, name: str) -> np.ndarray:
        """A joint's coordinates (n,) or (n, k), rad and m."""
        at = self.model.q_slice(name)
        return self.q[:, at.start] if at.stop - at.start == 1 else self.q[:, at]

    def drive(self, name: str) -> np.ndarray:
        """Drive of a joint (n,) or (n, k), N m and N."""
        own = coordinates_of("equilibrium_path", "drive", self.model, name)
        return self.tau[:, own[0]] if len(own) == 1 else self.tau[:, own]

    def at(self, value: float) -> list[Equilibrium]:
        """The equilibria of the path at a value, in the order of the path."""
        s = (number("equilibrium_path", "value", value) - self._walk.first) / (self._walk.last - self._walk.first)
        found = []
        for before, after in zip(self._nodes[:-1], self._nodes[1:], strict=True):
            if min(before.s, after.s) <= s < max(before.s, after.s) or s == after.s == self._nodes[-1].s:
                node = self._walk.landed(before, s)
                if node is not None:
                    found.append(self._walk.equilibrium(node))
        return found

    def branch(self, point: SpecialPoint | int = 0, *, sign: int = 1, points: int | None = None) -> EquilibriumPath:
        """The other branch that begins at a bifurcation, to one side (`sign` 1 or -1)."""
        chosen = self.bifurcations[point] if isinstance(point, int) and len(self.bifurcations) > abs(point) else point
        if not isinstance(chosen, SpecialPoint) or chosen.kind != BIFURCATION:
            raise InputError(f"branch: this path has {len(self.bifurcations)} bifurcations, there is no {point!r}")
        if sign not in (1, -1):
            raise InputError(f"branch: sign must be 1 or -1, got {sign!r}")
        walk = self._walk if points is None else replace(self._walk, points=whole("branch", "points", points))
        node = chosen.node
        across = walk.across(node) * sign
        return walk.followed(replace(node, tangent=across), branching=True)

    def rows(self) -> list[tuple[str, str]]:
        """The path as a table."""
        rows = [
            ("model", self.model.name),
            ("along", f"{self.along}, {self.values[0]:.6g} to {self.values[-1]:.6g} {self.unit}"),
            ("points", f"{len(self)}, {int(self.is_stable.sum())} of them stable"),
        ]
        rows += [(p.kind, f"{p.value:.12g} {self.unit}") for p in self.special]
        return [*rows, ("end", self.end)]

    def __repr__(self) -> str:
        """A table."""
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table("Equilibrium path", self.rows())

    def plot(
        self, joint: str | None = None, *, load: str | None = None, others: Sequence[EquilibriumPath] = (),
        size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Plot a joint's coordinate over what was varied, or with `load` the drive of a joint; unstable parts dashed.

        By default that is the coordinate that moves most, of a path along "JOINT.q" the drive that holds the joint.
        `others` are drawn too, for example branches. `size` is width and height, inches; `path` writes a file.
        """
        from cardan.analysis.statics.path_plot import plot_paths

        return plot_paths([self, *others], joint, load, size, path, overwrite)


@dataclass(frozen=True, eq=False)
class Walk:
    """How a path is followed: the task, whose last unknown is `s`, and the steps."""

    task: Task
    first: float
    last: float
    unit: str
    points: int
    max_step: float
    tolerance: float
    size: float
    """The largest force that acts at the start: where branches cross, all forces may vanish."""
    progress: Callable[[float], None] | None = None

    def value(self, s: float) -> float:
        """What was varied, at `s`."""
        return self.first + s * (self.last - self.first)

    @property
    def scale(self) -> np.ndarray:
        """Sizes of the unknowns after the directions."""
        return np.array([c.size for c in self.task.changes])

    def columns(self, point: Point) -> np.ndarray:
        """`A` (rows, columns) with its unknowns by their sizes."""
        return np.asarray(point.A[0] * np.concatenate([np.ones(point.n_directions), self.scale]))

    def node(self, point: Point, before: np.ndarray) -> Node:
        """A point with the tangent that goes on in the direction `before`."""
        A = self.columns(point)
        _, s, Vt = np.linalg.svd(A)
        rank = int((s > 1e-10 * max(float(s.max(initial=0.0)), 1e-300)).sum())
        along = Vt[rank:] @ before
        tangent = Vt[rank:].T @ along
        length = float(np.linalg.norm(tangent))
        tangent = tangent / length if length > 1e-12 else before
        return Node(point, tangent, stability(point))

    def carried(self, old: Point, tangent: np.ndarray, new: Point) -> np.ndarray:
        """A direction at one point, in the columns of a point nearby."""
        k, dx = new.n_directions, tangent[old.n_directions :] * self.scale
        ambient = old.moves[0] @ np.concatenate([tangent[: old.n_directions], dx])
        z = new.W[0].T @ ((ambient - new.moves[0][:, k:] @ dx) / displacement_sizes(self.task.model) ** 2)
        return np.concatenate([z, tangent[old.n_directions :]])

    def moved(self, point: Point, step: np.ndarray) -> Point | None:
        """The point after a step in its columns, loops closed; None if they cannot be."""
        dx = step[point.n_directions :] * self.scale
        dq = point.moves[0] @ np.concatenate([step[: point.n_directions], dx])
        q, x, gap = moved(self.task, point.q, point.x, dq[None], dx[None])
        if not (gap <= CLOSED).all() or not np.isfinite(q).all():
            return None
        return point_at(self.task, q, x)

    def corrected(
        self, point: Point | None, across: Callable[[Point], np.ndarray], farthest: float
    ) -> tuple[Point | None, int]:
        """Newton's method onto the path, no farther and with no step along `across`; and the steps to the tolerance.

        It goes on to rounding.
        """
        rest, length, needed = np.inf, 0.0, 0
        for k in range(CORRECTIONS):
            if point is None or not np.isfinite(point.F).all():
                return None, k
            now, small = float(np.linalg.norm(point.F)), self.tolerance * max(self.size, float(point.size[0]))
            if now <= small and (now == 0.0 or now > 0.3 * rest):
                return point, needed
            if now > small and k > 4 and now > 0.7 * rest:
                return None, k
            needed += now > small
            rest = now
            A = np.vstack([self.columns(point), across(point)])
            step = -np.linalg.pinv(A, rcond=1e-13) @ np.concatenate([point.F[0], [0.0]])
            length += float(np.linalg.norm(step))
            if length > farthest:
                return None, k
            point = self.moved(point, step)
        return (point if point is not None and rest <= small else None), CORRECTIONS

    def stepped(self, node: Node, h: float) -> tuple[Node | None, int]:
        """The node at arclength `h` further, and the corrections it took."""
        start = node.point
        direction = lambda point: self.carried(start, node.tangent, point)
        point, count = self.corrected(self.moved(start, h * node.tangent), direction, max(FARTHEST * h, LEAST))
        if point is None:
            return None, count
        return self.node(point, self.carried(start, node.tangent, point)), count

    def landed(self, node: Node, s: float) -> Node | None:
        """The node at a given `s`, near this one."""
        last = np.zeros(len(node.tangent))
        last[-1] = 1.0
        pace = float(node.tangent[-1])
        step = node.tangent * (s - node.s) / pace if abs(pace) > 1e-3 else last * (s - node.s)
        point = self.moved(node.point, step)
        if point is not None:
            x = np.array(point.x)
            x[0, -1] = s
            point = point_at(self.task, point.q, x)
        unit = lambda point: np.concatenate([np.zeros(point.n_directions + len(self.scale) - 1), [1.0]])
        point, _ = self.corrected(point, unit, 1.0)
        return None if point is None else self.node(point, self.carried(node.point, node.tangent, point))

    def followed(self, node: Node, branching: bool = False) -> EquilibriumPath:
        """Follow the path from a node until it leaves the range."""
        nodes: list[Node] = [node]
        special: list[Any] = []
        largest = self.size if branching else 0.0  # where a branch begins, the stiffness vanishes
        h, end = min(FIRST, self._longest(node)), f"{self.points} points were followed; points= allows more"
        while len(nodes) < self.points:
            new, count = self.stepped(node, h)
            # where a branch leaves, the tangent turns at once
            turned = new is not None and not (branching and len(nodes) == 1) and self._turn(node, new) < STRAIGHT
            largest = max(largest, float(np.abs(self._stiffness(node)).max(initial=0.0)))
            if new is None or ((turned or self._stiffens(node, new, largest)) and h > 1e-6):
                h /= 2
                if h < LEAST:
                    end = f"the path cannot be followed beyond {self.value(node.s):.6g} {self.unit}".rstrip()
                    break
                continue
            for why in model_found(self.task, new.point.x, ())[1].values():
                return self._result(nodes, special, why.partition(": ")[2])
            out = new.s > 1.0 + 1e-12 or new.s < -1.0
            if not (branching and len(nodes) == 1):
                special += self._between(node, new, h, len(nodes))
            if out:
                bound = 1.0 if new.s > 0.0 else -1.0
                new = self.landed(node, bound) or new
            elif len(nodes) > 3 and self._closes(nodes, new, h):
                end = "it has come back to its start"
                nodes.append(new)
                break
            nodes.append(new)
            node = new
            if self.progress is not None:
                self.progress(node.s)
            if out:
                end = f"the end of the range, {self.value(node.s):.6g} {self.unit}".rstrip()
                break
            h = min(self._longest(node), h * (1.5 if count <= 3 else 1.0 if count <= 5 else 0.5))
        return self._result(nodes, special, end)

    def _longest(self, node: Node) -> float:
        """The longest step from a node, so that no coordinate moves by more than `max_step`, rad and lengths."""
        tangent = node.tangent * np.concatenate([np.ones(node.point.n_directions), self.scale])
        moves = node.point.moves[0] @ tangent / displacement_sizes(self.task.model)
        return self.max_step / max(1.0, float(np.abs(moves).max(initial=0.0)))

    def _stiffens(self, node: Node, new: Node, largest: float) -> bool:
        """Whether the stiffness changes so much that a turn of the path may have been passed over."""
        before, after = self._stiffness(node), self._stiffness(new)
        if before.shape != after.shape:
            return False
        return float(np.abs(after - before).max(initial=0.0)) > STIFFENING * largest > 0.0

    def _turn(self, node: Node, new: Node) -> float:
        return float(self.carried(node.point, node.tangent, new.point) @ new.tangent)

    def _closes(self, nodes: list[Node], new: Node, h: float) -> bool:
        """Whether it is back at the first node, full turns not counted, and goes the same way."""
        first, units = nodes[0].point, [unit for link in self.task.model.tree.links for unit in link.kind.q_units]
        gap = new.point.q[0] - first.q[0]
        turns = np.array([unit == "rad" for unit in units], dtype=bool)
        gap[turns] -= 2 * np.pi * np.round(gap[turns] / (2 * np.pi))
        gap[[unit == "m" for unit in units]] /= length_of(self.task.model)
        away = float(np.linalg.norm(np.concatenate([gap, (new.point.x[0] - first.x[0]) / self.scale])))
        same_way = float(self.carried(first, nodes[0].tangent, new.point) @ new.tangent) > 0
        return len(nodes) > 10 and away < 0.6 * h and same_way

    def _between(self, before: Node, after: Node, h: float, number_: int) -> list[SpecialPoint]:
        """Points where stability changes, between two nodes that are a step `h` apart."""
        found: list[tuple[float, SpecialPoint]] = []

        def add(test: Callable[[Node], float], kind: str = "") -> None:
            located = self._located(before, after, h, test, crossing=kind == BIFURCATION)
            if located is None or not -1.0 <= located[1].s <= 1.0:
                return
            node = located[1]
            own, critical = self._kind(node)
            crosses = own == TURNING and before.tangent[-1] * after.tangent[-1] > 0
            if crosses or (own == BIFURCATION and self._turn(before, node) < STRAIGHT):  # found on the other branch
                own, node = BIFURCATION, self._along(before, node)
            special = SpecialPoint(kind or own, self.value(located[2]), node.point.q[0], number_, node, critical)
            found.append((located[0], special))

        for test in self._tests(before, after):
            add(test)
        if not found and before.tangent[-1] * after.tangent[-1] < 0:  # it turns though the stiffness keeps its sign
            add(lambda node: float(node.tangent[-1]), BIFURCATION)
        if not found and before.unstable != after.unstable:
            add(lambda node: 0.5 if node.unstable == before.unstable else -0.5, FLUTTER)
        return [special for _, special in sorted(found, key=lambda pair: pair[0])]

    def _along(self, before: Node, node: Node) -> Node:
        """A node beside a crossing with the tangent of the path that comes from `before`, not of the other branch."""
        null = np.linalg.svd(self.columns(node.point))[2][-2:]
        tangent = null.T @ (null @ self.carried(before.point, before.tangent, node.point))
        return replace(node, tangent=tangent / np.linalg.norm(tangent))

    def _tests(self, before: Node, after: Node) -> list[Callable[[Node], float]]:
        """Functions that change sign between two nodes where the stiffness is singular."""
        if self.task.is_symmetric and len(self.task.changes) == 1 and self._is_conservative(before, after):
            counts = [int((self._stiffness(node) < 0).sum()) for node in (before, after)]

            def eigenvalue(i: int) -> Callable[[Node], float]:
                return lambda node: float(self._stiffness(node)[i])

            return [eigenvalue(i) for i in range(min(counts), max(counts))]
        rows, columns = before.point.A.shape[1:]
        if rows != columns - 1:
            return []

        def signed(node: Node) -> float:
            """The smallest singular value, with the sign of the determinant."""
            inner = self.columns(node.point)[:, :-1]
            least = float(np.linalg.svd(inner, compute_uv=False).min(initial=1.0))
            return float(np.linalg.slogdet(inner)[0]) * least * self._oriented(before, node)

        return [signed] if signed(before) * signed(after) < 0 else []

    @staticmethod
    def _is_conservative(*nodes: Node) -> bool:
        """Whether the stiffness is symmetric at all nodes."""
        inner = [node.point.A[0][:, : node.point.n_directions] for node in nodes]
        return all(np.abs(K - K.T).max(initial=0.0) <= SYMMETRIC * np.abs(K).max(initial=0.0) for K in inner)

    @staticmethod
    def _stiffness(node: Node) -> np.ndarray:
        A = node.point.A[0][:, : node.point.n_directions]
        return np.asarray(np.linalg.eigvalsh((A + A.T) / 2)) if A.shape[0] == A.shape[1] else np.zeros(0)

    @staticmethod
    def _oriented(before: Node, node: Node) -> float:
        """1 where the bases of the two nodes have the same sense, -1 where they have not."""
        turn = np.linalg.det(before.point.W[0].T @ node.point.W[0])
        return float(np.sign(turn * np.linalg.det(before.point.Y[0].T @ node.point.Y[0])))

    def _located(
        self, before: Node, after: Node, h: float, test: Callable[[Node], float], crossing: bool = False
    ) -> tuple[float, Node, float] | None:
        """The step and the node between two others, `h` apart, where a test changes sign, and `s` there.

        At a crossing, where the search may leave the path for the other branch, the nearest node on it.
        """
        from scipy.interpolate import lagrange
        from scipy.optimize import brentq

        nodes: dict[float, Node] = {0.0: before, h: after}

        def at(step: float) -> float:
            if step not in nodes:
                made = self.stepped(before, step)[0]
                if made is None or (crossing and self._turn(before, made) < STRAIGHT):
                    raise ArithmeticError
                nodes[step] = made
            return test(nodes[step])

        start, end = at(0.0), at(h)
        if start == 0.0 or start * end > 0:  # at the start of the step it was found before
            return None
        failed = False
        try:
            found = float(brentq(at, 0.0, h, xtol=1e-15, rtol=1e-14, maxiter=100))
            at(found)
        except (ArithmeticError, ValueError, RuntimeError):
            failed = True
        if crossing or failed:
            found = min(nodes, key=lambda step: abs(test(nodes[step])))
            if abs(test(nodes[found])) > NEAR * max(abs(start), abs(end)):
                return None
        if failed and not crossing:  # the equations are singular there: from the three nearest nodes
            near = sorted(nodes.values(), key=lambda node: abs(test(node)))[:3]
            return found, nodes[found], float(lagrange([test(node) for node in near], [node.s for node in near])(0.0))
        return found, nodes[found], nodes[found].s

    def _kind(self, node: Node) -> tuple[str, np.ndarray]:
        """What a point with singular stiffness is, and the displacement (nv,) along which it vanishes."""
        A = self.columns(node.point)
        inner, last = A[:, :-1], A[:, -1]
        U, _, Vt = np.linalg.svd(inner)
        critical = node.point.moves[0][:, :-1] @ (
            Vt[-1] * np.concatenate([np.ones(node.point.n_directions), self.scale[:-1]])
        )
        weight = max(float(np.linalg.norm(last)), 1e-10 * float(node.point.size[0]), 1e-300)
        return (TURNING if abs(U[:, -1] @ last) > 1e-5 * weight else BIFURCATION), critical

    def across(self, node: Node) -> np.ndarray:
        """The direction of the other branch at a bifurcation, in the columns there: across the path's own."""
        null = np.linalg.svd(self.columns(node.point))[2][-2:]  # where branches cross, two directions
        others = null - np.outer(null @ node.tangent, node.tangent)
        direction = others[int(np.argmax(np.linalg.norm(others, axis=1)))]
        return np.asarray(direction / np.linalg.norm(direction))

    def equilibrium(self, node: Node) -> Equilibrium:
        """A node as the result that `cd.equilibrium` gives."""
        point = node.point
        rest = np.linalg.norm(point.F, axis=-1)
        search_ = Search(point.q, point.x, rest, point.size, np.zeros(1, dtype=int), np.array([FOUND], dtype=object))
        return finished(self.task, search_, (), False, False)

    def _result(self, nodes: list[Node], special: list[SpecialPoint], end: str) -> EquilibriumPath:
        q, v, tau = (np.concatenate([getattr(node.point, name) for node in nodes]) for name in ("q", "v", "tau"))
        unstable, neutral = (
            np.array([getattr(n.stability, name)[0] for n in nodes]) for name in ("unstable", "neutral")
        )
        values = np.array([self.value(node.s) for node in nodes])
        return EquilibriumPath(
            self.task.model, self.task.changes[-1].name, self.unit, values, q, v, tau, unstable, neutral,
            tuple(special), end, self, tuple(nodes),
        )  # fmt: skip


@said("following the equilibria")
def equilibrium_path(
    model: Model, along: str, to: Sequence[Any], q: ArrayLike | Mapping[str, Any] | None = None, *,
    tau: ArrayLike | Mapping[str, Any] | None = None, rates: Mapping[str, Any] | None = None,
    hold: str | Iterable[str] = (), solve_for: str | Iterable[str] | None = None, wrenches: ArrayLike | None = None,
    t: float = 0.0, stable: bool = False, formulation: str | Formulation = "spatial", points: int = 1000,
    max_step: float = 0.1, tolerance: float = TOLERANCE, progress: Callable[[float], None] | None = None,
) -> EquilibriumPath:  # fmt: skip
    """Follow equilibria along something that varies, past turning points; find bifurcations: `cd.EquilibriumPath`.

    Args:
        model: the mechanism; one at a time.
        along: a free parameter such as "spring.stiffness" or "gravity[2]", a drive by name of its joint, a speed
            "JOINT.rate", or a coordinate "JOINT.q", which a drive holds: its drive is the load of the load-deflection
            curve. "tau" is a factor on all drives given.
        to: the first and the last value; of a parameter with several numbers two arrays. A path that turns back is
            followed past the first value, as far again.
        q: where to begin at the first value, as in `cd.equilibrium`.
        tau: drives, as there.
        rates: constant rates of joints, as there.
        hold: joints that stay, as there.
        solve_for: what else is unknown, as there.
        wrenches: on the bodies, as there.
        t: time, s.
        stable: begin at a stable equilibrium.
        formulation: whose equations of motion are used.
        points: most points of the path.
        max_step: longest step: of angles (rad), of lengths over the largest of the mechanism, of the range (1).
        tolerance: as in `cd.equilibrium`.
        progress: called with where in the range (0 to 1) the path is.

    """
    owner = "equilibrium_path"
    if not isinstance(model, Model):
        raise InputError(
            f"{owner}: the first argument is a model, got {model!r:.80}; a Mechanism is built with build()"
        )
    model.require_one(owner)
    model.require_no_laws(owner, "with them equilibria are a set, not points")
    ends = _ends(owner, to)
    varied, firsts = _varied(owner, model, along, ends, tau)
    holding, turning = names_of(owner, "hold", hold), dict(rates or {})
    start = one(owner, "q", start_of(owner, model, q), model.nq)
    joint = along.rpartition(".")[0]
    if varied.q.any():
        holding = [*holding, *([joint] if joint not in holding else [])]
        if model.q_slice(joint).stop - model.q_slice(joint).start != 1:
            raise InputError(
                f"{owner}: along={along!r}: joint {joint!r} has several coordinates; vary a joint with one"
            )
        start[model.q_slice(joint)] = ends[0]
    if varied.v.any():
        turning[joint] = float(one(owner, "to", ends[0]))
    given = (tau, turning or None, holding, solve_for, wrenches, t, formulation)
    task, start, shape = read_task(owner, model, start, *given)
    if shape:
        raise InputError(f"{owner}: it follows one mechanism at a time, got a batch of shape {shape}; call it for each")
    if along != "tau" and varied.tau[list(task.driven)].any():
        raise InputError(f"{owner}: along={along!r} is the drive of a joint that is held; leave the joint out of hold")
    task = replace(task, p=_placed(task.p, firsts["p"]), tau=_placed(task.tau, firsts["tau"]))
    tolerance = number(owner, "tolerance", tolerance, above=0)
    count = np.zeros((1, len(task.changes)))
    closed_start = assembled(task, start)
    task = weighted(task, closed_start, count)
    require_no_samples(task, closed_start, count)
    begin = search(task, closed_start, count, tolerance, ITERATIONS, bool(stable))
    at_start = finished(task, begin, (), bool(stable), False)
    if not at_start.found:
        raise EquilibriumError(str(at_start.why).replace(f"{owner}:", f"{owner}: at the first value,", 1), at_start)
    scalar = np.ndim(ends[0]) == 0
    walk = Walk(
        replace(task, changes=(*task.changes, varied)), float(ends[0]) if scalar else 0.0,
        float(ends[1]) if scalar else 1.0, varied.unit, whole(owner, "points", points, least=2),
        number(owner, "max_step", max_step, above=0), tolerance, float(begin.size[0]), progress,
    )  # fmt: skip
    point = point_at(walk.task, begin.q, np.concatenate([begin.x, np.zeros((1, 1))], axis=1))
    ahead = np.zeros(point.A.shape[-1])
    ahead[-1] = 1.0
    return walk.followed(walk.node(point, ahead))


def _ends(owner: str, to: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(to, str) or not isinstance(to, Sequence | np.ndarray) or len(to) != 2:
        raise InputError(f"{owner}: to must be the first and the last value, such as (0.0, 10.0), got {to!r:.80}")
    first, last = (batch(owner, "to", x) for x in to)
    if first.shape != last.shape:
        raise InputError(f"{owner}: to: the first value has the shape {first.shape}, the last {last.shape}")
    if np.array_equal(first, last):
        raise InputError(f"{owner}: to: the first and the last value are both {first}; there is nothing to follow")
    return first, last


def _varied(
    owner: str, model: Model, along: Any, ends: tuple[np.ndarray, np.ndarray], tau: Any
) -> tuple[Change, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """What is varied, one unit of it going through the whole range; and by field where it is, and its first values."""
    none = np.zeros(model.nv)
    if along == "tau":
        drives = one(owner, "tau", along_rates(owner, "tau", model, tau)[0], model.nv)
        if not drives.any():
            raise InputError(f"{owner}: along='tau' is a factor on the drives tau, and none are given")
        first, span = (float(one(owner, "to", x)) for x in (ends[0], ends[1] - ends[0]))
        change = Change("tau", "", np.zeros(model.parameters.size), none, none, span * drives)
        nothing = np.zeros(model.parameters.size)
        return change, {"p": (nothing > 0, nothing), "tau": (drives != 0, first * drives)}
    parts = change_of(owner, "along", model, along)
    firsts, spans = ends[0].ravel(), (ends[1] - ends[0]).ravel()
    if len(parts) != len(spans):
        raise InputError(
            f"{owner}: along={along!r} has {len(parts)} numbers and to {len(spans)}; vary one of them, such as "
            f"{parts[0].name!r}, or give as many"
        )

    def total(weights: np.ndarray, name: str) -> np.ndarray:
        return np.sum([w * getattr(c, name) for w, c in zip(weights, parts, strict=True)], axis=0)

    name, unit = (parts[0].name, parts[0].unit) if len(parts) == 1 else (along, "")
    p, v, q, tau = (total(spans, each) for each in ("p", "v", "q", "tau"))
    change = Change(name, unit, p, v, q, tau)
    ones = np.ones(len(parts))
    return change, {each: (total(ones, each) != 0, total(firsts, each)) for each in ("p", "tau")}


def _placed(x: np.ndarray, first: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """An array with its first values where they are varied."""
    return np.where(first[0], first[1], x)
