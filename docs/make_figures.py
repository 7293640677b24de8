"""Draw the figures of the tutorials, of the pages on the sources and of the README: `python docs/make_figures.py`.

Each is a short SVG, written stroke by stroke. That of the README moves: its frames are the samples of a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).with_name("figures")
INK, BLUE, ORANGE, GREEN, FAINT = "#1f2430", "#3f5fbf", "#d9731a", "#2e8b57", "#b8bfcc"
Point = tuple[float, float]


class Picture:
    """An SVG of some width and height in pixels, y downwards, on white so that it reads on any page."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def path(self, d: str, stroke: str = INK, width: float = 2, fill: str = "none", more: str = "") -> None:
        """Any outline."""
        self.parts.append(f'<path d="{d}" stroke="{stroke}" stroke-width="{width}" fill="{fill}" {more}/>')

    def line(self, a: Point, b: Point, stroke: str = INK, width: float = 2, more: str = "") -> None:
        """A straight line."""
        self.path(f"M{a[0]:g} {a[1]:g}L{b[0]:g} {b[1]:g}", stroke, width, more=more)

    def arrow(self, a: Point, b: Point, stroke: str = INK, width: float = 2) -> None:
        """A line with a head at b."""
        self.line(a, b, stroke, width)
        turn = math.atan2(b[1] - a[1], b[0] - a[0])
        ends = [(b[0] - 10 * math.cos(turn + s), b[1] - 10 * math.sin(turn + s)) for s in (0.38, -0.38)]
        corners = "L".join(f"{x:.1f} {y:.1f}" for x, y in (ends[0], b, ends[1]))
        self.path(f"M{corners}Z", stroke, 1, stroke)

    def dot(self, at: Point, radius: float = 4, fill: str = INK, stroke: str = INK) -> None:
        """A point, or a pin where the fill is white."""
        circle = f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}"'
        self.parts.append(f'{circle} stroke-width="2"/>')

    def text(self, at: Point, words: str, fill: str = INK, size: int = 17, anchor: str = "middle") -> None:
        """Words; what follows an underscore is set lower."""
        head, _, foot = words.partition("_")
        low = f'<tspan dy="5" font-size="{size * 0.7:.0f}">{foot}</tspan>' if foot else ""
        look = f'fill="{fill}" font-size="{size}" text-anchor="{anchor}"'
        self.parts.append(f'<text x="{at[0]:g}" y="{at[1]:g}" {look}>{head}{low}</text>')

    def blob(self, centre: Point, a: float, b: float, turn: float, stroke: str = BLUE) -> None:
        """A body of no particular shape."""
        x, y = centre
        self.parts.append(
            f'<ellipse cx="{x:g}" cy="{y:g}" rx="{a:g}" ry="{b:g}" fill="{stroke}" fill-opacity="0.12" '
            f'stroke="{stroke}" stroke-width="2" transform="rotate({turn:g} {x:g} {y:g})"/>'
        )

    def ground(self, at: Point, width: float = 46) -> None:
        """A support, hatched."""
        x, y = at
        self.line((x - width / 2, y), (x + width / 2, y))
        for k in range(5):
            s = x - width / 2 + (k + 1) * width / 5
            self.line((s, y), (s - 8, y + 8), INK, 1.2)

    def save(self, name: str) -> None:
        """Write the file."""
        w, h = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            f'font-family="Georgia, serif" font-style="italic" stroke-linecap="round" stroke-linejoin="round">'
            f"<title>{self.title}</title>"
        )
        paper = f'<rect width="{w}" height="{h}" rx="8" fill="#fff"/>'
        (FOLDER / name).write_text("\n".join([head, paper, *self.parts, "</svg>"]) + "\n")


def engine() -> None:
    """Crank, rod and piston."""
    p = Picture(560, 190, "Crank, connecting rod and piston")
    O, A, B = (80.0, 110.0), (122.0, 62.0), (315.0, 110.0)
    p.dot(O, 44, "#f2f4fa", FAINT)
    p.line(O, A, BLUE, 7)
    p.line(A, B, GREEN, 7)
    p.path("M278 78H352V142H278Z", ORANGE, 2.5, "#fdf1e6")
    p.line(A, B, GREEN, 7)
    p.line((250, 74), (470, 74))
    p.line((250, 146), (470, 146))
    p.path("M352 110h14" + "l6 -12l12 24l12 -24l12 24l12 -24l6 12" + "h28", INK, 2)
    p.line((454, 84), (454, 136))
    for at in (O, A, B):
        p.dot(at, 6, "#fff")
    p.ground((80, 158), 50)
    p.line(O, (80, 158), INK, 2)
    for at, words, anchor in (
        ((40, 104), "main", "end"), ((122, 44), "big end", "middle"), ((315, 64), "bore", "middle"),
        ((315, 168), "gudgeon", "middle"), ((405, 64), "buffer", "middle"), ((80, 82), "r", "middle"),
        ((215, 70), "l", "middle"),
    ):  # fmt: skip
        p.text(at, words, size=15, anchor=anchor)
    p.save("tutorial-engine.svg")


def pendulums() -> None:
    """One rod, and two."""
    p = Picture(460, 220, "A pendulum and a double pendulum")

    def rod(a: Point, angle: float, length: float, colour: str) -> Point:
        b = (a[0] + length * math.sin(angle), a[1] + length * math.cos(angle))
        p.line(a, b, colour, 8)
        return b

    for start, rods in (((110.0, 40.0), [(0.6, 130, BLUE)]), ((310.0, 40.0), [(0.45, 80, BLUE), (1.2, 85, GREEN)])):
        p.line((start[0] - 24, start[1] - 6), (start[0] + 24, start[1] - 6))
        at, before = start, 0.0
        for k, (angle, length, colour) in enumerate(rods):
            straight = (at[0] + 64 * math.sin(before), at[1] + 64 * math.cos(before))
            p.line(at, straight, FAINT, 1.5, 'stroke-dasharray="5 4"')
            end = rod(at, angle, length, colour)
            p.dot(at, 5, "#fff")
            half = (angle + before) / 2
            middle = (at[0] + 66 * math.sin(half) - 2, at[1] + 66 * math.cos(half) + 4)
            p.text(middle, "θ" if len(rods) == 1 else f"q_{k + 1}", size=16)
            at, before = end, angle
    p.text((196, 140), "l", size=16)
    p.save("tutorial-pendulum.svg")


def two_bodies(three: bool) -> None:
    """The problem of F6; with what F3 needs besides."""
    p = Picture(480, 220, "Two bodies and a hinge")
    C1, C2, P = (140.0, 130.0), (345.0, 105.0), (242.0, 110.0)
    p.blob(C1, 118, 52, -8)
    p.blob(C2, 118, 50, 8, GREEN)
    p.line((228, 172), (254, 52), ORANGE, 2, 'stroke-dasharray="7 5"')
    p.arrow(P, (256, 44), ORANGE, 3)
    p.text((274, 46), "s", ORANGE)
    p.arrow((30, 60), (96, 104), INK, 3)
    p.text((40, 50), "f")
    p.dot(P, 5, "#fff", ORANGE)
    p.text((80, 152), "B_1", BLUE)
    p.text((420, 120), "B_2", GREEN)
    if three:
        for C, words, at in ((C1, "C_1", (134, 158)), (C2, "C_2", (350, 134))):
            p.dot(C)
            p.text(at, words)
        p.arrow(C1, (235, 112), INK, 2)
        p.arrow(C2, (250, 110), INK, 2)
        p.text((186, 112), "r_1")
        p.text((300, 98), "r_2")
        p.text((232, 140), "P")
        p.path("M70 168a16 16 0 1 0 24 -10", INK, 2.5)
        p.arrow((92, 157), (84, 154), INK, 2)
        p.text((58, 196), "τ")
    else:
        p.text((140, 128), "I_1", BLUE)
        p.text((340, 104), "I_2", GREEN)
    p.save("source-two-bodies-3d.svg" if three else "source-two-bodies.svg")


def momentum() -> None:
    """A body seen from a point."""
    p = Picture(420, 190, "A body with its centre of mass seen from a point O")
    O, C = (70.0, 150.0), (250.0, 85.0)
    p.blob(C, 110, 55, -15)
    p.arrow(O, (243, 88), INK)
    p.text((150, 108), "c")
    p.dot(O)
    p.text((52, 156), "O")
    p.dot(C)
    p.text((262, 76), "C")
    p.arrow(C, (345, 60), ORANGE, 3)
    p.text((362, 56), "m v_C", ORANGE, anchor="start")
    p.path("M222 52a36 30 0 0 1 58 -6", GREEN, 3)
    p.arrow((276, 43), (283, 52), GREEN, 3)
    p.text((236, 36), "ω", GREEN)
    p.save("source-momentum.svg")


def joint() -> None:
    """Two bodies that share a point, and a hinge's directions there."""
    p = Picture(500, 230, "Two bodies that share a point")
    G1, G2, J = (120.0, 100.0), (390.0, 130.0), (250.0, 97.0)
    p.blob((132, 100), 122, 62, 0)
    p.blob((366, 122), 120, 56, 12, GREEN)
    p.arrow(G1, (243, 95), INK)
    p.text((180, 88), "q")
    p.arrow(J, (383, 128), INK)
    p.text((318, 100), "r")
    for at, end, words, where in (
        (J, (250, 28), "h", (264, 32)), (J, (206, 136), "f", (198, 152)), (J, (290, 146), "g", (300, 160)),
    ):  # fmt: skip
        p.arrow(at, end, ORANGE, 2.5)
        p.text(where, words, ORANGE)
    p.dot(J, 6, "#fff", ORANGE)
    for G, words, at in ((G1, "p_1", (104, 124)), (G2, "p_2", (406, 156))):
        p.dot(G)
        p.text(at, words)
    p.arrow((30, 210), (110, 118), FAINT)
    p.arrow((30, 210), (376, 140), FAINT)
    p.save("source-joint.svg")


def particles() -> None:
    """A plate with three particles."""
    p = Picture(460, 220, "A plate with its three particles")
    r1, r3 = np.array([80.0, 170.0]), np.array([350.0, 120.0])
    d = r3 - r1
    across = np.array([d[1], -d[0]])  # K x d on a page whose y goes down
    nu, lam = 0.45, 0.28
    foot = r1 + nu * d
    r2 = foot + lam * across
    p.path("M60 190L30 120L180 30L330 70L395 110L370 150L200 200Z", BLUE, 2, BLUE, 'fill-opacity="0.1"')
    p.arrow(tuple(r1), tuple(r3), INK)
    p.line(tuple(r1), tuple(foot), ORANGE, 4)
    p.arrow(tuple(foot), tuple(r2), GREEN, 3)
    for at, words, shift in ((r1, "1", (-14, 16)), (r2, "2", (14, -8)), (r3, "3", (16, -6))):
        p.dot(tuple(at), 7, INK)
        p.text((at[0] + shift[0], at[1] + shift[1]), words)
    p.text((foot[0] - 40, foot[1] + 30), "ν r_31", ORANGE)
    p.text((r2[0] + 20, r2[1] + 46), "λ K × r_31", GREEN, anchor="start")
    p.save("source-particles.svg")


CLOCK = 'dur="4s" repeatCount="indefinite"'


def moving(at: np.ndarray, *names: str) -> str:
    """A point (n, 2) over time as animations of two attributes; nothing where it rests."""
    if np.ptp(at, axis=0).max() < 1e-6:
        return ""
    values = (";".join(f"{x:.1f}" for x in at[:, k]) for k in range(2))
    pairs = zip(names, values, strict=True)
    return "".join(f'<animate attributeName="{name}" values="{value}" {CLOCK}/>' for name, value in pairs)


def four_bar() -> None:
    """The README's: a four-bar that is simulated, with the path of a point of its coupler."""
    import cardan as cd

    frames, scale, origin = 96, 70.0, (180.0, 240.0)
    m = cd.Mechanism("four_bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5)):
        m.body(name, mass=length, com=(length / 2, 0, 0), inertia=cd.inertia.rod(length, length))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(1, 0, 0), start=0.2)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(3, 0, 0), child_at=(2.5, 0, 0))
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(3, 0, 0), start=1.5)
    m.motion("turn", "A", lambda t: 0.5 + 2 * np.pi / 4 * t)
    model = m.build()
    q, v = cd.assemble(model)
    run = cd.simulate(model, 4.0, q, v, samples=frames + 1)

    def seen(body: str, point: Sequence[float]) -> np.ndarray:
        at = run.position(body, point)
        return np.column_stack([origin[0] + scale * at[:, 0], origin[1] - scale * at[:, 1]])

    A, B, C, D = (
        seen("crank", (0, 0, 0)), seen("crank", (1, 0, 0)), seen("rocker", (2.5, 0, 0)), seen("rocker", (0, 0, 0)),
    )  # fmt: skip
    T = seen("coupler", (1.2, 0.8, 0))
    p = Picture(560, 300, "A four-bar linkage, simulated by Cardan, and the path of a point of its coupler")
    p.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in T) + "Z", ORANGE, 2, more='stroke-dasharray="2 5"')
    for at in (A[0], D[0]):
        p.line((at[0], at[1]), (at[0] - 14, at[1] + 24))
        p.line((at[0], at[1]), (at[0] + 14, at[1] + 24))
        p.ground((at[0], at[1] + 24))
    plates = ["M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z" for corners in zip(B, T, C, strict=True)]
    p.parts.append(
        f'<path d="{plates[0]}" fill="{BLUE}" fill-opacity="0.14" stroke="{BLUE}" stroke-width="5">'
        f'<animate attributeName="d" values="{";".join(plates)}" {CLOCK}/></path>'
    )
    for a, b, colour in ((A, B, ORANGE), (D, C, GREEN)):
        p.parts.append(
            f'<line x1="{a[0, 0]:.1f}" y1="{a[0, 1]:.1f}" x2="{b[0, 0]:.1f}" y2="{b[0, 1]:.1f}" stroke="{colour}" '
            f'stroke-width="8">{moving(b, "x2", "y2")}</line>'
        )
    for at, fill in ((A, "#fff"), (B, "#fff"), (C, "#fff"), (D, "#fff"), (T, ORANGE)):
        p.parts.append(
            f'<circle cx="{at[0, 0]:.1f}" cy="{at[0, 1]:.1f}" r="6" fill="{fill}" stroke="{INK}" stroke-width="2">'
            f"{moving(at, 'cx', 'cy')}</circle>"
        )
    p.save("four-bar.svg")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    engine()
    pendulums()
    two_bodies(three=False)
    two_bodies(three=True)
    momentum()
    joint()
    particles()
    four_bar()
