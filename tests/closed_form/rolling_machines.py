"""What the catalogue's rolling mechanisms are known for: closed forms of their motion and of the forces at the contact.

Each takes the built model and a random generator.
"""

from __future__ import annotations

import numpy as np

import cardan as cd

from ..trees import close

G = 9.81
METHODS = {
    "alpha": {"method": cd.Alpha(damping=1.0), "step": 2e-3},
    "gear": {"method": "gear", "rtol": 1e-9, "atol": 1e-11},
    "dormand_prince": {"rtol": 1e-10, "atol": 1e-12},
}


def rolling_disc(model: cd.Model, rng: np.random.Generator) -> None:
    """Steady precession: Euler's equation of the disc about its centre, with the force of rolling at its edge."""
    r, m, b, W = 0.3, 2.0, 1.1, 2.5  # b: angle of the axis from the vertical
    A, C = m * r**2 / 4, m * r**2 / 2
    w = (A * W**2 * np.sin(b) * np.cos(b) - m * G * r * np.cos(b)) / ((C + m * r**2) * W * np.sin(b))
    turned = np.pi / 2 - b  # about x, from upright
    q = np.array([0, 0, r * np.sin(b), np.cos(turned / 2), np.sin(turned / 2), 0, 0])
    # e1 forward, e2 up in the disc, e3 the axis, which is y of the body
    e1, e2, e3 = np.array([1.0, 0, 0]), np.array([0, 0, 1.0]), np.array([0, 1.0, 0])
    turning = W * np.sin(b) * e2 + w * e3
    v = np.concatenate([turning, np.cross(turning, r * e2)])
    close(cd.constraint_residual(model, q), np.zeros(3), 1e-15)
    for name, settings in METHODS.items():
        run = cd.simulate(model, 2.0, q, v, samples=9, **settings)
        size = {"alpha": 1e-4, "gear": 1e-6}.get(name, 1e-8)
        speed = np.cross(e3, e2) @ e1 * w * r
        away = speed / W  # radius of the circle of the centre
        angle = W * run.time
        path = np.column_stack([away * np.sin(angle), away * (1 - np.cos(angle)), np.full(9, r * np.sin(b))])
        close(run.position("disc"), path, size)
        close(run.poses[:, 0, 2, 1], np.full(9, np.cos(b)), size)
        close(run.energy, np.full(9, run.energy[0]), 10 * size)
    sideways = m * speed**2 / away  # towards the middle of the circle
    found = run["rim.force"]
    close(found[:, 0], np.full(9, m * G), 1e-7)
    close(np.abs(found[:, 2]), np.full(9, abs(sideways)), 1e-7)
    close(found[:, 1], np.zeros(9), 1e-7)
    middle = np.array([0.0, away, 0.0]) - run.position("disc") * [1, 1, 0]
    inwards = middle / np.linalg.norm(middle, axis=1)[:, None]
    close(run["rim.ground_force"], m * G * np.array([0, 0, 1]) + abs(sideways) * inwards, 1e-6)
    low = run["rim.point"]
    close(low[:, 2], np.zeros(9), 1e-12)
    close(np.linalg.norm(low - run.position("disc"), axis=1), np.full(9, r), 1e-12)


def chaplygin_sleigh(model: cd.Model, rng: np.random.Generator) -> None:
    """The accelerations of its two freedoms, and the sideways force on the blade, at random states."""
    ahead, m, I = 0.3, 10.0, 0.6
    for heading, u, w in rng.uniform(-2, 2, (5, 3)):
        q, v = np.array([0.4, -1.0, heading]), np.array([u * np.cos(heading), u * np.sin(heading), w])
        a = cd.forward_dynamics(model, q, v)
        along = a[0] * np.cos(heading) + a[1] * np.sin(heading)
        turning = -m * ahead * u * w / (I + m * ahead**2)
        close(np.array([along, a[2]]), np.array([ahead * w**2, turning]), 1e-12)
        close(-cd.multipliers(model, q, v), [m * (ahead * turning + u * w)], 1e-11)


def snakeboard(model: cd.Model, rng: np.random.Generator) -> None:
    """The equation of its nonholonomic momentum, and of the rotor's, at random states and torques.

    With the trucks at +-phi the board turns about a place `l / tan(phi)` beside its middle, so that its speed is
    `u = l turning / tan(phi)`. What is virtual along that motion does no work on the wheels:
    `m l u' / tan(phi) + J turning' + J_rotor rotor' = 0`.
    """
    l, masses = 0.25, [body.mass for body in model.bodies]
    J = sum(body.inertia[2, 2] + body.mass * (l**2 if body.name in ("front", "back") else 0) for body in model.bodies)
    J_rotor = model.body("rotor").inertia[2, 2]
    rider, floor = model.v_slice("rider"), model.v_slice("floor")
    for phi, heading, turning, rate, spin, torque, steer in rng.uniform(0.3, 1.2, (5, 7)):
        q = cd.assemble(model, {"front": phi, "back": -phi, "floor": (0.3, 0.2, heading)})[0]
        u = l * turning / np.tan(phi)
        v, tau = np.zeros(model.nv), np.zeros(model.nv)
        v[floor] = u * np.cos(heading), u * np.sin(heading), turning
        v[rider], v[model.v_slice("front")], v[model.v_slice("back")] = spin, rate, -rate
        tau[rider], tau[model.v_slice("front")] = torque, steer
        close(cd.constraint_jacobian(model, q) @ v, np.zeros(3), 1e-14)
        a = cd.forward_dynamics(model, q, v, tau)
        # acceleration of the middle along the board: its velocity is always along it
        along = a[floor][0] * np.cos(heading) + a[floor][1] * np.sin(heading)
        kept = sum(masses) * l * along / np.tan(phi) + J * a[floor][2] + J_rotor * a[rider][0]
        close(np.array([kept, J_rotor * (a[rider][0] + a[floor][2])]), np.array([0.0, torque]), 1e-12)


def ball_on_turntable(model: cd.Model, rng: np.random.Generator) -> None:
    """Circles at 2/7 of the rate of the table, about a place that the start gives."""
    W, slow = 7.0, 2.0
    m = cd.mechanisms.ball_on_turntable()
    m.motion("motor", "axle", lambda t: W * t)
    model = m.build()
    rates = np.zeros(model.nv)
    rates[model.v_slice("float")] = 0.0, 0.0, 0.5, 0.12, -0.3, 0.0
    q, v = cd.assemble(model, model.start(), rates)
    run = cd.simulate(model, 4.0, q, v, samples=17, rtol=1e-10, atol=1e-12)
    place, speed = run.position("ball")[0, :2], run.velocity("ball")[0, :2]
    middle = place + np.array([-speed[1], speed[0]]) / slow  # about which it turns
    c, s = np.cos(slow * run.time), np.sin(slow * run.time)
    arm = place - middle
    path = middle + np.column_stack([c * arm[0] - s * arm[1], s * arm[0] + c * arm[1]])
    close(run.position("ball")[:, :2], path, 1e-8)
    close(run["contact.force"][:, 0], np.full(17, 0.2 * G), 1e-9)


def vehicle(model: cd.Model, rng: np.random.Generator) -> None:
    """Its axles meet where it turns, its energy stays, and the wheels roll as far as they go."""
    q, v = cd.assemble(model, {"steer left": 0.2}, {"rear left": 20.0})
    left, right = (float(q[model.q_slice(f"steer {side}")][0]) for side in ("left", "right"))
    close(np.array([1 / np.tan(right) - 1 / np.tan(left)]), [1.5 / 2.6], 1e-12)
    turning, speed = v[model.v_slice("road")][2], v[model.v_slice("road")][0]
    close(np.array([turning]), [speed / (2.6 / np.tan(left) + 0.75)], 1e-12)
    run = cd.simulate(model, 20.0, q, v, samples=3, rtol=8e-9, atol=8e-9)
    assert np.ptp(run.energy) < 2e-9 * run.energy[0]
    for wheel, y in (("rear left", 0.75), ("front right", -0.75)):
        x = 0.0 if wheel.startswith("rear") else 2.6
        along = run.poses[:, model.body_names.index(wheel.replace("front", "knuckle")), :3, 0]
        along = run.poses[:, 0, :3, 0] if not x else along
        hub = run.velocity("chassis", (x, y, 0.32))
        close((hub * along).sum(axis=1), 0.32 * run.rate(wheel), 1e-9)


def cam_follower(model: cd.Model, rng: np.random.Generator) -> None:
    """Height, speed and acceleration of the follower follow the cam: it is above at `pi/2 - turn` of the cam."""
    for turn, rate in rng.uniform(-3, 3, (5, 2)):
        height = 0.05 + 0.012 * np.sin(turn)
        q, v = cd.assemble(model, {"shaft": turn, "guide": height}, {"shaft": rate})
        guide, shaft = (model.v_slice(name) for name in ("guide", "shaft"))
        a = cd.forward_dynamics(model, q, v)
        close(q[guide], [height], 1e-15)
        close(v[guide], [0.012 * np.cos(turn) * rate], 1e-15)
        close(a[guide], [0.012 * (np.cos(turn) * a[shaft][0] - np.sin(turn) * rate**2)], 1e-12)


def rzeppa(model: cd.Model, rng: np.random.Generator) -> None:
    """The shafts turn alike at every angle, and a torque goes through without loss."""
    for turn, rate, torque in rng.uniform(-3, 3, (5, 3)):
        q, v = cd.assemble(model, {"input": turn, "output": turn}, {"input": rate})
        close(q, [turn, turn], 1e-14)
        close(v, [rate, rate], 1e-14)
        close(cd.forward_dynamics(model, q, v, [torque, -torque]), [0.0, 0.0], 1e-9)
