"""KJ's equations, and those of joints treated alike: each follows from the one before, and is the engine's row.

Everything runs through CasADi's interpreter: no kernel is compiled.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.algebra.rotation import rotation_of_quaternion, unskew
from cardan.formulation.coordinates import own_equations
from cardan.formulation.registry import find_formulation
from cardan.formulation.spatial import SPATIAL
from cardan.textbook import EQUATIONS, SOURCES, Equation, kj_joints

from ..trees import KINDS, add_body, close, random_pose

pytestmark = pytest.mark.usefixtures("quick_code")

# Tests that run through all equations of a source, for docs/sources/equations.md.
COVERS = {"test_rows_of_the_engine_are_KJs": "KJ KJ-U KJ-P KJ-C KJ-L KJ-S"}
PITCH = 0.3
TURNS = {"prismatic": (0, 1, 2), "cylindrical": (0, 1), "planar": (0, 1), "screw": (0, 1)}
SLIDES = {"prismatic": (0, 1), "cylindrical": (0, 1), "planar": (2,), "screw": (0, 1)}
PAGES = dict(zip(("universal", "prismatic", "cylindrical", "planar", "screw"), kj_joints.JOINTS, strict=True))


def value(equation: Equation, letters: dict[str, Any]) -> Any:
    """The equation on CasADi symbols or on numbers, without a kernel."""
    return equation.function()(*(letters[name] for name in equation.inputs))


def numbers(equation: Equation, letters: dict[str, Any]) -> np.ndarray:
    return np.array(value(equation, letters)).ravel()


# Each level is the derivative of the one before, along any motion of two bodies.


@cache
def any_motion() -> tuple[Any, dict[str, Any]]:
    """Time, and KJ's letters along a motion of two bodies that no joint holds; `k`, `e` are fixed directions."""
    rng = np.random.default_rng(5)
    t = ca.SX.sym("t")

    def path(n: int) -> Any:
        return sum(ca.DM(rng.normal(size=n)) * t**k for k in range(4))

    def rate(x: Any) -> Any:
        return ca.reshape(ca.jacobian(ca.vec(x), t), x.shape)

    x: dict[str, Any] = {"pitch": PITCH}
    for name in ("q2_", "r2_", "f_B1_", "g_B1_", "e_B1_", "h_B1_", "f_B2_", "g_B2_", "e_B2_", "k_B2_"):
        x[name] = ca.DM(rng.normal(size=3))
    for k in (1, 2):
        x[f"p_G{k}"] = path(3)
        x[f"v_G{k}"] = rate(x[f"p_G{k}"])
        x[f"a_G{k}"] = rate(x[f"v_G{k}"])
        e = path(4)
        to_fixed = rotation_of_quaternion(e / ca.norm_2(e))
        x[f"R_B{k}"] = to_fixed.T
        x[f"w{k}"] = unskew(rate(to_fixed) @ to_fixed.T)
        x[f"w_{k}"] = unskew(to_fixed.T @ rate(to_fixed))
        x[f"wdot{k}"], x[f"wdot_{k}"] = rate(x[f"w{k}"]), rate(x[f"w_{k}"])
    x["q2"], x["r2"] = x["R_B1"].T @ x["q2_"], x["R_B2"].T @ x["r2_"]
    x["e"], x["k"] = x["R_B1"].T @ x["e_B1_"], x["R_B2"].T @ x["k_B2_"]
    x["s2"] = x["p_G2"] - x["p_G1"] - x["q2"] - x["r2"]
    x["s2_"], x["R_B1B2"] = x["R_B1"] @ x["s2"], x["R_B2"] @ x["R_B1"].T
    x["what"], x["what_"] = x["R_B1"] @ (x["w2"] - x["w1"]), x["R_B2"] @ (x["w2"] - x["w1"])
    for name in ("q2", "r2", "s2", "s2_", "what", "what_"):
        mark = "_" if name.endswith("_") else ""
        x[f"{name.rstrip('_')}dot{mark}"] = rate(x[name])
    x["s2ddot_"] = rate(x["s2dot_"])
    return t, x


def page_of(short: str) -> dict[Any, Equation]:
    """Equations of a joint's page by the text of their condition."""
    return {e.text.__code__: e for e in SOURCES[short].equations.values()}


@pytest.mark.parametrize("chain", [
    ("KJ_1", "KJ_1_rate", "KJ_2"), ("KJ_1", "KJ_1_rate_body", "KJ_3"), ("KJ_5_fixed", "KJ_7"), ("KJ_5_body", "KJ_9"),
    ("KJ_6_fixed", "KJ_8"), ("KJ_6_body", "KJ_10"),
    ("KJ_U_1", "KJ_U_2", "KJ_U_3"), ("KJ_U_1", "KJ_U_4", "KJ_U_5"), ("KJ_U_6", "KJ_U_7", "KJ_U_8"),
    ("KJ_U_6", "KJ_U_9", "KJ_U_10"),
    ("KJ_P_2", "KJ_P_3"), ("KJ_P_4", "KJ_P_5"), ("KJ_P_7", "KJ_P_8"), ("KJ_P_10", "KJ_P_11", "KJ_P_12"),
    ("KJ_P_10", "KJ_P_13", "KJ_P_14"), ("KJ_P_15", "KJ_P_16", "KJ_P_17"),
    ("KJ_S_20", "KJ_S_21"), ("KJ_S_22", "KJ_S_23"), ("KJ_S_25", "KJ_S_26"),
], ids=lambda chain: " ".join(chain))  # fmt: skip
def test_each_level_is_the_derivative_of_the_one_before(chain: tuple[str, ...]) -> None:
    t, letters = any_motion()
    values = [value(EQUATIONS[name], letters) for name in chain]
    below = [ca.jacobian(x, t) for x in values[:-1]]
    of = ca.Function("levels", [t], [*below, *values[1:]])
    for time in (0.1, -0.7, 0.4):
        found = [np.array(x).ravel() for x in of(time)]
        n = len(below)
        for lower, upper in zip(found[:n], found[n:], strict=True):
            assert np.abs(upper).max() > 1e-3
            close(lower, upper, 1e-12)


def test_vectors_of_KJ5_6_11_12_are_their_columns() -> None:
    """A scalar product is the same in any components, and its rate those of KJ(13)-(16)."""
    t, x = any_motion()
    R1, R2 = x["R_B1"].T, x["R_B2"].T
    vectors = {"omega1": x["w1"], "omega2": x["w2"], "omegahat": R1 @ x["what"]}
    vectors |= {f"{e}_B{k}": R @ x[f"{e}_B{k}_"] for e in "fg" for k, R in ((1, R1), (2, R2))}
    along = {(e, k): ca.dot(vectors[f"{e}_B{k}"], x["w2"] - x["w1"]) for e in "fg" for k in (1, 2)}
    named = {
        ("f", 1): ("KJ_5", "KJ_11", "KJ_5_fixed", "KJ_5_body"), ("f", 2): ("KJ_5_B2", "KJ_11_B2"),
        ("g", 1): ("KJ_6", "KJ_12", "KJ_6_fixed", "KJ_6_body"), ("g", 2): ("KJ_6_B2", "KJ_12_B2"),
    }  # fmt: skip
    rates = {("f", 1): "KJ_13", ("g", 1): "KJ_14", ("f", 2): "KJ_15", ("g", 2): "KJ_16"}
    pairs = [(value(EQUATIONS[name], x | vectors), along[key]) for key, names in named.items() for name in names]
    pairs += [(value(EQUATIONS[name], x), ca.jacobian(along[key], t)) for key, name in rates.items()]
    found = ca.Function("pairs", [t], [ca.vertcat(*column) for column in zip(*pairs, strict=True)])(0.3)
    close(*map(np.array, found), 1e-12)


def test_KJ1_places_the_second_body() -> None:
    t, x = any_motion()
    numbers_ = ca.Function("KJ1", [t], [value(EQUATIONS["KJ_1_place"], x) + value(EQUATIONS["KJ_1"], x) - x["p_G2"]])(1)
    close(np.array(numbers_), np.zeros((3, 1)), 1e-13)


# Against the rows of the engine.


class Pair:
    """Two bodies, the first free, with a joint between them; rows of the joint in a formulation's own coordinates."""

    def __init__(self, kind: str, formulation: str) -> None:
        rng = np.random.default_rng(sum(kind.encode()))
        m = cd.Mechanism("pair")
        for name in ("B1", "B2"):
            add_body(m, name, rng)
        m.joint("free", cd.Free(), m.ground, "B1")
        joint = cd.Screw(axis=rng.normal(size=3), pitch=PITCH) if kind == "screw" else KINDS[kind](rng)
        m.joint("joint", joint, "B1", "B2", at=random_pose(rng), child_at=random_pose(rng))
        self.model, self.kind, found = m.build(), kind, find_formulation(formulation)
        self.relative, self.in_body = formulation == "relative", formulation == "absolute_body"
        nq, nv = found.sizes(self.model)
        q, v = ca.SX.sym("q", nq), ca.SX.sym("v", nv)
        parts = own_equations(self.model, found, {"q": q, "v": v, "tau": ca.SX(self.model.nv, 1), "t": ca.SX(0)})
        at = parts.rows.of("joint 'joint'")
        rows = parts.rows
        self.rows = ca.Function("rows", [q, v], [rows.J[at, :], rows.gamma[at], rows.phi[at]])
        qt, vt = ca.SX.sym("q", self.model.nq), ca.SX.sym("v", self.model.nv)
        self.own = ca.Function("own", [qt, vt], list(found.project(self.model, *SPATIAL.lift(self.model, qt, vt))))

    def state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates and rates that the joint allows."""
        return tuple(np.array(x).ravel() for x in self.own(*self.model.random_state(rng)))

    def letters(self, q: np.ndarray, u: np.ndarray, udot: np.ndarray) -> dict[str, Any]:
        """KJ's letters; in relative coordinates the joint's frames are the axes of the bodies."""
        joint = self.model.joints[-1]
        x: dict[str, Any] = {"pitch": PITCH}
        if self.relative:
            R = np.asarray(rotation_of_quaternion(q[10:14]), dtype=float)
            w, s, wdot, sdot = u[6:9], u[9:], udot[6:9], udot[9:]
            x |= {"R_B1B2": R.T, "s2_": q[7:10], "s2dot_": R @ s, "s2ddot_": R @ (sdot + np.cross(w, s))}
            x |= {"what": R @ w, "what_": w, "whatdot": R @ wdot, "whatdot_": wdot}
            F, M, FM = np.eye(3), np.eye(3), R
        else:
            for k, body in ((1, self.model.bodies[0]), (2, self.model.bodies[1])):
                own, rate, acceleration = q[7 * k - 7 : 7 * k], u[6 * k - 6 : 6 * k], udot[6 * k - 6 : 6 * k]
                x[f"p_G{k}"], x[f"v_G{k}"], x[f"a_G{k}"] = own[:3], rate[3:], acceleration[3:]
                x[f"R_B{k}"] = R = np.asarray(rotation_of_quaternion(own[3:]), dtype=float).T
                mark, w = ("_", R.T @ rate[:3]) if self.in_body else ("", rate[:3])
                x[f"w{mark}{k}"], x[f"wdot{mark}{k}"] = rate[:3], acceleration[:3]
                arm, c = (("q2", joint.at.position), ("r2", joint.child_at.position))[k - 1], body.com
                x[f"{arm[0]}_"] = arm[1] - c if k == 1 else c - arm[1]
                x[arm[0]] = R.T @ x[f"{arm[0]}_"]
                x[f"{arm[0]}dot"] = np.cross(w, x[arm[0]])
                x[f"fixed w{k}"] = w
            x["s2"] = x["p_G2"] - x["p_G1"] - x["q2"] - x["r2"]
            x["s2dot"] = x["v_G2"] - x["v_G1"] - x["q2dot"] - x["r2dot"]
            x["s2_"] = x["R_B1"] @ x["s2"]
            x["s2dot_"] = x["R_B1"] @ (x["s2dot"] - np.cross(x["fixed w1"], x["s2"]))
            F, M = joint.at.rotation, joint.child_at.rotation
            FM = F.T @ x["R_B1"] @ x["R_B2"].T @ M
        x["F"], x["M"], x["FM"] = F, M, FM
        x["theta"] = np.arctan2(FM[1, 0], FM[0, 0])
        for k, axes in ((1, F), (2, M)):
            x |= {f"{e}_B{k}_": axes[:, i] for i, e in enumerate("fgh")}
        x["e_B1_"], x["k_B2_"] = F[:, 0], M[:, 1]
        if not self.relative:
            x["e"], x["k"] = x["R_B1"].T @ x["e_B1_"], x["R_B2"].T @ x["k_B2_"]
        return x

    def written(self, level: str, x: dict[str, Any]) -> np.ndarray:
        """KJ's equations of the joint, all rows, at "place", "" (rate) or "dot" (acceleration)."""
        way = "_relative" if self.relative else "_body" if self.in_body else "_fixed"
        placed = {"_relative": "_relative_place"}.get(way, "_place") if level == "place" else way
        dotted = "dot" if level == "dot" else ""
        T, found = EQUATIONS, []
        if self.kind in ("spherical", "revolute", "universal"):
            if self.kind == "revolute" and level != "place":
                names = {"_fixed": ("KJ_5_fixed", "KJ_6_fixed", "KJ_7", "KJ_8"),
                         "_body": ("KJ_5_body", "KJ_6_body", "KJ_9", "KJ_10"),
                         "_relative": ("KJ_11", "KJ_12", "KJ_13", "KJ_14")}[way]  # fmt: skip
                own = x | {"f_B1": x["f_B1_"], "g_B1": x["g_B1_"], "omegahat": x.get("what")}
                found += [numbers(T[name], own) for name in names[2 if dotted else 0 :][:2]]
            if self.kind == "universal":
                condition = getattr(kj_joints, f"square{dotted}{placed}")
                found.append(numbers(page_of("KJ-U")[condition.__code__], x))
            if self.relative:
                k = ("place", "", "dot").index(level)
                found.append(np.array(value(T["KJ_4"], x)[k]).ravel())
            else:
                name = {"place": "KJ_1", "": "KJ_1_rate", "dot": "KJ_2"}[level]
                name = {"": "KJ_1_rate_body", "dot": "KJ_3"}.get(level, name) if self.in_body else name
                found.append(numbers(T[name], x))
            return np.concatenate(found)
        page = page_of(PAGES[self.kind].short)
        for group, directions in (("turn", TURNS[self.kind]), ("slide", SLIDES[self.kind])):
            if group == "turn" and level == "place":
                after = {0: 1, 1: 2, 2: 0} if self.kind == "prismatic" else dict.fromkeys((0, 1), 2)
                for i in directions:
                    square = page[getattr(kj_joints, f"square{placed}").__code__]
                    found.append(numbers(square, x | {"e_B1_": x["F"][:, i], "k_B2_": x["M"][:, after[i]]}))
                continue
            equation = page[getattr(kj_joints, f"{group}{dotted}{placed}").__code__]
            found += [numbers(equation, x | {"e_B1_": x["F"][:, i]}) for i in directions]
        if self.kind == "screw":
            found.append(numbers(page[getattr(kj_joints, f"screw{dotted}{placed}").__code__], x))
        return np.concatenate(found)

    def directions(self, x: dict[str, Any]) -> np.ndarray:
        """Forces (6, k) of KJ's rows, in F at the joint's point on B2: what multiplies the relative twist."""
        e = np.eye(3)
        K = []
        if self.kind in ("spherical", "revolute", "universal"):
            if self.kind == "revolute":
                K = [(e[0], 0 * e[0]), (e[1], 0 * e[0])]
            if self.kind == "universal":
                K = [(np.cross(x["FM"][:, 1], e[0]), 0 * e[0])]
            K += [(0 * e[0], axis) for axis in (e if self.relative else x["R_B1"].T @ x["F"])]
        else:
            K = [(e[i], 0 * e[0]) for i in TURNS[self.kind]] + [(0 * e[0], e[i]) for i in SLIDES[self.kind]]
            K += [(-PITCH * e[2], e[2])] if self.kind == "screw" else []
        return np.array([np.concatenate(k) for k in K]).T


ALL_KINDS = ("spherical", "revolute", *PAGES)


@cache
def pair(kind: str, formulation: str) -> Pair:
    return Pair(kind, formulation)


@pytest.mark.parametrize("formulation", ["absolute", "absolute_body", "relative"])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_rows_of_the_engine_are_KJs(kind: str, formulation: str) -> None:
    p, rng = pair(kind, formulation), np.random.default_rng(9)
    row = p.model.joints[-1].kind
    for _ in range(3):
        q, u = p.state(rng)
        any_u, udot = rng.normal(size=(2, 12))
        J, gamma, phi = (np.array(x) for x in p.rows(q, u))
        gamma, phi = gamma.ravel(), phi.ravel()
        x = p.letters(q, u, udot)
        T = np.asarray(row.T(row.measure(x["FM"], x["FM"] @ np.zeros(3))), dtype=float)
        K = p.directions(x)
        K_M = np.vstack([x["FM"].T @ K[:3], x["FM"].T @ K[3:]])
        Q = K_M.T @ np.linalg.pinv(T.T)
        close(Q @ T.T, K_M.T, 1e-12)  # the same rows, combined
        assert np.linalg.cond(Q) < 5
        assert np.abs(p.written("place", x)).max() < 1e-12
        assert np.abs(phi).max() < 1e-12
        close(p.written("", p.letters(q, any_u, udot)), Q @ (J @ any_u), 1e-12)
        close(p.written("", x), np.zeros(len(phi)), 1e-12)
        close(p.written("dot", x), Q @ (J @ udot - gamma), 1e-12)


@pytest.mark.parametrize("formulation", ["absolute", "absolute_body", "relative"])
@pytest.mark.parametrize("kind", ["universal", "prismatic", "planar", "screw"])
def test_residuals_far_from_the_joint_are_KJs(kind: str, formulation: str) -> None:
    """Where the engine's residual is KJ's own: cosine of the cross's axes, and the distances along f, g, h."""
    p, rng = pair(kind, formulation), np.random.default_rng(2)
    q, u = p.state(rng)
    q = q + 0.3 * rng.normal(size=14)
    for k in (3, 10):
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    x = p.letters(q, u, u)
    phi, written = np.array(p.rows(q, u)[2]).ravel(), p.written("place", x)
    assert np.abs(written).max() > 0.05
    if kind == "universal":
        close(phi[0], -written[0], 1e-12)
        axes = x["FM"].T if p.relative else x["M"].T @ x["R_B2"]
        close(phi[1:], axes @ written[1:], 1e-12)
    elif kind == "screw":
        close(phi[-1], written[-1], 1e-12)
    else:
        close(phi[len(TURNS[kind]) :], written[len(TURNS[kind]) :], 1e-12)


def test_the_angle_of_a_screw() -> None:
    p = pair("screw", "absolute")
    q, u = p.state(np.random.default_rng(3))
    x = p.letters(q, u, u)
    close(numbers(EQUATIONS["KJ_S_18"], x), [np.tan(x["theta"])], 1e-12)
    for name in ("KJ_S_19", "KJ_S_24"):
        advance = numbers(EQUATIONS[name], x | {"theta": 0.0})
        close(advance, [PITCH * x["theta"]], 1e-12)
        assert abs(advance[0]) > 1e-3


def test_KJ4_is_the_relative_place_and_its_rates() -> None:
    """`s2'` is KJ(1) in the axes of B1; its rates in these axes vanish with it."""
    t, x = any_motion()
    s = x["R_B1"] @ value(EQUATIONS["KJ_1"], x)
    levels = [s, ca.jacobian(s, t), ca.jacobian(ca.jacobian(s, t), t)]
    found = ca.Function("KJ4", [t], [*levels, *value(EQUATIONS["KJ_4"], x)])(0.2)
    close(np.array(ca.horzcat(*found[:3])), np.array(ca.horzcat(*found[3:])), 1e-12)


@pytest.mark.parametrize("kind", ["universal", "prismatic", "cylindrical", "planar", "screw", "revolute"])
def test_relative_rows_in_components_of_B2(kind: str) -> None:
    """KJ(15),(16) and the same of the other joints: the engine's own rows, which are in the child's axes."""
    p, rng = pair(kind, "relative"), np.random.default_rng(4)
    q, u = p.state(rng)
    any_u, udot = rng.normal(size=(2, 12))
    J, gamma, _ = (np.array(x) for x in p.rows(q, u))
    error, x = J @ udot - gamma.ravel(), p.letters(q, u, udot)
    if kind == "universal":
        close(numbers(EQUATIONS["KJ_U_10"], x), -error[:1], 1e-12)
        close(numbers(EQUATIONS["KJ_U_9"], p.letters(q, any_u, udot)), -(J @ any_u)[:1], 1e-12)
        return
    equation = EQUATIONS["KJ_15" if kind == "revolute" else "KJ_P_9"]
    name = "f_B2_" if kind == "revolute" else "e_B2_"
    n = len(TURNS.get(kind, (0, 1)))
    close([float(numbers(equation, x | {name: np.eye(3)[i]})[0]) for i in range(n)], error[:n], 1e-12)


def test_the_pages_of_the_joints_are_current() -> None:
    file = Path(__file__).resolve().parents[2] / "docs" / "make_joints.py"
    spec = importlib.util.spec_from_file_location("make_joints", file)
    assert spec is not None and spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    for joint in pages.JOINTS:
        text = (file.parent / "sources" / f"kj_{joint.name}.md").read_text()
        assert text == pages.page(joint), f"run python docs/make_joints.py for {joint.name}"
