"""A four-bar that draws a straight line, its balance, and which of its dimensions matter most."""

import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

# Hoecken's linkage: crank 1, base 2, coupler and rocker 2.5, the point as far again along the coupler
hoecken = {"B.at": 0.1, "C.at": 0.25, "C.child_at": 0.25, "D.at": 0.2}
start = four_bar(base=0.22, crank=0.09, coupler=0.28, rocker=0.24, angle=np.pi).build()
free = start.free(*hoecken)

# nine points of its straight line, each 20 degrees of the crank after the last
true = four_bar(base=0.2, crank=0.1, coupler=0.25, rocker=0.25, angle=np.pi).build()
angles = np.pi + np.radians(np.linspace(-80, 80, 9))
q = np.array([cd.assemble(true, [angle, *cd.assemble(true)[0][1:]], hold="A")[0] for angle in angles])
pose = cd.frame_pose(true, q, "coupler")
points = pose[:, :3, 3] + pose[:, :3, :3] @ [0.5, 0, 0]
height = points[:, 1]
print(f"line of {np.ptp(points[:, 0]):.3f} m, straight to {np.ptp(height):.1e} m")

found = cd.synthesise(
    free, cd.Target("coupler", position=points, point=(0.5, 0.02, 0), along="xy"), input="A", at=angles,
    free_point=True, along=dict.fromkeys(hoecken, "x"), bounds=dict.fromkeys(hoecken, (0.05, 0.5)), motion="turn",
    grashof="crank-rocker", starts=4,
)  # fmt: skip
print(found)
assert np.allclose([found.values[name][0] for name in hoecken], list(hoecken.values()), atol=1e-9)
assert np.allclose(found.best.points[0], [0.5, 0, 0], atol=1e-9)

# counterweights on crank and rocker: no shaking force at any speed
balanced = cd.balance(found.model, shaking="force", counterweights={"crank": 1.0, "rocker": 2.0})
print(balanced)
v, a = cd.steady_motion(balanced.model, balanced.q, "A", speed=20.0)
force = cd.shaking_wrench(balanced.model, balanced.q, v, a)[:, 3:]
assert np.abs(force).max() < 1e-9

# tolerances of 0.1 mm: which dimension moves the point most across its line, in the middle of it?
across = lambda m, q: {"across": (cd.frame_pose(m, q, "coupler") @ [0.5, 0, 0, 1])[:, 1]}
ranges = {f"{name}[0]": cd.uniform(x - 1e-4, x + 1e-4) for name, x in hoecken.items()}
study = cd.sweep(free, ranges | {"A": angles[4]}, run=across, samples=1024)
found = study.indices()
print(found)
assert found.explained > 0.999  # small tolerances act linearly
