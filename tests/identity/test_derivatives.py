"""`by=` of every function of a state: against differences along the tangent, in every formulation, with loops."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..trees import close, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

Function = Callable[..., Any]
NAMES = ("q", "v", "tau")
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative")


def moved(model: cd.Model, x: dict[str, np.ndarray], name: str, k: int, h: float) -> dict[str, np.ndarray]:
    """The arguments with one number of one of them moved; `q` along a unit rate."""
    if name == "q":
        return x | {"q": cd.plus(model, x["q"], h * np.eye(model.nv)[k])}
    flat = x[name].ravel().copy()
    flat[k] += h
    return x | {name: flat.reshape(x[name].shape)}


def differences(model: cd.Model, call: Function, x: dict[str, np.ndarray], name: str, h: float = 1e-3) -> np.ndarray:
    """Derivative by differences of the sixth order, the columns last."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    columns = []
    for k in range(model.nv if name == "q" else x[name].size):
        at = lambda n, k=k: np.asarray(call(**moved(model, x, name, k, n * h)))
        columns.append(sum(w * (at(n) - at(-n)) for n, w in weights.items()) / h)
    return np.stack(columns, axis=-1)


def state(model: cd.Model, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng)
    if model.has_rows:
        q, v = cd.assemble(model, q, v)
    a, tau = rng.normal(size=(2, model.nv))
    return {"q": q, "v": v, "a": a, "tau": tau, "wrenches": rng.normal(size=(model.nb, 6))}


CASES: dict[str, tuple[str, ...]] = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
    "bias_force": ("q", "v"),
    "gravity_force": ("q",),
    "coriolis_matrix": ("q", "v"),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "momentum": ("q", "v"),
    "centroidal_momentum": ("q", "v"),
    "center_of_mass": ("q",),
    "body_poses": ("q",),
    "body_twists": ("q", "v"),
    "body_accelerations": ("q", "v", "a"),
    "joint_axes": ("q",),
    "reactions": ("q", "v", "tau"),
    "joint_wrenches": ("q", "v", "a"),
    "rates": ("q", "v"),
    "plus": ("q", "v"),
    "power": ("q", "v", "tau"),
    "subtree_kinetic_energy": ("q", "v"),
    "subtree_momentum": ("q", "v"),
    "frame_pose": ("q",),
    "jacobian": ("q",),
}
OF_LOOPS: dict[str, tuple[str, ...]] = {
    "multipliers": ("q", "v", "tau"),
    "constraint_residual": ("q",),
    "constraint_jacobian": ("q",),
    "inverse_dynamics": ("q", "v", "a", "wrenches"),
    "body_accelerations": ("q", "v", "a"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tree_with_every_kind_of_joint(name: str) -> None:
    model, names = tree_model(1, 3), CASES[name]
    x = {key: value for key, value in state(model).items() if key in names}
    more = {"frame": {"frame": "tool"}, "jacob": {"frame": "tool", "axes": "ground"}}.get(name[:5], {})
    function = lambda *_, **y: getattr(cd, name)(model, **y, **more)
    found = function(model, **x, by=names)
    out = np.zeros_like(found.value)
    assert np.asarray(function(model, **x, out=out)) is out or np.ndim(out) == 0
    close(found.value, out, 1e-12)
    for key in names:
        close(found[key], differences(model, lambda **y: function(model, **y), x, key), 1e-7)


@pytest.mark.parametrize("formulation", [*FORMULATIONS, "points"])
@pytest.mark.parametrize("name", ["forward_dynamics", "multipliers"])
def test_a_loop_in_every_formulation(name: str, formulation: str) -> None:
    """The partial derivative of the equations as they stand; differences leave the loop open a little, as it does."""
    model = mechanisms.four_bar().build()
    names = NAMES
    x = {key: value for key, value in state(model).items() if key in names}
    call = lambda **y: getattr(cd, name)(model, **y, formulation=formulation)
    found = getattr(cd, name)(model, **x, by=names, formulation=formulation)
    for key in names:
        close(found[key], differences(model, call, x, key), 1e-6)


DRIVEN = {"one": ["A"], "another": "D", "against each other": ["A", "B", "D"]}


@pytest.mark.parametrize("driven", DRIVEN)
def test_drives_of_a_loop(driven: str) -> None:
    """Along the tangent, and of drives that work against each other; differences leave the loop open a little."""
    model = mechanisms.four_bar().build()
    x = state(model)
    x = {key: x[key] for key in ("q", "v", "wrenches")} | {"a": cd.forward_dynamics(model, x["q"], x["v"], x["tau"])}
    names = OF_LOOPS["inverse_dynamics"]
    call = lambda **y: cd.inverse_dynamics(model, **y, driven=DRIVEN[driven])
    found = call(**x, by=names)
    close(found.value, call(**x), 1e-13)
    for key in names:
        close(found[key].reshape(model.nv, -1), differences(model, call, x, key, 1e-5), 1e-8)


@pytest.mark.parametrize("name", ["constraint_residual", "constraint_jacobian"])
def test_rows_of_a_loop(name: str) -> None:
    model = mechanisms.four_bar().build()
    q, call = {"q": state(model)["q"]}, getattr(cd, name)
    found = call(model, **q, by="q")
    close(found.value, call(model, **q), 1e-14)
    close(found["q"], differences(model, lambda q: call(model, q), q, "q"), 1e-9)


@pytest.mark.parametrize("model", [tree_model(1, 3), mechanisms.four_bar().build()], ids=lambda m: m.name)
def test_products_are_those_with_the_derivatives(model: cd.Model) -> None:
    """Forward against reverse, and both against the Jacobians; in batches."""
    rng = np.random.default_rng(3)
    x = {key: np.stack([state(model, k)[key] for k in range(3)]) for key in NAMES}
    found = cd.forward_dynamics(model, **x, by=NAMES)
    along = {key: rng.normal(size=(3, model.nv)) for key in NAMES}
    value, rate = cd.jvp(model, "forward_dynamics", x, along)
    close(value, found.value, 1e-12)
    close(rate, sum(np.einsum("bij,bj->bi", found[key], along[key]) for key in NAMES), 1e-11)
    w = rng.normal(size=(3, model.nv))
    value, gradient = cd.vjp(model, "forward_dynamics", x, w, by=NAMES)
    close(value, found.value, 1e-12)
    for key in NAMES:
        close(gradient[key], np.einsum("bi,bij->bj", w, found[key]), 1e-11)
    close(sum((gradient[key] * along[key]).sum() for key in NAMES), (w * rate).sum(), 1e-11)


def test_second_derivatives_are_those_of_the_moved_state() -> None:
    """Of `w . a(plus(q, delta), v, tau)`, by differences of the gradient; with a spherical joint, whose axes turn."""
    model = tree_model(1, 3)
    x, rng = {key: state(model)[key] for key in NAMES}, np.random.default_rng(1)
    w, n = rng.normal(size=model.nv), model.nv
    H = cd.weighted_hessian(model, "forward_dynamics", x, w, by=NAMES)
    close(H, H.T, 1e-13)
    call = lambda **y: np.dot(w, cd.forward_dynamics(model, **y))
    h, size = 1e-3, np.abs(H).max()
    for _ in range(4):
        d = rng.normal(size=3 * n)
        at = lambda s, d=d: call(
            q=cd.plus(model, x["q"], s * d[:n]), v=x["v"] + s * d[n : 2 * n], tau=x["tau"] + s * d[2 * n :]
        )
        second = (
            2 * at(3 * h) - 27 * at(2 * h) + 270 * at(h) - 490 * at(0) + 270 * at(-h) - 27 * at(-2 * h) + 2 * at(-3 * h)
        ) / (180 * h * h)
        assert abs(second - d @ H @ d) < 1e-5 * size * (d @ d)


# Every function of a state has derivatives, and says which.


def functions_of_a_state() -> dict[str, Function]:
    """The public functions whose first arguments are a model and its configuration; `analysis` searches and judges."""
    public = {name: getattr(cd, name) for name in cd.__all__ if inspect.isfunction(getattr(cd, name))}
    public = {name: f for name, f in public.items() if not f.__module__.startswith("cardan.analysis.")}
    arguments = {name: [*inspect.signature(f).parameters][:2] for name, f in public.items()}
    return {name: public[name] for name, first in arguments.items() if first == ["model", "q"] and name != "draw"}


def test_no_function_of_a_state_is_without_derivatives() -> None:
    """Each takes `by`, `chart` and `out`, or says why it has none; and each is compared with differences here."""
    found = functions_of_a_state()
    without = {name for name, f in found.items() if "by" not in inspect.signature(f).parameters}
    assert without == {"actuation", "assemble", "condition", "undetermined_reactions"}
    assert all("It has no `by`: " in inspect.getdoc(found[name]) for name in without)
    for name in found.keys() - without:
        assert {"by", "chart", "out"} <= {*inspect.signature(found[name]).parameters}, name
    assert found.keys() - without == CASES.keys() | OF_LOOPS.keys()


@pytest.mark.parametrize("name", sorted(CASES.keys() | OF_LOOPS.keys()))
def test_the_first_lines_of_a_docstring_tell_which_derivatives_there_are(name: str) -> None:
    """The names are those that an error lists; the rest is the same everywhere."""
    m = cd.Mechanism("driven")
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("pin", cd.Revolute(), m.ground, "rod")
    m.drive("drive", "pin", lambda t, q, v: t)
    model, function = m.build(), getattr(cd, name)
    told = re.search(
        r"\A[^\n]*\n\nWith `by` \((.*)\): partial derivatives too, by q along the tangent \(nv columns\); "
        r'`chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints\.\n',
        re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function)) + "\n",
    )
    assert told is not None
    names = re.findall(r'"(\w+)"', told[1])
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty][1:]
    given = {p.name: "rod" if p.name == "frame" else np.ones(1) for p in required if p.kind != p.VAR_KEYWORD}
    with pytest.raises(cd.UnknownNameError) as error:
        function(model, **given, by="nothing of the kind")
    assert sorted(re.findall(r"'(\w+)'", str(error.value).partition("known:")[2])) == sorted(names)


def test_by_parameters_of_a_loop() -> None:
    """Lengths and masses of a four-bar, against differences in the values."""
    model = mechanisms.four_bar().build()
    names = ("coupler.mass", "coupler.com", "crank.mass")
    free = model.free(*[name for name in names if name.split(".")[0] in model.body_names])
    x = {key: state(model)[key] for key in NAMES}
    found = cd.forward_dynamics(free, **x, by=("parameters", "q"))
    p = free.parameters.nominal
    assert found["parameters"].shape == (model.nv, p.size) and np.abs(found["parameters"]).max() > 0
    h = 1e-4
    for k in range(p.size):
        step = h * np.eye(p.size)[k]
        ahead, behind = (cd.forward_dynamics(free._bound(p + s * step), **x) for s in (1, -1))
        close(found["parameters"][:, k], (ahead - behind) / (2 * h), 1e-5)


REFUSED: dict[str, tuple[Callable[[cd.Model, dict[str, Any]], Any], str]] = {
    "unknown name": (lambda m, x: cd.forward_dynamics(m, **x, by="velocity"), "forward_dynamics: by='velocity' is not"),
    "no parameter is free": (lambda m, x: cd.forward_dynamics(m, **x, by="parameters"), r"no free parameter.*free"),
    "time": (lambda m, x: cd.forward_dynamics(m, **x, by="t"), "nothing in model .* depends on time"),
    "twice": (lambda m, x: cd.forward_dynamics(m, **x, by=("q", "q")), "twice"),
    "not a name": (lambda m, x: cd.forward_dynamics(m, **x, by=3), "by must be a name or several"),
    "nothing": (lambda m, x: cd.forward_dynamics(m, **x, by=()), "by must be a name or several"),
    "a number that is not free": (
        lambda m, x: cd.forward_dynamics(m, **x, by="rod.mass"), r"not free: ask model.free\('rod.mass'\)",
    ),
    "complex rates": (lambda m, x: cd.jvp(m, "mass_matrix", {"q": x["q"]}, {"q": 1j * x["v"]}), "of real numbers"),
    "no weights": (lambda m, x: cd.vjp(m, "mass_matrix", {"q": x["q"]}, None, by="q"), "real numbers, got None"),
    "a coordinate twice": (
        lambda m, x: cd.forward_dynamics(m, **x, by="q", chart=f"independent: {m.joint_names[0]}, {m.joint_names[0]}"),
        "chart names a coordinate twice",
    ),
    "an array of unknown names": (
        lambda m, x: cd.forward_dynamics(m, **x, by=np.array(["q", "w"])), "by='w' is not one of its inputs",
    ),
    "a set": (lambda m, x: cd.forward_dynamics(m, **x, by={"q"}), "by must be a name or several"),
    "an array that is read only": (
        lambda m, x: cd.forward_dynamics(m, **x, by="q", out=(None, np.broadcast_to(0.0, (2, 2)))), "cannot be written",
    ),
    "coordinates of a formulation's own": (
        lambda m, x: cd.jvp(m, "rates", {"q": np.ones(14)}, {"q": x["v"]}, formulation="absolute"), "own coordinates",
    ),
    "several results": (lambda m, x: cd.vjp(m, "lift", {"q": x["q"]}, x["v"]), "it has poses, twists"),
    "rates without names": (lambda m, x: cd.jvp(m, "mass_matrix", {"q": x["q"]}, x["v"]), "rates come by name"),
    "weights that are none": (lambda m, x: cd.vjp(m, "mass_matrix", {"q": x["q"]}, "w", by="q"), "weights must be an"),
    "too few drives": (
        lambda m, x: cd.inverse_dynamics(m, x["q"], x["v"], cd.forward_dynamics(m, **x | {"tau": [1.0, 0]}),
                                         driven=m.joint_names[0], by="q"),
        r"2 freedoms, and driving 'pivot' commands 1; drive more",
    ),
    "chart": (lambda m, x: cd.forward_dynamics(m, **x, by="q", chart="tangents"), "chart='tangents'.*tangent"),
    "one array for three": (lambda m, x: cd.forward_dynamics(m, **x, by="q", out=np.zeros(3)), "out must be 2 arrays"),
    "an array too small": (
        lambda m, x: cd.forward_dynamics(m, **x, by="q", out=(None, np.zeros(2))), "out for q must be an array",
    ),
    "no such derivative": (lambda m, x: cd.forward_dynamics(m, **x, by="q")["v"], "no derivative by 'v'"),
    "a configuration too long": (
        lambda m, x: cd.mass_matrix(m, np.ones(5), by="q"), "mass_matrix: q has 5 entries",
    ),
    "jvp along nothing": (lambda m, x: cd.jvp(m, "forward_dynamics", x, {}), "nothing to differentiate by"),
    "jvp along what is not there": (lambda m, x: cd.jvp(m, "mass_matrix", {"q": x["q"]}, {"v": x["v"]}), "'v' is not"),
    "vjp without q": (lambda m, x: cd.vjp(m, "forward_dynamics", {"v": x["v"]}, x["v"]), "'q' is missing"),
    "unknown quantity": (lambda m, x: cd.vjp(m, "acceleration", x, x["v"]), "has no 'acceleration'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_asked_is_told(case: str) -> None:
    model = mechanisms.double_pendulum().build()
    call, words = REFUSED[case]
    with pytest.raises((cd.InputError, cd.UnknownNameError), match=words):
        call(model, {key: state(model)[key] for key in NAMES})


def test_arrays_of_the_caller_and_coordinates_of_a_quaternion() -> None:
    model = tree_model(1, 3)
    x = {key: state(model)[key] for key in NAMES}
    tangent = cd.forward_dynamics(model, **x, by="q")
    coordinates = cd.forward_dynamics(model, **x, by="q", chart="coordinates")
    N = cd.equations(model).N(x["q"])
    assert coordinates["q"].shape == (model.nv, model.nq) and N.shape == (model.nq, model.nv)
    close(coordinates["q"] @ N, tangent["q"], 1e-12)
    a, a_q = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    found = cd.forward_dynamics(model, **x, by="q", out=(a, a_q))
    assert found.value is a and found["q"] is a_q
    close(a_q, tangent["q"], 1e-14)
    value, by_q = tangent
    assert value is tangent.value and by_q is tangent["q"] and len(tangent) == 2


# Along the constraints.


def consistent(model: cd.Model, y: np.ndarray, rate: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The state with these independent coordinates and rates, near a configuration."""
    names = cd.independent_coordinates(model)
    k = [model.coordinate_names.index(name) for name in names]
    q = near.copy()
    q[k] = y
    q = cd.assemble(model, q, hold=[*names], tolerance=1e-14)[0]
    J = np.asarray(cd.constraint_jacobian(model, q))
    rest = [i for i in range(model.nv) if i not in k]
    v = np.zeros(model.nv)
    v[k] = rate
    v[rest] = -np.linalg.pinv(J[:, rest]) @ J[:, k] @ rate
    return q, v


def test_drives_and_accelerations_along_the_constraints() -> None:
    """Dependent accelerations follow too, so that the loop stays closed: differences between such states."""
    model = mechanisms.four_bar().build()
    eq, k = cd.equations(model), [model.coordinate_names.index(x) for x in cd.independent_coordinates(model)]
    rest = [i for i in range(model.nv) if i not in k]
    near = cd.assemble(model, model.start())[0]

    def moving(y: np.ndarray, rate: np.ndarray, growth: np.ndarray) -> tuple[np.ndarray, ...]:
        q, v = consistent(model, y, rate, near)
        a, J = np.zeros(model.nv), eq.J(q)
        a[k] = growth
        a[rest] = np.linalg.pinv(J[:, rest]) @ (eq.gamma(q, v) - J[:, k] @ growth)
        return q, v, a

    at, h = [near[k], np.array([1.3]), np.array([0.7])], 1e-4
    calls: list[Function] = [
        lambda *x, **y: cd.inverse_dynamics(model, *x, **y, driven=["B"]),
        lambda *x, **y: cd.inverse_dynamics(model, *x, **y, driven=["A", "B"], formulation="absolute"),
        lambda *x, **y: cd.body_accelerations(model, *x, **y),
    ]
    for call in calls:
        found = call(*moving(*at), by=("q", "v", "a"), chart="independent")
        for i, key in enumerate(("q", "v", "a")):
            ends = [call(*moving(*(x + s * h * (j == i) for j, x in enumerate(at)))) for s in (1, -1)]
            close(found[key][..., 0], (ends[0] - ends[1]) / (2 * h), 1e-6)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar"])
def test_along_the_constraints_of_a_loop(name: str) -> None:
    """By independent coordinates and rates: differences between assembled states."""
    model = getattr(mechanisms, name)().build()
    free = cd.independent_coordinates(model)
    k = [model.coordinate_names.index(x) for x in free]
    rng = np.random.default_rng(0)
    q, _ = cd.assemble(model, model.start(), np.zeros(model.nv))
    rate = rng.normal(size=len(k))
    q, v = consistent(model, q[k], rate, q)
    found = cd.forward_dynamics(model, q, v, by=("q", "v"), chart="independent")
    assert found["q"].shape == found["v"].shape == (model.nv, len(k))
    h = 1e-4
    for i in range(len(k)):
        step = h * np.eye(len(k))[i]
        by_q = [cd.forward_dynamics(model, *consistent(model, q[k] + s * step, rate, q)) for s in (1, -1)]
        by_v = [cd.forward_dynamics(model, *consistent(model, q[k], rate + s * step, q)) for s in (1, -1)]
        close(found["q"][:, i], (by_q[0] - by_q[1]) / (2 * h), 1e-6)
        close(found["v"][:, i], (by_v[0] - by_v[1]) / (2 * h), 1e-6)


def test_by_dimensions_through_assembly() -> None:
    """The place of a coupler's end by the lengths of a four-bar: the loop is closed again at other lengths."""
    model = mechanisms.four_bar().build()
    free = model.free("crank.mass", "B.at", "D.at")
    q, _ = consistent(model, np.array([0.7]), np.array([1.3]), cd.assemble(model, model.start())[0])
    found = cd.body_poses(free, q, by="parameters", chart="independent")
    p, h = free.parameters.nominal, 1e-5
    assert found["parameters"].shape == (model.nb, 4, 4, p.size)
    for k in (0, 1, 2, 4, 5):  # a mass, and x and y of two pins; along z the loop could not be closed
        ends = []
        for s in (1, -1):
            other = free._bound(p + s * h * np.eye(p.size)[k])
            closed = cd.assemble(other, q, hold=[*cd.independent_coordinates(model)], tolerance=1e-14)[0]
            ends.append(cd.body_poses(other, closed))
        close(found["parameters"][..., k], (ends[0] - ends[1]) / (2 * h), 1e-7)


def test_a_length_that_redundant_rows_do_not_allow_is_told() -> None:
    """Three equal cranks: another length of one locks them, of all three does not."""
    free = mechanisms.parallelogram().build().free("B1.at", "B2.at", "B3.at")
    q, p, h = cd.assemble(free, tolerance=1e-14)[0], free.parameters.nominal, 1e-5
    with pytest.warns(RuntimeWarning, match=r"follows a change of B1.at\[0\], B2.at\[0\], B3.at\[0\] alone: redundant"):
        found = cd.body_poses(free, q, by="parameters", chart="independent")
    ends = []
    for s in (1, -1):
        other = free._bound(p + s * h * np.tile([1.0, 0, 0], 3))
        closed = cd.assemble(other, q, hold=[*cd.independent_coordinates(free)], tolerance=1e-14)[0]
        ends.append(cd.body_poses(other, closed))
    close(found["parameters"][..., ::3].sum(axis=-1), (ends[0] - ends[1]) / (2 * h), 1e-7)


def test_a_dead_point_has_no_derivative_by_what_does_not_determine_it() -> None:
    """A flat parallelogram: its crank no longer tells where the others go."""
    model = mechanisms.parallelogram().build()
    flat = cd.assemble(model, np.zeros(model.nq), tolerance=1e-13)[0]
    s = np.linalg.svd(np.asarray(cd.constraint_jacobian(model, flat)), compute_uv=False)
    assert s[-1] < 1e-8 * s[0] or (s > 1e-8 * s[0]).sum() < model.nv - 1
    with pytest.raises(cd.InputError, match="do not determine the others"):
        cd.forward_dynamics(model, flat, np.zeros(model.nv), by="q", chart="independent")


def test_with_and_without_wrenches_are_two_kernels() -> None:
    """Also where a loop is solved, and in either order."""
    model = mechanisms.four_bar().build()
    x = state(model)
    names = {key: x[key] for key in NAMES}
    bare = cd.forward_dynamics(model, **names, by="tau")
    loaded = cd.forward_dynamics(model, **names, wrenches=x["wrenches"], by=("tau", "wrenches"))
    assert loaded["wrenches"].shape == (model.nv, model.nb, 6)
    again = cd.forward_dynamics(model, **names, wrenches=x["wrenches"], by="tau")
    close(again.value, cd.forward_dynamics(model, **names, wrenches=x["wrenches"]), 1e-12)
    close(cd.forward_dynamics(model, **names, by="tau").value, bare.value, 1e-14)
    moved = differences(
        model, lambda **y: cd.forward_dynamics(model, **y), names | {"wrenches": x["wrenches"]}, "wrenches"
    )
    close(loaded["wrenches"].reshape(model.nv, -1), moved, 1e-8)
