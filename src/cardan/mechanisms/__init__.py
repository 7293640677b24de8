"""The catalogue: small mechanisms with known facts, for teaching, tests and trials.

Each function returns a `Mechanism`; build it with `.build()`. Lengths are in m, masses in kg, angles in rad. The joints
of closed mechanisms have a `start` from which they are assembled: `model.start()` is a closed position.

"Kutzbach" in a docstring is the count `6 (bodies - joints) + sum of the joints' freedoms`, in space. If the mechanism
has more freedoms, the difference is the number of redundant constraints.
"""

from __future__ import annotations

from collections.abc import Callable

from cardan.mechanisms.open_chains import cart_pole, chain, double_pendulum, pendulum, random_inertia, two_body
from cardan.mechanisms.planar_linkages import (
    andrews,
    five_bar,
    four_bar,
    n_four_bar,
    parallelogram,
    rack_and_pinion,
    scotch_yoke,
    slider_crank,
    sundials_slider_crank,
)
from cardan.mechanisms.spatial_linkages import (
    bennett,
    cardan_joint,
    drive_line,
    rscr,
    sarrus,
    stewart_platform,
    two_hinge_door,
)
from cardan.model.builder import Mechanism

__all__ = [
    "CATALOGUE", "andrews", "bennett", "cardan_joint", "cart_pole", "chain", "double_pendulum", "drive_line",
    "five_bar", "four_bar", "n_four_bar", "parallelogram", "pendulum", "rack_and_pinion", "random_inertia", "rscr",
    "sarrus", "scotch_yoke", "slider_crank", "stewart_platform", "sundials_slider_crank", "two_body", "two_hinge_door",
]  # fmt: skip

CATALOGUE: dict[str, Callable[[], Mechanism]] = {
    make.__name__: make
    for make in (
        pendulum, double_pendulum, cart_pole, two_body, four_bar, slider_crank, five_bar, parallelogram, scotch_yoke,
        rack_and_pinion, n_four_bar, andrews, sundials_slider_crank, two_hinge_door, cardan_joint, drive_line, rscr,
        bennett, sarrus, stewart_platform,
    )
}  # fmt: skip
"""The mechanisms by name."""
