"""Stops of an expression of the user's: a length or an angle between bodies that stays between its limits.

The expression is a function of time and poses, as the gap of a contact is. Each limit is a row whose gap is how far the
expression is from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.algebra.free_number import expression, nominal_of
from cardan.algebra.matrix import Matrix, Scalar, dot, zeros
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.field import GAP, NOT_NEGATIVE, POSITIVE, Field
from cardan.model.force import FORCES, BodyPose, Force, ForceKind
from cardan.model.law import RESTITUTION, LawfulElement, is_compliant, pushing
from cardan.model.row import Law

SIGNS = {"lower": 1.0, "upper": -1.0}


def _rows(f: Force) -> dict[str, Constraint]:
    """A row for each limit: the gap."""
    found = {}
    for name, sign in SIGNS.items():
        if name not in f.numbers:
            continue

        def gap(t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix], sign: float = sign) -> Any:
            return sign * f.function(t, *(part for pose in poses for part in pose), *twists)

        limit = -sign * expression(f.numbers[name].ravel()[0])
        found[name] = Constraint(f.name, f.on, gap, f.kind.fields["value"].unit, added=limit).traced()
    return found


def _pushed(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    """Wrenches of a compliant stop; none of a hard one."""
    total = [zeros(6, None, pose.rotation) for pose in poses]
    for row in _rows(f).values() if "stiffness" in f.numbers else ():
        forces, _, rate, gap = row.written(t, poses, twists)
        assert gap is not None
        for F, twist in zip(forces, twists, strict=True):
            rate = rate - dot(F, twist)
        push = pushing(f, -gap, rate)
        total = [w + F * push for w, F in zip(total, forces, strict=True)]
    return total


def _lawful(f: Force, joints: Sequence[Joint]) -> LawfulElement | None:
    given = {name: nominal_of(f.numbers[name].ravel()[0]) for name in SIGNS if name in f.numbers}
    if not given:
        raise ModelError(f"{f.owner}: it has no limit; give lower or upper, or both")
    low, high = given.get("lower", -float("inf")), given.get("upper", float("inf"))
    if low > high:
        raise ModelError(f"{f.owner}: lower {low:g} is above upper {high:g}; exchange them")
    compliant = is_compliant(f)
    if not hasattr(f.function, "numel_out"):
        return None  # it is not traced yet
    if f.function.numel_out(0) != 1:
        raise ModelError(f"{f.owner}: its expression must be one number, got {f.function.numel_out(0)}")
    rows = _rows(f)
    if any(row.is_at_rate_level for row in rows.values()):
        raise ModelError(f"{f.owner}: its expression depends on twists; a limit is of poses (and time) alone")
    if compliant:
        return None
    return LawfulElement(f, tuple(rows.values()), (Law.UNILATERAL,) * len(rows), tuple(rows))


def _kind(what: str, unit: str, force: str) -> ForceKind:
    return ForceKind(
        f"{what} stop", "bodies", _pushed, mark="element", file_name=f"{what}_stop", lawful=_lawful,
        fields={
            "value": Field(unit, f"the {what} that has limits, {unit}: an expression of time and of the bodies", GAP),
            "lower": Field(unit, f"least {what}, {unit}", default=None, letter="q_l"),
            "upper": Field(unit, f"largest {what}, {unit}", default=None, letter="q_u"),
            "restitution": RESTITUTION,
            "stiffness": Field(
                f"{force}/{unit}", f"of a compliant stop, {force}/{unit}; a stop without is hard", rule=POSITIVE,
                default=None, letter="k",
            ),
            "damping": Field(f"{force} s/{unit}", "of a compliant stop", rule=NOT_NEGATIVE, default=None, letter="d"),
        },
    )  # fmt: skip


EXPRESSION_STOPS = {"m": _kind("length", "m", "N"), "rad": _kind("angle", "rad", "N m")}
"""By the unit of the expression."""
# The table of force elements has these too.
FORCES.update({kind.name: kind for kind in EXPRESSION_STOPS.values()})
