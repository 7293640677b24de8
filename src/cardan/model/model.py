"""The frozen model: what every formulation, kernel and report reads, and nothing may change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, LoopError, ModelError, UnknownNameError, nearest, no_attribute
from cardan.lazy import cached_property
from cardan.model.body import Body, Frame, Joint
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.controller import Controller
from cardan.model.force import Coupling, Force
from cardan.model.html import VIEWS, mechanism_html, model_view
from cardan.model.law import LawfulElement, lawful_elements
from cardan.model.memory import Memory
from cardan.model.parameter import NONE, Parameters, digest_of_parts, find_parameter, with_numbers
from cardan.model.pose import Pose
from cardan.model.row import RowTable, rows_of_tree
from cardan.model.tree import GROUND, Link, Tree, grow_tree, merged_inertia
from cardan.model.values import bodies_and_joints, counted, shown, whole
from cardan.model.variable import Variable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.model.particles import ParticleSystem
    from cardan.model.signal import Signal
from cardan.model.shape import Shape


@dataclass(frozen=True, eq=False)
class Actuator:
    """A named input on a joint, carried as data: `Mechanism.actuate` and `cd.load(..., actuators=True)` make it drive.

    With control `u`, its force is `F = (gain + slopes . (l, ldot)) u + bias . (1, l, ldot)` with `l = gear . q` and
    `ldot = gear . v`, and it drives the joint with `gear F` (N m or N); `gear` has a number for each rate of the joint.
    `control` and `force` are ranges of u and F.

    With `dynamics` the activation `w` takes the place of u: "filter", `w' = (u - w) / time`, with `time` in s; or
    "integrator", `w' = u`. `activation` is its range.
    """

    name: str
    kind: str
    joint: str
    gear: np.ndarray
    gain: float = 1.0
    bias: np.ndarray = field(default_factory=lambda: np.zeros(3))
    control: tuple[float, float] | None = None
    force: tuple[float, float] | None = None
    slopes: np.ndarray = field(default_factory=lambda: np.zeros(2))
    dynamics: str = ""
    time: float = 1.0
    activation: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class State:
    """Configuration q (nq,), rates v (nv,) of the tree, and time (s)."""

    q: np.ndarray
    v: np.ndarray
    time: float = 0.0


INDENTED = 40  # levels of the tree that a report shows by indentation
LISTED = 11  # joints that a message names, and the last one
# What attributes are called in other programs, and what to write here.
ELSEWHERE = {
    "n": "model.nv", "dof": "model.nv", "ndof": "model.nv", "dofs": "model.nv", "nu": "model.nv",
    "njoints": "len(model.joint_names)", "nbodies": "model.nb", "nbody": "model.nb", "njnt": "len(model.joint_names)",
    "names": "model.joint_names, .body_names or .frame_names", "links": "model.bodies", "body": "model.bodies",
    "mass": "model.total_mass", "q0": "model.start()", "neutral": "model.start()", "qpos0": "model.start()",
    "simulate": "cd.simulate(model, ...)", "run": "cd.simulate(model, ...)", "plot": "model.draw()",
    "show": "cd.view(model)", "view": "cd.view(model)", "save": "cd.save(model, path)",
    "forward_dynamics": "cd.forward_dynamics(model, q, v)", "mass_matrix": "cd.mass_matrix(model, q)",
    "jacobian": "cd.jacobian(model, q, frame)", "equations": "cd.equations(model)",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Model:
    """A mechanism, checked and frozen. Build one with `Mechanism.build()` or `cd.load(file)`.

    `tree` is the spanning tree the equations run over; `cuts` are the indices of joints that close loops.
    """

    name: str
    gravity: np.ndarray
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    tree: Tree
    cuts: tuple[int, ...] = ()
    snapping: float = 0.0
    notes: tuple[str, ...] = ()
    forces: tuple[Force, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    parameters: Parameters = NONE
    """Numbers that `free` has made an input; bodies, joints and forces show their nominal values."""
    values: np.ndarray | None = None
    """Values (..., parameters.size) that `at` has given them; None is nominal."""
    variables: tuple[Variable, ...] = ()
    """Numbers beside those of bodies, joints and elements, held or with a rate; they are parameters too."""
    controllers: tuple[Controller, ...] = ()
    """Efforts and wrenches that depend on all that can be seen of the mechanism."""
    signals: tuple[Signal, ...] = ()
    """Functions of the instant by name, which others read."""
    free_numbers: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    """Of a model with symbols in place of its free parameters: these, by name."""
    merge: str = "all"
    """Which rigid joints the tree has merged, see `grow_tree`."""
    losses: tuple[str, ...] = ()
    """What the file that it came from, or the data of its joints, says of dynamics and this model has not."""
    states: Mapping[str, State] = field(default_factory=dict)
    """Named states, such as a file's keyframes."""
    actuators: tuple[Actuator, ...] = ()
    """Inputs on joints as a file names them: data."""
    ground_shapes: tuple[Shape, ...] = ()
    """What is seen of the ground, in ground axes."""
    rows_at: np.ndarray | None = None
    """Configuration (nq,) where independent constraint rows are chosen; None: where nothing singles it out."""
    memory: Memory = field(default_factory=dict, init=False, repr=False)
    """What the layers above remember about the model; see `model.memory`."""

    def __getattr__(self, name: str) -> Any:
        """Say what an attribute that there is not is called here."""
        raise no_attribute("a Model", name, (*Model.__dict__, *Model.__dataclass_fields__), ELSEWHERE)

    @property
    def nq(self) -> int:
        """Length of the configuration `q` of the tree."""
        return self.tree.nq

    @property
    def nv(self) -> int:
        """Length of the velocity `v` of the tree: its number of freedoms before loops are closed."""
        return self.tree.nv

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return len(self.bodies)

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, in the order of every per-body array."""
        return tuple(body.name for body in self.bodies)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order declared."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the extra frames."""
        return tuple(frame.name for frame in self.frames)

    @property
    def total_mass(self) -> Any:
        """Mass of all bodies, kg; at a batch of values of free masses, an array of that batch."""
        total = sum(body.mass for body in self.bodies)
        if self.values is None:
            return float(total)
        for p in self.parameters:
            if p.place[2] == "mass":
                total = total + (self.values[..., self.parameters.slice_of(p.name)][..., 0] - p.nominal)
        return total if self.batch else float(total)

    @property
    def fixed_moment(self) -> tuple[float, np.ndarray]:
        """Mass (kg) of the bodies fixed to the ground, and their first moment (3,) about its origin, kg m."""
        fixed = [b for b, link in enumerate(self.tree.body_link) if link == GROUND]
        mass, com, _ = merged_inertia(self.bodies, fixed, self.tree.body_pose)
        return mass, mass * com

    def body(self, name: str) -> Body:
        """Look up a body."""
        return self.bodies[self.body_index(name)]

    def joint(self, name: str) -> Joint:
        """Look up a joint."""
        return self.joints[self._find("joint", name, self.joint_names)]

    def body_index(self, name: str) -> int:
        """Index of a body in per-body arrays."""
        return self._find("body", name, self.body_names)

    def link_of_joint(self, j: int) -> Link | None:
        """The link that a joint, by its number, carries in the tree; None of a joint that is cut or merged."""
        return self._links_by_joint.get(j)

    def placement(self, name: str) -> tuple[int, Pose]:
        """Find a body or frame: the link that carries it (-1 is ground) and its pose in that link."""
        if name in self.frame_names:
            frame = self.frames[self.frame_names.index(name)]
            link, pose = self._body_placement(frame.body)
            return link, pose @ frame.at
        if name == "ground":
            return GROUND, Pose()
        return self._body_placement(self._find("body or frame", name, self.body_names + self.frame_names))

    def q_slice(self, joint: str) -> slice:
        """Where a tree joint's coordinates are in `q`."""
        return self._link_of(joint).q

    def v_slice(self, joint: str) -> slice:
        """Where a tree joint's rates are in `v`, `a` and `tau`."""
        return self._link_of(joint).v

    def neutral(self) -> np.ndarray:
        """The configuration (nq,) with every joint at its reference: zeros and unit quaternions."""
        parts = [link.kind.neutral for link in self.tree.links]
        return np.array([x for part in parts for x in part], dtype=float)

    def start(self) -> np.ndarray:
        """The configuration (nq,) that assembly begins with: the guesses given with the joints, neutral elsewhere."""
        q = self.neutral()
        for link in self.tree.links:
            guess = self.joints[link.joint].start
            if guess is not None:
                q[link.q] = guess
        return q

    @cached_property
    def quaternions(self) -> tuple[slice, ...]:
        """Where in `q` unit quaternions are: the last four coordinates of a joint that has more of them than rates."""
        turning = [link for link in self.tree.links if link.kind.nq != link.kind.nv]
        return tuple(slice(link.q.stop - 4, link.q.stop) for link in turning)

    def state(
        self, q: Mapping[str, Any] | None = None, v: Mapping[str, Any] | None = None, *, time: float = 0.0,
        **coordinates: Any,
    ) -> State:  # fmt: skip
        """A state with coordinates of some joints by name, `model.state(A=0.3)`, that a simulation can start from.

        Joints that are not named are at their `start` and, with loops, where these make them; the named stay as given.
        Rates likewise: `model.state(A=0.3, v={"A": 2.0})`; those not named are at rest, or what loops make them.

        Args:
            q: coordinates by joint, rad and m, for names that are not words of Python: `{"left hip": 0.3}`.
            v: rates by joint, rad/s and m/s.
            time: s, for prescribed motions.
            **coordinates: coordinates by joint, rad and m.

        Returns:
            `State` with `q` (..., nq) and `v` (..., nv); arrays of coordinates make a batch.

        """
        found: State = VIEWS["state"](self, {**(q or {}), **coordinates}, v or {}, time)
        return found

    def random_state(self, rng: np.random.Generator, *batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw q (..., nq), any quaternion of unit length, and v (..., nv), for trials and tests.

        Coordinates are within the limits of their joints, rates too, and on curves; without limits from -pi to pi and
        normal.
        """
        if not isinstance(rng, np.random.Generator):
            raise InputError(f"random_state: rng must be a np.random.default_rng(seed), got {shown(rng)}")
        for size in batch:
            whole("random_state", "batch", size, least=0)
        q, v = rng.uniform(-np.pi, np.pi, (*batch, self.nq)), rng.standard_normal((*batch, self.nv))
        for at in self.quaternions:
            quaternion = rng.standard_normal((*batch, 4))
            q[..., at] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
        for link in self.tree.links:
            data = self.joints[link.joint].data
            if link.kind.nq != 1:
                continue
            low, high = link.kind.reach[0] if link.kind.reach else (None, None)
            low, high = low if data.lower is None else data.lower, high if data.upper is None else data.upper
            if low is not None and high is not None and np.isfinite(high - low):
                q[..., link.q] = low + (high - low) * (q[..., link.q] + np.pi) / (2 * np.pi)
            if data.velocity is not None:
                v[..., link.v] = np.clip(v[..., link.v], -data.velocity, data.velocity)
        return q, v

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """A name for each entry of `v`: the joint's, numbered where it has several."""
        names = []
        for link in self.tree.links:
            joint = self.joints[link.joint].name
            names += [joint] if link.kind.nv == 1 else [f"{joint}[{k}]" for k in range(link.kind.nv)]
        return tuple(names)

    @property
    def without_mimics(self) -> str:
        """How to free joints that mimic others, as the tail of a sentence; empty if there are none."""
        mimics = [joint.name for joint in self.joints if joint.data.mimic]
        named = {self.joints[j].name for c in self.couplings for j in c.joints}
        if self.cuts or not {*mimics} & named:
            return ""
        return f"; or load it with mimic=False, and {mimics[0]!r}{' and others' * (len(mimics) > 1)} will move freely"

    def entries(self, name: str) -> str:
        """The joints that the entries of "q", "v" or another array of the tree belong to, as a list for messages."""
        if name not in ("q", "v", "a", "tau", "q0", "v0"):
            return ""
        links = [*self.tree.links[:LISTED], *self.tree.links[LISTED:][-1:]]
        counts = [link.kind.nq if name in ("q", "q0") else link.kind.nv for link in links]
        names = [
            f"{self.joints[link.joint].name!r}" + f" ({n} numbers)" * (n > 1)
            for link, n in zip(links, counts, strict=True)
            if n
        ]
        if len(self.tree.links) > len(links):
            names.insert(len(names) - 1, "...")
        return ", ".join(names)

    @cached_property
    def key(self) -> str:
        """Hex digest of all that enters the equations; equal models share compiled kernels.

        Of free numbers their places and nominal values enter, by which structure is decided, never the values of `at`.
        """
        h = hashlib.sha256(self.tree.digest().encode() + self.gravity.tobytes())
        if GROUND in self.tree.body_link:
            h.update(b"fixed" + np.array([self.fixed_moment[0], *self.fixed_moment[1]], dtype=float).tobytes())
        for joint in (self.joints[j] for j in self.cuts):
            h.update(f"{joint.kind.identity} {joint.parent} {joint.child}".encode())
            h.update(joint.at.matrix.tobytes() + joint.child_at.matrix.tobytes())
        for element in self._elements:
            h.update(element.digest(self._place))
        for signal in self.signals:
            h.update(signal.digest())
        if self.parameters:
            h.update(digest_of_parts(self))
        return h.hexdigest()

    @cached_property
    def depends_on_time(self) -> bool:
        """Whether time enters the equations, through a drive, a prescribed motion or a user's force."""
        return any(element.depends_on_time for element in self._elements)

    @cached_property
    def unmerged(self) -> Model:
        """The same model with rigid joints kept as joints: its tree has a link for every tree joint."""
        return self._regrown("none")

    @cached_property
    def separate(self) -> Model:
        """The same model with a link for every body that has mass: rigid joints are merged for massless ones only."""
        return self._regrown("massless")

    def _regrown(self, merge: str) -> Model:
        if self.values is not None:
            apart = self.unbound.unmerged if merge == "none" else self.unbound.separate
            return apart._bound(self.values)
        if len(self.tree.links) + len(self.cuts) == len(self.joints):
            return self  # nothing is merged
        kept = [j for j in range(len(self.joints)) if j not in self._cut_places]
        tree = grow_tree(self.bodies, self.joints, kept, self.snapping, merge)
        return replace(self, tree=tree, merge=merge)

    def free(self, *names: str) -> Model:
        """The same model with some of its numbers free: an input of every function, batched like the others.

        A name is `gravity` or `element.field`: `mass`, `com`, `inertia` of a body (about its centre of mass: Ixx, Iyy,
        Izz, Ixy, Ixz, Iyz), `at`, `child_at` of a joint (the positions), and the numbers of a force element. What
        the numbers now are is their nominal value, from which all structure is decided: the tree, which bodies have
        mass, which constraints are redundant. Give values with `at`.
        """
        if self.values is not None:
            raise ModelError(f"model {self.name!r}: its parameters have values; free more numbers first, then use at()")
        items = list(self.parameters)
        for name in names:
            if name in (p.name for p in items):
                raise ModelError(f"model {self.name!r}: parameter {name!r} is free already; name it once")
            items.append(find_parameter(self, name))
        return replace(self, parameters=Parameters(tuple(items)))

    def at(self, values: Mapping[str, Any]) -> Model:
        """The same model at values of its free numbers, by name, each (..., *shape) in SI units.

        Their batch axes broadcast with each other and with those of q, v and tau. Numbers not named stay as they are.
        """
        if not self.parameters and values:
            raise ModelError(f"model {self.name!r}: {', '.join(map(repr, values))} is not free; use free(...) first")
        start = self.parameters.nominal if self.values is None else self.values
        return self._bound(self.parameters.vector(values, start))

    def one_of(self, index: tuple[int, ...]) -> Model:
        """The model at one entry of a batch with which the values of its free numbers broadcast."""
        if self.values is None or not self.batch:
            return self
        index = index if isinstance(index, tuple) else (index,)
        own = index[max(len(index) - len(self.batch), 0) :]
        try:
            return self._bound(self.values[tuple(0 if n == 1 else i for i, n in zip(own, self.batch, strict=True))])
        except (IndexError, ValueError):
            raise InputError(f"one_of: {index} is no place in a batch of shape {self.batch}") from None

    def with_shapes(self, change: Callable[[tuple[Shape, ...]], tuple[Shape, ...]]) -> Model:
        """The same model with changed shapes of its bodies and of the ground."""
        bodies = tuple(replace(body, shapes=change(body.shapes)) for body in self.bodies)
        return replace(self, bodies=bodies, ground_shapes=change(self.ground_shapes))

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch shape of the values of its free numbers."""
        return () if self.values is None else self.values.shape[:-1]

    def settled(self) -> Model:
        """The same model with its free numbers as constants again, at their values, of which there is no batch."""
        if not self.parameters:
            return self
        self.require_one("settled")
        return with_numbers(self, self.parameters.nominal if self.values is None else self.values)

    def _bound(self, p: np.ndarray) -> Model:
        bound = replace(self, values=p)
        bound.__dict__["unbound"] = self.unbound
        bound.__dict__.update({name: self.__dict__[name] for name in ("laws", "lawful_rows") if name in self.__dict__})
        return bound

    @cached_property
    def unbound(self) -> Model:
        """The same model with its free numbers at their nominal values: where structure is decided."""
        return self if self.values is None else replace(self, values=None)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what the model is; another process compiles, or finds in the cache, what it needs."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "memory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore it."""
        vars(self).update(state, memory={})

    def require_tree(self, what: str) -> None:
        """Refuse a function that cannot close loops."""
        if self.cuts:
            names = ", ".join(repr(self.joints[j].name) for j in self.cuts)
            raise LoopError(
                f"{what}: model {self.name!r} has closed loops, cut at {names}, and this function knows only trees; "
                "it would ignore those joints; cd.reactions has them"
            )
        if self.constraints:
            names = ", ".join(repr(constraint.name) for constraint in self.own_constraints)
            raise LoopError(
                f"{what}: model {self.name!r} has constraints, {names}, and this function knows only trees; it would "
                "ignore their forces; cd.reactions has them"
            )

    def require_one(self, what: str) -> None:
        """Refuse a batch of values of free numbers, for a function that knows only one mechanism at a time."""
        if self.batch:
            raise InputError(
                f"{what}: model {self.name!r} has values of batch shape {self.batch} for its parameters, and this "
                "function takes one mechanism at a time; give one value of each"
            )

    def require_no_laws(self, what: str, instead: str) -> None:
        """Refuse elements whose forces are not functions of the state, for a function that would leave them out."""
        if self.laws:
            names = ", ".join(repr(law.name) for law in self.laws)
            raise ModelError(
                f"{what}: model {self.name!r} has stops, friction that sticks or locks, {names}, whose forces depend "
                f"on what moves and how; {instead}"
            )

    @property
    def is_plain(self) -> bool:
        """Whether it is a tree without force elements, controllers, couplings or constraints."""
        return not (self.has_loads or self.has_rows)

    @property
    def has_loads(self) -> bool:
        """Whether force elements or controllers act."""
        return bool(self.forces or self.controllers)

    @property
    def has_rows(self) -> bool:
        """Whether its tree has constraint rows: cut joints, couplings, prescribed motions, constraints of the user."""
        return bool(self.cuts or self.couplings or self.constraints)

    @property
    def own_constraints(self) -> tuple[Constraint | ConstraintElement, ...]:
        """Constraints of the user's own and constraint elements; `constraints` has the rows of both."""
        return tuple({id(own): own for own in (c.element or c for c in self.constraints)}.values())

    @property
    def constraint_elements(self) -> tuple[ConstraintElement, ...]:
        """Constraint elements: rolling wheels, rods without mass, cams."""
        return tuple(own for own in self.own_constraints if isinstance(own, ConstraintElement))

    @cached_property
    def rows(self) -> RowTable:
        """The constraint rows in the tree's coordinates: owner, name, unit, level and law of each. Print it."""
        return rows_of_tree(self)

    @cached_property
    def laws(self) -> tuple[LawfulElement, ...]:
        """The elements whose rows have laws: hard stops, contacts, friction that sticks."""
        return lawful_elements(self.forces, self.joints)

    @cached_property
    def lawful_rows(self) -> RowTable:
        """The rows of the elements with laws, as `rows` has the others. Print it."""
        return RowTable(label for law in self.laws for label in law.labels(self.joints))

    def signal(self, name: str) -> Signal | Controller | None:
        """The signal with a name, or the continuous controller whose output is called so; None if there is none."""
        return self._signals.get(name)

    @property
    def signal_names(self) -> tuple[str, ...]:
        """Names of the signals, then of the outputs of continuous controllers."""
        return tuple(self._signals)

    @cached_property
    def _signals(self) -> dict[str, Signal | Controller]:
        found: dict[str, Signal | Controller] = {signal.name: signal for signal in self.signals}
        return found | {c.output: c for c in self.controllers if not c.every}

    def report(self) -> str:
        """Describe the model: counts, tree, cuts, notes."""
        removed = sum(self.joints[j].kind.freedoms_removed for j in self.cuts)
        lines = [
            f"{self.name}: {bodies_and_joints(self.nb, len(self.joints))}, {self.unbound.total_mass:.6g} kg",
            f"tree: {counted(len(self.tree.links), 'moving link')}, nq = {self.nq}, nv = {self.nv}",
        ]
        lines += [f"  {row}" for row in self.tree_rows()]
        if self.cuts:
            lines.append(f"loops: {counted(len(self.cuts), 'cut joint')}, {counted(removed, 'constraint equation')}")
            lines += [f"  cut {self.joints[j].name!r} ({self.joints[j].kind.name})" for j in self.cuts]
        lines.append(f"mobility: {self._mobility()}")
        if self.forces:
            lines.append(f"forces: {', '.join(f'{force.name} ({force.kind.name})' for force in self.forces)}")
        if self.controllers:
            lines.append(f"controllers: {', '.join(self._controller_words())}")
        if self.signals:
            lines.append(f"signals: {', '.join(signal.name for signal in self.signals)}")
        if self.couplings:
            lines.append(f"couplings: {', '.join(coupling.name for coupling in self.couplings)}")
        if self.constraints:
            names = (
                f"{c.name} ({c.kind.name})" if isinstance(c, ConstraintElement) else c.name
                for c in self.own_constraints
            )
            lines.append(f"constraints: {', '.join(names)}")
        if self.laws:
            lines.append(f"laws: {', '.join(f'{row.name} ({row.law.value})' for row in self.lawful_rows)}")
        if self.parameters:
            lines.append(f"free, shown here at nominal values: {', '.join(self.parameters.names)}")
        if self.actuators:
            driving = {force.name for force in self.forces if force.kind.name == "actuator"}
            driving |= {controller.name for controller in self.controllers}
            for what, acts in (("actuators", True), ("actuators, as data", False)):
                listed = ", ".join(f"{a.name} ({a.kind})" for a in self.actuators if (a.name in driving) == acts)
                lines += [f"{what}: {listed}"] if listed else []
        if self.states:
            lines.append(f"states: {', '.join(self.states)}")
        lines += [f"lost: {loss}" for loss in self.losses]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _mobility(self) -> str:
        """How many freedoms the mechanism has, in words; free parameters at their nominal values."""
        if not self.has_rows or "redundancy" not in VIEWS:
            return counted(self.nv, "freedom")
        try:
            found = VIEWS["redundancy"](self)
        except ModelError as error:
            return f"unknown: {error}"
        rows = f"{self.nv} of the tree less {counted(found.rank, 'independent constraint')}"
        more = f"; {found.redundant} more {'is' if found.redundant == 1 else 'are'} redundant"
        return f"{counted(found.freedoms, 'freedom')}, {rows}{more if found.redundant else ''}"

    def draw(self, q: Any = None, **options: Any) -> Figure:
        """Draw the mechanism at `q` (nq,), by default its own start; takes the options of `cd.draw`."""
        figure: Figure = VIEWS["draw"](self, q, **options)
        return figure

    def particles(self) -> ParticleSystem:
        """The equivalent particles of a planar mechanism, AT(1): of each body, and unified at its pins."""
        found: ParticleSystem = VIEWS["particles"](self)
        return found

    def page(
        self, path: Any, q: Any = None, *, simulate: bool = True, sliders: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Write the mechanism at `q` (nq,), by default its own start, as an HTML file to look at and to play with.

        The options are those of `cd.page`.
        """
        VIEWS["page"](self, path, q=q, simulate=simulate, sliders=sliders, overwrite=overwrite)

    def _repr_html_(self) -> str:
        facts = [("mass", f"{self.unbound.total_mass:.6g} kg"), ("mobility", self._mobility())]
        if self.cuts:
            rows = sum(self.joints[j].kind.freedoms_removed for j in self.cuts)
            facts.append(("loops", f"{len(self.cuts)}, {rows} constraint equations"))
        for what, names in (
            ("forces", [force.name for force in self.forces]),
            ("controllers", [controller.name for controller in self.controllers]),
            ("couplings", [coupling.name for coupling in self.couplings]),
            ("constraints", [constraint.name for constraint in self.own_constraints]),
            ("free parameters", list(self.parameters.names)),
        ):
            facts += [(what, ", ".join(names))] if names else []
        return mechanism_html(f"Model {self.name!r}", facts, self.bodies, self.joints, model_view(self), self.cuts)

    def tree_rows(self) -> list[str]:
        """The spanning tree, one row a link, indented by depth; past some depth the depth is written as a number."""
        children: dict[int, list[int]] = {}
        for i, link in enumerate(self.tree.links):
            children.setdefault(link.parent, []).append(i)
        merged: dict[int, list[str]] = {}
        for body, i in zip(self.bodies, self.tree.body_link, strict=True):
            if i == GROUND or body.name != self.tree.links[i].name:
                merged.setdefault(i, []).append(body.name)
        rows = []
        stack = [(GROUND, 0)]
        while stack:
            i, depth = stack.pop()
            rigid = f"  + {', '.join(merged[i])}" if i in merged else ""
            if i == GROUND:
                rows.append(f"ground{rigid}")
            else:
                link = self.tree.links[i]
                joint = f"{self.joints[link.joint].name} ({link.kind.name})"
                deep = "  " * depth if depth <= INDENTED else "  " * INDENTED + f"[{depth}] "
                rows.append(f"{deep}{joint} -> {link.name}, {link.mass:.4g} kg{rigid}")
            stack += [(child, depth + 1) for child in reversed(children.get(i, ()))]
        return rows

    def __repr__(self) -> str:
        """One line."""
        free = f", free: {', '.join(self.parameters.names)}" if self.parameters else ""
        loops = f", {len(self.cuts)} cuts" if self.cuts else ""
        return f"Model({self.name!r}, {counted(self.nb, 'body')}, nq={self.nq}, nv={self.nv}{loops}{free})"

    def _body_placement(self, index: int) -> tuple[int, Pose]:
        return (GROUND, Pose()) if index == GROUND else (self.tree.body_link[index], self.tree.body_pose[index])

    @cached_property
    def _links_by_joint(self) -> dict[int, Link]:
        return {link.joint: link for link in self.tree.links}

    @cached_property
    def _cut_places(self) -> dict[int, int]:
        return {j: k for k, j in enumerate(self.cuts)}

    @cached_property
    def _link_places(self) -> dict[int, int]:
        return {link.joint: i for i, link in enumerate(self.tree.links)}

    @property
    def _elements(self) -> list[Force | Coupling | Constraint | Controller]:
        return [*self.forces, *self.couplings, *self.constraints, *self.controllers]

    def _controller_words(self) -> list[str]:
        """Each controller, what it acts on, and how often it is sampled."""
        found = []
        for c in self.controllers:
            on = [self.joint_names[j] for j in c.joints] + [self.body_names[b] for b in c.bodies]
            on = on or ["nothing, a signal"]
            found.append(f"{c.name} (on {', '.join(on)}{f', every {c.every:g} s' if c.every else ''})")
        return found

    def _place(self, joint: int) -> str:
        """Where a joint stands in the equations, whatever the order of declaration."""
        if joint in self._cut_places:
            return f"cut {self._cut_places[joint]}"
        return f"link {self._link_places[joint]}"

    def _link_of(self, joint: str) -> Link:
        index = self._find("joint", joint, self.joint_names)
        if index in self._links_by_joint:
            return self._links_by_joint[index]
        why = "closes a loop" if index in self.cuts else "is rigid"
        raise UnknownNameError(f"joint {joint!r} {why} and has no coordinates of its own")

    def _find(self, what: str, name: str, names: tuple[str, ...]) -> int:
        if name in names:
            return names.index(name)
        raise UnknownNameError(f"{what} {name!r} is not in model {self.name!r}{nearest(name, names)}")


class FrozenModelError(ModelError, FrozenInstanceError):
    """A number of a model was assigned."""


def _refuse(self: Any, name: str, value: Any) -> None:
    own = name if isinstance(self, Model) else f"{self.name}.{name}"
    number = name in ("gravity", "mass", "com", "inertia", "at", "child_at", "armature")
    free = f", or free the number: model.free({own!r}).at({{{own!r}: ...}})" if number else ""
    raise FrozenModelError(
        f"{type(self).__name__.lower()} {self.name!r} is frozen, and its {name} cannot be changed; build it anew{free}"
    )


for _kind in (Model, Body, Joint, Frame):
    _kind.__setattr__ = _refuse  # type: ignore[method-assign]
