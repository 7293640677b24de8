"""A rigid body in space as particles at the vertices of a tetrahedron and at the middles of its edges.

Notation: `m`, `c`, `I_C` are mass, centre of mass and inertia about it; `r` a place in the body. The ten numbers of a
body are one symmetric matrix, the moments of `[r; 1]`:

    J4 = sum m_i [r_i; 1] [r_i; 1]^T = [S + m c c^T, m c; m c^T, m]        S = tr(I_C)/2 1 - I_C

Four vertices that are not in one plane give every place `r = sum_i b_i r_i`, `sum b_i = 1`; with `P` the columns
`[r_i; 1]` it is `[r; 1] = P b`. So the body's moments of `b` are `B = P^-1 J4 P^-T` (4, 4). They never change, and the
body moves as

    r' = sum b_i r_i'        T = 1/2 sum_ij B_ij r_i' . r_j'

A particle at vertex i has `b = e_i`, one in the middle of an edge `b = (e_i + e_j)/2`. So the off-diagonal `B_ij` asks
for the mass `4 B_ij` in the middle of edge ij, and what is left of `B_ii` is at the vertex. For the two ends of a
uniform rod this is AT's rod: `m/6, 4m/6, m/6`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def second_moments(I_C: np.ndarray) -> np.ndarray:
    """`S` (3, 3), kg m^2: `sum m_i r_i r_i^T` about the centre of mass, from the inertia about it."""
    S: np.ndarray = np.trace(I_C) / 2 * np.eye(3) - I_C
    return S


def vertex_inertia(m: Any, I_C: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """`B` (4, 4), kg, of a body in four vertices (4, 3), m, from its centre of mass."""
    J4 = np.block([[second_moments(I_C), np.zeros((3, 1))], [np.zeros((1, 3)), np.array([[m]])]])
    inverse = np.linalg.inv(np.vstack([vertices.T, np.ones(4)]))
    B: np.ndarray = inverse @ J4 @ inverse.T
    return B


def edge_particles(B: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masses (10,), kg, and places (10, 3), m: the four vertices, then the middles of the six edges."""
    i, j = np.transpose(EDGES)
    own = 2 * np.diag(B) - B.sum(axis=1)  # B_ii less the quarter of its three edges' masses
    return np.concatenate([own, 4 * B[i, j]]), np.vstack([vertices, (vertices[i] + vertices[j]) / 2])
