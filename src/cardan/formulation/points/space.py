"""The formulation `points` in space: a body as particles on a tetrahedron, velocities of points, no angular velocity.

The idea of AT for a body in space (`algebra.tetrahedron`). Its coordinates are the places `r_i` of four vertices, in
ground components: the centre of mass G, and three points a distance `s` from it along the link's axes `e_k`; its rates
are `u_i = r_i'`. Ten particles, at the vertices and in the middles of the edges, have its mass, centre and inertia.
They are carried by the vertices, so that with the constant `B` (4, 4) of the particles

    M = B x 1 (12, 12)        f_1 = m g, and the share of the loads        qdot = u

`M` is constant and `f` has no velocity terms. Six distances, AT(4), AT(6), hold the tetrahedron, a row each. The link's
axes are linear in the coordinates, `R = sum_i r_i g_i^T` with `g_k = e_k/s` and `g_1 = -(g_2 + g_3 + g_4)`, so that in
link components

    w = 1/2 sum_i g_i x R^T u_i        v_G = R^T u_1        wdot = 1/2 sum_i g_i x R^T udot_i

without velocity terms, as in AT(9). Off the distances `R` is taken to the nearest rotation, to second order: then the
rows of joints (`formulation.measured_joint`) do not see a change of the tetrahedron's shape, and `d phi/dq = J`.

To solve, the distances are eliminated: `udot = D y + h`, `y = (wdot, vdot_G)`, which leaves `D^T M D = diag(I_G, m 1)`
and `D^T (f - M h)`, Newton's and Euler's equations. They are those of `absolute_body`, which solves them. What is left
on the vertices, `f - M udot - J^T lam`, is balanced by forces along the edges: the multipliers of the distances.

Equations: AT(4), AT(6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log2
from types import SimpleNamespace

import numpy as np

from cardan.algebra.free_number import nominal, nominal_of
from cardan.algebra.matrix import Matrix, beside, constant, dot, eye, stack, vector, zeros
from cardan.algebra.rotation import cross, skew
from cardan.algebra.tetrahedron import EDGES, second_moments, vertex_inertia
from cardan.formulation.absolute import ABSOLUTE_BODY, Absolute, body_axes
from cardan.formulation.formulation import Formulation, LetterGroup, Parts, RotationGraph
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.light import LIGHT, lent_amounts, lent_to_links
from cardan.formulation.quantity import links_from_bodies
from cardan.formulation.recursion import Nodes
from cardan.formulation.rows import Rows
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.row import RowLabel, RowTable
from cardan.model.tree import Link

CORNERS = np.vstack([np.zeros(3), np.eye(3)])  # of the tetrahedron of size 1

_SIZES: Slot[None, list[float]] = Slot("sizes of the tetrahedra of `points` in space")


@dataclass(frozen=True, kw_only=True)
class VertexKinematics(Kinematics):
    """With places and velocities (four of (3,) each) of the vertices of every link."""

    r: tuple[list[Matrix], ...]
    u: tuple[list[Matrix], ...]


class PointsInSpace(Absolute):
    """Particles of mechanisms in space."""

    divides = False
    name = "points"
    about = "particles of mechanisms in space"
    width = 12

    @property
    def key(self) -> str:
        """Not that of `points` in the plane, which has the same name."""
        return f"{self.name} in space {self.added}".rstrip()

    @property
    def solved_as(self) -> Formulation:
        """Newton's and Euler's equations, once the distances are eliminated."""
        return ABSOLUTE_BODY

    def sizes(self, model: Model) -> tuple[int, int]:
        """As many rates as coordinates."""
        return (12 * len(model.separate.tree.links),) * 2

    def leading_rows(self, model: Model) -> int:
        """Without loops all, with the distances."""
        own = super().leading_rows(model)
        return own and own + len(EDGES) * len(model.separate.tree.links)

    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """None."""
        return []

    def rotations(self, model: Model, q: Matrix) -> list[RotationGraph]:
        """The axes of every link: linear in its vertices where these keep their distances."""
        apart, found = model.separate, []
        for i, link in enumerate(apart.tree.links):
            edges = _edges(apart, i, _split(q, i))
            found.append(RotationGraph(link.name, _nearest_rotation(edges), edges))
        return found

    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """From places and velocities of the vertices."""
        apart, links = model.separate, []
        places, rates = (tuple(_split(x, i) for i in range(len(apart.tree.links))) for x in (q, v))
        for i, link in enumerate(apart.tree.links):
            R = _nearest_rotation(_edges(apart, i, places[i]))
            twist = self.twist_matrix(apart, i, R) @ stack(*rates[i])
            links.append(SimpleNamespace(R=R, r0=places[i][0] - R @ constant(link.com), v=twist))
        ground = SimpleNamespace(R=eye(3, q), r0=zeros(3, None, q), v=zeros(6, None, q))
        return VertexKinematics(apart, Nodes(links, [], ground), about=about, r=places, u=rates)

    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """The vertices from coordinates and rates of the tree."""
        apart = model.separate
        kin = kinematics_of_tree(apart, q, v)
        r = tuple(_vertices(apart, i, b.R, b.r0) for i, b in enumerate(kin.nodes.links))
        u = tuple(_split(self.own_rates(apart, i, b.R, b.v), 0) for i, b in enumerate(kin.nodes.links))
        return VertexKinematics(apart, kin.nodes, q, v, r=r, u=u)

    def twist_matrix(self, model: Model, i: int, R: Matrix) -> Matrix:
        """`L` (6, 12), the link's twist about its origin from the velocities of its vertices."""
        c, g = constant(model.tree.links[i].com), (CORNERS - np.eye(1, 4).T) / size(model, i)
        turn = beside(*(skew(constant(x)) @ R.T / 2 for x in g))
        move = beside(R.T, zeros(3, 9, R))
        return stack(turn, skew(c) @ turn + move)

    def own_rates(self, model: Model, i: int, R: Matrix, v: Matrix) -> Matrix:
        """Velocities (12,) of the vertices from the twist of link i."""
        c, w, s = constant(model.tree.links[i].com), v[:3], size(model, i)
        first = R @ (v[3:] + cross(w, c))
        return stack(*(first + s * (R @ cross(w, constant(e))) if e.any() else first for e in CORNERS))

    def _body(self, model: Model, i: int, kin: Kinematics, wrench: Matrix, gravity: Matrix) -> tuple[Matrix, Matrix]:
        """`M` (12, 12) and `f` (12,) of one link under a wrench about its origin, in its own components."""
        import casadi as ca

        link, R = model.tree.links[i], kin.nodes.links[i].R
        weight = stack(link.mass * gravity, zeros(9, None, R))
        M: Matrix = ca.kron(constant(_inertia(model, i, link.mass, link.I_C)), eye(3, R))
        return M, self.twist_matrix(model, i, R).T @ wrench + weight

    def _body_rows(self, kin: Kinematics) -> Iterator[Rows]:
        """The six distances of every link."""
        import casadi as ca

        assert isinstance(kin, VertexKinematics)
        n = 12 * len(kin.model.tree.links)
        for i, (link, r, u) in enumerate(zip(kin.model.tree.links, kin.r, kin.u, strict=True)):
            s = size(kin.model, i)
            for a, b in EDGES:
                d, rate = r[b] - r[a], u[b] - u[a]
                J = ca.SX(1, n)
                J[0, 12 * i + 3 * b : 12 * i + 3 * b + 3] = d.T
                J[0, 12 * i + 3 * a : 12 * i + 3 * a + 3] = -d.T
                phi = (dot(d, d) - (s * s if a == 0 else 2 * s * s)) / 2  # AT(4)
                name = f"{link.name}: half the square of its edge {a + 1}{b + 1}"
                label = RowLabel(f"body {link.name!r}", name, "m^2")
                yield Rows(RowTable([label]), J, -dot(rate, rate), type(J)(1, 1), phi)  # AT(6)

    def _lent(self, model: Model) -> np.ndarray | None:
        """Inertia lent to light links, and to flat ones, whose `B` has no inverse."""
        blocks, lent = [], lent_to_links(model).reshape(-1, 6)
        for i, (link, own) in enumerate(zip(model.tree.links, lent, strict=True)):
            moment, mass = own[0], own[3]
            if not own.any() and _is_flat(link):
                mass, moment = lent_amounts(model)
            blocks.append(np.kron(_inertia(model, i, mass, moment * np.eye(3)), np.eye(3)))
        if not any(block.any() for block in blocks):
            return None
        whole = np.zeros((12 * len(blocks),) * 2)
        for i, block in enumerate(blocks):
            whole[12 * i : 12 * i + 12, 12 * i : 12 * i + 12] = block
        return whole

    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """The distances eliminated, as `absolute_body`; their multipliers from what is left on the vertices."""
        import casadi as ca

        kin, links = parts.kin, parts.kin.model.tree.links
        first = len(EDGES) * len(links)
        inner = [k - first for k in kept if k >= first]
        reduced = self.solved_as
        y, held = reduced.solve(reduced.equations(parts.model, kin, parts.loads), inner)
        found = []
        for i, b in enumerate(kin.nodes.links):
            w, wdot = b.v[:3], constant(body_axes(kin.model, i)) @ y[6 * i : 6 * i + 3]
            found += [
                y[6 * i + 3 : 6 * i + 6]
                + size(kin.model, i) * (b.R @ (cross(wdot, constant(e)) + cross(w, cross(w, constant(e)))))
                for e in CORNERS
            ]
        udot = stack(*found) if found else y
        lam = ca.SX(len(parts.rows), 1)
        for k, row in enumerate(inner):
            lam[first + row] = held[k]
        left = parts.f - parts.M @ udot - parts.rows.J.T @ lam
        for i, b in enumerate(kin.nodes.links):
            lam[6 * i : 6 * i + 6] = _edge_forces(b.R, _split(left, i)) / size(kin.model, i)
        return udot, lam[list(kept), 0]

    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """`qdot = v`."""
        return v

    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Straight on."""
        return q + v

    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """Places and velocities of the vertices of every link."""
        apart, q, v = model.separate, [], []
        at = links_from_bodies(apart, poses, twists)
        for i in range(len(apart.tree.links)):
            R, r, twist = at[i]
            q += _vertices(apart, i, R, r)
            v.append(self.own_rates(apart, i, R, twist))
        return stack(*q), stack(*v)

    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Coordinates of the vertices."""
        for link in model.separate.tree.links:
            names = [(x, k) for k in range(1, 5) for x in "xyz"]
            coordinates = tuple((f"{x}_{k}", f"{x} of vertex {k}", "m") for x, k in names)
            rates = tuple((f"{x}dot_{k}", f"rate of {x} of vertex {k}", "m/s") for x, k in names)
            yield link.name, coordinates, rates, ""


def size(model: Model, i: int) -> float:
    """Distance `s` (m) of a link's vertices 2 to 4 from the first: about the link's size, a power of two.

    Division by it is exact. The size is a radius of gyration, or the distance from the centre of mass to a joint.
    """
    return _SIZES.find(model, None, lambda: _sizes(model))[i]


def _sizes(model: Model) -> list[float]:
    """Of every link; one that has none, a point mass whose joints are all there, gets that of the largest."""
    extents = []
    for i, link in enumerate(model.tree.links):
        c, m = nominal(link.com), nominal_of(link.mass)
        joints = [c, *(nominal(k.r) - c for k in model.tree.links if k.parent == i)]
        gyration = float(np.sqrt(np.trace(nominal(link.I_C)) / (2 * m))) if m > 0 else 0.0
        extents.append(max(gyration, *(float(np.linalg.norm(r)) for r in joints)))
    return [2.0 ** floor(log2(own or max(extents) or 1.0) + 0.5) for own in extents]


def _inertia(model: Model, i: int, mass: float, I_C: np.ndarray) -> np.ndarray:
    """`B` (4, 4), kg, of a mass with inertia about the centre of mass of link i, in the link's vertices."""
    return vertex_inertia(mass, I_C, size(model, i) * CORNERS)


def _is_flat(link: Link) -> bool:
    """Whether all mass of a link is in a plane: `B` has no inverse."""
    values = np.linalg.eigvalsh(second_moments(nominal(link.I_C)))
    return bool(values[0] <= LIGHT * values[-1])


def _edges(model: Model, i: int, r: list[Matrix]) -> Matrix:
    """Edges (3, 3) of link i from vertex 1 to the others, per their length: its axes, where these are kept."""
    return beside(*(x - r[0] for x in r[1:])) / size(model, i)


def _nearest_rotation(A: Matrix) -> Matrix:
    """The rotation (3, 3) nearest to a matrix that is almost one, to second order."""
    return A @ ((3 * eye(3, A) - A.T @ A) / 2)


def _vertices(model: Model, i: int, R: Matrix, r0: Matrix) -> list[Matrix]:
    """Places of the vertices of link i from its axes and origin."""
    first, s = r0 + R @ constant(model.tree.links[i].com), size(model, i)
    return [first, *(first + s * R[:, k] for k in range(3))]


def _split(x: Matrix, i: int) -> list[Matrix]:
    """The part of each vertex of link i in (12 links,)."""
    return [x[12 * i + 3 * k : 12 * i + 3 * k + 3] for k in range(4)]


def _edge_forces(R: Matrix, forces: list[Matrix]) -> Matrix:
    """Forces (6,) along the edges of a tetrahedron of size 1, per length, that balance forces on its vertices.

    Across edge 1k only the edges from vertex k to the other two act on it, each with one of their forces.
    """
    F = [R.T @ force for force in forces[1:]]
    across = {(k, m): -(F[k][m] + F[m][k]) / 2 for k in range(3) for m in range(3) if k != m}
    along = [F[k][k] - sum(across[k, m] for m in range(3) if m != k) for k in range(3)]
    return vector(*along, *(across[a - 1, b - 1] for a, b in EDGES if a))


POINTS_IN_SPACE: Formulation = PointsInSpace()
