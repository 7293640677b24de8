"""Forward and inverse dynamics with their Jacobians: batches, against Pinocchio's derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.compiling import first_calls
from benchmarks.linkages import CLOSED, Linkage, linkages, one_joint
from benchmarks.operations import counted
from benchmarks.report import Run
from benchmarks.robots import Robot
from benchmarks.tables import NONE, ms, ns, table, times
from benchmarks.throughput import SINGLE_STATES
from benchmarks.timing import Block, Timing, calls, interleave
from cardan import mechanisms
from cardan.formulation.derivative import By, curved, pulled, pushed
from cardan.formulation.formulation import tree_rates
from cardan.formulation.spatial import SPATIAL
from cardan.functions.along_constraints import moving_along
from cardan.program.graph import read
from cardan.structure.digits import CLOSELY
from cardan.structure.dynamics import forward_kernel
from cardan.structure.kernels import compile_quantity, tree_kernel
from cardan.structure.rows import solving_facts

ROBOTS = ("UR5", "Panda", "ANYmal", "Talos")
IN_CACHE, LARGE = 64, 4096  # rows: results that stay in a core's cache, and results that go to memory
FIRST_ROWS = 64


@dataclass(frozen=True)
class Derivative:
    """One function with its Jacobians, and its name in each program; goals by robot."""

    key: str
    title: str
    quantity: str
    value: str
    pinocchio: str
    goal: dict[str, float]
    longest: dict[str, float]


# fmt: off
DERIVATIVES = (
    Derivative(
        "forward", "Forward dynamics", "forward_dynamics_derivatives", "forward_dynamics", "computeABADerivatives",
        {"Panda": 20.0, "ANYmal": 12.0, "Talos": 8.0}, {"Panda": 250e-9, "ANYmal": 1e-6, "Talos": 4e-6},
    ),
    Derivative(
        "inverse", "Inverse dynamics", "inverse_dynamics_derivatives", "inverse_dynamics", "computeRNEADerivatives",
        {"Panda": 20.0, "ANYmal": 14.0, "Talos": 10.0}, {},
    ),
)
# fmt: on
LOOP_GOAL, DIMENSIONS = {"Stewart platform": 20.0}, 150e-9
COLD, CACHED = {"Panda": 1.0, "Talos": 5.0}, 0.06


def _batch(derivative: Derivative, robot: Robot, rows: int) -> Block:
    """Cardan's batch, in C order, result arrays allocated."""
    kernel, arrays = tree_kernel(robot.model, derivative.quantity), robot.states(rows)
    shapes = [shape(robot.model) for _, shape in SPATIAL.quantities[derivative.quantity].outputs]
    out = tuple(np.zeros((rows, *shape)) for shape in shapes)
    return Block(lambda: kernel(*arrays, out=out, threads=1), rows)


def _pinocchio(derivative: Derivative, robot: Robot) -> dict[str, Block]:
    """Pinocchio's call for each state, and the overhead of a call: the call on one joint, and copying its results."""
    import pinocchio as pin

    call, model = getattr(pin, derivative.pinocchio), robot.pinocchio
    columns = [
        [np.array(column) for column in array.T] for array in robot.pinocchio_states(*robot.states(SINGLE_STATES))
    ]
    data = model.createData()
    states = [(model, data, *state) for state in zip(*columns, strict=True)]
    one = pin.Model()
    joint = one.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    one.appendBodyToJoint(joint, pin.Inertia(1.0, np.ones(3), np.eye(3)), pin.SE3.Identity())
    still = [(one, one.createData(), *np.zeros((3, 1)))] * SINGLE_STATES
    small, large = np.zeros((1, 1)), np.zeros((model.nv, model.nv))
    return {
        "pin": calls(call, states),
        "one joint": calls(call, still),
        "copy of one number": calls(np.copy, [(small,)] * SINGLE_STATES),
        "copy of a matrix": calls(np.copy, [(large,)] * SINGLE_STATES),
    }


def _differentiated_operations(robot: Robot) -> int:
    """Operations of automatic differentiation of inverse dynamics, for comparison."""
    import casadi as ca

    model = robot.model
    q, v, a = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    tau = SPATIAL.quantities["inverse_dynamics"].graph(model, {"q": q, "v": v, "a": a})[0]
    rate = ca.SX.sym("rate", model.nv)
    N = ca.jacobian(tree_rates(model, q, rate), rate)
    results = [tau, ca.jacobian(tau, q) @ N, ca.jacobian(tau, v)]
    return _total(read(ca.Function("differentiated", [q, v, a], results)).operations())


def _total(operations: dict[str, int]) -> int:
    return sum(count for op, count in operations.items() if op != "neg")


def _measure(run: Run, derivative: Derivative, robot: Robot) -> tuple[str, ...]:
    blocks = {"cardan": _batch(derivative, robot, IN_CACHE), "large": _batch(derivative, robot, LARGE)}
    blocks |= _pinocchio(derivative, robot)
    t = interleave(blocks, rounds=run.rounds, least=run.least)
    copies = 3 * (t["copy of a matrix"].seconds - t["copy of one number"].seconds)
    bare = Timing(t["pin"].seconds - t["one joint"].seconds - copies)
    ratio, least = t["cardan"].times_faster_than(bare), t["cardan"].least_times_faster_than(bare)
    goal, longest = derivative.goal.get(robot.name), derivative.longest.get(robot.name)
    what = f"{robot.name}, {derivative.key} dynamics with Jacobians"
    if goal is not None:
        run.at_least(f"{what}: times `pin.{derivative.pinocchio}`, one thread", goal, min(ratio, least), times)
    if longest is not None:
        run.below(f"{what}: ns", longest, t["cardan"].median, ns)
    operations = _total(counted(tree_kernel(robot.model, derivative.quantity)))
    by_differentiation = _differentiated_operations(robot) if derivative.key == "inverse" else None
    return (
        f"{robot.name}, {robot.model.nv} dof", f"{operations:,}",
        NONE if by_differentiation is None else f"{by_differentiation:,}",
        ns(t["cardan"].median), ns(t["cardan"].minimum), ns(t["large"].median), ns(t["pin"].median), ns(bare.median),
        times(ratio), times(least), NONE if goal is None else f"{goal:g}x",
    )  # fmt: skip


def _first_row(run: Run, derivative: Derivative, name: str) -> tuple[str, ...]:
    first: dict[str, Any] = first_calls(name, FIRST_ROWS, derivative.quantity, 1 if run.quick else 3)
    what = f"{name}, {derivative.key} dynamics with Jacobians: first call"
    if name in COLD:
        run.below(f"{what}, cold, ms", COLD[name], first["cold"], ms)
        run.below(f"{what}, from the cache, ms", CACHED, first["cached"], ms)
    return f"{name}, {derivative.key}", ms(first["cold"]), ms(first["cached"])


# Products with derivatives of forward dynamics, by q, v and tau.

PRODUCTS = ("double pendulum", "four-bar", "Panda", "ANYmal")
PRODUCT_ROWS = 1024
VJP, HESSIAN = 3.0, 5e-6  # times forward dynamics; s, of Panda
HESSIANS = ("double pendulum", "four-bar", "Panda")


def _model(run: Run, name: str) -> cd.Model:
    made = {"double pendulum": mechanisms.double_pendulum, "four-bar": mechanisms.four_bar}
    return made[name]().build() if name in made else run.robots[name].model


def _product_row(run: Run, name: str) -> tuple[str, ...]:
    """Forward dynamics, its products, its Jacobians and its second derivatives, in one run."""
    model, rows, by = _model(run, name), PRODUCT_ROWS, ("q", "v", "tau")
    rng = np.random.default_rng(0)
    q, v = model.random_state(rng, rows)
    if model.has_rows:
        q = np.tile(cd.assemble(model, model.start())[0], (rows, 1))
    tau, w, *along = rng.standard_normal((5, rows, model.nv))
    equations = cd.equations(model)
    quantity, facts = equations.quantity("forward_dynamics"), solving_facts(model, equations.formulation)
    products = {"vjp": (pulled, [w]), "jvp": (pushed, along)}
    if name in HESSIANS:
        products["hessian"] = (curved, [w])
    blocks, operations = {}, {}
    for key, whole, more in (
        ("value", quantity, []), *((key, product(quantity, by, model), x) for key, (product, x) in products.items())
    ):  # fmt: skip
        kernel = compile_quantity(model, whole, facts)
        blocks[key], operations[key] = _block(kernel, [q, v, tau, *more], rows), _total(counted(kernel))
    jacobians = lambda: cd.forward_dynamics(model, q, v, tau, by=by, threads=1)
    blocks["jacobians"] = Block(jacobians, rows)
    t = interleave(blocks, rounds=run.rounds, least=run.least)
    ratio = t["value"].times_faster_than(t["vjp"])
    run.below(f"{name}, vjp of forward dynamics: times forward dynamics", VJP, ratio, times)
    if name == "Panda":
        run.below(f"{name}, weighted second derivatives of forward dynamics: ns", HESSIAN, t["hessian"].median, ns)
    return (
        name, ns(t["value"].median), ns(t["vjp"].median), f"{ratio:.2f}", ns(t["jvp"].median),
        f"{t['value'].times_faster_than(t['jvp']):.2f}", ns(t["jacobians"].median),
        ns(t["hessian"].median) if name in HESSIANS else NONE,
        *(f"{operations[key]:,}" if key in operations else NONE for key in ("value", "vjp", "jvp", "hessian")),
    )  # fmt: skip


def _block(kernel: Any, arrays: list[np.ndarray], rows: int) -> Block:
    found = kernel(*arrays, threads=1)
    out = tuple(np.zeros_like(x) for x in found) if isinstance(found, tuple) else np.zeros_like(found)
    return Block(lambda: kernel(*arrays, out=out, threads=1), rows)


def _products(run: Run) -> str:
    rows = []
    for name in PRODUCTS:
        with run.step(f"products {name}"):
            rows.append(_product_row(run, name))
    head = (
        "mechanism", "forward dynamics", "vjp", "ratio", "jvp", "ratio", "Jacobians", "weighted Hessian",
        "operations", "of vjp", "of jvp", "of the Hessian",
    )  # fmt: skip
    return (
        f"### Products with derivatives of forward dynamics\n\nBy q, v and tau, {PRODUCT_ROWS} states, one thread, ns "
        "for each state; the ratios are by the time of forward dynamics in the same round.\n\n" + table(head, rows)
    )


# Closed loops.


def _along(linkage: Linkage, q: np.ndarray, v: np.ndarray) -> Any:
    """Directions `dq`, `dv` (states, nv, n) along the constraints, one for each independent coordinate and rate."""
    pairs = moving_along("benchmark", linkage.model, ("q", "v"), q, v, 0.0).values()
    both = [np.broadcast_arrays(dq, dv, np.zeros((len(q), 1, 1)))[:2] for dq, dv in pairs if dq.shape[-1]]
    return [np.concatenate([pair[k] + np.zeros((len(q), 1, 1)) for pair in both], axis=-1) for k in range(2)]


def _accuracy(linkage: Linkage) -> tuple[float, float, float]:
    """Accelerations against Pinocchio's; then the derivatives along the constraints, Cardan's and Pinocchio's.

    These are compared with central differences of Pinocchio's own accelerations at assembled states.
    """
    import pinocchio as pin

    model, (q, v, tau) = linkage.model, linkage.states(8)
    a, a_q, a_v = cd.forward_dynamics(model, q, v, tau, by=("q", "v"))
    dq, dv = _along(linkage, q, v)

    def accelerations(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        found = [np.array(pin.constraintDynamics(*call)) for call in linkage.pinocchio_calls(q, v, tau)]
        return linkage.from_pinocchio(np.array(found))

    theirs = []
    for call in linkage.pinocchio_calls(q, v, tau):
        pin.constraintDynamics(*call)
        D = pin.computeConstraintDynamicsDerivatives(*call[:2], *call[5:])[:2]
        theirs.append([linkage.from_pinocchio(linkage.from_pinocchio(np.array(x)).T).T for x in D])
    P = [np.array(x) for x in zip(*theirs, strict=True)]
    h, columns = 1e-5, []
    for k in range(dq.shape[-1]):
        ends = []
        for step in (h, -h):
            at = cd.assemble(model, cd.plus(model, q, step * dq[..., k]), v + step * dv[..., k], tolerance=CLOSED)
            ends.append(accelerations(*at))
        columns.append((ends[0] - ends[1]) / (2 * h))
    expected = np.stack(columns, axis=-1)
    size = np.abs(expected).max()
    errors = [float(np.abs(x @ dq + y @ dv - expected).max() / size) for x, y in ((a_q, a_v), P)]
    return float(np.abs(accelerations(q, v) - a).max() / np.abs(a).max()), errors[0], errors[1]


def _loop_row(run: Run, linkage: Linkage) -> tuple[str, ...]:
    """Forward dynamics of a closed mechanism with its Jacobians by q, v and tau."""
    import pinocchio as pin

    def calls_of(states: list[tuple[Any, ...]]) -> Block:
        def both() -> None:
            for state in states:
                pin.constraintDynamics(*state)
                pin.computeConstraintDynamicsDerivatives(*state[:2], *state[5:])

        return Block(both, len(states))

    states = linkage.pinocchio_calls(*linkage.states(IN_CACHE))
    one, forward = [one_joint()] * IN_CACHE, pin.constraintDynamics
    blocks = {
        "cardan": _loop_batch(linkage.model, linkage.states(IN_CACHE), ("q", "v", "tau")),
        "pin": calls_of(states), "one joint": calls_of(one),
        "forward": calls(forward, states), "one joint forward": calls(forward, one),
    }  # fmt: skip
    t = interleave(blocks, rounds=run.rounds, least=run.least)
    bare = Timing(t["pin"].seconds - t["one joint"].seconds)
    alone = Timing(bare.seconds - t["forward"].seconds + t["one joint forward"].seconds)
    ratio, least = t["cardan"].times_faster_than(bare), t["cardan"].least_times_faster_than(bare)
    goal = LOOP_GOAL.get(linkage.name)
    if goal is not None:
        what = f"{linkage.name}, forward dynamics with Jacobians"
        run.at_least(f"{what}: times Pinocchio's, one thread", goal, min(ratio, least), times)
    values, ours, theirs = _accuracy(linkage)
    return (
        linkage.name, ns(t["cardan"].median), ns(t["cardan"].minimum), ns(t["pin"].median), ns(bare.median),
        ns(alone.median), times(ratio), times(least), times(t["cardan"].times_faster_than(alone)),
        NONE if goal is None else f"{goal:g}x", f"{values:.0e}", f"{ours:.0e}", f"{theirs:.0e}",
    )  # fmt: skip


def _loop_batch(model: cd.Model, arrays: tuple[np.ndarray, ...], names: tuple[str, ...]) -> Block:
    kernel = forward_kernel(model, SPATIAL, False, By(names))
    out = tuple(np.zeros_like(result) for result in kernel(*arrays))
    for _ in range(2 * CLOSELY):  # the first calls look at how many digits hold
        kernel(*arrays, out=out, threads=1)
    return Block(lambda: kernel(*arrays, out=out, threads=1), len(arrays[0]))


def _dimensions_row(run: Run) -> tuple[str, ...]:
    """The four-bar by its state and the positions of all joints on both of their links."""
    linkage = linkages()[0]
    places = [f"{joint.name}.{end}" for joint in linkage.model.joints for end in ("at", "child_at")]
    model = linkage.model.free(*places)
    names = ("q", "v", "tau", "parameters")
    t = interleave({"cardan": _loop_batch(model, linkage.states(IN_CACHE), names)}, rounds=run.rounds, least=run.least)[
        "cardan"
    ]
    run.below("four-bar, forward dynamics by state and all dimensions: ns", DIMENSIONS, t.median, ns)
    return f"{linkage.name}, {model.parameters.size} dimensions", ns(t.median), ns(t.minimum), ns(DIMENSIONS)


def _loops(run: Run) -> str:
    rows = []
    for linkage in linkages():
        with run.step(f"derivatives {linkage.name}"):
            rows.append(_loop_row(run, linkage))
    with run.step("derivatives by dimensions"):
        dimensions = [_dimensions_row(run)]
    head = (
        "mechanism", "Cardan", "least", "both calls of Pinocchio", "less the calls", "derivatives alone", "ratio",
        "of leasts", "to derivatives alone", "goal", "accelerations differ by", "Cardan is off by",
        "Pinocchio is off by",
    )  # fmt: skip
    return (
        "### Closed loops\n\nForward dynamics with its Jacobians by q, v and tau, "
        f"{IN_CACHE} rows. Pinocchio needs two calls, `constraintDynamics` and then "
        "`computeConstraintDynamicsDerivatives`, with a point contact for each cut joint; the same two on one joint "
        "without constraint are subtracted. `off by`: derivatives along the constraints against central differences "
        "of Pinocchio's own accelerations at assembled states, relative to the largest. Pinocchio's derivatives by q "
        "of loops do not agree with its accelerations; it has no rows but those of points and of whole frames, and "
        "none of its derivatives is by a dimension.\n\n"
        + table(head, rows)
        + "\n\nThe four-bar by q, v, tau and the positions of all joint frames on both links, three numbers each.\n\n"
        + table(("mechanism", "Cardan", "least", "goal"), dimensions)
    )


def section(run: Run) -> str:
    """Batches, operations and first calls."""
    texts, first = [], []
    for derivative in DERIVATIVES:
        rows = []
        for name in ROBOTS:
            with run.step(f"derivatives {derivative.key} {name}"):
                rows.append(_measure(run, derivative, run.robots[name]))
        head = (
            "robot", "operations", "by differentiation", f"Cardan, {IN_CACHE} rows", "least", f"Cardan, {LARGE} rows",
            f"`pin.{derivative.pinocchio}`", "less the call", "ratio", "of leasts", "goal",
        )  # fmt: skip
        texts.append(f"### {derivative.title} and its Jacobians\n\n" + table(head, rows))
        for name in ("Panda", "ANYmal", "Talos", "chain 100"):
            with run.step(f"derivatives first call {derivative.key} {name}"):
                first.append(_first_row(run, derivative, name))
    return (
        "## Derivatives of the dynamics\n\nForward dynamics `a` with its Jacobians by q, v and tau, and inverse "
        "dynamics with its Jacobians by q, v and a, along the tangent, by the recursion of "
        "`formulation/spatial_derivatives.py`. Batches on one thread, ns for each state, medians of the rounds. "
        f"{IN_CACHE} rows leave the results in a core's caches, as Pinocchio's do; {LARGE} rows go to memory. "
        "Pinocchio has no batch call for these: it is called from Python for each state, and the cost of calling is "
        "subtracted: the call on a model of one joint, and copies of three matrices. `by differentiation`: operations "
        "of automatic differentiation of the graph of inverse dynamics by q and v.\n\n"
        + "\n\n".join([*texts, _loops(run)])
        + f"\n\nFirst call of a fresh process on {FIRST_ROWS} states, ms, with the model built.\n\n"
        + table(("robot and function", "cold", "from cache"), first)
        + f"\n\n{_products(run)}\n"
    )
