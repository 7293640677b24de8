"""`spatial` and `newton_euler` can be read side by side: what both have has the same name, in the same order."""

import ast
from pathlib import Path

FORMULATION = Path(__file__).resolve().parents[2] / "src" / "cardan" / "formulation"


def names(module: str) -> list[str]:
    """Functions, recursions and methods of a module in the order of its text."""
    found = []
    for node in ast.parse((FORMULATION / module).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.append(node.targets[0].id)
        elif isinstance(node, ast.ClassDef):
            found += [f"method {f.name}" for f in node.body if isinstance(f, ast.FunctionDef)]
    return found


def test_spatial_and_newton_euler_have_the_same_order() -> None:
    six, three = names("spatial.py"), names("newton_euler.py")
    shared = set(six) & set(three)
    assert [n for n in six if n in shared] == [n for n in three if n in shared]
    needed = {"newton_euler_out", "newton_euler_in", "composite_in", "energy_in", "momentum_in", "MASS_MATRIX"}
    assert needed <= shared and len(shared) >= 20
