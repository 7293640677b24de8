"""A car changes its lane: four wheels that roll without slipping, and a steering wheel that follows a table."""

import warnings

import numpy as np

import cardan as cd
from cardan.mechanisms import vehicle

base, track, radius, speed = 2.6, 1.5, 0.32, 20.0  # m, m, m, m/s
t = np.linspace(0.0, 4.0, 41)
turn = np.where(abs(t - 2) < 1.5, 17.0 * np.sin(2 * np.pi * (t - 0.5) / 3) ** 3, 0.0)  # of the steering wheel, degrees
steering = cd.table(t, np.radians(turn), ends="hold", name="steering")

m = vehicle(base=base, track=track, radius=radius)
m.motion("driver", "column", steering)
m.shape(m.ground, cd.shape.Box((90, 0.15, 0.01), at=(40, 1.75, 0), colour="white"))
model = m.build()
run = cd.simulate(model, 4.0, v0={"road": (speed, 0, 0)}, assemble=True, samples=401)
# how the two rear tyres share the force across is undetermined; what follows needs their sum only
warnings.filterwarnings("ignore", message=".*one possible answer")
shown = ("column.coordinate", "road.coordinate", "front left tyre.force")
run.page("lane_change.html", *shown, simulate=False, overwrite=True)

# geometry: the axles meet where the car turns, so that the path follows from the steering alone
left = run.coordinate("steer left")
way = radius * (run.coordinate("rear left") + run.coordinate("rear right")) / 2  # m, of the middle of the rear axle
curvature = np.sin(left) / (base * np.cos(left) + track / 2 * np.sin(left))  # 1/m
along = lambda x: np.concatenate([[0], np.cumsum((x[1:] + x[:-1]) / 2 * np.diff(way))])  # an integral along the way
heading = along(curvature)
side, angle = run.coordinate("road")[:, 1:].T
print(f"{side[-1]:.2f} m to the left")
assert np.allclose(angle, heading, atol=1e-4) and np.allclose(side, along(np.sin(heading)), atol=2e-3)

# dynamics: the impulse of the tyres is the change of the momentum
tyres = [f"{end} {side} tyre" for end in ("front", "rear") for side in ("left", "right")]
force = sum(run[f"{tyre}.ground_force"] for tyre in tyres)
impulse = np.cumsum((force[1:] + force[:-1]) / 2 * np.diff(run.time)[:, None], axis=0)
weight = 9.81 * sum(body.mass for body in model.bodies)
print(f"across, the tyres carry {np.abs(force[:, 1]).max() / weight:.2f} of the weight")
change = run.momentum[1:, 3:] - run.momentum[0, 3:]
assert np.allclose(impulse, change, atol=1e-3 * np.abs(change).max())
