"""Programs are data: sizes and operations counted by hand, what does not fit refused; printers know nothing else."""

import subprocess
import sys

import casadi as ca
import llvmlite.binding as llvm
import numpy as np
import pytest

import cardan as cd
from cardan.errors import CardanError
from cardan.formulation.looping import record_schedule
from cardan.formulation.spatial import SPATIAL
from cardan.machines.llvm.batch_loop import print_body
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.ufunc.kernel import compile_program
from cardan.program.graph import Graph, read
from cardan.program.march import BUSY, Each, March, Scheduled
from cardan.program.program import Port, Program, record
from cardan.program.schedule import ClimbRound, Round, Schedule
from cardan.program.stages import Stage, Stages, Window

x, y = ca.SX.sym("x", 2), ca.SX.sym("y")


def summing(links=3):
    """A schedule that adds the input of each link to one number of state and writes a product for each link."""
    C, u, own, carrier = ca.SX.sym("C"), ca.SX.sym("u"), ca.SX.sym("S"), ca.SX.sym("P")
    step = ca.Function("step", [C, u, own, carrier], [own + u, ca.SX(1, 1), ca.sqrt(u) * C])
    table = np.array([[0, i, i, 0, 0, i] for i in range(links)])
    return Schedule((Round((step,), (0,), (0,), table),), np.arange(links) + 1.0, 1, ((0, 0.0),))


def program(function, inputs, outputs):
    ports = [
        tuple(Port(f"{name}{k}", (n,)) for k, n in enumerate(sizes)) for name, sizes in (("i", inputs), ("o", outputs))
    ]
    return Program("f", *ports, "key", lambda: function)


def test_graph():
    graph = read(ca.Function("f", [x, y], [x * y, ca.sin(y)]))
    assert (graph.input_sizes, graph.output_sizes, graph.state_size) == ([2, 1], [2, 1], 0)
    assert graph.operations() == {"mul": 2, "sin": 1}


def test_empty_ports_are_left_out_of_a_graph():
    """Numbers of ports close up; a program left without inputs gets one that is not read."""
    none = ca.SX.sym("none", 0)
    graph = record(program(ca.Function("f", [none, x], [none, x * 2]), [0, 2], [0, 2]))
    assert isinstance(graph, Graph)
    assert (graph.input_sizes, graph.output_sizes) == ([2], [2])
    assert {args for op, args in zip(graph.op, graph.args, strict=True) if op == "input"} == {(0, 0), (0, 1)}
    assert {port for port, _, _ in graph.outputs} == {0}
    assert record(program(ca.Function("f", [none], [ca.SX(3)]), [0], [1])).input_sizes == [1]


def test_schedule():
    schedule = summing()
    assert (schedule.state_size, schedule.operations()) == (1, {"add": 3, "sqrt": 3, "mul": 3})
    assert record(program(schedule, [3], [3])) is schedule
    with pytest.raises(CardanError, match=r"f: port 'i1' is empty; a schedule needs elements in every port"):
        record(program(schedule, [3, 0], [3]))


def test_climbs_need_scratch():
    """The mass matrix of a chain: each of n links passes its column to all links below it."""
    m = cd.Mechanism("chain")
    parent, n = m.ground, 5
    for i in range(n):
        body = m.body(f"b{i}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
        m.joint(f"j{i}", cd.Revolute(axis=(0, 0, 1)), parent, body, at=(0.3, 0.2, 0.1))
        parent = body
    schedule = record_schedule(SPATIAL.quantities["mass_matrix"].recursion, m.build())
    (climb,) = [r for r in schedule.rounds if isinstance(r, ClimbRound)]
    assert climb.scratch_size == climb.message + 2
    assert schedule.state_size == schedule.node_state + climb.scratch_size
    gives = sum(climb.graphs["give"][0].operations().values()) * n * (n + 1) // 2
    carries = sum(climb.graphs["carry"][0].operations().values()) * n * (n - 1) // 2
    starts = sum(climb.graphs["start"][0].operations().values()) * n
    assert sum(climb.operations().values()) == starts + gives + carries


def test_stages():
    """Rows of a matrix (2, 3) doubled into scratch, then each column c of it times x: places counted by hand."""
    A, v, c = ca.SX.sym("A", 2, 3), ca.SX.sym("v", 2), ca.SX.sym("c", 2)
    sparse = ca.SX(2, 3)
    sparse[0, :], sparse[1, 2] = 2 * A[0, :], 2 * A[1, 2]
    double = ca.Function("double", [A], [sparse])
    times = ca.Function("times", [v, c], [ca.vertcat(v[0] * c[0], v[1] * c[1] + 1)])
    column = Window(3, 1, 1, 3)  # from the second column on
    first = Stage(double, (Window(0),), (Window(3),))
    each = Stage(times, (Window(1), column), (Window(2, 1, 1, 3),), 2)
    alone = Stage(ca.Function("alone", [v], [v]), (Window(1),), (Window(2, 0, 0, 3),))
    stages = Stages(
        (Stage(ca.Function("clear", [], [ca.SX.zeros(2, 3)]), (), (Window(3),)), first, each, alone), (2, 1), (6,)
    )
    assert (stages.state_size, stages.operations()) == (6, {"twice": 4, "mul": 4, "add": 2})
    ports = (Port("A", (2, 3)), Port("x", (2,))), (Port("B", (2, 3)),)
    kernel = compile_program(Program("staged", *ports, "key of stages", lambda: stages))
    rng = np.random.default_rng(1)
    for rows in ((), (1,), (11,)):
        A, x = rng.standard_normal((*rows, 2, 3)), rng.standard_normal((*rows, 2))
        expected = 2 * A * x[..., None]
        expected[..., 1, 1:] = 2 * A[..., 1, 1:] * x[..., 1:] * [0, 1] + 1
        expected[..., :, 0] = x
        assert np.allclose(kernel(A, x), expected, rtol=1e-15)
    with pytest.raises(CardanError, match=r"f: port 'i1' is empty; stages need elements in every port"):
        record(program(stages, [3, 0], [3]))


def test_march():
    """State x, scratch s, data y: a part that runs twice, and one of a schedule and a graph for each element."""
    s, d = ca.SX.sym("s", 3), ca.SX.sym("d", 3)
    twice = ca.Function("twice", [x, s, d], [x * d[:2], s, 0])
    each = Each(ca.Function("each", [y], [ca.sin(y), 1]), (1,), (1, BUSY), 3)
    march = March(((twice, 2), ((Scheduled(summing(), (2,), (1,)), each), 1)), carried=1, scratch=1)
    assert (march.input_sizes, march.output_sizes) == ([2, 3, 1], [2])
    assert march.state_size == 2 + 3 + 1 + 1
    assert march.operations() == {"mul": 4 + 3, "add": 3, "sqrt": 3, "sin": 3}
    assert record(program(march, [2, 3, 1], [2])) is march
    with pytest.raises(CardanError, match=r"each: an argument of 3 numbers is not 2 rows of 1"):
        march.sizes_of(Each(each.function, (1,), (1, BUSY), 2))


def test_march_without_sizes():
    each = Each(ca.Function("each", [y], [y]), (0,), (0,))
    with pytest.raises(CardanError, match="give `arguments`"):
        March((((each,), 1),), carried=1).input_sizes  # noqa: B018
    assert March((((each,), 1),), carried=1, arguments=(1,)).input_sizes == [1, 1]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("what", ["graph", "schedule", "march"])
def test_a_body_stands_alone(what, lanes):
    """A body can be compiled without the loop over a batch, so another machine can print its own kernel around it."""
    recorded, sizes = {
        "graph": (ca.Function("f", [x, y], [x * ca.sin(y)]), ([2, 1], [2])),
        "schedule": (summing(), ([3], [3])),
        "march": (March(((ca.Function("f", [x, y], [x + y, x[0] < 3]), 1),), 1), ([2, 1, 1], [2])),
    }[what]
    given = program(recorded, *sizes)
    module = Module(VectorType("float", lanes))
    state = print_body(record(given), given, module)
    assert state == {"graph": 0, "schedule": 1, "march": 3}[what]
    compiled = llvm.parse_assembly(module.text())
    compiled.verify()
    assert not {"rows", "loop", "gather", "fetch"} & {function.name for function in compiled.functions}


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("program.program", ("casadi", "llvmlite", "cardan.machines", "cardan.model", "cardan.algebra")),
        ("machines.llvm.batch_loop", ("casadi", "llvmlite", "cardan.machines.host", "cardan.machines.ufunc")),
        ("machines.host", ("casadi", "numpy", "cardan.machines.ufunc", "cardan.program")),
    ],
)
def test_rooms_stand_alone(module, absent):
    """Programs need no printer, the printer no host, the host neither programs nor NumPy."""
    code = f"import cardan, sys; before = set(sys.modules); import cardan.{module}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = done.stdout.split()
    assert f"cardan.{module}" in found
    assert not [name for name in found if name.startswith(absent)]


@pytest.mark.parametrize("wide", [False, True])
def test_values_that_pass_through_memory_have_the_same_bits(wide, monkeypatch):
    """A graph of many blocks with values that live short and long, fused products, negations, sines; in place too."""
    rng = np.random.default_rng(3)
    a, b = ca.SX.sym("a", 5), ca.SX.sym("b", 4)
    values = [*ca.vertsplit(a), *ca.vertsplit(b)]
    for _ in range(1000):
        one, two, three = (values[-int(min(rng.exponential(60) + 1, len(values)))] for _ in range(3))
        pick = rng.integers(6)
        values.append(
            [one * two + 0.2 * three, 0.5 * one - two * three, 0.5 * two - one, ca.sin(one), one / (2 + two**2), -one][
                pick
            ]
        )
    ends = ca.sin(ca.vertcat(*(values[int(k)] for k in rng.integers(9, len(values), 9))))
    state = ca.Function("step", [a, b], [ends[:5], ends[5:], 1])
    graph = ca.Function("graph", [a, b], [ends[:5], -ends[5:]])
    states = rng.normal(size=(40 if wide else 1, 9))
    found = []
    for long in (10**9, 100):
        monkeypatch.setattr("cardan.machines.llvm.graph.LONG", long)
        monkeypatch.setattr("cardan.machines.llvm.graph.BLOCK", 50)
        ports = (Port("a", (5,)), Port("b", (4,)))
        outputs = (Port("c", (5,)), Port("d", (4,)))
        once = compile_program(Program("graph", ports, outputs, f"memory {long}", lambda: graph))
        march = compile_program(
            Program("march", (*ports, Port("limit", ())), outputs, f"memory {long}", lambda: March(((state, 1),), 2))
        )
        text = once._builder.text("double", 1)
        assert ("%kept" in text) == (long == 100)
        found.append([*once(states[:, :5], states[:, 5:]), *march(states[:, :5], states[:, 5:], np.array(3.0))])
    for plain, kept in zip(*found, strict=True):
        assert np.isfinite(plain).all()
        np.testing.assert_array_equal(plain, kept)
