"""`cd.check` passes on sound models and fails when one number of one formulation is wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.functions import check as module
from cardan.functions import dynamics

from ..trees import tree_model

pytestmark = pytest.mark.usefixtures("quick_code")


def name(options: dict[str, Any]) -> str:
    """Of the formulation asked for, which may be an object."""
    formulation = options.get("formulation", "spatial")
    return formulation if isinstance(formulation, str) else formulation.name


@pytest.mark.parametrize("name", ["pendulum", "cart_pole", "two_body"])
def test_the_trees_of_the_catalogue_pass(name: str) -> None:
    report = cd.check(mechanisms.CATALOGUE[name]().build(), states=16)
    assert report.passed, str(report)
    assert "all checks passed" in str(report)


@pytest.mark.parametrize("tree", range(1))
def test_random_trees_pass(tree: int) -> None:
    report = cd.check(tree_model(tree, 4), states=16)
    rows = [row for row in report.rows if not re.search("absolute|relative|points", row.name)]
    assert all(row.passed for row in rows), str(report)
    names = {row.name for row in rows}
    assert names >= set(module.IDENTITIES) | set(module.DIFFERENCES)
    assert "accelerations: spatial = newton_euler" in names


@pytest.mark.parametrize(
    ("function", "rows"),
    {
        "forward_dynamics": ["inverse of forward dynamics", "M a + bias = tau"],
        "inverse_dynamics": ["inverse of forward dynamics"],
        "mass_matrix": ["M a + bias = tau", "M times its inverse", "kinetic energy = v M v / 2"],
        "inverse_mass_matrix": ["M times its inverse"],
        "bias_force": ["M a + bias = tau", "C v + gravity = bias"],
        "coriolis_matrix": ["C v + gravity = bias", "Mdot - 2 C skew"],
        "gravity_force": ["C v + gravity = bias", "gravity force = rate of potential"],
        "joint_wrenches": ["joint wrench along S = tau"],
    }.items(),
)
def test_a_quantity_that_is_wrong_by_one_part_in_a_million_is_found(
    function: str, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(dynamics, function)

    def wrong(*args: Any, **options: Any) -> np.ndarray:
        result = right(*args, **options)
        return result * (1 + 1e-5) if name(options) == "spatial" else result

    monkeypatch.setattr(dynamics, function, wrong)
    report = cd.check(mechanisms.double_pendulum().build(), states=16)
    assert not report.passed
    failed = {row.name for row in report.rows if not row.passed}
    assert failed >= set(rows)
    assert "CHECKS FAILED" in str(report)


def test_formulations_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dynamics.forward_dynamics

    def wrong(*args: Any, **options: Any) -> np.ndarray:
        return right(*args, **options) + 1e-8 * (name(options) == "newton_euler")

    monkeypatch.setattr(dynamics, "forward_dynamics", wrong)
    report = cd.check(mechanisms.double_pendulum().build(), states=4)
    assert [row.name for row in report.rows if not row.passed] == ["accelerations: spatial = newton_euler"]


def test_a_nan_does_not_pass() -> None:
    assert not module.CheckRow("x", float("nan"), 1.0).passed
