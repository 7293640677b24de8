"""Modes and linear models: a cantilever as a chain of links, and a linkage for control.

A beam of N equal links with springs in the hinges between them converges to Euler and Bernoulli's beam.
"""

import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

LENGTH, MASS, STIFFNESS = 2.0, 3.0, 40.0  # m, kg, EI in N m^2


def cantilever(links: int) -> cd.Model:
    """Thin rods along x; a hinge's spring is that of a link's length of beam, half of it at the wall."""
    h, m = LENGTH / links, cd.Mechanism("cantilever", gravity=(0, 0, 0))
    for k in range(links):
        rod = MASS / links * h**2 / 12
        m.body(f"link {k}", mass=MASS / links, com=(h / 2, 0, 0), inertia=(0, rod, rod))
        parent, at = (f"link {k - 1}", (h, 0, 0)) if k else ("ground", (0, 0, 0))
        m.joint(f"hinge {k}", cd.Revolute(axis=(0, 1, 0)), parent, f"link {k}", at=at)
        m.torsion(f"spring {k}", f"hinge {k}", stiffness=STIFFNESS / h * (1 if k else 2))
    return m.build()


# the first two frequencies of a clamped beam: (beta L)^2 sqrt(EI / (rho A L^4))
roots = np.array([1.8751040687119611, 4.694091132974175])
exact = roots**2 * np.sqrt(STIFFNESS / (MASS / LENGTH * LENGTH**4)) / (2 * np.pi)
errors = []
for links in (3, 6):
    found = cd.modes(cantilever(links))
    errors.append(np.abs(found.natural_frequencies[:2] / exact - 1))
    print(f"{links} links: {found.natural_frequencies[:2]} Hz, off by {errors[-1]}")
print(found)
assert (errors[1] < 0.05).all()
assert (errors[0] / errors[1] > 3).all()  # second order in the length of a link

# how the frequencies depend on the springs, exactly: 2 sum_k k df/dk = f, since all together they scale as its root
free = cantilever(2).free(*(f"spring {k}.stiffness" for k in range(2)))
stiffer = cd.modes(free)
by_spring = stiffer.derivatives()[::2].imag / (2 * np.pi)
assert np.allclose(2 * by_spring @ free.parameters.nominal, stiffer.natural_frequencies)

# a four-bar that its crank holds, as a linear model: drive in, rocker and coupler out
model = four_bar().build()
q, v = cd.assemble(model)
tau = cd.inverse_dynamics(model, q, v, np.zeros(model.nv), driven=["A"])
linear = cd.linearise(model, (q, v, tau), inputs="tau.A", outputs=["q.D", "position.coupler"], coordinates=["A"])
print(linear)
A, B, C, D = linear
slow = linear.transfer(0.0)[:, 0]  # of a constant change of the drive
assert np.allclose(slow, (D - C @ np.linalg.solve(A, B))[:, 0])
