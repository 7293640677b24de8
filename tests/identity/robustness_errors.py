"""Errors of answers for ill-conditioned mechanisms, relative to exact answers, in units of what is promised."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import cardan as cd
from cardan.formulation.solve import with_less_added
from cardan.model.force import TORSION
from cardan.structure import kernels as evaluate
from cardan.structure.condition import take_as_closed
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import FreeKernel, tree_graph
from cardan.structure.magnification import reach, recorded
from cardan.structure.rounding import TOO_LARGE
from cardan.structure.row_sets import ChoosingKernel

from ..high_precision import exact
from .robustness_mechanisms import Case, built, freed

EPS = 2.0**-52
BOUND = 100.0  # times rounding, for what is not solved
NOTHING, MANY = 1e-40, 110  # share of what is added to matrices, and digits that see no more of it


@dataclass(frozen=True)
class Answer:
    """An answer: its error in units of the bound, the condition there, in general and at the state, and the warning."""

    what: str
    ratio: float
    condition: float = 1.0
    generic: float = 1.0
    warning: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the answer is finite."""
        return bool(np.isfinite(self.ratio))

    @property
    def is_too_ill_conditioned(self) -> bool:
        """Whether `cd.condition` says that digits are lost."""
        return bool(self.condition >= TOO_LARGE)

    @property
    def is_acceptable(self) -> bool:
        """Whether it keeps the bound, or came with a warning; a state may be special, which `cd.condition` tells."""
        if self.is_too_ill_conditioned:
            return bool(self.warning) or self.generic < TOO_LARGE
        return self.ratio <= 1.0


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

    def watch(self, look: Callable[[tuple[Any, ...]], None], closely: int = 0) -> None:
        """Only compiled kernels are watched."""


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
    kernel = kernel._kernel(0) if isinstance(kernel, ChoosingKernel) else kernel
    kernel = kernel.kernel if isinstance(kernel, FreeKernel) else kernel
    return kernel.function if isinstance(kernel, Interpreted) else kernel.program.record()


def exact_answers(model: cd.Model, key: str, *state: np.ndarray) -> list[np.ndarray]:
    """Accelerations and reactions at q, v, tau from a formulation's equations, without rounding."""
    with with_less_added(NOTHING, NOTHING):
        graphs = recorded(model.unbound, formulation_of(model, key))
    inputs = (*state, np.zeros((model.nb, 6)), *evaluate.parameter_arguments(model))
    return [x for graph in graphs for x in exact(graph, *inputs, digits=MANY)]


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
            yield Answer("refused", 0.0, warning=str(error))
            return
        model, q, v, a, tau = self.model, self.q, self.v, self.a, self.tau
        if not self.loops:
            answer = self._catching("mass matrix", lambda: cd.mass_matrix(model, q))
            yield self._compared("mass matrix", answer, (q,), self._of_mass)
            answer = self._catching("inverse dynamics", lambda: cd.inverse_dynamics(model, q, v, a))
            yield self._compared("inverse dynamics", answer, (q, v, a), self._of_force)
        answer = self._catching("kinetic energy", lambda: cd.kinetic_energy(model, q, v))
        yield self._compared("kinetic energy", answer, (q, v), self._of_energy)
        for key in self.w.keys:
            try:
                moved = self._catching(key, partial(cd.forward_dynamics, model, q, v, tau, formulation=key))
                held = self._catching(key, partial(cd.reactions, model, q, v, tau, formulation=key))
                conditions = [float(cd.condition(model, q, v, tau, formulation=key))]
                if conditions[0] >= TOO_LARGE:
                    conditions.append(float(cd.condition(model, q, formulation=key)))
            except cd.CardanError as error:
                yield Answer(f"{key} cannot", 0.0, warning=str(error))
                continue
            rights = exact_answers(model, key, q, v, tau)
            for what, right, found in zip(("accelerations", "reactions"), rights, (moved, held), strict=False):
                yield self._judged(f"{what}, {key}", found, right, conditions, self.warned.get(key, ""))

    def _judged(self, name: str, found: np.ndarray, right: np.ndarray, conditions: list[float], warning: str) -> Answer:
        """An answer whose error is relative to the largest of its unit, as that of `cd.condition`."""
        if not (np.isfinite(found).all() and np.isfinite(right).all()):
            return Answer(name, np.inf, *conditions, warning=warning)
        error, size = np.abs(found - right), np.abs(right)
        if error.ndim == 1:
            turning = np.array([unit == "rad/s" for link in self.model.tree.links for unit in link.kind.v_units], bool)
            groups = [(error[at], size[at].max(initial=0.0)) for at in (turning, ~turning)]
        else:
            force = size[:, 3:].max(initial=0.0)
            moment = max(size[:, :3].max(initial=0.0), reach(self.model) * force)
            groups = [(error[:, 3:], force), (error[:, :3], moment)]
        relative = max(one.max(initial=0.0) / max(size, 1e-300) for one, size in groups)
        return Answer(name, float(relative / (EPS * conditions[0])), *conditions, warning=warning)

    def _prepare(self) -> None:
        """Choose a state and compute sizes: each coordinate is scaled by the root of the inertia that it moves."""
        model, q, w = self.model, self.q, self.w
        rng = np.random.default_rng([w.seed, 2])
        self.loops = bool(model.cuts)
        take_as_closed(model)  # what is open is judged too, not only flagged
        (M,) = exact(tree_graph(self.plain, "mass_matrix"), q)
        self.size = np.sqrt(np.diag(M.reshape(model.nv, model.nv)))
        self.v = w.speed * rng.standard_normal(model.nv) / self.size
        self.tau = rng.standard_normal(model.nv) * self.size
        if self.loops:
            J = cd.constraint_jacobian(model, q) / self.size
            J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
            free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-9) :]
            self.v = free.T @ (free @ (self.v * self.size)) / self.size
        self._catching("spatial", lambda: cd.forward_dynamics(model, q, self.v, self.tau))
        (self.a,) = self._exact("forward_dynamics", "spatial", q, self.v, self.tau)
        terms = [self.size * self.a, self.tau / self.size, *self._springs()]
        self.scale = sum(float(np.linalg.norm(x)) for x in terms) + self._moving()

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

    def _moving(self) -> float:
        """Accelerations that weight, acceleration and velocity terms alone would give to free bodies."""
        total = 0.0
        for body, weight, w, dw in zip(self.plain.bodies, self._weights(), self.turning, self.given, strict=True):
            moments = np.linalg.eigvalsh(body.inertia)
            total += weight / np.sqrt(body.mass) + moments[-1] * (w**2 + dw) / np.sqrt(moments[0])
        return float(total)

    def _springs(self) -> list[np.ndarray]:
        """Generalised forces (nv,) of springs as if stretched by the whole distance of their ends from the origin."""
        model, found = self.plain, []
        poses = cd.body_poses(model, self.q)
        for force in model.forces:
            k = float(np.max(force.numbers["stiffness"]))
            if force.kind is TORSION:
                at = next(link for link in model.tree.links if link.joint == force.on[0])
                along = np.zeros(model.nv)
                along[at.v] = k * (np.abs(self.q[at.q]) + np.abs(force.numbers["rest"]))
                found.append(along / self.size)
                continue
            moved = [(i, b) for i, b in enumerate(force.on, start=1) if b >= 0]
            ends = [poses[b][:3, 3] + poses[b][:3, :3] @ force.numbers[f"at{i}"] for i, b in moved]
            pull = k * (max(float(np.linalg.norm(x)) for x in ends) + float(force.numbers["length"]))
            for i, b in moved:
                J = np.linalg.norm(cd.jacobian(model, self.q, model.bodies[b].name).reshape(2, 3, -1), axis=1)
                found.append(pull * (J[1] + J[0] * np.linalg.norm(force.numbers[f"at{i}"])) / self.size)
        return found

    def _compared(self, what: str, found: np.ndarray, args: tuple[np.ndarray, ...],
                error: Callable[[np.ndarray, np.ndarray], float]) -> Answer:  # fmt: skip
        right = self._exact(what.replace(" ", "_"), "spatial", *args)[0].reshape(np.shape(found))
        if not (np.isfinite(found).all() and np.isfinite(right).all()):
            return Answer(what, np.inf, warning=self.warned.get(what, ""))
        return Answer(what, error(np.asarray(found), right) / (BOUND * EPS), warning=self.warned.get(what, ""))

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
