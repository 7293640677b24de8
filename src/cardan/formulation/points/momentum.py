"""The momentum equations of a planar mechanism: what AT writes for one body and announces for chains, on any tree.

    A (x'', mu) = b

`x` are the points of `points.rows`, `mu` the multipliers of cut joints, couplings and constraints, which are unknown
loads. For every link there are the momentum of all that its joint carries, in the ways that the joint leaves free, and
the link's own constraints: on a pin the angular momentum about it, AT(11), and the distance, AT(12); on a slide the
momentum along it and three constraints; for a floating link linear momentum, AT(10), angular momentum about P, AT(11),
and the distance. The joint's force does not enter, except for its drive. The constraints of loops follow.

These are the equations `M x'' + J^T lam = f` along rigid motions of everything beyond a joint; no length is used, so
that they hold in terms of the particles' masses and `(nu, lam)` as the source prints them.

Equations: AT(2), AT(3), AT(10), AT(11), AT(12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cardan.algebra.matrix import Matrix, Scalar, constant, dot
from cardan.algebra.plane import carried, moment
from cardan.formulation.points.motion import PlanarMotion
from cardan.formulation.points.recursion import PointLoads, float_drive
from cardan.formulation.points.rows import Coordinates, PlanarRow, as_loads
from cardan.model.plane import PlanarLink, PlanarModel


class Weight(NamedTuple):
    """Of a link: mass, first moment on its line, and inertia about P over the square of its line, in kg."""

    mass: Scalar
    first: tuple[Scalar, Scalar]
    spin: Scalar


def weights(planar: PlanarModel) -> list[Weight]:
    """From the links' own numbers."""
    return [Weight(link.mass, link.first, link.inertia / link.line.length**2) for link in planar.links]


def carried_links(planar: PlanarModel, i: int) -> list[int]:
    """Link i and all that it carries."""
    found = {i}
    for k, link in enumerate(planar.links):
        if link.parent in found:
            found.add(k)
    return sorted(found)


Resultant = tuple[Matrix, Matrix]  # force, and moment about a point


def _rate(
    motion: PlanarMotion, own: Sequence[Weight], links: Sequence[int], ends: list[tuple[Matrix, Matrix]], P: Matrix
) -> Resultant:
    """Rates of the momentum of links and of their angular momentum about P, at accelerations of their two points."""
    force, turn = type(P)(2, 1), type(P)(1, 1)
    for i in links:
        b, (mass, first, spin), (a, Q) = motion.links[i], own[i], ends[i]
        f = mass * a + carried(*first, Q - a)  # AT(10)
        n = moment(carried(*first, b.d), a) + spin * moment(b.d, Q - a)  # AT(11)
        force, turn = force + f, turn + n + moment(b.P - P, f)  # AT(3), and AT(2) for the force, of all of them
    return force, turn


def _loads(
    motion: PlanarMotion, own: Sequence[Weight], links: Sequence[int], acting: PointLoads,
    P: Matrix, weight: Matrix | None,
) -> Resultant:  # fmt: skip
    """Sum of the loads on links, R of AT(2), and their moment about P, G of AT(3)."""
    force, turn = type(P)(2, 1), type(P)(1, 1)
    for i in links:
        b = motion.links[i]
        f, n = acting.forces.get(i, type(P)(2, 1)), acting.couples.get(i, type(P)(1, 1))
        if weight is not None:
            f, n = f + own[i].mass * weight, n + moment(carried(*own[i].first, b.d), weight)
        force, turn = force + f, turn + n + moment(b.P - P, f)
    return force, turn


def _along_joint(link: PlanarLink, u: tuple[Matrix, ...], found: Resultant) -> list[Scalar]:
    """The part of a force and moment at a joint that the joint does not carry."""
    force, turn = found
    if link.role == "slide":
        return [dot(u[0], force)]
    return [turn] if link.role == "pin" else [force[0], force[1], turn]


def _drive(link: PlanarLink, motion: PlanarMotion, i: int, acting: PointLoads, like: Matrix) -> list[Scalar]:
    """The same of the joint's own drive."""
    none = type(like)(1, 1)
    if i not in acting.drives:
        return [none] * (3 if link.role == "float" else 1)
    tau = acting.drives[i]
    if link.role == "float":
        F, N = float_drive(link, motion.links[i], tau, like)
        return [F[0], F[1], N]
    return [link.turn[0] * tau if link.role == "pin" else tau]


def momentum_equations(
    planar: PlanarModel, motion: PlanarMotion, acting: PointLoads, rows: Sequence[PlanarRow], first: int,
    J: Matrix, own: Sequence[Weight],
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """`A` and `b`; of the constraint `rows`, with Jacobian `J`, those before `first` are the links' own."""
    import casadi as ca

    places, like, outer = Coordinates(planar), motion.ground.P, rows[first:]
    xdd = ca.SX.sym("xdd", places.n)
    ends = places.ends(xdd, moving=True)
    gravity = constant(planar.gravity)
    unit_loads = [as_loads(row.acts) for row in outer]
    A: list[Matrix] = []
    b: list[Any] = []
    k = 0
    for i, link in enumerate(planar.links):
        if link.role == "rigid":
            continue
        beyond, P, u = carried_links(planar, i), motion.links[i].P, motion.links[i].u
        rate = _along_joint(link, u, _rate(motion, own, beyond, ends, P))
        asked = _along_joint(link, u, _loads(motion, own, beyond, acting, P, gravity))
        unknown = [_along_joint(link, u, _loads(motion, own, beyond, loads, P, None)) for loads in unit_loads]
        driven = _drive(link, motion, i, acting, like)
        for m, (row, load, drive) in enumerate(zip(rate, asked, driven, strict=True)):
            columns = [column[m] for column in unknown]
            A.append(ca.horzcat(ca.jacobian(row, xdd), *columns))
            b.append(load + drive)
        for _ in range(3 if link.role == "slide" else 1):
            A.append(ca.horzcat(J[k, :], ca.SX(1, len(outer))))  # AT(12)
            b.append(rows[k].gamma)
            k += 1
    for row, own_row in enumerate(outer, first):
        A.append(ca.horzcat(J[row, :], ca.SX(1, len(outer))))
        b.append(own_row.gamma)
    n = places.n + len(outer)
    return ca.vertcat(ca.SX(0, n), *A), ca.vertcat(ca.SX(0, 1), *b)


def momentum_labels(planar: PlanarModel, joints: Sequence[Any], rows: Sequence[PlanarRow], first: int) -> list[str]:
    """What each of the equations says."""
    found, k = [], 0
    for link in planar.links:
        if link.role == "rigid":
            continue
        what = f"all that joint {joints[link.joint].name!r} carries"
        found += {
            "pin": [f"angular momentum of {what}, about it"],
            "slide": [f"momentum of {what}, along it"],
            "float": [
                f"momentum of {what}, x of the plane",
                f"momentum of {what}, y of the plane",
                f"angular momentum of {what}, about the origin of its frame on {link.name!r}",
            ],
        }[link.role]
        own = 3 if link.role == "slide" else 1
        found += [row.label.name for row in rows[k : k + own]]
        k += own
    return found + [row.label.name for row in rows[first:]]
