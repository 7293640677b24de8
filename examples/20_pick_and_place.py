"""A shuttle fetches a load and brings it back: a machine of states, a gripper that catches and releases, and energy."""

import numpy as np

import cardan as cd

m = cd.Mechanism("shuttle", gravity=(0, 0, 0))
m.body("cart", mass=1.0)
m.body("load", mass=0.5)
m.joint("cart", cd.Prismatic(axis=(1, 0, 0)), m.ground, "cart")
m.joint("load", cd.Prismatic(axis=(1, 0, 0)), m.ground, "load", start=1.0)
m.torsion("servo", "cart", stiffness=100.0, damping=15.0, rest=1.2)  # pulls the cart towards `rest`
m.latch("gripper", "cart", "load")
m.variable("phase", 0)
model = m.build().free("servo.rest", "gripper.closed")

# towards the load; back with it; away without it
machine = cd.Machine("phase", ["fetch", "carry", "leave"])
catch, drop = cd.lock("gripper"), cd.release("gripper")
machine.on(
    "fetch",
    "carry",
    lambda s: s.coordinate("load") - s.coordinate("cart"),
    direction=-1,
    name="catch",
    then=lambda s: catch(s) | cd.Change(parameters={"servo.rest": 0.0}),
)
machine.on(
    "carry",
    "leave",
    lambda s: s.coordinate("load") - 0.3,
    direction=-1,
    name="drop",
    then=lambda s: drop(s) | cd.Change(parameters={"servo.rest": 0.6}),
)
run = cd.simulate(model, 3.0, events=machine.events, samples=301)

for event in run.events:
    print(f"{event.name:6} at t = {event.time:.4f} s: rates {event.v.round(4)} -> {event.v_after.round(4)} m/s")
caught, dropped = run.events
print(f"energy that events changed: {run.statistics['event_energy']:.4f} J")

# the gripper shares the momentum of the cart; the load goes on with its speed when it is dropped
assert np.allclose(caught.v_after, caught.v[0] * 1.0 / 1.5)
together = (run.time > caught.time) & (run.time < dropped.time)
assert np.ptp(run.q[together, 0] - run.q[together, 1]) < 1e-9
assert np.allclose(run.v[run.time > dropped.time, 1], dropped.v[1])
assert abs(run.q[-1, 0] - 0.6) < 1e-3
