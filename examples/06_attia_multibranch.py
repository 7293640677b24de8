"""A multi-branch closed-loop mechanism as particles, with all its numbers: masses, places, equations, reactions."""

import numpy as np

import cardan as cd

CUT = ["D", "F"]


def shown(x: float) -> str:
    """Five decimals, without the sign of a zero."""
    return f"{round(x, 5) + 0.0:.5f}"


def multibranch() -> cd.Mechanism:
    """A crank drives a plate with three pins; a rocker holds the plate, and a rod from it moves a slider.

    Built with `cut=CUT` the plate carries both, so that its tree branches there.
    """
    m = cd.Mechanism("multibranch", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 0.6, 0.2), ("rocker", 1.0, 0.5), ("rod", 0.8, 0.5)):
        m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=cd.inertia.rod(mass, length, axis="x"))
    m.body("plate", mass=2.0, com=(0.28, 0.1, 0), inertia=np.diag([0.03, 0.05, 0.08]))
    m.body("slider", mass=1.5, com=(0, 0.1, 0), inertia=cd.inertia.box(1.5, (0.1, 0.2, 0.1)))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    m.joint("B", cd.Revolute(), "crank", "plate", at=(0.2, 0, 0), start=-0.8)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(0.75, -0.15, 0), child_at=(0.5, 0, 0))
    m.joint("C", cd.Revolute(), "plate", "rocker", at=(0.6, 0, 0), start=-1.5)
    m.joint("E", cd.Revolute(), "plate", "rod", at=(0.25, 0.3, 0), start=0.9)
    m.joint("G", cd.Prismatic(axis=(0, 1, 0)), m.ground, "slider", at=(0.4, 0, 0), start=0.95)
    m.joint("F", cd.Revolute(), "rod", "slider", at=(0.5, 0, 0))
    return m


def main() -> None:
    """Print every number; the accelerations and reactions are checked against the other formulations."""
    model = multibranch().build(cut=CUT)
    rate = np.zeros(model.nv)
    rate[model.v_slice("A")] = 3.0
    q, v = cd.assemble(model, model.start(), rate)
    tau = np.zeros(model.nv)
    tau[model.v_slice("A")] = 5.0
    print(model.report())

    print("\nThe equivalent particles, AT(1):")
    found = model.particles()
    print(found)
    print("\nPlaces of particles 1, 2, 3 in the plane, m:")
    for name, places in zip(found.bodies, found.positions(q), strict=True):
        print(f"{name:>8}", *(f"({shown(x)}, {shown(y)})" for x, y in places))

    eq = cd.equations(model, formulation="points")
    x, xd = eq.project(cd.body_poses(model, q), cd.body_twists(model, q, v))
    A, b = eq.momentum_equations(x, xd, tau)
    solved = np.linalg.solve(A, b)
    symbols = eq.sympy(style="AT", drives=["A"])
    print("\nThe equations A (x'', mu) = b; unknowns with their values:")
    for symbol, value in zip(symbols.unknowns, solved, strict=True):
        print(f"{symbol!s:>15} {shown(value):>11}  {symbols.meanings[symbol].text}")
    for k, row in enumerate(eq.momentum_rows):
        terms = [
            f"{'+' if a > 0 else ''}{shown(a)} {s}"
            for a, s in zip(A[k], symbols.unknowns, strict=True)
            if abs(a) > 1e-12
        ]
        print(f"{row}:\n    {' '.join(terms)} = {shown(b[k])}")
    rocker = eq.momentum_rows.index("angular momentum of all that joint 'C' carries, about it")
    left, right = symbols.equations[rocker].args
    print("\nThe rocker in symbols, the equation of AT 2.4 with the unknown force of the cut D:")
    print(f"    {left} =\n    {right}")

    print("\nAccelerations of the joints, rad/s^2 and m/s^2:")
    wanted = cd.forward_dynamics(model, q, v, tau)
    for name in ("spatial", "newton_euler", "absolute", "relative", "points"):
        a = cd.forward_dynamics(model, q, v, tau, formulation=name)
        assert np.allclose(a, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max()), name
        print(f"{name:>14}", *(f"{shown(x):>11}" for x in a))
    poses, twists = cd.body_poses(model, q), cd.body_twists(model, q, v)
    rates = cd.body_accelerations(model, q, v, wanted)
    plate = model.body_names.index("plate")  # its origin is the pin B, the end of the crank's line
    turn, (_, _, w, *velocity) = poses[plate, :2, :2], twists[plate][:5]
    pin = turn @ (rates[plate, 3:5] + w * np.array([-velocity[1], velocity[0]]))
    assert np.allclose(solved[:2], pin, rtol=1e-10)

    print("\nReactions in the plane, on the child in its axes: couple N m, force x and y N:")
    forces = cd.reactions(model, q, v, tau, formulation="points")
    others = np.einsum("jab,jb->ja", cd.in_plane(model), cd.reactions(model, q, v, tau))
    assert np.allclose(forces, others, rtol=0, atol=1e-10 * np.abs(others).max())
    for name, f in zip(model.joint_names, forces, strict=True):
        print(f"{name:>3} ", *(f"{shown(part):>11}" for part in f[2:5]))


if __name__ == "__main__":
    main()
