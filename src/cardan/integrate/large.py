"""The equations of motion of a large mechanism for the implicit integrators, summed over its components.

The coordinates are those of the formulation. In a plane each body with six rates has three that move at all; the others
and the rows that hold them are left out: they hold by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, stack
from cardan.errors import ModelError
from cardan.formulation.absolute import ABSOLUTE
from cardan.formulation.components import ComponentClass, roots_of, row_places
from cardan.formulation.coordinates import own_equations
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.light import lent_to_joints, lent_to_links
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.plane import planar_model
from cardan.structure.component_sums import Component, Components, ComponentSum, Symbols
from cardan.structure.kernels import tree_kernel
from cardan.structure.rows import independent_rows, pivots, scaled

LARGEST_PIECE = 24  # links of a piece of the tree up to which its own coordinates are taken
IN_PLANE = 1e-9  # of a row's size: less is none
STATE = {"t": "all", "q": "q", "v": "v", "tau": "tau", "about": "x"}


def written_parts(c: Component, s: Symbols, q: Matrix) -> Parts:
    """A component's equations at coordinates `q`, at rates `v` of the whole."""
    state = {"t": s["t"], "q": q, "v": c.wide(s["v"]), "tau": s["tau"]}
    return own_equations(c.model, c.formulation, state | ({} if c.formulation.in_tree else {"about": s["about"]}))


class LargeSystem:
    """A model in coordinates in which it is a sum of small components.

    `formulation` is the one asked for. In the tree's coordinates a component is a piece of the tree that is attached to
    the ground. If one is long, the equations are those of `absolute`: the state stays the tree's.
    """

    def __init__(self, model: Model, formulation: Formulation, rows: Sequence[int] | None = None) -> None:
        home = model.unbound
        if formulation.in_tree and _longest_piece(home) > LARGEST_PIECE:
            formulation = ABSOLUTE
        if formulation not in (SPATIAL, ABSOLUTE):
            raise ModelError(
                f"model {model.name!r}: with {len(home.tree.links)} links it is integrated in the formulations 'spatial' "
                f"and 'absolute', not in {formulation.name!r}; take one of these"
            )
        self.model, self.formulation, self.in_tree = home, formulation, formulation.in_tree
        kept = kept_by_components(home, formulation) if rows is None else list(rows)
        self.basis = None if self.in_tree else plane_basis(home)
        self.kept = kept if self.basis is None else self._in_plane(kept)
        self.components = Components(home, formulation, self.kept, self.basis)
        self.sizes = self.components.sizes
        self.nq, self.nv, self.m, self.mp = (self.sizes[axis] for axis in ("q", "v", "rows", "positions"))
        self.lent = self._lent()
        self._sums: dict[str, ComponentSum] = {}

    def _in_plane(self, kept: list[int]) -> list[int]:
        """The rows that move something in the plane, independent joint by joint."""
        components = Components(self.model, self.formulation, kept, self.basis)

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            return {"J": written_parts(c, s, s["q"]).rows.kept(c.rows).J @ c.basis}

        found = ComponentSum(components, "rows in the plane", STATE, {"J": ("rows", "v")}, write)
        x = self.model.start()
        q, v = self._into(components, x, np.zeros(self.model.nv), components.nominal())
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
        return (x, w) if self.in_tree else self._into(self.components, x, w, numbers)

    def _into(
        self, components: Components, x: np.ndarray, w: np.ndarray, numbers: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            q, v = c.formulation.project(c.model, s["poses"].T, s["twists"].T)
            return {"q": q, "v": c.narrow(v)}

        outputs = {"q": ("q",), "v": ("v",)}
        found = ComponentSum(components, "into own", {"poses": "poses", "twists": "twists"}, outputs, write, _is_link)
        poses = np.asarray(tree_kernel(self.model, "body_poses")(x))
        twists = np.asarray(tree_kernel(self.model, "body_twists")(x, w))
        result = found(numbers, poses=poses.ravel(), twists=twists.ravel())
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


    def gap(self, t: float, x: np.ndarray, numbers: Any) -> float:
        """Largest residual of the constraints at a configuration of the tree, m and rad."""
        q, v = self.into(x, np.zeros(self.model.nv), numbers)
        phi = self.equations(numbers, t=t, q=q, v=v, tau=np.zeros(self.model.nv), about=x)["phi"]
        return float(np.abs(phi).max(initial=0.0))


_SYSTEMS: Slot[str, LargeSystem] = Slot("sums over components for the implicit integrators, by formulation")


def large_system(model: Model, formulation: Formulation) -> LargeSystem:
    """The equations of a model in one formulation, remembered with the model."""
    home = model.unbound
    return _SYSTEMS.find(home, formulation.key, lambda: LargeSystem(home, formulation))


def _is_link(cls: ComponentClass) -> bool:
    """Whether its members are single links with six rates."""
    return not cls.outline.joints and not cls.outline.forces and not cls.outline.constraints


def _has_mass(cls: ComponentClass) -> bool:
    """Whether its members are links or pieces."""
    pieces = cls.outline.driven and not any(joint.frames for joint in cls.outline.joints)
    return pieces or _is_link(cls)


def _moves(cls: ComponentClass) -> bool:
    """Whether its members are joints of the tree that can move."""
    return cls.outline.driven and cls.x.shape[1] > 0


def _longest_piece(model: Model) -> int:
    return int(np.bincount(roots_of(model.tree), minlength=1).max())


def plane_basis(model: Model) -> np.ndarray | None:
    """The rates (6, 3), of those in the fixed frame, that a body has in the plane of a planar mechanism; else None."""
    try:
        normal = planar_model(model).ground
    except ModelError:
        return None
    axes = np.asarray(normal.axes)
    B = np.zeros((6, 3))
    B[:3, 0], B[3:, 1], B[3:, 2] = axes[2], axes[0], axes[1]
    return B


def kept_by_components(model: Model, formulation: Formulation) -> list[int]:
    """Rows to solve with, numbered as in the formulation, without writing the whole graph."""
    kept = independent_rows(model)
    if formulation.in_tree:
        return kept
    first, levels = row_places(model, formulation)
    in_tree, tree_levels = row_places(model, SPATIAL)
    of_tree: dict[int, int] = {}
    for name, at in in_tree.items():
        n = model.joints[int(name.split()[1])].kind.freedoms_removed if name.startswith("joint") else 1
        of_tree |= {first[name] + k: at + k for k in range(n)} if name in first else {}
    chosen = set(kept)
    return [row for row in range(len(levels)) if row not in of_tree or of_tree[row] in chosen]
