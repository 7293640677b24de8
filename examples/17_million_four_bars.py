"""A study of four-bars that survives: `python 17_million_four_bars.py 1000000 --workers 4 --store study.zarr`.

Stop it with Ctrl-C, kill a worker or the whole program, and call it again: it goes on where it stood.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import cardan as cd


def main() -> None:
    """Compute the study, twice: the second time there is nothing left to compute."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("members", nargs="?", type=int, default=256)
    arguments.add_argument("--workers", type=int, default=None, help="local processes; this process by default")
    arguments.add_argument("--store", type=Path, default=Path(tempfile.mkdtemp()) / "study.zarr")
    given = arguments.parse_args()

    model = cd.mechanisms.four_bar().build()
    parameters = {
        "crank.mass": cd.normal(0.8, 0.05),  # kg
        "coupler.mass": cd.normal(1.8, 0.1),
        "B.at[0]": cd.uniform(0.38, 0.42),  # m, length of the crank: loops are closed for each member
        "A.rate": cd.uniform(1.0, 5.0),  # rad/s, at the start
    }
    settings = {
        "run": cd.Run(duration=1.0, method="rk4", step=1e-3, samples=101),
        "measure": {"load": cd.peak("A.reaction_force.magnitude"), "end": cd.final("A.coordinate")},
        "samples": given.members,
        "store": given.store,
        "workers": given.workers,
    }
    study = cd.sweep(model, parameters, **settings)
    print(study)
    again = cd.sweep(model, parameters, **settings)  # nothing is computed twice
    assert again.dataset.identical(study.dataset)

    load = study["load"].values
    assert study.status.complete and np.isfinite(load[~study.failed]).all()
    print(f"load on A: {np.nanquantile(load, 0.05):.1f} to {np.nanquantile(load, 0.95):.1f} N (5 to 95 %)")
    faster = study["load"].where(study["A.rate"] > 4).mean() > study["load"].where(study["A.rate"] < 2).mean()
    assert faster


if __name__ == "__main__":
    main()
