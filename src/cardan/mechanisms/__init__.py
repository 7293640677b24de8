"""The catalogue: small mechanisms with known facts, for teaching, tests and trials.

Each function returns a `Mechanism`; build it with `.build()`. Lengths are in m, masses in kg, angles in rad. The joints
of closed mechanisms have a `start` from which they are assembled: `model.start()` is a closed position.

"Kutzbach" in a docstring is the count `6 (bodies - joints) + sum of the joints' freedoms`, in space. If the mechanism
has more freedoms, the difference is the number of redundant constraints.
"""

from __future__ import annotations

from collections.abc import Callable

from cardan.mechanisms.gears import differential, planetary_gear
from cardan.mechanisms.machines import double_wishbone, excavator, quick_return, scissor_lift, v_engine
from cardan.mechanisms.open_chains import (
    cart_pole,
    chain,
    double_pendulum,
    gyroscope,
    pendulum,
    random_inertia,
    scara,
    two_body,
)
from cardan.mechanisms.path_linkages import (
    hoeken,
    jansen_leg,
    pantograph,
    peaucellier,
    stephenson_six_bar,
    watt_six_bar,
)
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
from cardan.mechanisms.repeated import lattice, net, track
from cardan.mechanisms.rolling import (
    ball_on_turntable,
    cam_follower,
    chaplygin_sleigh,
    rolling_disc,
    rzeppa,
    snakeboard,
    vehicle,
)
from cardan.mechanisms.spatial_linkages import (
    bennett,
    cardan_joint,
    delta_robot,
    drive_line,
    rscr,
    sarrus,
    stewart_platform,
    two_hinge_door,
)
from cardan.model.builder import Mechanism

__all__ = [
    "CATALOGUE", "andrews", "ball_on_turntable", "bennett", "cam_follower", "cardan_joint", "cart_pole", "chain",
    "chaplygin_sleigh", "delta_robot", "differential", "double_pendulum", "double_wishbone", "drive_line", "excavator",
    "five_bar", "four_bar", "gyroscope", "hoeken", "jansen_leg", "lattice", "n_four_bar", "net", "pantograph",
    "parallelogram", "peaucellier", "pendulum", "planetary_gear", "quick_return", "rack_and_pinion", "random_inertia",
    "rolling_disc", "rscr", "rzeppa", "sarrus", "scara", "scissor_lift", "scotch_yoke", "slider_crank", "snakeboard",
    "stephenson_six_bar", "stewart_platform", "sundials_slider_crank", "track", "two_body", "two_hinge_door",
    "v_engine", "vehicle", "watt_six_bar",
]  # fmt: skip

CATALOGUE: dict[str, Callable[[], Mechanism]] = {
    make.__name__: make
    for make in (
        pendulum, double_pendulum, cart_pole, two_body, gyroscope, scara, four_bar, slider_crank, five_bar,
        parallelogram, scotch_yoke, rack_and_pinion, n_four_bar, andrews, sundials_slider_crank, hoeken, peaucellier,
        pantograph, jansen_leg, watt_six_bar, stephenson_six_bar, quick_return, scissor_lift, v_engine, excavator,
        planetary_gear, differential, two_hinge_door, cardan_joint, drive_line, rscr, bennett, sarrus, double_wishbone,
        delta_robot, stewart_platform, lattice, net, track, rolling_disc, chaplygin_sleigh, snakeboard,
        ball_on_turntable, vehicle, cam_follower, rzeppa,
    )
}  # fmt: skip
"""The mechanisms by name."""
