"""Errors of answers for ill-conditioned mechanisms, relative to 60 digits, in units of rounding times the condition."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import cardan as cd
from cardan.model.force import TORSION
from cardan.model.joint import joint_transform
from cardan.structure import kernels as evaluate
from cardan.structure.condition import TOO_LARGE, take_as_closed
from cardan.structure.kernels import FreeKernel, tree_graph

from ..high_precision import exact
from .robustness_mechanisms import Case, built, freed

EPS = 2.0**-52
BOUND = 100.0  # times rounding and condition


@dataclass(frozen=True)
class Answer:
    """An answer: its error in units of rounding times the condition, and the warning or error that came with it."""

    what: str
    ratio: float
    condition: float
    warning: str

    @property
    def is_number(self) -> bool:
        """Whether the answer is finite."""
        return bool(np.isfinite(self.ratio))

    @property
    def is_too_ill_conditioned(self) -> bool:
        """Whether the condition is larger than those that the bound holds for."""
        return bool(self.condition >= TOO_LARGE)

    @property
    def is_acceptable(self) -> bool:
        """Whether it keeps the bound, or came with a warning."""
        return bool(self.warning) or self.ratio <= BOUND


@dataclass(frozen=True)
class Pull:
    """A spring on a body (-1: none): its force, N, lever arm about the centre of mass, m, and generalised force."""

    body: int
    force: float
    arm: float
    along: np.ndarray


class Interpreted:
    """A stand-in for a compiled kernel: CasADi's interpreter on the same graph, row by row."""

    def __init__(self, program: Any) -> None:
        self.program, self.function = program, None

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        ports, outputs = self.program.inputs, self.program.outputs
        self.function = self.function or self.program.record()
        arrays = [np.asarray(a, dtype=float) for a in args]
        batch = np.broadcast_shapes(*(a.shape[: a.ndim - len(p.shape)] for p, a in zip(ports, arrays, strict=True)))
        arrays = [np.broadcast_to(a, (*batch, *p.shape)) for p, a in zip(ports, arrays, strict=True)]
        results = [np.empty((*batch, *p.shape)) for p in outputs]
        for row in np.ndindex(batch):
            found = self.function.call([a[row] for a in arrays])
            for result, value, port in zip(results, found, outputs, strict=True):
                result[row] = np.array(value).reshape(port.shape)
        return results[0] if len(results) == 1 else tuple(results)


@contextmanager
def interpreted() -> Iterator[None]:
    """Within this context nothing is compiled: models interpret their graphs."""
    compiling = evaluate.compile_program
    evaluate.compile_program = Interpreted  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        evaluate.compile_program = compiling


def _kept(model: cd.Model, name: str, key: str = "spatial") -> Any:
    """The graph of a quantity that the model has computed before."""
    short = {"forward_dynamics": "forward", "inverse_dynamics": "inverse"}.get(name, name)
    places = ((key, name), (key, short, False), (key, short, True))
    kernel = next(thing for place in places for (_, *where), thing in model.memory.items() if where == [place])
    kernel = kernel.kernel if isinstance(kernel, FreeKernel) else kernel
    return kernel.function if isinstance(kernel, Interpreted) else kernel.program.record()


@dataclass
class Comparison:
    """Answers of the public functions for one mechanism, compared with exact ones."""

    w: Case
    warned: dict[str, str] = field(default_factory=dict)

    def answers(self) -> Iterator[Answer]:
        """Every quantity in every formulation that can express the mechanism."""
        try:
            self.plain, self.q = built(self.w)
            self.model = freed(self.w, self.plain) if self.w.free else self.plain
            self._prepare()
        except cd.CardanError as error:
            yield Answer("refused", 0.0, 1.0, str(error))
            return
        model, q, v, a, tau = self.model, self.q, self.v, self.a, self.tau
        if not self.loops:
            answer = self._catching("mass matrix", lambda: cd.mass_matrix(model, q))
            yield self._compared("mass matrix", "", answer, (q,), self._of_mass)
            answer = self._catching("inverse dynamics", lambda: cd.inverse_dynamics(model, q, v, a))
            yield self._compared("inverse dynamics", "", answer, (q, v, a), self._of_force)
        answer = self._catching("kinetic energy", lambda: cd.kinetic_energy(model, q, v))
        yield self._compared("kinetic energy", "", answer, (q, v), self._of_energy)
        for key in self.w.keys:
            try:
                moved = self._catching(key, partial(cd.forward_dynamics, model, q, v, tau, formulation=key))
                held = self._catching(key, partial(cd.reactions, model, q, v, tau, formulation=key))
                condition = float(cd.condition(model, q, formulation=key))
            except cd.CardanError as error:
                yield Answer(f"{key} cannot", 0.0, 1.0, str(error))
                continue
            apart = key in ("absolute", "points")  # bodies by themselves
            error = self._of_bodies if apart else self._of_acceleration
            yield self._compared("accelerations", key, moved, (q, v, tau), error, condition)
            error = self._of_reaction_apart if apart else self._of_reaction
            yield self._compared("reactions", key, held, (q, v, tau), error, condition)

    def _prepare(self) -> None:
        """Choose a state and compute sizes: each coordinate is scaled by the root of the inertia that it moves."""
        model, q, w = self.model, self.q, self.w
        rng = np.random.default_rng([w.seed, 2])
        self.loops = bool(model.cuts)
        take_as_closed(model)  # what is open is judged too, not only flagged
        (M,) = exact(tree_graph(self.plain, "mass_matrix"), q)
        self.size, self.own = np.sqrt(np.diag(M.reshape(model.nv, model.nv))), self._own()
        self.v = w.speed * rng.standard_normal(model.nv) / self.size
        self.tau = rng.standard_normal(model.nv) * self.size
        if self.loops:
            J = cd.constraint_jacobian(model, q) / self.size
            J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
            free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-9) :]
            self.v = free.T @ (free @ (self.v * self.size)) / self.size
        self._catching("spatial", lambda: cd.forward_dynamics(model, q, self.v, self.tau))
        (self.a,) = self._exact("forward_dynamics", "spatial", q, self.v, self.tau)
        self.drives = np.abs(self.tau)
        terms = [self.size * self.a, self.tau / self.size]
        springs, places = self._springs(), cd.body_poses(self.plain, q)[:, :3, 3]
        self.length = max(*(part.length for part in w.parts), float(np.linalg.norm(places, axis=-1).max()))
        self.scale = sum(float(np.linalg.norm(x)) for x in (*terms, *(pull.along for pull in springs)))
        self.force = max([*self._weights(), *(pull.force for pull in springs), *self._drives(shifts=True)])
        self.moment = max([self.force * self.length, *self._drives(shifts=False)])
        self.scale += self._moving()
        self.bodies = self._moving() + self._bodies(springs)

    def _own(self) -> np.ndarray:
        """For each coordinate, the root of the inertia of the lighter of the two bodies at its joint."""
        links, own = self.plain.separate.tree.links, np.zeros(self.plain.nv)
        for link in links:
            q = self.q[link.q]
            S, X = np.asarray(link.kind.S(q), dtype=float), joint_transform(link.kind, q, link.E, link.r)
            sides = [link.I] if link.parent < 0 else [link.I, X.inverse.congruence(links[link.parent].I)]
            own[link.v] = np.sqrt(np.maximum(np.min([np.diag(S.T @ I @ S) for I in sides], axis=0), 0.0))
        return own

    def _weights(self) -> list[float]:
        """Size of the forces on each body from gravity, acceleration and rotation (w x v), N."""
        model = self.plain
        twists = np.linalg.norm(np.asarray(cd.body_twists(model, self.q, self.v)).reshape(-1, 2, 3), axis=-1)
        gravity = float(np.linalg.norm(model.gravity))
        self.turning = [float(w) for w, _ in twists]
        rates = np.asarray(cd.body_accelerations(model, self.q, self.v, self.a)).reshape(-1, 2, 3)
        self.given = [float(x) for x in np.linalg.norm(rates[:, 0], axis=-1)]
        arms = [float(np.linalg.norm(body.com)) for body in model.bodies]
        rates = np.linalg.norm(rates, axis=-1)
        return [
            float(body.mass * (gravity + w * (v + w * arm) + a + dw * arm))
            for body, arm, (w, v), (dw, a) in zip(model.bodies, arms, twists, rates, strict=True)
        ]

    def _drives(self, *, shifts: bool) -> list[float]:
        """Drives and springs of joints along shifts, N, or turns, N m."""
        units = [unit for link in self.model.tree.links for unit in link.kind.v_units]
        return [float(x) for x, unit in zip(self.drives, units, strict=True) if (unit == "m/s") == shifts]

    def _moving(self) -> float:
        """Accelerations that weight, acceleration and velocity terms alone would give to free bodies."""
        total = 0.0
        for body, weight, w, dw in zip(self.plain.bodies, self._weights(), self.turning, self.given, strict=True):
            moments = np.linalg.eigvalsh(body.inertia)
            total += weight / np.sqrt(body.mass) + moments[-1] * (w**2 + dw) / np.sqrt(moments[0])
        return float(total)

    def _springs(self) -> list[Pull]:
        """Forces of springs as if stretched by the whole distance of their ends from the origin."""
        model, found = self.plain, []
        poses = cd.body_poses(model, self.q)
        for force in model.forces:
            k = float(np.max(force.numbers["stiffness"]))
            if force.kind is TORSION:
                at = next(link for link in model.tree.links if link.joint == force.on[0])
                along = np.zeros(model.nv)
                along[at.v] = k * (np.abs(self.q[at.q]) + np.abs(force.numbers["rest"]))
                found.append(Pull(-1, 0.0, 0.0, along / self.size))
                self.drives += along
                continue
            moved = [(i, b) for i, b in enumerate(force.on, start=1) if b >= 0]
            ends = [poses[b][:3, 3] + poses[b][:3, :3] @ force.numbers[f"at{i}"] for i, b in moved]
            pull = k * (max(float(np.linalg.norm(x)) for x in ends) + float(force.numbers["length"]))
            for i, b in moved:
                J = np.linalg.norm(cd.jacobian(model, self.q, model.bodies[b].name).reshape(2, 3, -1), axis=1)
                along = pull * (J[1] + J[0] * np.linalg.norm(force.numbers[f"at{i}"])) / self.size
                arm = float(np.linalg.norm(force.numbers[f"at{i}"] - model.bodies[b].com))
                found.append(Pull(b, pull, arm, along))
        return found

    def _bodies(self, springs: list[Pull]) -> float:
        """Accelerations that each force alone would give to its bodies, if these were free."""
        model = self.plain
        total = 0.0

        def give(b: int, moment: float, force: float, arm: float) -> float:
            if b < 0:
                return 0.0
            least = float(np.linalg.eigvalsh(model.bodies[b].inertia)[0])
            return (moment + arm * force) / np.sqrt(least) + force / np.sqrt(model.bodies[b].mass)

        for pull in springs:
            total += give(pull.body, 0.0, pull.force, pull.arm)
        for link in model.tree.links:
            joint = model.joints[link.joint]
            tau = np.abs(self.drives[link.v])
            turns = np.array([unit == "rad/s" for unit in link.kind.v_units], dtype=bool)
            moment, force = float(tau[turns].sum()), float(tau[~turns].sum())
            for b, at in ((joint.parent, joint.at), (joint.child, joint.child_at)):
                com = np.zeros(3) if b < 0 else model.bodies[b].com
                total += give(b, moment, force, float(np.linalg.norm(at.position - com)))
        return total

    def _compared(self, what: str, key: str, found: np.ndarray, args: tuple[np.ndarray, ...],
                error: Callable[[np.ndarray, np.ndarray], float], condition: float = 1.0) -> Answer:  # fmt: skip
        quantity = {"accelerations": "forward_dynamics"}.get(what, what.replace(" ", "_"))
        right = self._exact(quantity, key or "spatial", *args)[0].reshape(np.shape(found))
        name, warning = f"{what}, {key}" if key else what, self.warned.get(key or what, "")
        if not (np.isfinite(found).all() and np.isfinite(right).all()):
            return Answer(name, np.inf, condition, warning)
        ratio = error(np.asarray(found), right) / (EPS * min(condition, TOO_LARGE))
        return Answer(name, float(ratio), condition, warning)

    def _exact(self, quantity: str, key: str, *args: np.ndarray) -> list[np.ndarray]:
        graph = _kept(self.model, quantity, key)
        values = evaluate.parameter_arguments(self.model)
        loads = [np.zeros((self.model.nb, 6))] * (graph.n_in() - len(args) - len(values))
        return exact(graph, *args, *loads, *values)

    def _catching(self, key: str, answer: Callable[[], Any]) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = answer()
        if caught:
            self.warned[key] = str(caught[0].message)
        return result

    def _of_mass(self, found: np.ndarray, right: np.ndarray) -> float:
        return float(np.abs((found - right) / np.outer(self.size, self.size)).max(initial=0.0))

    def _of_force(self, found: np.ndarray, right: np.ndarray) -> float:
        return float(np.linalg.norm((found - right) / self.size)) / max(self.scale, 1e-300)

    def _of_energy(self, found: np.ndarray, right: np.ndarray) -> float:
        moving = float(np.linalg.norm(self.size * self.v)) ** 2
        return float(np.abs(found - right).max()) / max(moving, 1e-300)

    def _of_acceleration(self, found: np.ndarray, right: np.ndarray) -> float:
        return float(np.linalg.norm(self.size * (found - right))) / max(self.scale, 1e-300)

    def _of_bodies(self, found: np.ndarray, right: np.ndarray) -> float:
        return float(np.linalg.norm(self.own * (found - right))) / max(self.bodies, 1e-300)

    def _of_reaction(self, found: np.ndarray, right: np.ndarray) -> float:
        return self._relative(found, right, self.force, self.moment)

    def _of_reaction_apart(self, found: np.ndarray, right: np.ndarray) -> float:
        """Relative to the forces that would hold the lighter body at each joint against all loads."""
        ends = [(joint.parent, joint.child) for joint in self.plain.joints]
        lighter = max(min(self.plain.bodies[b].mass for b in pair if b >= 0) for pair in ends)
        return self._relative(found, right, max(self.force, self.bodies * np.sqrt(lighter)), self.moment)

    def _relative(self, found: np.ndarray, right: np.ndarray, force: float, moment: float) -> float:
        force = max(float(np.abs(right[:, 3:]).max()), force, 1e-300)
        moment = max(float(np.abs(right[:, :3]).max()), moment, force * self.length)
        error = np.abs(found - right)
        return float(max(error[:, :3].max() / moment, error[:, 3:].max() / force))
