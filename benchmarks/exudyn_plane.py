"""A planar mechanism of Cardan in Exudyn, with as few coordinates and as little work per step as possible.

Bodies are `RigidBody2D` about their centres of mass, so that the mass matrix is constant; hinges are
`RevoluteJoint2D`; a constraint on one coordinate of one body is a `CoordinateConstraint`. It uses Exudyn's build
without range checks, one thread, no files, no output.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import cardan as cd

SPARSE_FROM = 20  # bodies; below, Exudyn's own dense solver is faster

# Exudyn's recommended method, the same with a looser Newton tolerance, and its other second-order method.
RECOMMENDED = "generalised-alpha"
VARIANTS: dict[str, dict[str, Any]] = {
    RECOMMENDED: {},
    "generalised-alpha, Newton 1e-6": {"newton": 1e-6},
    "trapezoidal, index 2": {"solver": "TrapezoidalIndex2"},
}


def exudyn() -> Any:
    """Exudyn in its fast build; ImportError if it is not installed."""
    sys.exudynFast = True  # type: ignore[attr-defined]
    import exudyn as exu

    return exu


@dataclass(frozen=True)
class Plane:
    """The mechanism in Exudyn; each `solve` begins at its initial state."""

    model: cd.Model
    start: np.ndarray
    container: Any
    system: Any
    nodes: dict[int, int]

    def solve(self, duration: float, steps: int, *, solver: str = "GeneralizedAlpha", newton: float = 1e-8) -> None:
        """Simulate from the initial state."""
        exu = exudyn()
        settings = exu.SimulationSettings()
        time = settings.timeIntegration
        time.endTime, time.numberOfSteps, time.verboseMode = duration, steps, 0
        time.newton.relativeTolerance, time.newton.absoluteTolerance = newton, newton / 100
        settings.solution.file.write = False
        settings.solution.sensors.active = False
        settings.parallel.numberOfThreads = 1
        if len(self.nodes) >= SPARSE_FROM:
            settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
        kind = getattr(exu.DynamicSolverType, solver)
        self.system.SolveDynamic(settings, solverType=kind, showHints=False)

    def coordinates(self) -> np.ndarray:
        """Final state of the last run in Cardan's coordinates: angles between bodies, slider positions along x."""
        kind = exudyn().OutputVariableType.Coordinates
        moved = {body: np.array(self.system.GetNodeOutput(node, kind)) for body, node in self.nodes.items()}
        moved[-1] = np.zeros(3)
        q = np.array(self.start)
        for link in self.model.tree.links:
            joint = self.model.joints[link.joint]
            if joint.kind.name == "revolute":
                q[link.q] += _turn(joint) * (moved[joint.child][2] - moved[joint.parent][2])
            else:
                q[link.q] += moved[joint.child][0]
        return q


def plane(model: cd.Model, q: np.ndarray, v: np.ndarray, *, without: str | None = None) -> Plane:
    """The mechanism in Exudyn at this initial state.

    `without` names a slider along x whose centre is that of the body hinged to it. It is left out: its mass is added to
    that body, whose centre is constrained to the line. This saves three coordinates and gives the same motion.
    """
    exu = exudyn()
    container = exu.SystemContainer()
    made = _Assembly(model, container, container.AddSystem(), without)
    made.add_bodies(q, v)
    made.add_joints()
    made.add_forces()
    made.system.Assemble()
    return Plane(model, q, container, made.system, made.nodes)


class _Assembly:
    """Adds the items of a mechanism to Exudyn."""

    def __init__(self, model: cd.Model, container: Any, system: Any, without: str | None) -> None:
        from exudyn import itemInterface as items

        self.model, self.container, self.system, self.items = model, container, system, items
        self.without = model.body_names.index(without) if without else None
        self.objects = {-1: system.AddObject(items.ObjectGround())}
        self.coms = {-1: np.zeros(3)}
        self.nodes: dict[int, int] = {}
        ground = system.AddNode(items.NodePointGround())
        self.still = system.AddMarker(items.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))

    def add_bodies(self, q: np.ndarray, v: np.ndarray) -> None:
        poses, twists = cd.body_poses(self.model, q), cd.body_twists(self.model, q, v)
        for i, body in enumerate(self.model.bodies):
            if i == self.without:
                continue
            R, com = poses[i][:3, :3], np.asarray(body.com)
            w, r = R @ twists[i][:3], poses[i][:3, 3] + R @ com
            rate = R @ twists[i][3:] + np.cross(w, R @ com)
            place = [r[0], r[1], np.arctan2(R[1, 0], R[0, 0])]
            node = self.items.NodeRigidBody2D(referenceCoordinates=place, initialVelocities=[rate[0], rate[1], w[2]])
            self.nodes[i] = self.system.AddNode(node)
            mass = body.mass + self._carried(i)
            own = self.items.RigidBody2D(mass=mass, inertia=body.inertia[2, 2], nodeNumber=self.nodes[i])
            self.objects[i], self.coms[i] = self.system.AddObject(own), com
            if self.model.gravity.any():
                marker = self.system.AddMarker(self.items.MarkerBodyMass(bodyNumber=self.objects[i]))
                weight = self.items.LoadMassProportional(markerNumber=marker, loadVector=list(self.model.gravity))
                self.system.AddLoad(weight)

    def _carried(self, body: int) -> float:
        """Mass of the slider that was left out, if it is hinged to this body; else 0."""
        ends = [{joint.parent, joint.child} for joint in self.model.joints]
        return self.model.bodies[self.without].mass if self.without is not None and {body, self.without} in ends else 0

    def add_joints(self) -> None:
        for joint in self.model.joints:
            ends = [(joint.parent, joint.at.position), (joint.child, joint.child_at.position)]
            if self.without in (joint.parent, joint.child):
                if joint.parent >= 0:
                    rod = joint.parent if joint.child == self.without else joint.child
                    self._hold(rod, 1)
                    self.nodes[self.without] = self.nodes[rod]
            elif joint.kind.name == "prismatic":
                self._hold(joint.child, 1, 2)
            elif joint.parent < 0 and np.array_equal(joint.child_at.position, self.coms[joint.child]):
                self._hold(joint.child, 0, 1)
            else:
                markers = [self._point(body, np.asarray(at)) for body, at in ends]
                self.system.AddObject(self.items.RevoluteJoint2D(markerNumbers=markers))

    def add_forces(self) -> None:
        for force in self.model.forces:
            n = force.numbers
            if force.kind.name == "spring":
                markers = [self._point(body, n[at]) for body, at in zip(force.on, ("at1", "at2"), strict=True)]
                numbers = {"stiffness": float(n["stiffness"]), "damping": float(n["damping"])}
                length = float(n["length"])
                self.system.AddObject(self.items.SpringDamper(markerNumbers=markers, referenceLength=length, **numbers))
            elif force.kind.name == "wrench":
                marker = self._point(force.on[0], n["at"])
                load = self.items.LoadForceVector(markerNumber=marker, loadVector=list(n["value"][3:]))
                self.system.AddLoad(load)
            elif force.kind.name == "drive":
                joint, law = self.model.joints[force.on[0]], force.function
                torque = _turn(joint) * float(law(*([0.0] * law.n_in())))
                body = self.items.MarkerBodyRigid(bodyNumber=self.objects[joint.child])
                load = self.items.LoadTorqueVector(markerNumber=self.system.AddMarker(body), loadVector=[0, 0, torque])
                self.system.AddLoad(load)
            else:
                raise ValueError(f"no {force.kind.name} in Exudyn's plane here")

    def _point(self, body: int, at: np.ndarray) -> int:
        place = list(np.asarray(at) - self.coms[body])
        marker: int = self.system.AddMarker(
            self.items.MarkerBodyPosition(bodyNumber=self.objects[body], localPosition=place)
        )
        return marker

    def _hold(self, body: int, *coordinates: int) -> None:
        for k in coordinates:
            own = self.items.MarkerNodeCoordinate(nodeNumber=self.nodes[body], coordinate=k)
            held = self.items.CoordinateConstraint(markerNumbers=[self.still, self.system.AddMarker(own)])
            self.system.AddObject(held)


def _turn(joint: Any) -> float:
    """1 for a hinge about z, -1 for one about -z."""
    return float(np.sign(joint.at.rotation[2][2]))
