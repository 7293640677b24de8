"""Write docs/gallery.md and its pictures, one for each mechanism: `python docs/make_gallery.py [NAME ...]`.

`page_of(name)` is the page of a mechanism in motion, for any browser; `make docs` puts all of them on the site.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from PIL import Image

import cardan as cd
from cardan.mechanisms import CATALOGUE
from cardan.results.page.page import html
from cardan.results.render.animation import Animation

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "figures" / "gallery"
SIZE, COLUMNS, FRAMES = (400, 300), 3, 240
Law = Callable[[Any], Any]


@dataclass(frozen=True)
class Motion:
    """How a mechanism is shown: for how long (s), from which start, with which rates, and driven by which laws of time.

    The picture is taken at the moment `at`, a part of the duration, with the paths of `trace` up to it.
    """

    duration: float = 4.0
    start: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, Any] = field(default_factory=dict)
    drives: Mapping[str, Law] = field(default_factory=dict)
    trace: tuple[Any, ...] = ()
    view: tuple[float, float] | None = None
    at: float = 1.0


def turn(start: float, speed: float = 2 * np.pi / 4) -> Law:
    """At constant speed, rad/s: in four seconds once around."""
    return lambda t: start + speed * t


def swing(middle: float, size: float, phase: float = 0.0, beats: int = 1) -> Law:
    """To and fro, `beats` times in four seconds."""
    return lambda t: middle + size * ca.sin(2 * np.pi * beats * t / 4 + phase)


MOTIONS = {
    "pendulum": Motion(start={"pivot": 1.0}, trace=(("rod", (0, 0, -1)),), at=0.2),
    "double_pendulum": Motion(6.0, start={"pivot": 1.8, "elbow": 0.9}, trace=(("lower", (0, 0, -1)),), at=0.5),
    "cart_pole": Motion(3.0, start={"hinge": 0.4}, at=0.25),
    "two_body": Motion(2.0, rates={"root": (0.2, 0.9, 0.3, 0.0, 0.0, 0.0), "hinge": 2.0}, at=0.1),
    "gyroscope": Motion(6.0, rates={"spin": 60.0}, trace=("weight",), at=0.5),
    "scara": Motion(drives={"shoulder": swing(0.5, 0.7), "elbow": swing(0.9, 0.8, 1.0),
                            "lift": swing(0.02, 0.06, 0.0, 2), "wrist": swing(0, 1.5)}, trace=("tool",), at=0.3),
    "four_bar": Motion(drives={"A": turn(1.0)}, trace=(("coupler", (0.45, 0, 0)),)),
    "slider_crank": Motion(drives={"bearing": turn(0.8)}),
    "five_bar": Motion(drives={"A": swing(1.8, 0.2), "E": swing(1.1, 0.2, 1.5)}, trace=(("left link", (0.7, 0, 0)),)),
    "parallelogram": Motion(drives={"A1": swing(1.2, 0.8)}, trace=("coupler",), at=0.4),
    "scotch_yoke": Motion(drives={"bearing": turn(0.7)}),
    "rack_and_pinion": Motion(0.9, rates={"bearing": 25.0}),
    "n_four_bar": Motion(2.2, rates={"A0": 1.0}, at=0.5),
    "andrews": Motion(0.03, trace=(("K2", (-28e-3, 0, 0)),), at=0.6),
    "sundials_slider_crank": Motion(10.0, at=0.1),
    "hoeken": Motion(drives={"A": turn(2.0)}, trace=("pen",), at=1.0),
    "peaucellier": Motion(drives={"A": swing(0.0, 1.1)}, trace=("pen",), at=0.4),
    "pantograph": Motion(drives={"O": swing(2.2, 0.25), "C": swing(0.7 - np.pi - 2.2, 0.25, 1.6)},
                         trace=("pen", "stylus")),
    "jansen_leg": Motion(drives={"O": turn(2.0)}, trace=("foot",)),
    "watt_six_bar": Motion(drives={"A": turn(1.0)}, trace=(("output", (0.25, 0, 0)),)),
    "stephenson_six_bar": Motion(drives={"A": turn(1.0)}, trace=(("link", (0, 0, 0)),)),
    "quick_return": Motion(drives={"main": turn(0.87)}, at=0.9),
    "scissor_lift": Motion(drives={"base": swing(0.6, 0.4)}, at=0.1),
    "v_engine": Motion(0.2, rates={"main": 20 * np.pi}, view=(-68.0, 16.0), at=0.8),
    "excavator": Motion(drives={"swing": swing(0.3, 0.4, 1.0), "boom": swing(0.7, 0.15), "stick": swing(-1.8, 0.3, 2.0),
                                "bucket": swing(-0.7, 0.3, 4.0)}, trace=("tip",)),
    "planetary_gear": Motion(drives={"ring": turn(0.0, 0.0), "sun": turn(0.0, 2 * np.pi)}, at=0.1),
    "differential": Motion(rates={"case": 2.0, "left": 3.0}, at=0.2),
    "two_hinge_door": Motion(rates={"lower": 0.6}, view=(-50.0, 20.0), at=0.4),
    "cardan_joint": Motion(rates={"input": np.pi}, at=0.2),
    "drive_line": Motion(rates={"input": np.pi}, at=0.2),
    "rscr": Motion(drives={"crank": swing(0.0, 0.6)}, at=0.6),
    "bennett": Motion(drives={"A": swing(1.6, 0.9)}, at=0.1),
    "sarrus": Motion(drives={"foot x": swing(0.0, 0.35)}, at=0.7),
    "double_wishbone": Motion(1.5, rates={"axle": 20.0}, view=(200.0, 18.0), at=0.3),
    "delta_robot": Motion(drives={f"hip{k}": swing(0.0, 0.35, 2.1 * k) for k in (1, 2, 3)}, trace=("platform",)),
    "stewart_platform": Motion(drives={f"slider{k}": swing(1.18, 0.12, 2.1 * (k // 2)) for k in range(1, 7)}, at=0.6),
    "lattice": Motion(3.0, at=0.6),
    "net": Motion(2.0, rates={"A0_0": (0.0, 0.0, 6.0)}, view=(-60.0, 18.0), at=0.3),
    "track": Motion(2.0, rates={"axle": 6.0}, at=0.3),
    "rolling_disc": Motion(3.0, rates={"float": (-0.3, 6.0, 1.2, 1.8, 0.09, 0.0)}, trace=("disc",), view=(-60.0, 22.0),
                           at=0.4),
    "chaplygin_sleigh": Motion(6.0, rates={"ice": (0.3, 0.0, 2.5)}, trace=("sleigh",), view=(-60.0, 35.0), at=0.6),
    "snakeboard": Motion(drives={"rider": swing(0.0, 1.2), "front": swing(0.0, 0.5, 0.0)}, trace=("board",),
                         view=(-60.0, 35.0), at=0.9),
    "ball_on_turntable": Motion(drives={"axle": turn(0.0, 3.5)}, trace=("ball",), view=(-60.0, 40.0), at=0.9),
    "vehicle": Motion(2.5, rates={"rear left": 14.0, "column": 6.0}, trace=("rear left", "rear right"),
                      view=(-50.0, 25.0), at=0.9),
    "cam_follower": Motion(1.0, rates={"shaft": 12.0}, at=0.3),
    "rzeppa": Motion(rates={"input": np.pi}, at=0.2),
}  # fmt: skip


TITLES = {
    "pendulum": ("Pendulum", "A uniform rod, hung from one end."),
    "double_pendulum": ("Double pendulum", "Two equal rods, end to end: chaos."),
    "cart_pole": ("Cart and pole", "A pole on a cart on rails, upright at zero."),
    "two_body": ("Two bodies and a hinge", "Floating in space: the problem of Featherstone's notes."),
    "gyroscope": ("Gyroscope", "A rotor in two gimbals. With a weight on its axis it precesses."),
    "scara": ("SCARA robot", "Two hinges, and a quill that slides and turns."),
    "four_bar": ("Four-bar", "Crank, coupler and rocker, with the curve of a point of its coupler."),
    "slider_crank": ("Slider-crank", "Crank, connecting rod and slider; also with ball and universal joint."),
    "five_bar": ("Five-bar", "Two cranks move one point in the plane."),
    "parallelogram": ("Parallelogram", "Three equal cranks: the coupler does not turn, and one crank is redundant."),
    "scotch_yoke": ("Scotch yoke", "A crank in a slot makes a pure cosine."),
    "rack_and_pinion": ("Rack and pinion", "Coupled by their teeth."),
    "n_four_bar": ("Windows", "Four-bars in a row, a benchmark of the IFToMM library, singular when flat."),
    "andrews": ("Andrews' squeezer", "Seven bodies, a spring and a motor: the test problem for integrators."),
    "sundials_slider_crank": ("Slider-crank of SUNDIALS", "With spring and damper, and a published solution."),
    "hoeken": ("Hoeken's linkage", "Half of its curve is almost straight, drawn at almost constant speed."),
    "peaucellier": ("Peaucellier's cell", "Seven bars that draw an exact straight line."),
    "pantograph": ("Pantograph", "The pen copies what the stylus draws, twice as large."),
    "jansen_leg": ("Jansen's leg", "One crank, eleven lengths, and a foot that walks."),
    "watt_six_bar": ("Watt's six-bar", "Two four-bars in series: the output turns as the rocker does."),
    "stephenson_six_bar": ("Stephenson's six-bar", "A dwell: the output rests for half a turn of the crank."),
    "quick_return": ("Quick return", "Of a shaping machine: slow to cut, twice as fast to return."),
    "scissor_lift": ("Scissor lift", "Crossed bars lift a platform level and straight."),
    "v_engine": ("V-twin engine", "Two pistons at a right angle, on one crank pin."),
    "excavator": ("Excavator", "House, boom, stick and bucket, with three hydraulic cylinders and a four-bar."),
    "planetary_gear": ("Planetary gear", "Sun, ring and carrier: with the ring held, four to one."),
    "differential": ("Differential", "The shafts share twice the speed of the case."),
    "two_hinge_door": ("Door on two hinges", "Five constraints too many, and it opens."),
    "cardan_joint": ("Cardan joint", "Two shafts at an angle: the output is not uniform."),
    "drive_line": ("Drive line", "Two Cardan joints, whose errors cancel."),
    "rscr": ("RSCR linkage", "A four-bar in space: hinge, ball, cylinder, hinge."),
    "bennett": ("Bennett's linkage", "Four hinges, none parallel: it moves against every count."),
    "sarrus": ("Sarrus' linkage", "Hinges alone, and the plate rises straight."),
    "double_wishbone": ("Double wishbone", "A front wheel with steering rack and spring."),
    "delta_robot": ("Delta robot", "Three arms with parallelograms: the platform never turns."),
    "stewart_platform": ("Stewart platform", "Six legs, six freedoms."),
    "lattice": ("Lattice", "Windows of pinned bars, side by side and one below the other: as many as you like."),
    "net": ("Net", "Bars on balls, with springs across the meshes; as large as you like."),
    "track": ("Track", "Hinged shoes around a driving wheel and an idler; two hundred if you like."),
    "rolling_disc": ("Rolling disc", "A coin on a table: it rolls, leans and turns, and never slips."),
    "chaplygin_sleigh": ("Chaplygin's sleigh", "One blade on ice: it ends up running straight, without friction."),
    "snakeboard": ("Snakeboard", "Turn the rider and the trucks in step, and it moves on."),
    "ball_on_turntable": ("Ball on a turntable", "It goes round in circles, at two sevenths of the table's rate."),
    "vehicle": ("Vehicle", "Four wheels that roll, with Ackermann's steering."),
    "cam_follower": ("Cam and follower", "A roller on a cam, with a spring that presses it on."),
    "rzeppa": ("Rzeppa's joint", "Two shafts at an angle that turn alike."),
}


def run_of(name: str) -> cd.Trajectory:
    """The mechanism in motion."""
    motion, m = MOTIONS[name], CATALOGUE[name]()
    for joint, law in motion.drives.items():
        m.motion(f"motion of {joint}", joint, law)
    model = m.build()
    q, v = model.start(), np.zeros(model.nv)
    for joint, value in motion.start.items():
        q[model.q_slice(joint)] = value
    for joint, rate in motion.rates.items():
        v[model.v_slice(joint)] = rate
    q, v = cd.assemble(model, q, v, hold=tuple(motion.rates))
    return cd.simulate(model, motion.duration, q, v, samples=FRAMES + 1)


def picture_of(run: cd.Trajectory, motion: Motion) -> Image.Image:
    """A moment of the run, in light and shadow, with the paths of some points."""
    poses = np.asarray(cd.body_poses(run.model, run.q))
    trace = [(point, (0, 0, 0)) if isinstance(point, str) else point for point in motion.trace]
    seen = Animation(run, run.time, run.q, run.v, poses, poses, SIZE, motion.view, trace, False)
    return Image.fromarray(seen.picture(round(motion.at * FRAMES))).quantize(96, dither=Image.Dither.NONE)


def page_of(name: str) -> str:
    """The page of a mechanism in motion: one HTML file that also simulates."""
    return html(run_of(name), simulate=True)


def cell(name: str) -> str:
    """One field of the table: picture, name, what it is, its page and file."""
    title, words = TITLES[name]
    links = f"`cardan view {name}` · [file](../src/cardan/data/mechanisms/{name}.yaml)"
    picture = f'<img src="figures/gallery/{name}.png" width="270" alt="{title}">'
    return f"{picture}<br>**{title}**<br>{words}<br>{links}"


def page() -> str:
    """The whole page."""
    names = list(CATALOGUE)
    lines = [
        "# Gallery",
        "",
        "<!-- made by docs/make_gallery.py; do not edit -->",
        "",
        f"The {len(names)} mechanisms of the catalogue, each drawn by Cardan in motion. `cd.mechanisms.four_bar()` "
        "returns one to build on, `cardan mechanisms four_bar` describes it, `cardan view four_bar` opens it in a "
        "browser; "
        "on the site of `make docs` that command is a link to a page that simulates. The file is the same mechanism in "
        "[the format of Cardan](format.md), and `cardan mechanisms --write FOLDER` writes all of them. What each is "
        "known for is in [the reference](reference.md#the-catalogue), and tested.",
        "",
        "| | | |",
        "|---|---|---|",
    ]
    for k in range(0, len(names), COLUMNS):
        cells = [cell(name) for name in names[k : k + COLUMNS]]
        lines += ["| " + " | ".join([*cells, *[""] * (COLUMNS - len(cells))]) + " |"]
    return "\n".join(lines) + "\n"


def engine() -> None:
    """The moving picture of the README: one turn of the V-twin, again and again."""
    m, period = CATALOGUE["v_engine"](), 0.1
    m.motion("turn", "main", lambda t: 0.4 + 2 * np.pi / period * t)
    run = cd.simulate(m.build(), period * 39 / 40, samples=40)  # the first picture follows the last
    video = DOCS / "figures" / "engine.gif"
    run.video(video, size=(600, 360), fps=20, speed=period / 2, view=(-68, 16), title="", overwrite=True)


def main(names: list[str]) -> None:
    """Make the pictures of some mechanisms, by default all, with that of the README, and the page."""
    PICTURES.mkdir(exist_ok=True)
    if not names:
        engine()
    for name in names or CATALOGUE:
        picture_of(run_of(name), MOTIONS[name]).save(PICTURES / f"{name}.png", optimize=True)
        print(name)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
