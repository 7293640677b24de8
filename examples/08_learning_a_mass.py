"""The masses of a linkage learned from its measured motion, with torch; needs the extra `torch`."""

import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

try:
    import torch
except ImportError:
    print("skipped: the extra 'torch' is not installed")
    raise SystemExit(0) from None

# The truth, and measurements of it: accelerations at random states under known torques, with noise.
model = four_bar().build().free("crank.mass", "coupler.mass", "rocker.mass")
true = torch.tensor([1.1, 2.3, 0.9], dtype=torch.float64)
f = cd.torch_function(model, "forward_dynamics")  # (q, v, tau, p) -> a; p are the masses, kg

rng = np.random.default_rng(0)
guess = np.tile(model.start(), (200, 1))
guess[:, 0] += rng.uniform(-0.5, 0.5, 200)
rates = np.zeros((200, 3))
rates[:, 0] = rng.uniform(-3, 3, 200)
q, v = map(torch.tensor, cd.assemble(model, guess, rates, hold=["A"]))
tau = torch.tensor(rng.uniform(-20, 20, (200, 3)))
measured = f(q, v, tau, true)
measured += 0.001 * measured.std() * torch.tensor(rng.standard_normal((200, 3)))

# The gradient by the masses comes from a compiled kernel, for all states in one call.
masses = torch.tensor(model.parameters.nominal, requires_grad=True)
print("nominal:", masses.detach().numpy())
optimizer = torch.optim.LBFGS([masses], max_iter=50, line_search_fn="strong_wolfe")


def loss() -> torch.Tensor:
    optimizer.zero_grad()
    error = torch.mean((f(q, v, tau, masses) - measured) ** 2) / measured.var()
    error.backward()
    return error


optimizer.step(loss)
print("learned:", masses.detach().numpy(), " true:", true.numpy())
assert torch.allclose(masses.detach(), true, rtol=0.02)

# Second derivatives tell how well the data determine the masses.
curvature = torch.func.hessian(lambda p: torch.mean((f(q, v, tau, p) - measured) ** 2))(masses.detach())
print("condition of the curvature:", float(torch.linalg.cond(curvature)))
assert torch.linalg.eigvalsh(curvature).min() > 0
