"""The equivalent particles of a planar mechanism's links, and which of them neighbours share.

Particle 1 of a link is its P, particle 3 its Q, particle 2 follows. A link whose centre of mass is on its line has its
particle 2 in the middle between them, as a rod of AT has. At a pin the particles of both links are one (AT, end of 2.1
and figure 4), provided that the pin is at a particle of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.free_number import nominal, nominal_of
from cardan.algebra.plane import Particles, particles, rod_masses
from cardan.model.html import html_table
from cardan.model.plane import EXACT, PlanarLink, PlanarModel
from cardan.model.tree import GROUND
from cardan.model.values import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

One = tuple[int, int]  # link, and 0, 1 or 2 for its particle 1, 2 or 3
NEAR = 1e-9  # places on a line, relative to its length, that are the same
OWN, UNIFIED = ("body", "m1 kg", "m2 kg", "m3 kg", "nu", "lam"), ("unified, kg", "of bodies", "at joints")  # headings


def link_particles(link: PlanarLink) -> Particles:
    """The three particles of a link; places along its line and to the left of it, m, from P. At nominal values."""
    mass, I0, L = float(nominal_of(link.mass)), float(nominal_of(link.inertia)), link.line.length
    along, left = (float(x) * L for x in nominal(link.first))
    if mass and abs(left) > EXACT * mass * L:
        return particles(link.name, mass=mass, com=(along / mass, left / mass), inertia=I0, r3=(L, 0.0))
    m2, m3 = rod_masses(mass, L, along / mass if mass else 0.0, I0)
    return Particles(np.array([mass - m2 - m3, m2, m3]), np.array([[0.0, 0.0], [L / 2, 0.0], [L, 0.0]]))


def unified_particles(planar: PlanarModel) -> list[list[One]]:
    """The particles of all links, in groups that are one point: those of links that a pin joins there."""
    groups: dict[object, list[One]] = {(i, k): [(i, k)] for i in range(len(planar.links)) for k in range(3)}

    def unite(a: object, b: object) -> None:
        one, other = groups.setdefault(a, []), groups.setdefault(b, [])
        if one is not other:
            one += other
            for key, group in groups.items():
                if group is other:
                    groups[key] = one

    for link, joint in [(i, link) for i, link in enumerate(planar.links)] + [(cut.child, cut) for cut in planar.cuts]:
        if joint.role not in ("pin", "rigid"):
            continue
        below = _particle_at(planar, joint.parent, joint.at)
        above = (link, 0) if isinstance(joint, PlanarLink) else _particle_at(planar, link, joint.child_at)
        if below is not None and above is not None:
            unite(below, above)
    unique = {id(group): group for group in groups.values() if group}
    return sorted((sorted(group) for group in unique.values()), key=lambda group: group[0])


def _particle_at(planar: PlanarModel, link: int, place: tuple[float, float]) -> object | None:
    """The particle of a link at a place on its line; on the ground any place is one."""
    where = np.asarray(nominal(place), dtype=float)
    if link == GROUND:
        return GROUND, *(round(float(x), 9) for x in where)
    for k, at in ((0, (0.0, 0.0)), (2, (1.0, 0.0))):
        if np.abs(where - at).max() <= NEAR:
            return link, k
    return None


@dataclass(frozen=True, eq=False)
class Particle:
    """A particle that one body has, or that several share at a pin: mass (kg), names of the bodies and of the joints.

    A joint to the ground is named too. A mass may be negative: only sums of masses have a meaning.
    """

    mass: float
    bodies: tuple[str, ...]
    joints: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ParticleSystem:
    """A planar mechanism as particles. Bodies that are fixed to one another count as one.

    `bodies` has the names of the n bodies. Each has three particles: 1 at the joint that carries it, 3 at its next
    joint or at twice the way to its centre of mass, 2 where it must be. `masses` (n, 3), kg; `places` (n, 3, 3), m, in
    the body's axes; `nu`, `lam` (n,) give particle 2 by 1 and 3, AT(7). `unified` are the particles if those of
    neighbours at a pin are one: 2n + 1 for a serial chain of n bodies, AT's figure 4. `axes` (2, 3) are the plane's x
    and y in ground axes. Print it for a table.
    """

    name: str
    bodies: tuple[str, ...]
    masses: NDArray[Any]
    places: NDArray[Any]
    nu: NDArray[Any]
    lam: NDArray[Any]
    axes: NDArray[Any]
    unified: tuple[Particle, ...]
    _first: tuple[One, ...]
    _body: tuple[int, ...]
    _poses: Callable[..., NDArray[Any]]

    def in_space(self, q: ArrayLike) -> NDArray[Any]:
        """Positions (..., n, 3, 3), m, of the three particles of every body in ground axes at `q` (..., nq)."""
        return self._carried(self._poses(q))

    def positions(self, q: ArrayLike) -> NDArray[Any]:
        """Positions (..., n, 3, 2), m, of the three particles of every body in the plane at `q` (..., nq)."""
        return np.asarray(self.in_space(q) @ self.axes.T)

    def unified_positions(self, q: ArrayLike) -> NDArray[Any]:
        """Positions (..., k, 2), m, of the unified particles in the plane at `q` (..., nq) with closed loops."""
        return np.asarray(self.placed(self._poses(q)) @ self.axes.T)

    def placed(self, poses: NDArray[Any]) -> NDArray[Any]:
        """Positions (..., k, 3), m, of the unified particles in ground axes at poses (..., nb, 4, 4) of the bodies."""
        body, number = np.array(self._first, dtype=int).reshape(-1, 2).T
        return np.asarray(self._carried(poses)[..., body, number, :])

    def _carried(self, poses: NDArray[Any]) -> NDArray[Any]:
        own = poses[..., list(self._body), :, :]
        return np.einsum("...bij,bkj->...bki", own[..., :3, :3], self.places) + own[..., None, :3, 3]

    @property
    def unified_masses(self) -> NDArray[Any]:
        """Masses (k,) of the unified particles, kg."""
        return np.array([particle.mass for particle in self.unified])

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for name, masses, nu, lam in zip(self.bodies, self.masses, self.nu, self.lam, strict=True):
            rows.append((name, *(f"{m:.6g}" for m in masses), f"{nu:.6g}", f"{lam:.6g}"))
        return rows

    def _unified(self) -> list[tuple[str, ...]]:
        return [(f"{p.mass:.6g}", ", ".join(p.bodies), ", ".join(p.joints)) for p in self.unified]

    def __repr__(self) -> str:
        """A table of bodies, and one of the unified particles."""
        lines = [f"{self.name}: {counted(len(self.bodies), 'body')}, {len(self.unified)} unified particles"]
        lines += _columns([OWN, *self._rows()])
        return "\n".join([*lines, "", *_columns([UNIFIED, *self._unified()])])

    def _repr_html_(self) -> str:
        unified = html_table(f"{len(self.unified)} unified particles", self._unified(), UNIFIED)
        return html_table(f"Particles of {self.name}", self._rows(), OWN) + unified


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of cells as lines of equal columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
