"""The grammar of expressions: values as Python's, text and tree as each other, graphs operation by operation."""

import math
from typing import Any

import casadi as ca
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardan as cd
from cardan.io.yaml.expression import (
    DEEPEST,
    LARGEST,
    Call,
    Expression,
    ExpressionError,
    Literal,
    Measured,
    Name,
    as_text,
    evaluate,
    parse,
)
from cardan.io.yaml.function import as_expressions
from cardan.io.yaml.units import TABLE, UnitError, read_unit, to_si
from cardan.mechanisms import pendulum

NUMBERS = st.floats(0, 1e6, allow_nan=False).map(lambda x: Literal(repr(x)))
LEAVES = st.one_of(NUMBERS, st.sampled_from([Name("x"), Name("y"), Literal("2.0"), Literal("0.0")]))
UNARY = ("neg", "sin", "cos", "tan", "asin", "atan", "sinh", "tanh", "sqrt", "exp", "log", "abs", "floor", "ceil")
BINARY = ("+", "-", "*", "/", "^", "atan2", "hypot", "<", "<=", ">", ">=", "==", "!=", "min", "max", "copysign")
PYTHON: dict[str, Any] = {
    **{name: getattr(math, name) for name in (*UNARY[1:11], "floor", "ceil", "atan2", "hypot", "copysign")},
    "abs": abs, "min": min, "max": max, "if_": lambda c, x, y: x if c else y,
}  # fmt: skip


def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(UNARY), inner),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda c, a, b: Call("if", (c, a, b)), inner, inner, inner),
    )


TREES: st.SearchStrategy[Expression] = st.recursive(LEAVES, extend, max_leaves=20)


def value(tree: Expression, **names: float) -> float:
    found = evaluate(tree, lambda name: Measured(names[name.name]))
    assert isinstance(found, Measured)
    return found.value


@given(TREES)
def test_text_and_tree_are_the_same(tree: Expression) -> None:
    assert parse(as_text(tree)) == tree
    assert as_text(parse(as_text(tree))) == as_text(tree)


@given(TREES, st.floats(-10, 10), st.floats(-10, 10))
def test_values_are_pythons(tree: Expression, x: float, y: float) -> None:
    text = as_text(tree).replace("^", "**").replace("if(", "if_(")
    try:
        found = value(tree, x=x, y=y)
    except ExpressionError as error:  # Python may take an infinite or complex number on its way to a finite one
        assert "has no finite value" in str(error)
        return
    assert found == float(eval(text, {"__builtins__": {}}, PYTHON | {"x": x, "y": y}))


@given(TREES, st.floats(-3, 3), st.floats(-3, 3))
def test_graphs_have_the_same_value(tree: Expression, x: float, y: float) -> None:
    symbols = {"x": ca.SX.sym("x"), "y": ca.SX.sym("y")}
    try:
        expected = value(tree, x=x, y=y)
        graph = evaluate(tree, lambda name: symbols[name.name])
    except ExpressionError:
        return
    if isinstance(graph, Measured):
        assert graph.value == expected
    else:
        found = float(ca.Function("f", list(symbols.values()), [graph])(x, y))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9) or abs(expected) > 1e100


OPERATIONS: list[Any] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a**b,
    lambda a, b: -a, lambda a, b: ca.sin(a), lambda a, b: ca.sqrt(a), lambda a, b: ca.if_else(a < b, a, b),
    lambda a, b: ca.fmin(a, b), lambda a, b: ca.atan2(a, b), lambda a, b: a * a, lambda a, b: a + a,
    lambda a, b: 1 / a, lambda a, b: ca.fabs(a), lambda a, b: ca.hypot(a, b), lambda a, b: ca.fmod(a, b),
    lambda a, b: a**2.5, lambda a, b: ca.if_else(ca.logic_and(a <= b, ca.logic_not(b < a)), a, 0),
    lambda a, b: ca.tanh(a), lambda a, b: ca.sign(a), lambda a, b: ca.if_else(a == b, 2, 3),
]  # fmt: skip
STEPS = st.tuples(
    st.integers(0, len(OPERATIONS) - 1), st.integers(0, 40), st.integers(0, 40), st.sampled_from([None, 0, 2, -1, 1.7])
)


@given(st.lists(STEPS, min_size=1, max_size=25))
def test_a_traced_function_is_read_back_operation_by_operation(steps: list[tuple[int, int, int, float | None]]) -> None:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pool = [t, q[0], q[1], v[0], v[1]]
    for operation, i, j, constant in steps:
        b = pool[j % len(pool)] if constant is None else ca.SX(constant)
        pool.append(OPERATIONS[operation](pool[i % len(pool)], b))
    function = ca.Function("law", [t, q, v], [ca.vertcat(*pool[-2:])])
    if any(
        not math.isfinite(function.instruction_constant(k))
        for k in range(function.n_instructions())
        if function.instruction_id(k) == ca.OP_CONST
    ):
        return
    text = as_expressions(function, lambda port, k: Name("t") if port == 0 else Name("qv"[port - 1], (k,)))
    known: dict[str, Any] = {"t": [t], "q": q, "v": v}

    def lookup(name: Name) -> Any:
        return known[name.name][name.index[0] if name.index else 0]

    for name, line in text.where.items():
        known[name] = [evaluate(parse(line), lookup)]
    results = [evaluate(parse(line), lookup) for line in text.outputs[0]]
    column = ca.vertcat(*(r.value if isinstance(r, Measured) else r for r in results))
    assert ca.Function("law", [t, q, v], [column]).serialize() == function.serialize()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("35 mm", 0.035),
        ("180 deg", math.pi),
        ("90 deg", math.pi / 2),
        ("1 rev", 2 * math.pi),
        ("60 rpm", 2 * math.pi),
        ("5 [mm/rev]", 0.005 / (2 * math.pi)),
        ("2.5 [N/mm]", 2500.0),
        ("1 [N/(mm s)]", 1000.0),
        ("3 [kg m²]", 3.0),
        ("1 lbf", 4.4482216152605),
        ("12 mm + 3 cm", 0.042),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("2^3^2", 512.0),
        ("7 - 3 - 2", 2.0),
        ("8/4/2", 1.0),
        ("if(1 < 2, 3, 4)", 3.0),
        ("min(3, 1, 2)", 1.0),
        ("2*sin(30 deg)", 1.0),
        ("atan2(1 mm, 1 mm)", math.pi / 4),
        ("sqrt(4 [m^2])", 2.0),
        ("not(1 < 2)", 0.0),
        ("max(0, -2 mm)", 0.0),
    ],
)
def test_a_value(text: str, expected: float) -> None:
    assert value(parse(text)) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", TABLE)
def test_a_unit_and_its_inverse_cancel(name: str) -> None:
    unit = read_unit(f"{name}/{name}")
    assert unit.dimension == (0, 0, 0, 0)
    assert to_si("7", unit) == 7.0


@given(st.floats(-1e12, 1e12))
def test_a_prefix_moves_the_point_and_nothing_else(x: float) -> None:
    """The nearest float to the product is what Python reads with the point moved."""
    mantissa, _, exponent = repr(x).partition("e")
    assert to_si(repr(x), read_unit("mm")) == float(f"{mantissa}e{int(exponent or 0) - 3}")


@pytest.mark.parametrize(
    ("text", "sentence", "span"),
    [
        ("1 +", "the expression ends where a number, a name or a parenthesis should be", (3, 4)),
        ("foo(2)", "'foo' is not a function of this format; did you mean 'floor'?", (0, 3)),
        ("__import__('os')", "'__import__' is not a function of this format", (0, 10)),
        ("a.b", "the character '.' has no place in an expression; it has no attributes", (1, 2)),
        ("x = 1", "the character '=' has no place in an expression; compare with ==", (2, 3)),
        ("'text'", "it has no strings", (0, 1)),
        ("lambda: 1", "the character ':' has no place", (6, 7)),
        ("2 t", "to multiply, write 2*t", (2, 3)),
        ("2 pi", "to multiply, write 2*pi", (2, 4)),
        ("12 mm + 3 kg", "'+' of a length (m) and a mass (kg)", (0, 12)),
        ("12 mm + 5", "'+' of a length (m) and a number", (0, 9)),
        ("1 mm < 1 s", "'<' of a length (m) and a time (s)", (0, 10)),
        ("sin(2 mm)", "sin takes an angle, not a length (m)", (0, 9)),
        ("exp(2 mm)", "exp takes a plain number, not a length (m)", (0, 9)),
        ("2^(1 mm)", "an exponent is a plain number, not a length (m)", (0, 8)),
        ("sqrt(2 mm)", "the power 0.5 of a length (m) is not a quantity", (0, 10)),
        ("sqrt(-1)", "'sqrt' of -1 has no finite value", (0, 8)),
        ("1/0", "'/' of 1, 0 has no finite value", (0, 3)),
        ("9^9^9", "has no finite value", (0, 5)),
        ("(1", "')' is missing before the end", (2, 3)),
        ("1)", "')' does not belong there", (1, 2)),
        ("1 < 2 < 3", "comparisons do not chain", (6, 7)),
        ("sin(1, 2)", "sin takes 1 argument, got 2", (0, 9)),
        ("if(1, 2)", "if takes 3 arguments, got 2", (0, 8)),
        ("2 [zz]", "'zz' is not a unit", (3, 5)),
        ("2 [m", "the bracket of a unit is not closed", (2, 3)),
        ("x[1.5]", "where the number of an entry should be", (2, 5)),
        ("(" * 200, f"nested more than {DEEPEST} levels deep", (101, 102)),
        ("-" * 200 + "1", f"nested more than {DEEPEST} levels deep", (101, 102)),
        ("2^" * 200 + "1", f"nested more than {DEEPEST} levels deep", (202, 203)),
        ("1+" * 200 + "1", f"nested more than {DEEPEST} levels deep", (203, 204)),
        ("1" * 30_000, "the expression has 30000 characters", (0, 1)),
        ("max(" + "-1*1*1*1*1*1*1*1*1, " * 400, f"has more than {LARGEST} parts", (5560, 5561)),
    ],
)
def test_what_is_wrong_is_said_and_pointed_to(text: str, sentence: str, span: tuple[int, int]) -> None:
    with pytest.raises(ExpressionError) as error:
        value(parse(text))
    assert sentence in str(error.value)
    assert error.value.span == span


@pytest.mark.parametrize("text", ["", "5", "m/", "/s", "m^x", "(m", "m)", "m^", "N m/s kg", "Hz", "kHz", "mmin", "§"])
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        read_unit(text)


def test_a_function_that_is_no_expression_names_its_element() -> None:
    m = pendulum()
    m.drive("odd", "pivot", lambda t, q, v: ca.erfinv(t))
    with pytest.raises(cd.ModelError, match=r"drive 'odd': its function cannot be written .* 'erfinv'"):
        cd.save(m, "never.yaml")
    m = pendulum()
    m.drive("long", "pivot", lambda t, q, v: sum((ca.sin(k * t) * v for k in range(3000)), 0 * t))
    with pytest.raises(cd.ModelError, match=r"drive 'long': .* operations, and at most 5000 are written"):
        cd.save(m, "never.yaml")
