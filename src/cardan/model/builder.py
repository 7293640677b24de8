"""The builder: describes a mechanism element by element; `build` validates and freezes it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.spatial import inertia_about_origin
from cardan.errors import CardanError, ModelError, UnknownNameError, nearest, no_attribute
from cardan.model.actuator import ACTUATOR, DYNAMICS, FILTER, ActivatedLaw, numbers_of
from cardan.model.body import Body, Frame, Joint, JointData
from cardan.model.call_errors import with_call_errors
from cardan.model.constraint_builder import ConstraintElements
from cardan.model.control_law import ControlLaw, started
from cardan.model.controller import Controller, ControllerPart, PreviousValue, settled_controllers
from cardan.model.elements import Elements, read_armature, read_name
from cardan.model.field import dimensions, frozen
from cardan.model.held_state import refuse_held_state
from cardan.model.html import mechanism_html, thumbnail
from cardan.model.idle_data import idle_data
from cardan.model.inertia import check_inertia, read_inertia
from cardan.model.joint import JointType, Kind
from cardan.model.law import lawful_elements, require_pressing
from cardan.model.model import Actuator, Model, State
from cardan.model.named_state import degrees_hint, likely_degrees
from cardan.model.parameter import variable_parameters
from cardan.model.pose import Pose, numbers, read_pose, unit_quaternion
from cardan.model.signal import Signal
from cardan.model.signal_filter import FilterRates, coefficients, pade
from cardan.model.tree import (
    GROUND,
    Tree,
    check_mobility,
    choose_tree,
    grow_tree,
    joints_to_keep,
    merged_inertia,
    notes_on_turns,
)
from cardan.model.values import bodies_and_joints
from cardan.model.variable import Variable, require_plain_names

if TYPE_CHECKING:
    from cardan.model.shape import Shape

SNAPPING = 1e-12  # see docs/decisions/0003


BUILDING = (
    "body", "joint", "frame", "shape", "spring", "damper", "bushing", "wrench", "user_force", "torsion", "friction",
    "drive", "motion", "couple", "belt", "constraint", "roll", "gear", "knife_edge", "distance", "on_surface",
    "on_curve", "cam", "constant_velocity", "constrain", "stop", "contact", "lock", "latch", "controller",
)  # fmt: skip
"""Methods whose wrong arguments are told with the form of the call."""
# What methods are called in other programs, and what to write here.
ELSEWHERE = {
    **{f"add_{name}": f"mechanism.{name}(...)" for name in (
        "body", "joint", "frame", "spring", "damper", "drive", "motion", "friction", "shape", "constraint",
    )},
    "add_link": "mechanism.body(...)", "link": "mechanism.body(...)", "add_force": "mechanism.wrench(...)",
    "torsion_spring": "mechanism.torsion(...)", "motor": "mechanism.drive(...)", "weld": "cd.Rigid() in joint(...)",
    "limit": "mechanism.stop(...)", "limits": "mechanism.stop(...)", "rotational_spring": "mechanism.torsion(...)",
    "rolling": "mechanism.roll(...)", "torque": "mechanism.drive(...)",
    "compile": "mechanism.build()", "finalize": "mechanism.build()", "assemble": "mechanism.build(), then cd.assemble",
    "simulate": "cd.simulate(mechanism.build(), ...)", "run": "cd.simulate(mechanism.build(), ...)",
}  # fmt: skip


class _NotBuiltError(ModelError, AttributeError):
    """A mechanism was given where a model belongs."""


class Mechanism(ConstraintElements):
    """A mechanism under construction: bodies, joints between them, frames, forces, couplings, gravity.

    `gravity` is the acceleration of free fall (3,) in m/s^2, in ground axes. `cut` and `snapping` are the
    defaults of `build`; a file may set them.
    """

    def __init__(self, name: str, *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        """Start an empty mechanism."""
        self.name = read_name("mechanism", name)
        if isinstance(gravity, int | float) and gravity:
            raise ModelError(f"mechanism {name!r}: gravity must be 3 numbers: gravity=(0, 0, {-abs(gravity):g})")
        self.gravity = numbers(f"mechanism {name!r}", "gravity", gravity, (3,))
        self.cut: tuple[str, ...] = ()
        self.snapping = SNAPPING
        super().__init__()
        self._bodies: dict[str, Body] = {}
        self._ground_shapes: tuple[Shape, ...] = ()
        self._notes: list[str] = []
        self._losses: list[str] = []
        self._states: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {}
        self._actuators: dict[str, Actuator] = {}
        self._variables: dict[str, Variable] = {}
        self._signals: dict[str, Signal] = {}
        self._doubts: dict[str, str] = {}  # bodies whose own inertia breaks a rule, and the message
        self.unjudged: set[str] = set()
        """Bodies among them that are kept all the same."""

    def body(
        self, name: str, *, mass: float | None = None, com: Any = None, inertia: Any = None,
        inertia_about: Any = None, inertia_axes: Any = None, judge: str = "body", shape: Any = None,
        density: float | None = None,
    ) -> str:  # fmt: skip
        """Add a rigid body and return its name.

        Args:
            name: unique among bodies and frames.
            mass: kg; leave it out for a body without mass, or with a density.
            com: centre of mass (3,), m, in the body frame; by default that of the shape, or else the origin.
            inertia: kg m^2; (3, 3), principal values (3,), or (Ixx, Iyy, Izz, Ixy, Ixz, Iyz). Helpers: `cd.inertia`. By
                default that of the shape with this mass, uniformly dense, or else none.
            inertia_about: the point (3,), m, body frame, that `inertia` refers to; the centre of mass by default.
            inertia_axes: rotation (3, 3) whose columns are the axes that `inertia` refers to; body axes by default.
            judge: what must obey the rules of inertia: the "body" alone; or the "link", all bodies that rigid joints
                connect with it, checked by `build`, because files may give impossible inertias to small parts of large
                links; or "nothing", which keeps any inertia that is symmetric and not negative, and adds a note if it
                breaks the triangle rule, or if the body has no mass: a rotor whose mass is counted elsewhere.
            shape: what is seen of it, one of `cd.shape` or a list of them; several are taken as one solid that does
                not overlap itself.
            density: kg/m^3; mass, centre of mass and inertia are then those of the shape.

        """
        owner = f"body {name!r}"
        self._claim("body", name)
        shapes: tuple[Shape, ...] = ()
        if shape is not None or density is not None:
            from cardan.model.shape import mass_of_shapes, read_shapes, takes_shape

            shapes = read_shapes(owner, shape)
            given = {"mass": mass, "com": com, "inertia": inertia, "inertia_about": inertia_about,
                     "inertia_axes": inertia_axes}  # fmt: skip
            if takes_shape(owner, shapes, given, density):
                mass, com, inertia = mass_of_shapes(owner, shapes, mass, density)
        mass = float(numbers(owner, "mass", 0.0 if mass is None else mass, ()))
        com = numbers(owner, "com", np.zeros(3) if com is None else com, (3,))
        I = read_inertia(owner, np.zeros(3) if inertia is None else inertia)
        if inertia_axes is not None:
            try:
                R = Pose(rotation=numbers(owner, "inertia_axes", inertia_axes, (3, 3))).rotation
            except ModelError as error:
                raise ModelError(str(error).replace("pose: rotation", f"{owner}: inertia_axes", 1)) from None
            I = R @ I @ R.T
        if inertia_about is not None:
            I = I - inertia_about_origin(mass, com - numbers(owner, "inertia_about", inertia_about, (3,)), 0 * I)
        if judge not in ("body", "link", "nothing"):
            raise ModelError(f"{owner}: judge must be 'body', 'link' or 'nothing', got {judge!r}")
        try:
            I = check_inertia(owner, mass, I)
        except ModelError as error:
            if judge == "body" or mass < 0:
                raise
            self._doubts[name] = str(error)
            self.unjudged |= {name} if judge == "nothing" else set()
        self._order[name] = len(self._bodies)
        self._bodies[name] = Body(name, mass, frozen(com), frozen(I), shapes)
        return name

    def shape(self, body: str, *shapes: Shape) -> None:
        """Add shapes that are only seen, to a body or to the ground; mass and inertia stay as they are."""
        from cardan.model.shape import read_shapes

        index = self._index("shape", "body", body)
        found = read_shapes(f"shape of {body!r}", list(shapes))
        if index == GROUND:
            self._ground_shapes += found
        else:
            self._bodies[body] = replace(self._bodies[body], shapes=(*self._bodies[body].shapes, *found))

    def joint(
        self, name: str, type: JointType, parent: str, child: str, *, at: Any = (0.0, 0.0, 0.0),
        child_at: Any = (0.0, 0.0, 0.0), data: JointData | None = None, start: Any = None, armature: Any = 0.0,
    ) -> str:  # fmt: skip
        """Connect two bodies, or a body and ground, and return the joint's name.

        A joint that closes a loop is just another joint.

        Args:
            name: unique among joints.
            type: `cd.Revolute(axis=...)` and so on; its axes are given in the joint frame.
            parent: body name, or `ground`.
            child: body name, or `ground`.
            at: the joint frame on the parent: a position (3,) in m, or a `cd.Pose`, in the parent's frame.
            child_at: the joint frame on the child, in the child's frame; the two coincide when q is neutral.
            data: limits, damping, friction and the like.
            start: guess (nq,) of the joint's coordinates (rad, m; a number where there is one) for assembly.
            armature: inertia of the drive's rotor, added to the mass matrix along the joint's rates; kg m^2 for an
                angle, kg for a length; a number, or one for each rate.

        """
        owner = f"joint {name!r}"
        read_name("joint", name)
        if name in self._joints:
            raise ModelError(f"{owner}: the name is taken by another joint; joint names must differ")
        if not isinstance(type, JointType):
            raise ModelError(f"{owner}: type must be a joint type such as cd.Revolute(axis=(0, 0, 1)), got {type!r}")
        ends = [self._index(owner, what, body) for what, body in (("parent", parent), ("child", child))]
        if ends[0] == ends[1]:
            raise ModelError(f"{owner}: parent and child are both {parent!r}; a joint connects two different bodies")
        at, child_at = read_pose(owner, "at", at), read_pose(owner, "child_at", child_at)
        axes = Pose(rotation=type.orientation(owner))
        if not axes.is_identity:  # a product with 1 would change the sign of zeros
            at, child_at = at @ axes, child_at @ axes
        kind = type.kind
        kind.check()
        guess = None if start is None else frozen(_read_start(owner, kind, start))
        if guess is not None and kind.q_units[:1] == ("rad",) and likely_degrees(guess[0]):
            warnings.warn(degrees_hint(f"{owner}: start", float(guess[0])), category=RuntimeWarning, stacklevel=3)
        rotor = read_armature(owner, armature, kind)
        if data is not None and not isinstance(data, JointData):
            raise ModelError(f"{owner}: data must be cd.JointData(...), got {data!r}")
        data = _checked(owner, data or JointData())
        self._joints[name] = Joint(name, kind, ends[0], ends[1], at, child_at, data, guess, rotor, type)
        return name

    def frame(self, name: str, body: str, *, at: Any = (0.0, 0.0, 0.0)) -> str:
        """Name a frame fixed to a body (or ground) and return the name; `at` is a position (m) or a `cd.Pose`."""
        self._claim("frame", name)
        self._frames[name] = Frame(
            name, self._index(f"frame {name!r}", "body", body), read_pose(f"frame {name!r}", "at", at)
        )
        return name

    def note(self, sentence: str) -> None:
        """Record something the user should know; it appears in the model's report."""
        self._notes.append(sentence)

    def lose(self, sentence: str) -> None:
        """Record an unsupported feature of a file that concerns dynamics; see `losses`."""
        self._losses.append(sentence)

    def state(self, name: str, q: Mapping[str, Any], v: Mapping[str, Any] | None = None, *, time: float = 0.0) -> str:
        """Name a state, and return the name; the built model has it in `states`.

        Args:
            name: unique among states.
            q: coordinates (nq,) of joints by name, rad and m; those not named are where `start` has them.
            v: rates (nv,) of joints by name, rad/s and m/s; those not named are at rest.
            time: s.

        """
        owner = f"state {name!r}"
        read_name("state", name)
        if name in self._states:
            raise ModelError(f"{owner}: the name is taken by another state; state names must differ")
        for what, given in (("q", q), ("v", v)):
            if not isinstance(given, Mapping) and (what == "q" or given is not None):
                raise ModelError(f"{owner}: {what} must be a dict of joints and their numbers, got {given!r}")
        for joint in (*q, *(v or {})):
            if joint not in self._joints:
                raise UnknownNameError(
                    f"{owner}: joint {joint!r} is not one of the joints{nearest(joint, self._joints)}"
                )
        at = {joint: _read_start(owner, self._joints[joint].kind, value) for joint, value in q.items()}
        rates = {
            joint: np.atleast_1d(numbers(owner, f"v of {joint!r}", value, np.shape(value)))
            for joint, value in (v or {}).items()
        }
        for joint, rate in rates.items():
            if rate.shape != (self._joints[joint].kind.nv,):
                raise ModelError(
                    f"{owner}: v of {joint!r} must be {self._joints[joint].kind.nv} numbers, got {len(rate)}"
                )
        self._states[name] = at, rates, float(numbers(owner, "time", time, ()))
        return name

    def actuator(
        self, name: str, joint: str, *, kind: str = "motor", gear: Any = 1.0, gain: float = 1.0,
        bias: Any = (0.0, 0.0, 0.0), control: Any = None, force: Any = None, slopes: Any = (0.0, 0.0),
        dynamics: str = "", time: float = 1.0, activation: Any = None,
    ) -> str:  # fmt: skip
        """Name an input on a joint, as data, and return the name; see `Actuator` for the numbers."""
        owner = f"actuator {name!r}"
        read_name("actuator", name)
        if name in self._actuators:
            raise ModelError(f"{owner}: the name is taken by another actuator; actuator names must differ")
        on = self._joint(owner, joint)[1]
        along = frozen(np.broadcast_to(numbers(owner, "gear", gear, (on.nv,) if dimensions(gear) else ()), on.nv))
        given = (control, force, activation)
        ranges = [None if r is None else tuple(numbers(owner, "range", r, (2,)).tolist()) for r in given]
        gain, bias = float(numbers(owner, "gain", gain, ())), frozen(numbers(owner, "bias", bias, (3,)))
        more = frozen(numbers(owner, "slopes", slopes, (2,)))
        constant = float(numbers(owner, "time", time, ()))
        if dynamics not in DYNAMICS:
            known = ", ".join(repr(word) for word in DYNAMICS if word)
            raise ModelError(f"{owner}: dynamics must be one of {known}, got {dynamics!r}{nearest(dynamics, DYNAMICS)}")
        if dynamics == FILTER and not constant > 0:
            raise ModelError(f"{owner}: time must be above 0 s, got {time!r}; or leave dynamics out")
        ends = ranges[2]
        if ends is not None and (not dynamics or ends[0] >= ends[1]):
            raise ModelError(
                f"{owner}: activation must be the least and the largest one, in this order, of an actuator with "
                f"dynamics, got {activation!r}"
            )
        self._actuators[name] = Actuator(
            name, kind, joint, along, gain, bias, ranges[0], ranges[1], more, dynamics, constant, ends
        )
        return name

    def actuate(self, name: str) -> str:
        """Make an actuator drive its joint, as a force element with its name, and return the name.

        Its command is the number "name.command", 0 at first: free it with `model.free`, and give it with `model.at`, by
        events, or over time with `cd.simulate(..., inputs=...)`. One with dynamics becomes a controller, whose command
        is free and whose activation is the state "name.activation".
        """
        if name not in self._actuators:
            raise UnknownNameError(f"actuator {name!r}: it is not one of the actuators{nearest(name, self._actuators)}")
        actuator = self._actuators[name]
        kind = self._joints[actuator.joint].kind
        values = numbers_of(actuator, kind.nq != kind.nv)
        if actuator.dynamics:
            law = ActivatedLaw(actuator)
            return self.controller(name, actuator.joint, law, states={"activation": 0.0}, inputs={"command": 0.0})
        return self.force(name, ACTUATOR, actuator.joint, **values)

    def build(self, *, snapping: float | None = None, cut: Sequence[str] | None = None) -> Model:
        """Validate the mechanism and freeze it.

        `snapping`: constants of joint placements within this of 0, 1 or -1 are rounded to that, which makes kernels
        shorter; 0 switches it off; 1e-12 by default. `cut` names joints to cut where loops are opened; the others are
        chosen.
        """
        cut, snapping = self.cut if cut is None else cut, self.snapping if snapping is None else snapping
        snapping = float(numbers(f"mechanism {self.name!r}", "snapping", snapping, ()))
        if not 0 <= snapping < 1e-3:
            raise ModelError(f"mechanism {self.name!r}: snapping must be from 0 to 0.001, got {snapping:g}")
        bodies, joints = self.bodies, tuple(joint.recorded() for joint in self.joints)
        if not bodies:
            raise ModelError(f"mechanism {self.name!r}: it has no body; add one with body(...)")
        if isinstance(cut, str) or not isinstance(cut, Iterable):
            raise ModelError(f"mechanism {self.name!r}: cut must be a list of joint names, got {cut!r}")
        for name in cut:
            if not isinstance(name, str) or name not in self._joints:
                raise UnknownNameError(
                    f"mechanism {self.name!r}: cut {name!r} is not a joint{nearest(name, self._joints)}"
                )
        named = {*cut}
        forced = [j for j, joint in enumerate(joints) if joint.name in named]
        forces = tuple(force.traced(joints) for force in self.forces)
        laws = lawful_elements(forces, joints)  # rejects what contradicts itself
        couplings = tuple(coupling.traced() for coupling in self.couplings)
        constraints = tuple(row for constraint in self.own_constraints for row in constraint.traced_rows())
        require_pressing(laws, couplings, constraints)
        keep = joints_to_keep(joints, forces, couplings).union(*(c.joints for c in self.controllers))
        chosen = choose_tree(bodies, joints, forced, keep)
        cuts = tuple(sorted({*range(len(joints))} - {*chosen}))
        for joint in (joints[j] for j in cuts if joints[j].armature is not None):
            raise ModelError(
                f"joint {joint.name!r}: it has armature, but it closes a loop and has no coordinate of its own; name "
                "another joint of the loop in cut"
            )
        tree = grow_tree(bodies, joints, chosen, snapping)
        notes = (*self._notes, *self._settle_doubts(bodies, tree), *notes_on_turns(joints, cuts, forces))
        holding = {j for j in cuts if joints[j].kind.freedoms_removed}  # a free joint holds nothing
        holding |= {j for coupling in couplings for j in coupling.joints}
        held = {b for j in holding for b in (joints[j].parent, joints[j].child)}
        check_mobility(tree, joints, held.union(*(constraint.on for constraint in constraints)) - {GROUND})
        gravity = numbers(f"mechanism {self.name!r}", "gravity", self.gravity, (3,))
        model = Model(
            self.name, frozen(gravity), bodies, joints, self.frames, tree, cuts, snapping, notes, forces, couplings,
            constraints,
        )  # fmt: skip
        require_plain_names((*self.variables, *self.signals), (*bodies, *joints, *forces, *model.constraint_elements))
        states = {name: _state_of(model, *given) for name, given in self._states.items()}
        losses = (*self._losses, *idle_data(joints, forces, couplings))
        seen = self._ground_shapes
        model = replace(model, variables=self.variables, parameters=variable_parameters(self.variables))
        model = replace(model, signals=self.signals, controllers=self.controllers)  # which laws may name
        model = replace(model, signals=tuple(signal.traced(model) for signal in self.signals))
        settled = settled_controllers(model, [c.traced(model) for c in self.controllers])
        controllers = {c.name: c for c in settled}
        return replace(
            model, losses=losses, states=states, actuators=self.actuators, ground_shapes=seen, controllers=settled,
            variables=tuple(x.with_law(controllers) for x in self.variables),
        )  # fmt: skip

    def controller(
        self, name: str, joints: str | Sequence[str] | None, law: Any, *, bodies: str | Sequence[str] = (),
        states: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None, every: float | None = None,
        delay: float = 0.0, python: bool = False, outputs: int = 1,
    ) -> str:  # fmt: skip
        """Add a controller: efforts along joints, and wrenches on bodies, from all that can be seen; return its name.

        Args:
            name: unique among forces, motions, couplings and controllers.
            joints: those that it drives, by name. With None, and no bodies, it acts on nothing and gives a signal,
                "name.output", that others read.
            law: a ready-made one, such as `cd.PID(...)`; or a function of an instant, run on symbols by `build`, that
                returns a number for each rate of the joints (N m, N), then a wrench (moment and force, at its origin,
                in its axes) for each body, or these in a dict by name. With states it returns these and a dict of the
                states' rates; if it is sampled, of their next values.
            bodies: those that it acts on by wrenches, by name.
            states: numbers that it keeps, by name, with their start values; "name.state" is a variable of the model.
                A ready-made law has its own, and other start values may be given here.
            inputs: what is given to it, likewise. Numbers are held variables, which `cd.simulate(..., inputs=...)`,
                events and `model.at` set; the name of a signal or variable, or a function of an instant, connects it.
            every: interval, s, of one that is sampled: its efforts are held in between.
            delay: s, a multiple of `every`, by which its efforts come late.
            python: whether the law is plain Python, `law(t, q, v, parameters)` of arrays with the systems first, and
                returns efforts (k, size); called every `every` seconds, for what cannot be recorded.
            outputs: how many numbers a law of your own that acts on nothing gives.

        """
        owner = self._claim_force("controller", name)
        along = [] if joints is None else [joints] if isinstance(joints, str) else list(joints)
        on = [self._joint(owner, joint) for joint in along]
        pushed = tuple(self._index(owner, "body", b) for b in ([bodies] if isinstance(bodies, str) else bodies))
        if not on and not pushed and joints is not None:
            raise ModelError(f"{owner}: it acts on nothing; name joints or bodies, or None for a signal only")
        if GROUND in pushed:
            raise ModelError(f"{owner}: it acts on the ground, which does not move; name a body")
        if len({*along}) != len(along) or len({*pushed}) != len(pushed):
            raise ModelError(f"{owner}: it names a joint or body twice; name each once")
        interval = 0.0 if every is None else float(numbers(owner, "every", every, ()))
        if every is not None and interval <= 0:
            raise ModelError(f"{owner}: every must be above 0 s, got {every!r}")
        ready = law if isinstance(law, ControlLaw) else None
        wires = {what: x for what, x in (inputs or {}).items() if isinstance(x, str) or callable(x)}
        inputs = {what: x for what, x in (inputs or {}).items() if what not in wires}
        sizes: tuple[int, ...] = (*(kind.nv for _, kind in on), *(6 for _ in pushed))
        if not sizes:
            if not isinstance(outputs, int) or outputs < 1:
                raise ModelError(f"{owner}: outputs must be 1 or more, got {outputs!r}")
            sizes = (outputs if ready is None else ready.outputs(owner),)
        if ready is not None:
            if python or pushed:
                raise ModelError(f"{owner}: {type(law).__name__} acts on joints, and is not plain Python")
            law, own_states, own_inputs = ready.over(owner, along, [kind for _, kind in on], interval)
            started(owner, own_inputs, dict.fromkeys(wires, 0.0))
            wired = {what: (x, int(np.size(own_inputs[what]))) for what, x in wires.items()}
            own_inputs = {what: x for what, x in own_inputs.items() if what not in wires}
            states, inputs = started(owner, own_states, states), started(owner, own_inputs, inputs)
        else:
            wired = {what: (x, 0) for what, x in wires.items()}
        if not callable(law):
            raise ModelError(f"{owner}: law must be a function of an instant, or cd.PID(...) and the like, got {law!r}")
        if python and (not interval or states or wires):
            raise ModelError(
                f"{owner}: a law in plain Python is called at intervals, every=..., and has no states= or connections"
            )
        lag = round(float(numbers(owner, "delay", delay, ())) / interval) if interval else 0
        if delay < 0 or abs(lag * interval - delay) > 1e-9 * max(interval, delay):
            raise ModelError(f"{owner}: delay must be a multiple of every, got {delay:g} s and every = {every!r}")
        starts, given = (
            {what: frozen(np.atleast_1d(numbers(owner, what, x, np.shape(x)))) for what, x in (each or {}).items()}
            for each in (states, inputs)
        )
        made = Controller(
            name,
            tuple(j for j, _ in on),
            pushed,
            law,
            starts,
            given,
            wired,
            interval,
            lag,
            bool(python),
            ready=ready,
            sizes=sizes,
        )
        self._add_variables(made)
        self._controllers[name] = made
        return name

    def _add_variables(self, c: Controller) -> None:
        """The inputs, states, and held efforts of a controller as variables."""
        own = {f"{c.name}.{what}": Variable(f"{c.name}.{what}", x, element=c.name) for what, x in c.inputs.items()}
        for k, (what, start) in enumerate(c.states.items(), 1):
            full, part = f"{c.name}.{what}", ControllerPart(c, k)
            rate, update = (None, part) if c.every else (part, None)
            own[full] = Variable(full, start, rate=rate, every=c.every, update=update, element=c.name)
        arriving: Callable[[Any], Any] = ControllerPart(c, 0)
        for full in c.registers:
            own[full] = Variable(full, frozen(np.zeros(c.size)), every=c.every, update=arriving, element=c.name)
            arriving = PreviousValue(full)
        for full in {**own, c.output: None}:
            self._claim_variable(full)
        self._variables |= {full: replace(variable, element=c.name) for full, variable in own.items()}

    def signal(self, name: str, function: Callable[[Any], Any], *, unit: str = "") -> str:
        """Name a function of the instant, which laws, rates and events then read as `s["name"]`; return the name.

        It is what it is at the same instant. `run["name"]` has it over time.

        Args:
            name: unique among variables and signals.
            function: of an instant, run on symbols by `build`; returns a number or several.
            unit: SI unit, for labels.

        """
        self._claim_variable(name)
        if not callable(function):
            raise ModelError(f"signal {name!r}: it must be a function of an instant, got {function!r}")
        self._signals[name] = Signal(name, function, unit)
        return name

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The signals so far."""
        return tuple(self._signals.values())

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers so far."""
        return tuple(self._controllers.values())

    def variable(
        self, name: str, value: Any = 0.0, *, unit: str = "", rate: Any = None, linear: bool = False,
        every: float | None = None, update: Any = None,
    ) -> str:  # fmt: skip
        """Add a number that belongs to no element, and return its name; events, forces and drives may read it.

        Args:
            name: unique among variables; it is a free parameter of the built model.
            value: at which runs begin: a number, or several.
            unit: SI unit, for labels.
            rate: function of an instant that returns the rate, in `unit`/s: a state, integrated with the motion.
                Without it the number is held, and changed by events and by `cd.simulate(..., inputs=...)` only.
            linear: whether an input is given by straight lines between its times, and not held from one to the next.
            every: interval, s, at which a sampled variable takes a new value, first at the start of a run.
            update: function of an instant that returns this value; it is held until the next.

        """
        self._claim_variable(name)
        owner = f"variable {name!r}"
        start = frozen(np.atleast_1d(numbers(owner, "value", value, np.shape(value))))
        if start.ndim > 1:
            raise ModelError(f"{owner}: value must be a number or a list of numbers, got shape {start.shape}")
        if rate is not None and (linear or not callable(rate)):
            told = (
                "an input that is given over time has no rate" if linear else f"rate must be a function, got {rate!r}"
            )
            raise ModelError(f"{owner}: {told}")
        if (every is None) != (update is None) or (update is not None and (rate is not None or linear)):
            raise ModelError(f"{owner}: give every= and update= together, without rate= and linear=")
        interval = 0.0 if every is None else float(numbers(owner, "every", every, ()))
        if every is not None and not (interval > 0 and callable(update)):
            raise ModelError(f"{owner}: every must be above 0 s and update a function, got {every!r} and {update!r}")
        for function in (rate, update):
            if function is not None:
                refuse_held_state(owner, function, "mechanism.variable(...)")
        slope = f"{name}.slope" if linear else ""
        if linear:
            self._claim_variable(slope)
            self._variables[slope] = Variable(slope, frozen(np.zeros(start.size)), f"{unit or '1'}/s")
            rate = lambda s: s[slope]
        self._variables[name] = Variable(name, start, unit, rate, slope, interval, update)
        return name

    def filter(self, name: str, signal: Callable[[Any], Any], numerator: Any, denominator: Any, unit: str = "") -> str:
        """Add a signal through a transfer function, as a variable with this name, and return the name.

        Args:
            name: unique among variables; more states are in "name.chain".
            signal: function of an instant that returns a number.
            numerator: coefficients by falling powers of s, of a lower degree than the denominator.
            denominator: likewise; `[1], [T, 1]` is a filter of first order with the time constant T, s.
            unit: SI unit of the variable.

        """
        owner = f"filter {name!r}"
        if not callable(signal):
            raise ModelError(f"{owner}: signal must be a function of an instant, got {signal!r}")
        a, b = coefficients(owner, numerator, denominator)
        chain = f"{name}.chain"
        self.variable(name, 0.0, unit=unit, rate=FilterRates(name, chain, signal, a, b, 0, 1))
        if len(a) > 1:
            rest = FilterRates(name, chain, signal, a, b, 1, len(a))
            self.variable(chain, np.zeros(len(a) - 1), rate=rest)
        return name

    def delay(self, name: str, signal: Callable[[Any], Any], delay: float, *, order: int = 3, unit: str = "") -> str:
        """Add a signal that comes late, by Pade's approximation, as a variable with this name; return the name.

        It is good up to about `order / delay` rad/s; it is 0 before, and rings after a jump of the signal. Sampled
        signals are delayed exactly: `every=` and `delay=` of `controller`.

        Args:
            name: unique among variables; more states are in "name.chain".
            signal: function of an instant that returns a number.
            delay: s.
            order: number of states, at least 2.
            unit: SI unit of the variable.

        """
        owner = f"delay {name!r}"
        late = float(numbers(owner, "delay", delay, ()))
        if not late > 0 or not isinstance(order, int) or not 2 <= order <= 10:
            raise ModelError(f"{owner}: delay must be above 0 s, order from 2 to 10, got {delay!r} and {order!r}")
        return self.filter(name, signal, *pade(late, order), unit=unit)

    def _claim_variable(self, name: str) -> None:
        read_name("variable", name)
        outputs = [c.output for c in self._controllers.values()]
        if name in self._variables or name in self._signals or name in outputs or name == "gravity":
            raise ModelError(f"variable {name!r}: the name is taken")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables so far."""
        return tuple(self._variables.values())

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies so far."""
        return tuple(self._bodies.values())

    @property
    def ground_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the ground so far."""
        return self._ground_shapes

    def with_shapes(self, change: Callable[[tuple[Shape, ...]], tuple[Shape, ...]]) -> Mechanism:
        """A copy with changed shapes of its bodies and of the ground."""
        other = copy(self)
        other._bodies = {name: replace(body, shapes=change(body.shapes)) for name, body in self._bodies.items()}
        other._ground_shapes = change(self._ground_shapes)
        return other

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames so far."""
        return tuple(self._frames.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes so far."""
        return tuple(self._notes)

    def __repr__(self) -> str:
        """One line."""
        return f"Mechanism({self.name!r}, {bodies_and_joints(len(self._bodies), len(self._joints))})"

    def __setattr__(self, name: str, value: Any) -> None:
        """Reject an attribute that there is not: its value would change nothing."""
        if name in ("gravity", "cut", "snapping", "name", "unjudged") or name.startswith("_"):
            return super().__setattr__(name, value)
        raise no_attribute("a Mechanism", name, ("gravity", "cut", "snapping", "name"), ELSEWHERE)

    def __getattr__(self, name: str) -> Any:
        """Tell users of a model's attributes that the mechanism is not built yet."""
        if name in Model.__dict__ or name in Model.__dataclass_fields__:
            raise _NotBuiltError(f"mechanism {self.__dict__.get('name')!r} is not built yet; give mechanism.build()")
        known = (*Mechanism.__dict__, *ConstraintElements.__dict__, *Elements.__dict__)
        raise no_attribute("a Mechanism", name, known, ELSEWHERE)

    def _repr_html_(self) -> str:
        facts = [("bodies", f"{len(self._bodies)}"), ("joints", f"{len(self._joints)}")]
        for what, elements in (("forces", self._forces), ("couplings", self._couplings)):
            facts += [(what, ", ".join(elements))] if elements else []
        picture = ""
        cuts: tuple[int, ...] = ()
        try:
            model = self.build()
            picture, cuts = thumbnail(model), model.cuts
        except CardanError as error:  # it is still being built
            facts.append(("not ready to build", str(error)))
        return mechanism_html(f"Mechanism {self.name!r}", facts, self.bodies, self.joints, picture, cuts)

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        """The actuators so far."""
        return tuple(self._actuators.values())

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses so far."""
        return tuple(self._losses)

    @property
    def states(self) -> Mapping[str, tuple[dict[str, Any], dict[str, Any], float]]:
        """The named states so far: coordinates and rates by joint, and time."""
        return self._states

    def _settle_doubts(self, bodies: Sequence[Body], tree: Tree) -> list[str]:
        """Check doubtful inertias together with all bodies of their link; a note for each that is valid there."""
        notes = []
        for name, why in self._doubts.items():
            group = [b for b, link in enumerate(tree.body_link) if link == tree.body_link[self._order[name]]]
            mass, _, I_C = merged_inertia(bodies, group, tree.body_pose)
            try:
                check_inertia("", mass, I_C)
            except ModelError:
                if name not in self.unjudged or np.linalg.eigvalsh(I_C)[0] < 0:
                    raise ModelError(why) from None
                notes.append(f"{why.partition(';')[0]}; kept as given")
                continue
            notes.append(f"{why.partition(';')[0]}; with the bodies fixed to it the rules hold")
        return notes

    def _claim(self, what: str, name: str) -> None:
        read_name(what, name)
        if name == self.ground or name in self._bodies or name in self._frames:
            raise ModelError(f"{what} {name!r}: the name is taken; bodies and frames must have different names")


def _checked(owner: str, data: JointData) -> JointData:
    """Validate the data of a joint. Reject NaN and non-numbers; a limit may be None."""
    for name in ("lower", "upper", "velocity", "effort", "damping", "friction"):
        value = getattr(data, name)
        optional = name not in ("damping", "friction")
        if (value is None and optional) or (isinstance(value, float | int | np.number) and not np.isnan(value)):
            continue
        raise ModelError(f"{owner}: {name} of its data must be a number{' or None' * optional}, got {value!r}")
    match data.mimic:
        case None | (str(), float() | int(), float() | int()):
            return data
    raise ModelError(f"{owner}: mimic of its data must be None or (joint, multiplier, offset), got {data.mimic!r}")


def _state_of(model: Model, q: Mapping[str, Any], v: Mapping[str, Any], time: float) -> State:
    """A named state in the tree's coordinates; joints without coordinates there are left out."""
    position, rate = model.start(), np.zeros(model.nv)
    for link in model.tree.links:
        name = model.joints[link.joint].name
        position[link.q] = q.get(name, position[link.q])
        rate[link.v] = v.get(name, rate[link.v])
    return State(frozen(position), frozen(rate), time)


def _read_start(owner: str, kind: Kind, start: Any) -> np.ndarray:
    """A guess of a joint's coordinates; a quaternion among them is normalised."""
    guess = np.atleast_1d(numbers(owner, "start", start, () if kind.nq == 1 and dimensions(start) == 0 else (kind.nq,)))
    if kind.nq != kind.nv:
        guess[-4:] = unit_quaternion(f"{owner}: start", guess[-4:])
    return guess


for _name in BUILDING:
    setattr(Mechanism, _name, with_call_errors(getattr(Mechanism, _name)))
