"""Strict type checking reads the mathematics: mypy accepts correct lines and rejects wrong ones, one by one."""

import re
from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api")

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
from __future__ import annotations

import casadi as ca
import numpy as np

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import AnyMatrix, Matrix, Scalar, as_graph, block, dot, eye, matrix, stack, vector, where
from cardan.algebra.rotation import cross, rotation_of_quaternion, skew, turn_z
from cardan.algebra.spatial import Transform, crf, rigid_inertia, shifted, turned
from cardan.model.force import Coupling
from cardan.model.transform import joint_transform
"""
# What a formulation writes (symbols), what a model computes (arrays), and text that serves both.
RIGHT = """
def symbols(q: Matrix, v: Matrix, m: Scalar) -> Matrix:
    R = rotation_of_quaternion(q)
    X: Transform = Transform((turned(R), shifted(v[:3])))
    f = X.T @ (crf(v) @ stack(R @ v[:3], 2 * v[3:]))
    return f / m + (dot(v, v) - 1) * v

def arrays(q: np.ndarray, com: np.ndarray) -> np.ndarray:
    X = Transform((turned(rotation_of_quaternion(q)), shifted(com)))
    return X.congruence(rigid_inertia(1.0, com, np.eye(3)))

def both(a: AnyMatrix, b: AnyMatrix) -> AnyMatrix:
    return skew(a) @ b + eye(3, a) @ cross(a, b)

def mixed(q: Matrix, c: np.ndarray) -> Matrix:
    return skew(as_graph(c, q)) @ q + stack(vector(q[0]), np.zeros(2)) + turn_z(q[0]) @ q

def solved(A: Matrix, b: Matrix) -> Matrix:
    return where(b[0] < 0, -1.0, 1.0) * ldl_solve(ldl_factor(A), b)

def rates(coupling: Coupling, t: Matrix) -> Matrix:
    g, gdot, gddot = coupling.right_side(t)
    return g + gdot * t + gddot * t**2
"""
# Each of these lines is wrong. R is a 3x3 matrix of symbols, v a vector of symbols, x an array of numbers.
WRONG = """
cross(v)
skew(v, v)
cross(v, "x")
R + "x"
"x" * R
R @ None
skew(v).foo
skew("abc")
skew(3.0)
skew([1.0, 2.0, 3.0])
cross(v, x)
dot(v, 1.0)
turn_z(None)
turn_z("0.5")
vector(v[0], "0")
matrix([[v[0], None]])
stack(v, 0.0)
block([R, R])
ldl_solve(R, v)
rigid_inertia(v, 1.0, R)
Transform((R, "shift"))
Transform((R,)) @ 2
joint_transform(R, v, R, v)
Coupling.right_side(v, "t")
a: Matrix = 1.0
b: Matrix = x
c: np.ndarray = skew(v)
d: np.ndarray = rotation_of_quaternion(v)
e: float = dot(v, v)
"""


def test_mypy_checks_the_mathematics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    wrong = [line for line in WRONG.splitlines() if line]
    body = "\n".join(f"    {line}" for line in wrong)
    text = f"{HEAD}{RIGHT}\n\ndef wrong(R: Matrix, v: Matrix, x: np.ndarray) -> None:\n{body}\n"
    path = tmp_path / "mathematics.py"
    path.write_text(text)
    # the cache of `make lint`, where there is one: without it this takes 15 s
    out, errors, _ = mypy.run(
        ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), str(path)]
    )
    assert not errors, errors
    found = {int(line) for line in re.findall(r"mathematics\.py:(\d+): error", out)}
    first = text.splitlines().index(f"    {wrong[0]}") + 1
    assert not [line for line in found if line < first], f"mypy rejects correct lines\n{out}"
    accepted = [line for k, line in enumerate(wrong, first) if k not in found]
    assert not accepted, f"mypy accepts {accepted}\n{out}"
