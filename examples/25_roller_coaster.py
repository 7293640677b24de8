"""A roller coaster: three cars on a track of points, with a lift, a loop, and curves banked by what passengers feel.

The track is a closed curve through points. Its cars are joints along it, coupled by rods. First a bead without friction
tells the speed at each point; the floor of the track is then put across the force that is felt there, so that nothing
pulls sideways. With rolling resistance and drag of the air the train is slower than the bead, and feels a little.
"""

import casadi as ca
import numpy as np

import cardan as cd

g, top, chain = 9.81, 28.0, 4.0  # m/s^2, height of the lift (m), speed of its chain (m/s)


def smoothly(low, high, n):
    """From one height to another, level at both ends."""
    return low + (high - low) * (1 - np.cos(np.pi * np.linspace(0, 1, n, endpoint=False))) / 2


# the plan: out along y = 0 with the first drop and the loop, back along y = 60 over two hills, up the lift in the turn
turn = np.linspace(-np.pi / 2, np.pi / 2, 12, endpoint=False)
drop = np.column_stack([np.linspace(-50, 8, 12, endpoint=False), np.zeros(12), smoothly(top, 2.0, 12)])
share = np.linspace(0, 1, 2001)  # the loop is tightest at its top, so that the force begins and ends with nothing
slope = 2 * np.pi * share - np.sin(2 * np.pi * share)
steps = 84.0 * np.diff(share)[:, None] * np.column_stack([np.cos(slope), 0 * slope, np.sin(slope)])[1:]
loop = np.array([8, 0, 2.0]) + np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])[:-1:100]
loop[:, 1] = 6 * slope[:-1:100] / (2 * np.pi)
away = np.column_stack([50 + 27 * np.cos(turn), 33 + 27 * np.sin(turn), smoothly(2.0, 8.0, 12)])
hills = np.column_stack([np.linspace(50, -50, 20, endpoint=False), np.full(20, 60.0), np.zeros(20)])
hills[:, 2] = np.concatenate([smoothly(8, 5, 8), smoothly(5, 6, 6), smoothly(6, 4, 6)])
lift = np.column_stack([-50 + 30 * np.cos(turn + np.pi), 30 + 30 * np.sin(turn + np.pi), smoothly(4, top, 12)])
points = np.vstack([drop, loop, away, hills, lift])

# at each point of a first track, the force on a passenger of 1 kg at the speed of a bead: m/s^2
first = cd.curve(points, closed=True, up="carried", name="first")
s = np.linspace(0, first.length, 20001)
places = first(s)
own = np.array([s[np.linalg.norm(places - point, axis=1).argmin()] for point in points])
speed_squared = np.maximum(2 * g * (top - points[:, 2]), 0) + chain**2
tangent = first.axes(own + 0.05)[..., 0] - first.axes(own - 0.05)[..., 0]
felt = speed_squared[:, None] * tangent / 0.1 + [0, 0, g]
felt = sum(w * np.roll(felt, k, axis=0) for k, w in zip(range(-3, 4), (1, 2, 3, 4, 3, 2, 1), strict=True)) / 16
assert np.linalg.norm(felt, axis=1).min() > 1.0
track = cd.curve(points, closed=True, up=felt / np.linalg.norm(felt, axis=1)[:, None], name="track")

m = cd.Mechanism("roller coaster", gravity=(0, 0, -g))
mass, apart = 600.0, 3.2  # of a car, kg; between the cars, m
lifted = np.array([own[-12] - 10, own[-1]])  # where the chain pulls, m along the track
hook = cd.table(
    np.array([0, 1, lifted[0], lifted[0] + 8, lifted[1], track.length]), [1, 0, 0, 1, 1, 1], smooth=0, ends="periodic",
    name="hook",
)  # fmt: skip
for k in (1, 2, 3):
    car = m.body(f"car{k}", mass=mass, com=(0, 0, 0.5), inertia=(120.0, 380.0, 400.0))
    m.joint(f"rail{k}", cd.Curvilinear(track), m.ground, car, start=12.0 - apart * k)
    drag = lambda t, q, v: -(0.012 * mass * g * ca.tanh(v / 0.1) + 0.25 * v * ca.fabs(v))
    pull = lambda t, q, v: hook(q) * 9e3 * ca.fmax(0, ca.fmin(1, (chain + 0.3 - v) / 0.3))
    m.drive(f"drag{k}", f"rail{k}", drag)
    m.drive(f"chain{k}", f"rail{k}", pull)
    m.shape(
        car, cd.shape.Box((2.6, 1.3, 0.5), at=(0, 0, 0.35), colour=("#c1272d", "#e8b23a", "#2b5d9b")[k - 1]),
        cd.shape.Box((0.3, 1.2, 0.7), at=(-1.0, 0, 0.9), colour="black"),
        *(cd.shape.Cylinder(0.28, 0.12, at=cd.Pose((x, y, 0.1), rpy=(np.pi / 2, 0, 0))) for x in (-0.9, 0.9)
          for y in (-0.7, 0.7)),
    )  # fmt: skip
for k in (1, 2):  # rods from the tail of a car to the nose of the next
    m.distance(f"rod{k}", f"car{k}", f"car{k + 1}", length=apart - 2.8, at1=(-1.4, 0, 0.2), at2=(1.4, 0, 0.2))
rail = track(np.linspace(0, track.length, 240, endpoint=False))
sides = track.axes(np.linspace(0, track.length, 240, endpoint=False))[..., 1]
for side in (-0.6, 0.6):
    ends = rail + side * sides
    m.shape(
        m.ground, *(cd.shape.Rod(a, b, 0.08, colour="steel") for a, b in zip(ends, np.roll(ends, -1, 0), strict=True))
    )
for k in range(0, 240, 4):
    x, y, z = rail[k]
    if sides[k][0] ** 2 + sides[k][1] ** 2 > 0.5 and z > 2.5:
        m.shape(m.ground, cd.shape.Rod((x, y, 0), (x, y, z - 0.3), 0.1, colour="grey"))
model = m.build()

start, rates = cd.assemble(model, v={"rail1": chain})
run = cd.simulate(model, 45.0, start, rates, samples=901, rtol=1e-6, atol=1e-8)
run.page("roller_coaster.html", overwrite=True)

felt = np.stack([run.reaction(f"rail{k}")[:, 3:] for k in (1, 2, 3)]) / (mass * g)
print(f"track {track.length:.0f} m, lap after {np.interp(track.length, run.q[:, 0] - run.q[0, 0], run.time):.1f} s")
print(f"fastest {3.6 * run.v.max():.0f} km/h, slowest {3.6 * run.v.min():.0f} km/h")
up, side = felt[..., 2], np.abs(felt[..., 1])
print(f"felt upwards {up.min():.1f} g to {up.max():.1f} g, sideways {side.max():.2f} g")
assert run.q[-1].min() > track.length and np.ptp(run.v[0]) < 0.1
assert up.min() > 0 and up.max() < 5.5 and side.max() < 0.8
