"""Every integrator has its order of accuracy, whatever the joint, in a tree and across a loop.

Compiling takes nearly all of the time, a second for each method in each loop, so the tests measure a selection: every
kind of joint in both places with rk4 and one other method with steps of one length (two others, counting both places),
and Gear's method in one of them; on every other tree also those of CVODE. The page docs/accuracy.md has all of them,
made by docs/make_accuracy.py, and is held to the same bounds here.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from ..convergence_orders import (
    CONTROLLED,
    JOINTS,
    ORDERS,
    PLACES,
    ROOT,
    TOLERANCES,
    observed_order,
    step_errors,
    takes,
    tolerance_errors,
)

pytestmark = pytest.mark.usefixtures("quick_code")

spec = importlib.util.spec_from_file_location("make_accuracy", ROOT / "docs" / "make_accuracy.py")
assert spec is not None and spec.loader is not None
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)

LESS, MORE = 0.25, 1.5  # by how much an observed order may miss the method's own
ALLOWED = 100  # times the tolerance
OTHERS = [method for method in ORDERS if method != "rk4"]
CASES = [(k, joint, place) for k, joint in enumerate(JOINTS) for place in PLACES]


def fixed(k: int, place: str) -> list[str]:
    """The methods with steps of one length that are measured for the k-th joint."""
    return ["rk4", OTHERS[(k + PLACES.index(place)) % len(OTHERS)]]


def controlled(k: int, joint: str, place: str) -> list[str]:
    """The methods with a tolerance that are measured; Dormand and Prince's where it is compiled anyway."""
    chosen = ["gear"] if PLACES[k % 2] == place else ["bdf", "adams"]
    chosen += ["dormand_prince"] * ("dormand_prince" in fixed(k, place))
    return [method for method in chosen if takes(method, joint, place)]


@pytest.mark.parametrize(("k", "joint", "place"), CASES, ids=[f"{joint}-{place}" for _, joint, place in CASES])
def test_the_error_falls_as_the_order_says_and_with_the_tolerance(k: int, joint: str, place: str) -> None:
    for method in fixed(k, place):
        errors = step_errors(joint, place, method)
        assert_order(method, observed_order(errors), f"{joint} in a {place}, errors {errors}")
    for method in controlled(k, joint, place):
        assert_controlled(tolerance_errors(joint, place, method), f"{method}, {joint} in a {place}")


def test_the_selection_has_every_method_in_both_places_on_four_kinds_or_more() -> None:
    seen = {(method, place, joint) for k, joint, place in CASES for method in fixed(k, place)}
    seen |= {(method, place, joint) for k, joint, place in CASES for method in controlled(k, joint, place)}
    for method in {*ORDERS, *CONTROLLED}:
        places = [place for place in PLACES if any(takes(method, joint, place) for joint in JOINTS)]
        assert all(any((method, place, joint) in seen for joint in JOINTS) for place in places)
        assert sum(any((method, place, joint) in seen for place in PLACES) for joint in JOINTS) >= 4


def test_the_page_has_every_method_joint_and_place_with_the_order_it_should_have() -> None:
    steps, tolerances = make.read(make.PAGE.read_text(encoding="utf-8"))
    assert list(steps) == list(tolerances) == [(joint, place) for joint in JOINTS for place in PLACES]
    for (joint, place), cells in steps.items():
        assert list(cells) == list(ORDERS)
        for method, cell in cells.items():
            assert_order(method, float(cell), f"{joint} in a {place}, on the page")
    for (joint, place), cells in tolerances.items():
        assert list(cells) == list(CONTROLLED)
        for method, cell in cells.items():
            assert (cell == make.NONE) != takes(method, joint, place)
            if takes(method, joint, place):
                assert_controlled(np.array(cell.split(), dtype=float), f"{method}, {joint} in a {place}, on the page")


def test_the_page_shows_the_figures_there_are() -> None:
    text = make.PAGE.read_text(encoding="utf-8")
    for figure in make.FIGURES:
        assert figure.is_file() and f"(figures/{figure.name})" in text


def assert_order(method: str, order: float, where: str) -> None:
    p = ORDERS[method]
    assert p - LESS <= order <= p + MORE, f"{method} of order {p} shows {order:.2f}: {where}"


def assert_controlled(errors: np.ndarray, where: str) -> None:
    slope = np.log(errors[0] / errors[-1]) / np.log(TOLERANCES[0] / TOLERANCES[-1])
    assert 0.5 <= slope <= 1.5, f"{where}: the error does not follow the tolerance: {errors} for {TOLERANCES}"
    assert (errors <= ALLOWED * np.array(TOLERANCES)).all(), f"{where}: errors {errors} for tolerances {TOLERANCES}"
