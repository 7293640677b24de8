"""Monte-Carlo of tolerances: how far do they move a four-bar's output, and what do the bearings bear?"""

import numpy as np

import cardan as cd

model = cd.mechanisms.four_bar().build()
lengths = {"B.at[0]": 0.4, "C.at[0]": 0.9, "C.child_at[0]": 0.7, "D.at[0]": 1.0}  # m: crank, coupler, rocker, base
tolerances = {name: cd.normal(x, 0.2e-3) for name, x in lengths.items()}  # m, one standard deviation


# where the rocker stands when the crank is at 90 degrees, and what the bearing of the crank bears there, at rest
def at_rest(m: cd.Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """What is kept of a batch of k linkages at closed configurations (k, nq)."""
    load = cd.reactions(m, q, np.zeros(q.shape))[:, 0, 3:]
    return {"output": q[:, 2], "bearing": np.linalg.norm(load, axis=-1)}


study = cd.sweep(model, tolerances | {"A": cd.deg(90)}, run=at_rest, samples=1024)
print(study)
output, bearing = study["output"].values, study["bearing"].values
print(f"output {np.degrees(output.mean()):.3f} +- {np.degrees(output.std()):.4f} deg, bearing {bearing.mean():.2f} N")

# the same by derivatives: small tolerances act linearly, and their variances add up
coefficient = study.indices("output")
print(coefficient)
assert coefficient.explained > 0.999
assert np.isclose((coefficient["coefficient"] ** 2).sum(), 1, atol=0.01)

# and in motion: the largest load of each linkage within a second
moving = cd.sweep(
    model, tolerances, run=cd.Run(duration=1.0, v0={"A": 4.0}, method="rk4", step=2e-3, samples=101),
    measure={"load": cd.peak("B.reaction_force.magnitude")}, samples=256,
)  # fmt: skip
low, high = np.quantile(moving["load"], (0.01, 0.99))
print(f"largest load on B: {low:.2f} to {high:.2f} N for 98 % of the linkages")
assert 0 < high - low < 0.05 * high
