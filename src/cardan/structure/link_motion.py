"""Poses and rates of all links of a large tree, by NumPy, without compiling anything.

What one joint does is taken from the joint table, for all joints of a kind at once. Poses are products, and rates sums,
along the way to the ground. They are formed by doubling: every link is taken together with its ancestor, then with the
ancestor of that, so that a chain of n links takes log2(n) rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.lazy import cached_property
from cardan.model.joint import Kind
from cardan.model.tree import GROUND, Tree


class LinkMotion:
    """The motion of the links of a tree, n of them, whose numbers are constants."""

    def __init__(self, tree: Tree) -> None:
        self.links, self.nq = tree.links, tree.nq
        self.parent = np.array([link.parent for link in tree.links], dtype=int)
        self.E = np.array([link.E for link in tree.links], dtype=float).reshape(-1, 3, 3)
        self.r = np.array([link.r for link in tree.links], dtype=float).reshape(-1, 3)

    @cached_property
    def kinds(self) -> list[tuple[Kind, np.ndarray, np.ndarray, np.ndarray]]:
        """Each kind of joint with its links (m,), and their places in q (m, nq) and v (m, nv)."""
        groups: dict[str, list[int]] = {}
        for i, link in enumerate(self.links):
            groups.setdefault(link.kind.identity, []).append(i)
        found = []
        for members in groups.values():
            kind = self.links[members[0]].kind
            q = np.array([self.links[i].q.start for i in members])[:, None] + np.arange(kind.nq)
            v = np.array([self.links[i].v.start for i in members])[:, None] + np.arange(kind.nv)
            found.append((kind, np.array(members), q, v))
        return found

    def plus(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """The configuration (nq,) after moving with rates (nv,) for unit time."""
        moved = np.array(q, dtype=float)
        for kind, _, at, rates in self.kinds:
            if kind.nv:
                moved[at] = for_all(kind.plus, q[at], dq[rates])[..., 0]
        return moved

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Axes (n, 3, 3) and origins (n, 3), m, of the links in the ground at a configuration (nq,)."""
        R, r = self.E.transpose(0, 2, 1).copy(), self.r.copy()
        for kind, members, at, _ in self.kinds:
            if kind.r is not None:
                r[members] += np.einsum("nij,nj->ni", R[members], for_all(kind.r, q[at])[..., 0])
            if kind.E is not None:
                R[members] = R[members] @ for_all(kind.E, q[at]).transpose(0, 2, 1)
        for own, above in self._rounds:
            r[own] = r[above] + np.einsum("nij,nj->ni", R[above], r[own])
            R[own] = R[above] @ R[own]
        return R, r

    def rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular velocity and velocity (n, 6) of the point of each link at the ground's origin, in ground axes."""
        R, r = self.poses(q)
        u = np.zeros((len(self.links), 6))
        for kind, members, at, rates in self.kinds:
            if kind.nv:
                own = np.einsum("nij,nj->ni", for_all(kind.S, q[at]), v[rates]).reshape(-1, 2, 3)
                turn, speed = np.einsum("nij,nkj->kni", R[members], own)
                u[members] = np.concatenate([turn, speed + np.cross(r[members], turn)], axis=1)
        for own, above in self._rounds:
            u[own] += u[above]
        return u

    @cached_property
    def _rounds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Links, and the ancestor whose product is put before theirs; in each round all at once."""
        above, found = self.parent.copy(), []
        while (above != GROUND).any():
            own = np.flatnonzero(above != GROUND)
            found.append((own, above[own]))
            above[own] = above[above[own]]
        return found


def for_all(function: Callable[..., Any], *columns: np.ndarray) -> np.ndarray:
    """A function of symbols, such as those of the joint table, at many joints: (m, rows, columns) of (m, .)."""
    import casadi as ca

    symbols = [ca.SX.sym("x", x.shape[1]) for x in columns]
    value = ca.SX(function(*symbols))
    m, (rows, width) = len(columns[0]), value.shape
    graph = ca.Function("joint", symbols, [ca.densify(value)])
    if m == 1 or not symbols[0].numel():
        return np.broadcast_to(np.array(graph(*(x[0] for x in columns))).reshape(1, rows, width), (m, rows, width))
    found = np.array(graph.map(m)(*(x.T for x in columns)))
    return found.reshape(rows, m, width).transpose(1, 0, 2)
