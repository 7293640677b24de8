"""Write the figures of docs/pictures.md and of some other pages: `python docs/make_pictures.py`."""

from __future__ import annotations

import io
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import cardan as cd
from cardan.mechanisms import CATALOGUE

FIGURES = Path(__file__).with_name("figures")
LARGEST = 100_000  # bytes a file
COLUMNS, CELL = 5, (300, 240)  # of the sheet with the whole catalogue, pixels


def main() -> None:
    """Make every figure."""
    four_bar()
    carts()
    spatial()
    particles()
    kinematics()
    linear()
    catalogue()
    equilibria()
    identification()
    synthesis()
    linkages()
    shapes()


def shapes() -> None:
    """The first block of docs/shapes.md."""
    text = Path(__file__).with_name("shapes.md").read_text(encoding="utf-8")
    block = text.partition("```python\n")[2].partition("```")[0].partition("model.draw(")[0]
    made: dict[str, Any] = {}
    exec(block, made)
    made["model"].draw(view=(35, 50)).savefig(FIGURES / "shapes.png", dpi=90)


def four_bar() -> None:
    """A closed loop: panels, phase, positions."""
    model = CATALOGUE["four_bar"]().build()
    turns = cd.Event("crank turns back", lambda s: s.rate("A"), action="record")
    run = cd.simulate(model, 2.0, samples=401, events=[turns])
    write("four-bar", model.draw(names=True))
    write("four-bar-plot", run.plot("coordinates", "energy", "residuals", reactions=["B"]))
    write("four-bar-phase", run.plot_phase("A", "D", angle="deg"))
    write("four-bar-strobe", run.draw(np.linspace(0, 1, 9), trace=[("coupler", model.body("coupler").com)]))
    video_frame(run)


def video_frame(run: cd.Trajectory) -> None:
    """The last frame of a video, with a trace and forces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.gif"
        run.video(path, size=(800, 450), fps=10, trace=[("coupler", (0.3, 0.1, 0))], forces=["B", "C"])
        with Image.open(path) as video:
            video.seek(video.n_frames - 1)
            keep("video-frame", video.convert("RGB").quantize(128, dither=Image.Dither.NONE))


def carts() -> None:
    """A batch of carts with friction: a band, and the balance of energy."""
    m = CATALOGUE["cart_pole"]()
    m.friction("rail friction", "rail", viscous=0.5)
    m.drive("motor", "rail", lambda t, q, v: 3.0)
    q0 = np.random.default_rng(0).normal([0.0, 0.6], 0.1, (200, 2))
    runs = cd.simulate(m.build(), 3.0, q0, samples=301)
    write("carts-plot", runs.plot("coordinates", "energy"))
    write("carts-power", runs[0].plot_power())


def spatial() -> None:
    """A platform on six legs."""
    write("stewart-platform", CATALOGUE["stewart_platform"]().build().draw())


def kinematics() -> None:
    """Branches of a linkage over its driven coordinate, and where a point can be."""
    found = cd.branches(CATALOGUE["four_bar"]().build(), "D", output="A")
    write("four-bar-branches", found.plot())
    write("four-bar-dead-points", found.draw(0, size=(4.0, 3.2)))
    write("five-bar-workspace", cd.workspace(CATALOGUE["five_bar"]().build(), "left link", point=(0.7, 0, 0)).plot())


def identification() -> None:
    """Estimates with their intervals and the truth, and the motion that they came from."""
    page = (FIGURES.parent / "identification.md").read_text(encoding="utf-8")
    shown: dict[str, object] = {}
    for block in page.split("```python\n")[1:]:
        exec(block.partition("```")[0], shown)
        if "figure" in shown:
            return write("identification", shown["figure"])


def synthesis() -> None:
    """A coupler curve through nine points."""
    angles = np.linspace(0, 2 * np.pi, 9, endpoint=False)
    points = np.stack([0.1 + 0.25 * np.cos(angles), 0.6 + 0.12 * np.sin(angles), 0 * angles], axis=-1)
    names = ("B.at", "C.at", "C.child_at", "D.at")
    found = cd.synthesise(
        CATALOGUE["four_bar"]().build().free("A.at", *names), cd.Target("coupler", position=points, along="xy"),
        input="A", free_point=True, along={"B.at": "x", "C.at": "x", "C.child_at": "x"}, motion="turn",
        transmission={("coupler", "rocker"): np.radians(35)}, starts=32,
        bounds={
            "B.at": (0.05, 2), "C.at": (0.1, 2), "C.child_at": (0.1, 2), "A.at": (-1, 1), "D.at": (-2, 2),
            "point": (-1.5, 1.5),
        },
    )  # fmt: skip
    write("coupler-curve", found.plot())


def linkages() -> None:
    """The best of many four-bars and six-bars beside the path of a foot; of docs/linkages.md."""
    from cardan.analysis.sweep.plots import plot_linkages

    given, sys.argv = sys.argv, ["example", "--linkages", "400000", "--best", "100", "--steps", "100"]
    example = runpy.run_path(str(FIGURES.parents[1] / "examples" / "16_hundred_million_linkages.py"))
    sys.argv = given
    write("linkages", plot_linkages(example["best"], example["curve"], "similar", None, None, None, False))


def particles() -> None:
    """A multi-branch mechanism with its particles."""
    example = runpy.run_path(str(FIGURES.parents[1] / "examples" / "06_attia_multibranch.py"))
    write(
        "particles", example["multibranch"]().build(cut=example["CUT"]).draw(particles=True, names=True, centres=False)
    )


def linear() -> None:
    """A mode shape, and eigenvalues over a speed; of docs/linear.md."""
    example = runpy.run_path(str(FIGURES.parents[1] / "examples" / "11_modes_of_a_beam.py"))
    write("mode-beam", cd.modes(example["cantilever"](8)).draw(1, centres=False, scale=False))
    m = cd.Mechanism("governor")
    m.body("arm", mass=1.0, inertia=(1, 1, 1))
    m.body("bob", mass=1.0, com=(0, 0, -0.5))
    m.joint("spin", cd.Revolute(axis=(0, 0, 1)), "ground", "arm")
    m.joint("tilt", cd.Revolute(axis=(0, 1, 0)), "arm", "bob")
    m.friction("hinge", "tilt", viscous=0.2)
    speeds = np.linspace(0, 8, 81)
    governor = cd.modes(m.build(), (np.zeros(2), np.stack([speeds, 0 * speeds], axis=1)))
    write("root-locus", governor.root_locus(speeds, label="speed [rad/s]"))


def catalogue() -> None:
    """All mechanisms of the catalogue on one sheet."""
    rows = -(-len(CATALOGUE) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * CELL[0], rows * CELL[1]), "white")
    words, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=15)
    for k, (name, make) in enumerate(CATALOGUE.items()):
        file = io.BytesIO()
        make().build().draw(scale=False).savefig(file, format="png", dpi=100)
        picture = Image.open(file).convert("RGB")
        picture.thumbnail((CELL[0] - 30, CELL[1] - 50))
        corner = [(k % COLUMNS) * CELL[0], (k // COLUMNS) * CELL[1]]
        words.text((corner[0] + CELL[0] / 2, corner[1] + CELL[1] - 12), name, "#444444", font, "mm")
        sheet.paste(
            picture, (corner[0] + (CELL[0] - picture.width) // 2, corner[1] + (CELL[1] - 20 - picture.height) // 2)
        )
    keep("catalogue", sheet.quantize(64))


def equilibria() -> None:
    """Paths of equilibria: a pendulum that turns about the vertical."""
    page = (FIGURES.parent / "equilibrium.md").read_text(encoding="utf-8")
    shown: dict[str, object] = {}
    for block in page.split("```python\n")[1:]:
        exec(block.partition("```")[0], shown)
        if "figure" in shown:
            return write("equilibrium-paths", shown["figure"])


def write(name: str, figure: object) -> None:
    """A figure as PNG, in few colours."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130)  # type: ignore[attr-defined]
    keep(name, Image.open(file).convert("RGB").quantize(96, dither=Image.Dither.NONE))


def keep(name: str, picture: Image.Image) -> None:
    """Write a small file, and refuse a large one."""
    file = io.BytesIO()
    picture.save(file, format="png", optimize=True)
    if len(file.getvalue()) > LARGEST:
        raise SystemExit(f"{name}.png: {len(file.getvalue())} bytes, more than {LARGEST}")
    (FIGURES / f"{name}.png").write_bytes(file.getvalue())


if __name__ == "__main__":
    main()
