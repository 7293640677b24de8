"""The equations of motion of a large mechanism for the implicit integrators, summed over its components.

The coordinates are those of the formulation. In a plane each body with six rates has three that move at all; the others
and the rows that hold them are left out: they hold by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.matrix import Matrix, snap, stack
from cardan.formulation.absolute import ABSOLUTE, Absolute
from cardan.formulation.coordinates import own_equations
from cardan.formulation.division import ComponentClass, heaviest_bodies, longest_subtree, row_places
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.light import lent_to_joints, lent_to_links
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.component_sums import Component, Components, ComponentSum, Symbols
from cardan.structure.kernels import LOOP_PAST, tree_kernel
from cardan.structure.rows import independent_rows, pivots, scaled

RATES_WITH_LOOPS_PAST = 40  # of the tree: one straight line with loops takes half a minute to compile
SIX_RATES_PAST = 16  # links: with six rates each one straight line takes a minute to compile
OWN_RATES_PAST = 35  # of other formulations: there one straight line took 5 s and more
LARGEST_PIECE = 24  # links of a piece of the tree up to which its own coordinates are taken
CORRECTIONS = 4  # iterative refinements of the first accelerations, for the added inertia and the enlarged pivots
SINGULAR = 1e-12  # part of a multiplier's pivot that is added to it, so that it stays bounded where rows lose rank
PROJECTIONS, CLOSED = (
    6,
    1e-13,
)  # steps of Newton's method onto the constraints, and the gap (m, rad, 1/s) that ends them
IN_PLANE = 1e-9  # of a row's size: less is none
STATE = {"t": "all", "q": "q", "v": "v", "tau": "tau", "about": "x"}


def written_parts(c: Component, s: Symbols, q: Matrix) -> Parts:
    """A component's equations at coordinates `q`, at rates `v` of the whole."""
    if c.parts is not None:
        return c.parts  # at these already
    state = {"t": s["t"], "q": q, "v": c.wide(s["v"]), "tau": s["tau"]}
    return own_equations(c.model, c.formulation, state | ({} if c.formulation.in_tree else {"about": s["about"]}))


def takes_sums(model: Model, formulation: Formulation, newton_recorded: bool) -> bool:
    """Whether an implicit integrator sums over components, or takes the whole as one, rather than record its steps.

    `newton_recorded` says whether the solution of Newton's equations would be part of that line: it then grows faster.
    It depends on the mechanism alone: the steps of a system are the same in every batch.
    """
    if model.controllers:  # which tie all components together
        return False
    if not newton_recorded:
        return len(model.tree.links) > LOOP_PAST and is_sum(formulation)
    if formulation.in_tree:
        return model.nv > (RATES_WITH_LOOPS_PAST if model.has_rows else LOOP_PAST)
    if is_sum(formulation):
        return len(model.separate.tree.links) > SIX_RATES_PAST
    return formulation.sizes(model)[1] > OWN_RATES_PAST


def is_sum(formulation: Formulation) -> bool:
    """Whether its equations are a sum over links, joints and elements; if not, the whole is one component."""
    return formulation.in_tree or (isinstance(formulation, Absolute) and formulation.divides)


class System:
    """A model in the coordinates of an implicit integrator: sizes, equations, and the start of a run.

    `sum` gives quantities of the whole; `lent` (nv, nv) is inertia lent to what has none.
    """

    model: Model
    nq: int
    nv: int
    m: int
    mp: int
    lent: Any
    components: Any

    def sum(self, name: str, inputs: Any, outputs: Any, write: Any, only: Any = None) -> Any:
        """What `write` writes of every component, added up; made on first use."""
        raise NotImplementedError

    def into(self, x: np.ndarray, w: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates and rates from those of the tree."""
        raise NotImplementedError

    def tree(self, q: np.ndarray, v: np.ndarray, about: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about`, and its rates."""
        raise NotImplementedError

    def ahead(self, x: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
        """Coordinates of the tree after moving with constant rates for the time `h`, s."""
        raise NotImplementedError

    def moved(self, q: np.ndarray, D: np.ndarray) -> np.ndarray:
        """`q (+) D`."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            return {"q": c.formulation.plus(c.model, s["q"], c.wide(s["D"]))}

        inputs, outputs = {"q": "q", "D": "v"}, {"q": ("q",)}
        return np.asarray(self.sum("moved", inputs, outputs, write, _has_mass)(self.components.numbers, q=q, D=D)["q"])

    def equations(self, numbers: Any, **state: Any) -> dict[str, Any]:
        """`M`, `f`, `J`, `gamma`, `beta` and `phi` at a state."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            parts = written_parts(c, s, s["q"])
            rows = parts.rows.kept(c.rows)
            M, J = (parts.M, rows.J) if c.basis is None else (c.basis.T @ parts.M @ c.basis, rows.J @ c.basis)
            phi = parts.rows.kept(c.positions).phi
            return {"M": M, "f": c.narrow(parts.f), "J": J, "gamma": rows.gamma, "beta": rows.beta, "phi": phi}

        vectors = {"f": "v", "gamma": "rows", "beta": "rows", "phi": "positions"}
        outputs = {"M": ("v", "v"), "J": ("rows", "v"), **{name: (axis,) for name, axis in vectors.items()}}
        return self.sum("equations", STATE, outputs, write)(numbers, **state)

    def start(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, about: np.ndarray, numbers: Any) -> Any:
        """Accelerations and multipliers that satisfy the equations of motion at a consistent state."""
        from scipy.sparse import block_array

        found = self.equations(numbers, t=t, q=q, v=v, tau=tau, about=about)
        M, J, b = found["M"], found["J"], np.concatenate([found["f"], found["gamma"]])
        S = M + self.lent
        if not self.m:
            K, solve = M, factored(S)
        else:
            K = block_array([[M, J.T], [J, None]], format="csc")
            solve = factored(block_array([[S, J.T], [J, -small_pivots((J**2) @ (1 / S.diagonal()))]], format="csc"))
        x = solve(b)
        for _ in range(CORRECTIONS):
            x = x + solve(b - K @ x)
        return x[: self.nv], x[self.nv :]

    def gap(self, t: float, x: np.ndarray, numbers: Any) -> float:
        """Largest residual of the constraints at a configuration of the tree, m and rad."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            return {"phi": written_parts(c, s, s["q"]).rows.kept(c.positions).phi}

        q, v = self.into(x, np.zeros(self.model.nv), numbers)
        found = self.sum("gap", STATE, {"phi": ("positions",)}, write)
        phi = found(numbers, t=t, q=q, v=v, tau=np.zeros(self.model.nv), about=x)["phi"]
        return float(np.abs(phi).max(initial=0.0))


class LargeSystem(System):
    """A model in coordinates in which it is a sum of small components.

    `formulation` is the one asked for. In the tree's coordinates a component is a piece of the tree that is attached to
    the ground. If one is long, the equations are those of `absolute`: the state stays the tree's.
    """

    def __init__(self, model: Model, formulation: Formulation, in_plane: bool = True) -> None:
        from scipy.sparse import diags_array

        home = model.unbound
        if formulation.in_tree and longest_subtree(home) > LARGEST_PIECE:
            formulation = ABSOLUTE
        self.model, self.formulation, self.in_tree = home, formulation, formulation.in_tree
        kept = kept_by_components(home, formulation)
        self.basis = plane_basis(home) if in_plane and formulation is ABSOLUTE else None
        self.kept = kept if self.basis is None else self._in_plane(kept)
        self.components = Components(home, formulation, self.kept, self.basis)
        self.sizes = self.components.sizes
        self.nq, self.nv, self.m, self.mp = (self.sizes[axis] for axis in ("q", "v", "rows", "positions"))
        self.lent = diags_array(self._lent(), format="csc")
        self._sums: dict[str, ComponentSum] = {}

    def _in_plane(self, kept: list[int]) -> list[int]:
        """The rows that move something in the plane, independent joint by joint."""
        components = Components(self.model, self.formulation, kept, self.basis)

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            return {"J": written_parts(c, s, s["q"]).rows.kept(c.rows).J @ c.basis}

        found = ComponentSum(components, "rows in the plane", STATE, {"J": ("rows", "v")}, write)
        x = self.model.start()
        q, v = self._into(_into_own(components), x, np.zeros(self.model.nv), components.nominal())
        J = found(components.nominal(), t=0.0, q=q, v=v, tau=np.zeros(self.model.nv), about=x)["J"].tocsr()
        J.data[np.abs(J.data) < IN_PLANE] = 0.0
        J.eliminate_zeros()
        moving = np.diff(J.indptr) > 0
        place = {row: k for k, row in enumerate(kept)}
        first, _ = row_places(self.model, self.formulation)
        home = self.model.separate
        for link in home.tree.links:  # a row too many, where the axes of a joint lie askew in the plane
            at, kind = first[f"joint {link.joint}"], home.joints[link.joint].kind
            own = [place[row] for row in range(at, at + kind.freedoms_removed) if moving[place[row]]]
            if len(own) > 3 - kind.nv:
                moving[own] = False
                moving[[own[k] for k in pivots(scaled(J[own].toarray()))]] = True
        return [row for row, moves in zip(kept, moving, strict=True) if moves]

    def _lent(self) -> np.ndarray:
        """Inertia (nv,) lent to links and joints that have none."""
        if self.in_tree:
            return lent_to_joints(self.model)
        lent = lent_to_links(self.model.separate)
        if self.basis is None:
            return lent
        return np.asarray((lent.reshape(-1, 6) @ self.basis**2).ravel())

    def sum(self, name: str, inputs: Any, outputs: Any, write: Any, only: Any = None) -> ComponentSum:
        """A sum over the components, made on first use."""
        if name not in self._sums:
            self._sums[name] = ComponentSum(self.components, name, inputs, outputs, write, only)
        return self._sums[name]

    # between the tree's coordinates and its own

    def into(self, x: np.ndarray, w: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates and rates from those of the tree."""
        if self.in_tree:
            return x, w
        if "into own" not in self._sums:
            self._sums["into own"] = _into_own(self.components)
        return self._into(self._sums["into own"], x, w, numbers)

    def _into(self, sums: ComponentSum, x: np.ndarray, w: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        poses = np.asarray(tree_kernel(self.model, "body_poses")(x))
        twists = np.asarray(tree_kernel(self.model, "body_twists")(x, w))
        result = sums(numbers, poses=poses.ravel(), twists=twists.ravel())
        return result["q"], result["v"]

    def tree(self, q: np.ndarray, v: np.ndarray, about: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about`, and its rates."""
        if self.in_tree:
            return q, v

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            kin = c.formulation.kinematics(c.model, s["q"], c.wide(s["v"]), s["about"])
            found = [kin.joint(link.joint) for link in c.model.tree.links if link.kind.nq]
            return {"x": stack(*(each[0] for each in found)), "w": stack(*(each[1] for each in found))}

        inputs, outputs = {"q": "q", "v": "v", "about": "x"}, {"x": ("x",), "w": ("tau",)}
        found = self.sum("tree", inputs, outputs, write, _moves)(numbers, q=q, v=v, about=about)
        return found["x"], found["w"]

    def ahead(self, x: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
        """Coordinates of the tree after moving with constant rates for the time `h`, s."""
        if self.in_tree:
            return x

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            kinds = [(link.kind, link.q, link.v) for link in c.model.tree.links if link.kind.nq]
            return {"x": stack(*(kind.plus(s["x"][q], s["h"] * s["w"][v]) for kind, q, v in kinds))}

        inputs, outputs = {"x": "x", "w": "tau", "h": "all"}, {"x": ("x",)}
        found = self.sum("ahead", inputs, outputs, write, _moves)(self.components.numbers, x=x, w=w, h=h)
        return np.asarray(found["x"])

    def projected(
        self, t: float, q: np.ndarray, v: np.ndarray, about: np.ndarray, numbers: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """A state near the constraints, brought onto them by the smallest change in kinetic energy."""
        from scipy.sparse import block_array

        state = {"t": t, "tau": np.zeros(self.model.nv), "about": about}
        for _ in range(PROJECTIONS if self.m else 0):
            found = self.equations(numbers, q=q, v=v, **state)
            M, J, G = found["M"] + self.lent, found["J"], self.slopes(numbers, q=q, **state)
            gaps, moves = (found["phi"], found["beta"] - J @ v), []
            if max(_largest(gap) for gap in gaps) <= CLOSED:
                break
            for A, b in ((G, -gaps[0]), (J, gaps[1])):
                held = -small_pivots((A**2) @ (1 / M.diagonal()))
                K = block_array([[M, A.T], [A, held]], format="csc") if A.shape[0] else M
                moves.append(factored(K)(np.concatenate([np.zeros(self.nv), b]))[: self.nv])
            q, v = self.moved(q, moves[0]), v + moves[1]
        return q, v

    def slopes(self, numbers: Any, **state: Any) -> Any:
        """`G`, the derivative of `phi` along the rates."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            import casadi as ca

            D = ca.SX.sym("D", c.formulation.sizes(c.model)[1] if c.basis is None else c.basis.shape[1])
            at = c.formulation.plus(c.model, s["q"], c.wide(D))
            still = {**s, "v": ca.SX(D.shape[0], 1)}
            G = ca.jacobian(written_parts(c, still, at).rows.kept(c.positions).phi, D)
            return {"G": ca.substitute(G, D, ca.SX.zeros(D.shape))}

        inputs = {name: axis for name, axis in STATE.items() if name != "v"}
        return self.sum("slopes", inputs, {"G": ("positions", "v")}, write)(numbers, **state)["G"]


def _into_own(components: Components) -> ComponentSum:
    """Own coordinates and rates, from poses and twists of the bodies."""

    def write(c: Component, s: Symbols) -> dict[str, Matrix]:
        q, v = c.formulation.project(c.model, s["poses"].T, s["twists"].T)
        return {"q": q, "v": c.narrow(v)}

    outputs = {"q": ("q",), "v": ("v",)}
    return ComponentSum(components, "into own", {"poses": "poses", "twists": "twists"}, outputs, write, _has_mass)


def factored(K: Any, definite: bool = False) -> Callable[[np.ndarray], np.ndarray]:
    """Factor a sparse matrix, and return a function that solves for a right side.

    Of one that is symmetric and positive definite the diagonal has all pivots.
    """
    from scipy.sparse.linalg import splu

    if definite:
        options = {"SymmetricMode": True}
        return splu(K.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve
    return splu(K.tocsc()).solve


def small_pivots(size: np.ndarray) -> Any:
    """What is added to the pivots of multipliers, so that they stay bounded where their rows lose rank."""
    from scipy.sparse import diags_array

    return diags_array(SINGULAR * np.asarray(size).ravel(), format="csc")


def _largest(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0))


_SYSTEMS: Slot[tuple[str, bool], LargeSystem] = Slot(
    "sums over components for the implicit integrators, by formulation"
)


def large_system(model: Model, formulation: Formulation, in_plane: bool = True) -> LargeSystem:
    """The equations of a model in one formulation, remembered with the model; with three rates in a plane if asked."""
    home = model.unbound
    return _SYSTEMS.find(home, (formulation.key, in_plane), lambda: LargeSystem(home, formulation, in_plane))


def _has_mass(cls: ComponentClass) -> bool:
    """Whether its members are links or pieces."""
    return cls.outline.has_mass


def _moves(cls: ComponentClass) -> bool:
    """Whether its members are joints of the tree that can move."""
    return cls.outline.driven and cls.outline.nq > 0


def plane_basis(model: Model) -> np.ndarray | None:
    """The rates (6, 3), of those in the fixed frame, that a body has in the plane of a planar mechanism; else None.

    The joints of the tree keep the mechanism in a plane if all turn about its normal and shift along it, in axes that
    do not change.
    """
    tree = model.tree
    kinds = {link.kind.identity: link.kind for link in tree.links}
    if any(kind.bias is not None for kind in kinds.values()):
        return None
    S = {name: np.asarray(kind.S(np.array(kind.neutral, dtype=float)), dtype=float) for name, kind in kinds.items()}
    bodies = heaviest_bodies(model)
    poses = np.asarray(tree_kernel(model, "body_poses")(model.start())).reshape(-1, 4, 4)[bodies, :3, :3]
    R = poses @ np.array([nominal(tree.body_pose[b].rotation).T for b in bodies])
    turns = np.concatenate([R[i] @ S[link.kind.identity][:3] for i, link in enumerate(tree.links)], axis=1)
    shifts = np.concatenate([R[i] @ S[link.kind.identity][3:] for i, link in enumerate(tree.links)], axis=1)
    some = turns if np.abs(turns).max(initial=0.0) > IN_PLANE else None
    if some is None:
        return None
    normal = some[:, int(np.argmax(np.abs(some).max(axis=0)))]
    normal = snap(normal / np.linalg.norm(normal), IN_PLANE)
    askew = turns - np.outer(normal, normal @ turns)
    if max(np.abs(askew).max(), np.abs(normal @ shifts).max(initial=0.0)) > IN_PLANE:
        return None
    B = np.zeros((6, 3))
    B[:3, 0], B[3:, 1:] = normal, np.linalg.svd(normal[None])[2][1:].T
    return snap(B, IN_PLANE)


def kept_by_components(model: Model, formulation: Formulation) -> list[int]:
    """Rows to solve with, numbered as in the formulation, without writing the whole graph."""
    kept = independent_rows(model)
    if formulation.in_tree:
        return kept
    first, levels = row_places(model, formulation)
    in_tree, _ = row_places(model, SPATIAL)
    of_tree: dict[int, int] = {}
    for name, at in in_tree.items():
        n = model.joints[int(name.split()[1])].kind.freedoms_removed if name.startswith("joint") else 1
        of_tree |= {first[name] + k: at + k for k in range(n)} if name in first else {}
    chosen = set(kept)
    return [row for row in range(len(levels)) if row not in of_tree or of_tree[row] in chosen]
