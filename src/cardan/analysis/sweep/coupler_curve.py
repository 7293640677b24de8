"""How far a coupler curve is from a given one, summed up while the crank turns.

The given curve `w` is a Fourier series over the turn of the crank, so that it can be evaluated at any position and has
few numbers; coupler curves have few harmonics. With `z` the point of the linkage in the plane, as complex numbers,
and sums over all n positions, `w` of mean 0 and mean square 1:

    similar     min over s, t of  mean |w - s z - t|^2 = 1 - |sum w* z|^2 / (n sum |z - mean z|^2)
    in place    mean |w - (z - m) / r|^2,  m and r mean and size of the given curve

"similar" leaves scale, rotation and place of the linkage free: a drawing can be enlarged, turned and moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.errors import InputError
from cardan.model.values import array

FITS = ("similar", "in_place")
SLOPE, NORMAL = "slope", "normal"  # derivatives: of the error; for normal equations
_COMPLEX = np.array([1, 1j])
HARMONICS = 16
LEFT_OUT, TOO_MUCH = 1e-4, 0.03  # of the curve's size: so much of it is left to higher harmonics, or may be


@dataclass(frozen=True)
class Curve:
    """A curve in the plane over a turn of the crank, by harmonics `1..count` and `-1..-count`."""

    count: int
    fit: str
    axes: tuple[int, int]

    @property
    def size(self) -> int:
        """Numbers of the target: centre, size, and real and imaginary parts of harmonics -count..-1, 1..count."""
        return 3 + 4 * self.count

    def sums(self, designs: int, by: str) -> dict[str, int]:
        """What is summed up, by name, with its size: with derivatives by so many numbers, and with their products.

        `sum_zz_by` are the sums of `z* z'`, real parts first; `sum_by_by` those of the real parts of `z'* z'`.
        """
        found = {"sum_z": 2, "sum_zz": 1, "sum_wz": 2}
        if by:
            found |= {"sum_z_by": 2 * designs, "sum_zz_by": 2 * designs, "sum_wz_by": 2 * designs}
        return found | ({"sum_by_by": designs * (designs + 1) // 2} if by == NORMAL else {})

    def add(self, s: dict[str, Any], z: Matrix, turn: Matrix, counts: Matrix, z_by: Matrix | None) -> dict[str, Matrix]:
        """The sums with one position more, where it counts; `turn` is the position as part of a turn."""
        import casadi as ca

        x, y = z[self.axes[0]] - s["target"][0], z[self.axes[1]] - s["target"][1]
        wx, wy = self._at(s["target"], turn)
        here = {"sum_z": ca.vertcat(x, y), "sum_zz": x * x + y * y}
        here["sum_wz"] = ca.vertcat(wx * x + wy * y, wx * y - wy * x)
        if z_by is not None:
            dx, dy = z_by[self.axes[0], :].T, z_by[self.axes[1], :].T
            here["sum_z_by"] = ca.vertcat(dx, dy)
            here["sum_zz_by"] = ca.vertcat(x * dx + y * dy, x * dy - y * dx)
            here["sum_wz_by"] = ca.vertcat(wx * dx + wy * dy, wx * dy - wy * dx)
            pairs = [(i, j) for i in range(dx.shape[0]) for j in range(i + 1)]
            here["sum_by_by"] = ca.vertcat(*(dx[i] * dx[j] + dy[i] * dy[j] for i, j in pairs))
        return {name: s[name] + ca.if_else(counts, value, 0) for name, value in here.items() if name in s}

    def _at(self, target: Matrix, turn: Matrix) -> tuple[Matrix, Matrix]:
        """The target at a part of a turn, by Horner's rule in `e^(i angle)` and its conjugate."""
        import casadi as ca

        c, s = ca.cos(2 * np.pi * turn), ca.sin(2 * np.pi * turn)
        total = [ca.SX(0), ca.SX(0)]
        for sense, first in ((-1, 3), (1, 3 + 2 * self.count)):
            re, im = ca.SX(0), ca.SX(0)
            for k in reversed(range(self.count)):
                a, b = target[first + 2 * k], target[first + 2 * k + 1]
                re, im = a + re, b + im
                re, im = re * c - sense * (im * s), sense * (re * s) + im * c
            total = [total[0] + re, total[1] + im]
        return total[0], total[1]

    def error(self, sums: dict[str, Matrix], count: Matrix, s: dict[str, Any]) -> tuple[Matrix, Matrix | None]:
        """Root mean square distance by the size of the given curve, and its derivative."""
        import casadi as ca

        z, zz, c = sums["sum_z"], sums["sum_zz"], sums["sum_wz"]
        count = ca.fmax(count, 1)
        if self.fit == "similar":
            S = zz - ca.dot(z, z) / count
            square = 1 - ca.dot(c, c) / (count * S)
        else:
            r = s["target"][2]
            square = 1 + zz / (count * r**2) - 2 * c[0] / (count * r)
        error = ca.sqrt(ca.fmax(square, 0))
        if "sum_z_by" not in sums:
            return error, None
        n = sums["sum_z_by"].shape[0] // 2
        z_by, c_by = (ca.horzcat(sums[name][:n], sums[name][n:]) for name in ("sum_z_by", "sum_wz_by"))
        zz_by = 2 * sums["sum_zz_by"][:n]
        if self.fit == "similar":
            S_by = zz_by - 2 * (z_by @ z) / count
            square_by = (-2 * (c_by @ c) + (ca.dot(c, c) / S) * S_by) / (count * S)
        else:
            square_by = zz_by / (count * r**2) - 2 * c_by[:, 0] / (count * r)
        return error, square_by / (2 * ca.fmax(error, 1e-12))


def harmonics_of(owner: str, points: Any) -> tuple[int, np.ndarray]:
    """How many harmonics a closed curve (n, 2) takes, m, and the numbers of the target."""
    points = array(owner, "curve", points)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 4:
        raise InputError(f"{owner}: the curve must be points (n, 2) in m, 4 or more over a turn, got {points.shape}")
    if not np.isfinite(points).all():
        raise InputError(f"{owner}: the curve has points that are not finite")
    w = points[:, 0] + 1j * points[:, 1]
    n, mean = len(w), w.mean()
    size = float(np.sqrt((np.abs(w - mean) ** 2).mean()))
    if size < 1e-12 * max(1.0, abs(mean)):
        raise InputError(f"{owner}: all points of the curve are the same; a curve has some extent")
    c = np.fft.fft((w - mean) / size) / n
    most = min(HARMONICS, (n - 1) // 2)
    for count in range(1, most + 1):
        chosen = np.array([*(-k for k in range(1, count + 1)), *range(1, count + 1)])
        left = float(np.sqrt(max(1 - (np.abs(c[chosen]) ** 2).sum(), 0.0)))
        if left < LEFT_OUT:
            break
    if left > TOO_MUCH:
        raise InputError(
            f"{owner}: {left:.1%} of the curve is in higher harmonics of the crank than {most}, which linkages hardly "
            "follow; give a smoother curve, or more points"
        )
    kept = c[chosen] / np.sqrt((np.abs(c[chosen]) ** 2).sum())
    return count, np.concatenate([[mean.real, mean.imag, size], np.stack([kept.real, kept.imag], axis=-1).ravel()])


def curve_points(target: np.ndarray, count: int, n: int) -> np.ndarray:
    """Points (n, 2), m, of a target over a turn."""
    c = target[3:].reshape(-1, 2) @ [1, 1j]
    turns = np.arange(n) / n
    k = np.array([*(-k for k in range(1, count + 1)), *range(1, count + 1)])
    w = np.exp(2j * np.pi * turns[:, None] * k) @ c * target[2]
    return np.stack([w.real + target[0], w.imag + target[1]], axis=-1)


def normal_equations(curve: Curve, sums: np.ndarray, count: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    """`H` (k, m, m) and `g` (k, m) of the mean square distance from sums (k, ...) over `count` positions.

    With "similar", what a change of scale, rotation and place would undo is left out of the derivatives of the
    distances (Kaufman, BIT 15 (1975) 49-57).
    """
    n, total = 0, sums.shape[-1]
    while sum(curve.sums(n, NORMAL).values()) < total:
        n += 1
    ends = np.cumsum([0, *curve.sums(n, NORMAL).values()])
    z, zz, wz, z_by, zz_by, wz_by, products = (sums[:, a:b] for a, b in pairwise(ends))
    z, wz = z @ _COMPLEX, wz @ _COMPLEX
    z_by, zz_by, wz_by = (x[:, :n] + 1j * x[:, n:] for x in (z_by, zz_by, wz_by))
    H = np.zeros((len(sums), n, n))
    lower = np.tril_indices(n)
    H[:, lower[0], lower[1]] = H[:, lower[1], lower[0]] = products
    if curve.fit == "in_place":
        return H / (count * size**2), (zz_by.real / size**2 - wz_by.real / size) / count
    S = zz[:, 0] - np.abs(z) ** 2 / count
    along = zz_by - z.conj()[:, None] * z_by / count  # of z' along z, both less their means
    H -= (z_by.conj()[:, :, None] * z_by[:, None, :]).real / count
    H -= (along.conj()[:, :, None] * along[:, None, :]).real / S[:, None, None]
    s = wz.conj() / S
    g = -(s.conj()[:, None] * (wz_by - along * (wz / S)[:, None]).conj()).real
    return np.abs(s[:, None, None]) ** 2 * H / count, g / count


def centred(x: np.ndarray, axis: int = 0) -> np.ndarray:
    """Numbers less their mean along an axis."""
    return np.asarray(x - x.mean(axis=axis, keepdims=True))
