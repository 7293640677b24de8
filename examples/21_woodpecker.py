"""The woodpecker toy: a bird on a spring climbs down a pole by itself. Stops, friction that sticks, impacts.

A sleeve with some play slides on the pole, and a spring carries the bird. While the sleeve tilts it jams, and holds by
friction; in between it drops a little. At the end of its swing the beak hits the pole. Dimensions are those of
Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts (1996).
"""

import casadi as ca
import numpy as np

import cardan as cd

r0, rM, hM = 2.5e-3, 3.1e-3, 5.8e-3  # radius of the pole; radius of the hole, and half the height of the sleeve, m
lM, lG, lS, hS = 10e-3, 15e-3, 20.1e-3, 20e-3  # pole to spring, spring to bird, bird to beak, height of the beak, m

m = cd.Mechanism("woodpecker")
m.body("sleeve axis")
m.body("sleeve", mass=0.3e-3, inertia=(5e-9,) * 3)
m.body("bird", mass=4.5e-3, com=(lG, 0, 0), inertia=(7e-7,) * 3)
m.joint("fall", cd.Prismatic(axis=(0, 0, 1)), m.ground, "sleeve axis")
m.joint("tilt", cd.Revolute(axis=(0, -1, 0)), "sleeve axis", "sleeve")
m.joint("swing", cd.Revolute(axis=(0, -1, 0)), "sleeve", "bird", at=(lM, 0, 0))
m.torsion("spring", "swing", stiffness=0.0056)


def touch(name, body, point, restitution=0.0):
    """Let a point of a body meet the pole, with friction along the pole."""

    def gap(t, poses, twists):
        return (poses[0].position + poses[0].rotation @ point)[0] - r0

    def slip(t, poses, twists):
        w, v = twists[0][:3], twists[0][3:]
        return (poses[0].rotation @ (v + ca.cross(w, point)))[2]

    m.contact(name, [body], gap=gap, tangent=slip, friction=0.3, restitution=restitution)


touch("upper rim", "sleeve", (rM, 0, hM))
touch("lower rim", "sleeve", (rM, 0, -hM))
touch("beak", "bird", (lG - lS, 0, hS), restitution=0.5)

# what is seen: a pole, a sleeve with its hole, a bird
around = np.linspace(0, 2 * np.pi, 40, endpoint=False)
circle = np.column_stack([np.cos(around), np.sin(around)])
m.shape(m.ground, cd.shape.Cylinder(r0, 0.19, at=(0, 0, -0.05), colour="wood"))
m.shape("sleeve", cd.shape.Extrusion(5e-3 * circle, 2 * hM, holes=[rM * circle], colour="brass"))
m.shape("sleeve", cd.shape.Rod((5e-3, 0, 0), (lM, 0, 0), 0.7e-3, colour="steel"))
m.shape(
    "bird",
    cd.shape.Rod((0, 0, 0), (lG, 0, 0), 0.7e-3, colour="steel"),
    cd.shape.Ellipsoid((7e-3, 6e-3, 12e-3), at=cd.Pose((lG, 0, 2e-3), rpy=(0, -0.3, 0)), colour="black"),
    cd.shape.Ellipsoid((6e-3, 4.5e-3, 9e-3), at=cd.Pose((lG - 2.5e-3, 0, 1e-3), rpy=(0, -0.3, 0)), colour="white"),
    cd.shape.Sphere(6e-3, at=(9e-3, 0, 17e-3), colour="red"),
    cd.shape.Sphere(1.2e-3, at=(5e-3, -4.5e-3, 19e-3), colour="black"),
    cd.shape.Rod((4e-3, 0, 17.5e-3), (lG - lS, 0, hS), 1.2e-3, colour="yellow"),
    cd.shape.Rod((lG + 3e-3, 0, -6e-3), (lG + 9e-3, 0, -21e-3), 2e-3, colour="black"),
)
model = m.build()
start = {"tilt": -0.1, "swing": -0.35}
run = cd.simulate(model, 0.8, q0=start, samples=401)
run.page("woodpecker.html", overwrite=True)

# after two pecks the toy repeats itself: each peck takes the same time, and the same height
pecks = [event for event in run.events if event.name.startswith("beak")]
times, heights = np.array([(event.time, event.q[0]) for event in pecks]).T
period, drop = times[-1] - times[-2], heights[-2] - heights[-1]
print(f"a peck every {period:.4f} s, {1e3 * drop:.2f} mm down the pole each time")
assert np.allclose(np.diff(times)[-2:], period, rtol=1e-3) and np.allclose(-np.diff(heights)[-2:], drop, rtol=1e-2)

# impacts and friction take all of the energy that the fall gives; time stepping, an independent method, agrees
spent = run.energy[0] - run.energy[-1]
print(f"{1e3 * spent:.3f} mJ spent, {-1e3 * run.statistics['event_energy']:.3f} mJ of it in impacts")
assert run.statistics["energy_error"] < 1e-8
stepped = cd.simulate(model, 0.8, q0=start, method="moreau", step=1e-4)
print(f"down by {-1e3 * run.q[-1, 0]:.2f} mm, by time stepping {-1e3 * stepped.q[-1, 0]:.2f} mm")
assert np.isclose(run.q[-1, 0], stepped.q[-1, 0], rtol=0.03)
