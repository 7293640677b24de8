"""What is left of a division, exactly: fmod and remainder.

Where x/y is below 2^50, n = round(x/y) fits into a number, x - n y is one, and a fused multiply-add gives it exactly.
A larger x is first reduced by y 2^(50 i), the largest below x first; each is a multiple of y, so the rest stays.
"""

from __future__ import annotations

from cardan.machines.llvm.elementary.lanes import (
    INFINITY,
    Mask,
    Number,
    absolute,
    bits_of,
    fma,
    raised_nan,
    select,
    with_sign,
)

_STEP = 2.0**50
_LARGEST = 2.0**973  # of what may be multiplied by the step
# adding and subtracting it rounds to an integer, the even one of two
_MAGIC = 2.0**52


def fmod(x: Number, y: Number) -> Number:
    """What is left of x after whole y, with the sign of x."""
    _leave_far(x, y)
    return with_sign(_rest(absolute(x), absolute(y)), x.sign())


def remainder(x: Number, y: Number) -> Number:
    """X less the multiple of y nearest to it; of two equally near the even one."""
    _leave_far(x, y)
    return with_sign(_nearest_rest(absolute(x), absolute(y)), x.sign())


def fmod_anywhere(x: Number, y: Number) -> Number:
    """What is left of x after whole y, for all x and y."""
    a, b, ordinary = _reduced(x, y)
    return _finished(x, y, _rest(a, b), ordinary)


def remainder_anywhere(x: Number, y: Number) -> Number:
    """X less the multiple of y nearest to it, for all x and y."""
    a, b, ordinary = _reduced(x, y)
    return _finished(x, y, _nearest_rest(a, b), ordinary)


def _leave_far(x: Number, y: Number) -> None:
    """Leave where x/y is not below 2^50, or one of them is no ordinary number."""
    size = y.size()
    extreme = (size < bits_of(2.0**-1022)) | (size > bits_of(2.0**900))
    x.code.leave(extreme | (x.size() > size + (50 << 52)), x, y)


def _near_rest(a: Number, b: Number) -> Number:
    """`a - n b` with n = round(a/b), for a/b < 2^51; n may be off by one, as a/b is rounded first."""
    return fma(-((a / b + _MAGIC) - _MAGIC), b, a)


def _rest(a: Number, b: Number) -> Number:
    """What is left of a >= 0 after whole b > 0."""
    r = _near_rest(a, b)
    return select(r.negative(), r + b, r)


def _nearest_rest(a: Number, b: Number) -> Number:
    """What is left of a >= 0 after the multiple of b > 0 that is nearest; in the middle a/b is exact, and n even."""
    r = _near_rest(a, b)
    other = b - absolute(r)  # exact where it is near |r|
    return select(absolute(r) > other, select(r.negative(), other, -other), r)


def _reduced(x: Number, y: Number) -> tuple[Number, Number, Mask]:
    """|x| less even multiples of y, until it is below 2^50 |y|; |y|; and where x and y have a rest. Elsewhere 2, 2."""
    code = x.code
    ordinary = (x.size() < INFINITY) & (y.size() < INFINITY) & (y.size() > 0)
    a, b = select(ordinary, absolute(x), 2.0), select(ordinary, absolute(y), 2.0)

    def next_step(s: Number) -> Number:
        """The next step up, or infinity where it is past the largest number."""
        return select(s < _LARGEST, select(s < _LARGEST, s, 2.0) * _STEP, float("inf"))

    code.branch(code.any(~(a < next_step(b))), "up", "done")
    code.begin("up")
    s = code.carried(b, "entry", "up")
    top = select(a < next_step(s), s, next_step(s))
    code.carry(s, top)
    code.branch(code.any(~(a < next_step(top))), "up", "down")
    code.begin("down")
    s, rest = code.carried(top, "up", "down"), code.carried(a, "up", "down")
    above = s > b
    left, shrunk = select(above, _rest(rest, s), rest), s * select(above, 1 / _STEP, 1.0)
    code.carry(s, shrunk)
    code.carry(rest, left)
    code.branch(code.any(shrunk > b), "down", "done")
    code.begin("done")
    last = code.carried(a, "entry", "down")
    code.carry(last, left)
    return last, b, ordinary


def _finished(x: Number, y: Number, r: Number, ordinary: Mask) -> Number:
    """The rest with the sign of x; x itself for an infinite y; NaN for an infinite x or a zero y."""
    nan = x.is_nan() | y.is_nan()
    r = with_sign(r, x.sign())
    kept = (x.size() < INFINITY) & absolute(y).equals(float("inf"))
    bad = ~(ordinary | kept | nan)
    r = select(ordinary, r, select(kept, x, raised_nan(bad)))
    return select(nan, select(x.is_nan(), x, y), r)
