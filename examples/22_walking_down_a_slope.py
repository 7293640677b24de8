"""The compass walker: two stiff legs walk down a slope without a motor. At each heel strike the feet change roles.

A latch pins the foot that stands to the ground. A heel strike opens one latch and closes the other, whose impulse is
the collision. The walker and the gait are those of Goswami, Thuilot and Espiau (1998): legs of 1 m and 5 kg, a hip of
10 kg, a slope of 3 degrees.
"""

import numpy as np

import cardan as cd

slope = np.radians(3.0)
stance = -0.2187  # angles of the legs just after a heel strike, rad, symmetric about the normal of the slope
swing = 2 * slope - stance
foot = (0, 0, -1.0)

m = cd.Mechanism("compass walker")
m.body("hip", mass=10.0, inertia=(0, 0, 0), shape=cd.shape.Sphere(0.08, colour="grey"))
m.body("carriage")
m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "carriage", start=np.sin(stance))
m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "carriage", "hip", start=np.cos(stance))
for side, y, angle, colour in (("left", 0.06, stance, "orange"), ("right", -0.06, swing, "blue")):
    rod = cd.shape.Rod((0, y, 0), (0, y, -1.0), radius=0.025, colour=colour)
    ball = cd.shape.Sphere(0.05, at=(0, y, -0.5), colour=colour)
    m.body(side, mass=5.0, com=(0, 0, -0.5), inertia=(0, 0, 0), shape=[rod, ball])
    m.joint(f"{side} leg", cd.Revolute(axis=(0, 1, 0)), "hip", side, start=angle)
    m.latch(f"{side} foot", side, m.ground, "pin", at=foot, axis=(0, 1, 0), closed=side == "left")
road = cd.Pose((2.0, 0, -2.0 * np.tan(slope) - 0.02 / np.cos(slope)), rpy=(0, slope, 0))
m.shape(m.ground, cd.shape.Box((5.6, 0.6, 0.04), at=road, colour="#c8cdd4"))
m.variable("phase", 0)
model = m.build().free("left foot.closed", "right foot.closed")

# the swinging foot meets the slope where the legs are symmetric about the normal of the slope
walk = cd.Machine("phase", ["on left", "on right"])
for one, other in (("left", "right"), ("right", "left")):
    close, open_ = cd.lock(f"{other} foot"), cd.release(f"{one} foot")
    walk.on(
        f"on {one}", f"on {other}", lambda s: s.coordinate("left leg") + s.coordinate("right leg") - 2 * slope,
        direction=1, name=f"{other} heel", then=lambda s, close=close, open_=open_: close(s) | open_(s),
    )  # fmt: skip
w = 1.0918  # rad/s, of the leg that stands
start = {"x": w * np.cos(stance), "z": -w * np.sin(stance), "left leg": w, "right leg": 0.3772}
run = cd.simulate(model, 7.5, v0=start, events=walk.events, samples=301)
run.page("walker.html", overwrite=True)

heels = [event for event in run.events if event.name.endswith("heel")]
times = np.array([event.time for event in heels])
steps = np.array([2 * np.sin(slope - event.q[2:].min()) for event in heels])  # m, from the angle of the front leg
for event, step in zip(heels, steps, strict=True):
    print(f"{event.name:10} at {event.time:.4f} s, a step of {step:.4f} m")

# equal steps of 0.734 s; a collision takes what the slope gave
assert np.allclose(np.diff(times)[-3:], 0.734, atol=5e-4)
lost = -run.statistics["event_energy"] / len(heels)
given = 20.0 * 9.81 * np.sin(slope) * steps.mean()
print(f"a collision takes {lost:.3f} J, and the slope gives {given:.3f} J a step")
assert np.isclose(lost, given, rtol=1e-3)
