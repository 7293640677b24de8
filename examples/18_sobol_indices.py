"""Sobol's indices of a slider-crank: which tolerances does the load on the wrist pin come from?"""

import numpy as np

import cardan as cd

model = cd.mechanisms.slider_crank().build()
parameters = {
    "crank.mass": cd.uniform(0.36, 0.44),  # kg, 10 % each way
    "rod.mass": cd.uniform(0.9, 1.1),
    "slider.mass": cd.uniform(0.9, 1.1),
    "bearing.rate": cd.uniform(27.0, 33.0),  # rad/s at the start
}
study = cd.sweep(
    model,
    parameters,
    run=cd.Run(duration=0.25, method="rk4", step=5e-4, samples=101),
    measure={"load": cd.peak("wrist.reaction_force.magnitude")},
    design="saltelli",
    samples=64,
)
indices = study.indices("load")
print(indices)
study.plot_tornado("load")  # a figure; path="tornado.png" writes it

# the load grows with the square of the speed and with the mass of the slider; the crank's own mass hardly matters
order = np.argsort(-indices["total"])
assert [indices.names[k] for k in order[:2]] == ["bearing.rate", "slider.mass"]
assert np.isclose(indices["first"].sum(), 1, atol=0.1)  # small tolerances add up
