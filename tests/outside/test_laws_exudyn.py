"""Rolling, stops, friction, tables and controllers in Exudyn, an independent program in redundant coordinates.

Both programs run here, and both are refined. Exudyn's implicit trapezoidal rule has order 2, and its Newton's method is
given 1e-10; where a contact opens and closes its order is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd

exu = pytest.importorskip("exudyn")
items = pytest.importorskip("exudyn.itemInterface")
pytestmark = [pytest.mark.usefixtures("quick_code"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
SYSTEMS = exu.SystemContainer()
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
G = 9.81


def new() -> Any:
    return SYSTEMS.AddSystem()


def solve(mbs: Any, end: float, steps: int, explicit: bool = False) -> None:
    """Simulate to `end` (s) by the trapezoidal rule, or by Runge and Kutta's of order 4."""
    mbs.Assemble()
    settings = exu.SimulationSettings()
    time = settings.timeIntegration
    time.numberOfSteps, time.endTime, time.verboseMode = steps, end, 0
    time.newton.relativeTolerance, time.newton.absoluteTolerance = 1e-10, 1e-12
    time.generalizedAlpha.spectralRadius = 1.0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = end / 24
    kind = exu.DynamicSolverType.RK44 if explicit else exu.DynamicSolverType.GeneralizedAlpha
    mbs.SolveDynamic(settings, solverType=kind)


def output(mbs: Any, node: int, what: str = "Coordinates") -> np.ndarray:
    return np.atleast_1d(mbs.GetNodeOutput(node, getattr(exu.OutputVariableType, what)))


def extrapolated(run: Callable[[int], np.ndarray], steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Exudyn's result from two runs of order 2, and how far the finer of them is from it."""
    coarse, fine = run(steps), run(2 * steps)
    return fine + (fine - coarse) / 3, np.abs(fine - coarse) / 3


def mass_on_spring(mbs: Any, mass: float, speed: float, **connector: Any) -> tuple[int, int]:
    """A mass on a line with a connector to the ground; its node and the marker of its coordinate."""
    ground = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(items.NodePointGround()), coordinate=0))
    node = mbs.AddNode(items.Node1D(referenceCoordinates=[0], initialCoordinates=[0], initialVelocities=[speed]))
    mbs.AddObject(items.ObjectMass1D(mass=mass, nodeNumber=node))
    marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=node, coordinate=0))
    if connector:
        mbs.AddObject(items.ObjectConnectorCoordinateSpringDamperExt(markerNumbers=[ground, marker], **connector))
    return node, marker


def data_node(mbs: Any) -> int:
    return mbs.AddNode(items.NodeGenericData(numberOfDataCoordinates=3, initialCoordinates=[0, 0, 0]))


def slider(mass: float = 1.0) -> cd.Mechanism:
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("mass", mass=mass, inertia=(0.1, 0.1, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass")
    return m


def test_a_disc_rolls() -> None:
    """A leaning disc that turns and wobbles: path of its centre and direction of its axis after one second."""
    r, mass, lean, spin = 0.3, 2.0, np.pi / 2 - 1.1, np.array([0.7, 3.0, -1.2])
    start, turn = [0, 0, r * np.cos(lean)], [np.cos(lean / 2), np.sin(lean / 2), 0, 0]
    c, s = np.cos(lean), np.sin(lean)
    R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    v = -np.cross(R @ spin, R @ [0, 0, -r])  # the lowest point rests

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        a, w = turn[:2], R @ spin
        rate = np.array([-w[0] * a[1], w[0] * a[0], w[1] * a[0] + w[2] * a[1], w[2] * a[0] - w[1] * a[1]]) / 2
        node = mbs.AddNode(items.NodeRigidBodyEP(referenceCoordinates=[*start, *turn], initialVelocities=[*v, *rate]))
        inertia = [mass * r**2 / 4, mass * r**2 / 2, mass * r**2 / 4, 0, 0, 0]
        body = mbs.AddObject(items.ObjectRigidBody(mass=mass, inertia=inertia, nodeNumber=node))
        floor = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=mbs.AddObject(items.ObjectGround())))
        disc = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=body))
        mbs.AddObject(items.ObjectJointRollingDisc(markerNumbers=[floor, disc], discRadius=r, discAxis=[0, 1, 0]))
        weight = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(items.LoadMassProportional(markerNumber=weight, loadVector=[0, 0, -G]))
        solve(mbs, 1.0, steps)
        axis = output(mbs, node, "RotationMatrix").reshape(3, 3)[:, 1]
        return np.concatenate([output(mbs, node, "Position"), axis])

    expected, apart = extrapolated(theirs, 1000)
    model = cd.mechanisms.rolling_disc(radius=r, mass=mass).build()
    run = cd.simulate(model, 1.0, [*start, *turn], [*spin, *(R.T @ v)], samples=2, **FINE)
    found = np.concatenate([run.position("disc")[-1], run.poses[-1, 0, :3, 1]])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert 1e-6 < apart.max() < 2e-5 and np.linalg.norm(expected[:2]) > 0.3


@pytest.mark.parametrize("damping", [0.0, 5.0])
def test_compliant_stops(damping: float) -> None:
    """A mass on a spring between two buffers; damped ones of Exudyn pull on the way out, so the law is written."""
    k, lower, upper = 2e3, -0.3, 0.5

    def buffers(mbs: Any, t: float, item: int, x: float, v: float, *more: float) -> float:
        force = 3.0 * x + 0.05 * v
        for depth, rate, side in ((x - upper, v, 1.0), (lower - x, -v, -1.0)):
            if depth > 0:
                force += side * max(k * depth + damping * rate, 0.0)
        return force

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        law: dict[str, Any] = {"springForceUserFunction": buffers}
        if not damping:
            law = {"stiffness": 3.0, "damping": 0.05, "useLimitStops": True, "nodeNumber": data_node(mbs)}
            law |= {"limitStopsUpper": upper, "limitStopsLower": lower, "limitStopsStiffness": k}
        node, _ = mass_on_spring(mbs, 1.0, 2.0, **law)
        solve(mbs, 1.7, steps)
        return np.concatenate([output(mbs, node), output(mbs, node, "Coordinates_t")])

    m = slider()
    m.torsion("spring", "x", stiffness=3.0, damping=0.05)
    m.stop("buffers", "x", lower=lower, upper=upper, stiffness=k, damping=damping)
    run = cd.simulate(m.build(), 1.7, v0=[2.0], samples=301, max_step=2e-3, **FINE)
    assert (np.diff(np.sign(run.v[:, 0])) != 0).sum() >= 2  # impacts
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], theirs(15000), atol=2e-4)


def test_friction_that_falls_with_speed() -> None:
    """Stribeck's friction, regularised by the same function: a block that a spring pulls creeps and slips."""

    def pull(mbs: Any, t: float, item: int, x: float, v: float, *more: float) -> float:
        return 4 * (x - 0.3 * t) + (1.2 + 0.8 * np.exp(-((v / 0.1) ** 2))) * np.tanh(v / 0.01)

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        node, _ = mass_on_spring(mbs, 1.0, 0.0, springForceUserFunction=pull)
        solve(mbs, 3.0, steps)
        return np.concatenate([output(mbs, node), output(mbs, node, "Coordinates_t")])

    m = slider()
    m.drive("pull", "x", lambda t, q, v: 4 * (0.3 * t - q))
    m.friction("floor", "x", coulomb=1.2, static=2.0, stribeck=0.1, smoothing=0.01)
    run = cd.simulate(m.build(), 3.0, samples=2, **FINE)
    expected, apart = extrapolated(theirs, 2000)
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], expected, atol=1e-6)
    assert apart.max() < 1e-5


def test_a_block_sticks_and_slips() -> None:
    """Exudyn's friction sticks by a stiff spring and falls from its static level at once, nearly; Cardan's is exact."""

    def theirs() -> np.ndarray:
        mbs = new()
        node, marker = mass_on_spring(
            mbs, 1.0, 0.0, stiffness=4.0, dynamicFrictionForce=1.2, staticFrictionOffsetForce=0.8,
            stickingStiffness=1e6, stickingDamping=1.4e3, exponentialDecayStatic=1e-4, nodeNumber=data_node(mbs),
        )  # fmt: skip
        pull = lambda mbs, t, load: 1.2 * t
        mbs.AddLoad(items.LoadCoordinate(markerNumber=marker, load=1.0, loadUserFunction=pull))
        kind = exu.OutputVariableType.Coordinates
        sensor = mbs.AddSensor(
            items.SensorNode(nodeNumber=node, storeInternal=True, outputVariableType=kind, writeToFile=False)
        )
        solve(mbs, 6.0, 24000)
        return np.asarray(mbs.GetSensorStoredData(sensor))

    stored = theirs()
    assert len(stored) == 25
    m = slider()
    m.drive("pull", "x", lambda t, q, v: 4 * (0.3 * t - q))
    m.friction("floor", "x", coulomb=1.2, static=2.0, stick=True)
    run = cd.simulate(m.build(), 6.0, samples=stored[:, 0])
    assert [event.name for event in run.events] == ["floor: sliding"] * 3 and run.q[-1, 0] > 1.0
    np.testing.assert_allclose(run.q[:, 0], stored[:, 1], atol=1e-3)


def test_a_spring_from_a_table() -> None:
    """A stiffening spring between its points by straight lines; Exudyn interpolates by NumPy."""
    x = np.linspace(-1.0, 1.0, 11)
    force = 20 * x + 60 * x**3

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        pull = lambda mbs, t, item, u, v, *more: float(np.interp(u, x, force)) + 0.1 * v
        node, _ = mass_on_spring(mbs, 1.0, 3.0, springForceUserFunction=pull)
        solve(mbs, 2.0, steps)
        return np.concatenate([output(mbs, node), output(mbs, node, "Coordinates_t")])

    m = slider()
    m.nonlinear_torsion("spring", "x", effort=cd.table(x, force, smooth=0), damping=0.1)
    run = cd.simulate(m.build(), 2.0, v0=[3.0], samples=201, **FINE)
    assert np.abs(run.q).max() > 0.5
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], theirs(8000), atol=2e-5)


def test_a_servo() -> None:
    """A PID controller: its integral is a state of first order in Exudyn."""
    kp, ki, kd = 8.0, 3.0, 5.0

    def theirs() -> np.ndarray:
        mbs = new()
        node, marker = mass_on_spring(mbs, 2.0, 0.0)
        state = mbs.AddNode(
            items.NodeGenericODE1(referenceCoordinates=[0], initialCoordinates=[0], numberOfODE1Coordinates=1)
        )
        error = lambda mbs, t, item, y: [1.0 - float(output(mbs, node)[0])]
        mbs.AddObject(items.ObjectGenericODE1(nodeNumbers=[state], rhsUserFunction=error))

        def effort(mbs: Any, t: float, load: float) -> float:
            x, v = output(mbs, node)[0], output(mbs, node, "Coordinates_t")[0]
            return float(kp * (1.0 - x) + ki * output(mbs, state)[0] - kd * v)

        mbs.AddLoad(items.LoadCoordinate(markerNumber=marker, load=1.0, loadUserFunction=effort))
        solve(mbs, 3.0, 1500, explicit=True)
        return np.concatenate([output(mbs, node), output(mbs, node, "Coordinates_t"), output(mbs, state)])

    m = slider(2.0)
    m.controller("servo", "x", cd.PID(kp=kp, ki=ki, kd=kd))
    run = cd.simulate(m.build().at({"servo.reference": 1.0}), 3.0, samples=2, **FINE)
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0], run["servo.integral"][-1] / ki], theirs(), atol=1e-8)


def test_a_ball_on_a_soft_ball() -> None:
    """Two balls that touch by a linear spring, without friction: one falls past the other, which is fixed."""
    r, k, start = 0.1, 5e4, (0.03, 0.0, 0.5)

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        node = mbs.AddNode(items.NodePoint(referenceCoordinates=list(start)))
        mbs.AddObject(items.ObjectMassPoint(physicsMass=1.0, nodeNumber=node))
        fixed = mbs.AddMarker(items.MarkerNodePosition(nodeNumber=mbs.AddNode(items.NodePointGround())))
        moving = mbs.AddMarker(items.MarkerNodePosition(nodeNumber=node))
        data = mbs.AddNode(items.NodeGenericData(numberOfDataCoordinates=4, initialCoordinates=[0.1, 0, 0, 0]))
        mbs.AddObject(
            items.ObjectContactSphereSphere(
                markerNumbers=[fixed, moving], nodeNumber=data, spheresRadii=[r, r], contactStiffness=k
            )
        )
        mbs.AddLoad(items.Force(markerNumber=moving, loadVector=[0, 0, -G]))
        solve(mbs, 0.4, steps)
        return output(mbs, node, "Position")

    m = cd.Mechanism("balls", gravity=(0, 0, -G))
    m.body("ball", mass=1.0, inertia=(0.004,) * 3)
    m.joint("float", cd.Free(), m.ground, "ball", start=(*start, 1, 0, 0, 0))
    m.stop("touch", ["ball"], lambda t, poses, twists: ca.norm_2(poses[0].position) - 2 * r, stiffness=k)
    run = cd.simulate(m.build(), 0.4, samples=81, max_step=2e-3, **FINE)
    assert run.position("ball")[-1, 0] > 0.1
    np.testing.assert_allclose(run.position("ball")[-1], theirs(8000), atol=2e-4)


def test_a_crank_drives_a_slider_against_a_buffer() -> None:
    """A plane loop of three bodies with a compliant stop at its slider; the crank is let go at 8 rad/s."""
    crank, rod, limit, k = 0.2, 0.5, 0.66, 8e3
    bodies = ((2.0, 0.02), (1.5, 0.04), (3.0, 0.01))  # mass, inertia about the middle

    def theirs(steps: int) -> np.ndarray:
        mbs = new()
        lean = np.arcsin(crank / rod)  # of the rod, when the crank is upright
        x = rod * np.cos(lean)
        places = ((0.0, crank / 2, np.pi / 2), (x / 2, crank / 2, -lean), (x, 0.0, 0.0))
        rates = ((-8 * crank / 2, 0.0, 8.0), (-8 * crank, 0.0, 0.0), (-8 * crank, 0.0, 0.0))
        numbers = []
        for (mass, inertia), place, rate in zip(bodies, places, rates, strict=True):
            node = mbs.AddNode(items.NodeRigidBody2D(referenceCoordinates=list(place), initialVelocities=list(rate)))
            numbers.append((node, mbs.AddObject(items.ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node))))
        ground = mbs.AddObject(items.ObjectGround())
        point: Any = lambda body, *at: mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=body, localPosition=[*at, 0.0]))
        A, B, C = (body for _, body in numbers)
        for one, other in (
            (point(ground, 0.0, 0.0), point(A, -crank / 2, 0.0)),
            (point(A, crank / 2, 0.0), point(B, -rod / 2, 0.0)),
            (point(B, rod / 2, 0.0), point(C, 0.0, 0.0)),
        ):
            mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=[one, other]))
        still = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(items.NodePointGround()), coordinate=0))
        along = [mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=numbers[2][0], coordinate=c)) for c in range(3)]
        for marker in along[1:]:
            mbs.AddObject(items.ObjectConnectorCoordinate(markerNumbers=[still, marker]))
        push = lambda mbs, t, item, u, v, *more: k * max(u + x - limit, 0.0)
        mbs.AddObject(
            items.ObjectConnectorCoordinateSpringDamperExt(
                markerNumbers=[still, along[0]], springForceUserFunction=push
            )
        )
        solve(mbs, 1.0, steps)
        return np.concatenate([output(mbs, numbers[2][0])[:1] + x, output(mbs, numbers[2][0], "Coordinates_t")[:1]])

    m = cd.Mechanism("slider_crank", gravity=(0, 0, 0))
    for name, (mass, inertia), middle in zip(("crank", "rod", "slider"), bodies, (crank / 2, rod / 2, 0), strict=True):
        m.body(name, mass=mass, com=(middle, 0, 0), inertia=(inertia,) * 3)
    m.joint("A", cd.Revolute(), m.ground, "crank", start=np.pi / 2)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(crank, 0, 0), start=-np.pi / 2 - np.arcsin(crank / rod))
    m.joint("S", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=rod * np.cos(np.arcsin(crank / rod)))
    m.joint("C", cd.Revolute(), "rod", "slider", at=(rod, 0, 0))
    m.stop("buffer", "S", upper=limit, stiffness=k)
    model = m.build()
    q, v = cd.assemble(model, model.start(), {"A": 8.0})
    run = cd.simulate(model, 1.0, q, v, samples=201, max_step=2e-3, **FINE)
    pressed = run.coordinate("S") > limit
    assert (np.diff(pressed.astype(int)) == 1).sum() == 1
    np.testing.assert_allclose([run.coordinate("S")[-1], run.rate("S")[-1]], theirs(8000), atol=1e-4)
