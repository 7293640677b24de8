"""Sine, cosine and tangent: the angle less k quarter turns, then polynomials.

Cody-Waite reduction with fused multiply-adds: k = round(2x/pi), r = x - k pi/2 with pi/2 in three parts. The first
subtraction is exact: k P1 and x are both multiples of ulp(1)/2 and the difference is below 1. Then polynomials on
|r| <= pi/4 and the quadrant k mod 4. Past the limit of |x|, where k would lose bits, and for inf and nan, a cold branch
reduces these lanes by `large_angle`: a row of a batch has the same bits whatever its neighbours are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cardan.machines.llvm.elementary.coefficients import COS, SIN
from cardan.machines.llvm.elementary.lanes import (
    Mask,
    Number,
    Whole,
    bits_of,
    choose,
    define,
    fma,
    polynomial,
    select,
    with_sign,
)
from cardan.machines.llvm.elementary.large_angle import define_large_angle
from cardan.machines.llvm.elementary.pairs import (
    exact_product,
    exact_sum,
    ordered_sum,
    quotient,
    select_pair,
)
from cardan.machines.llvm.module import Module, VectorType


@dataclass(frozen=True)
class _Reduction:
    """Constants of the reduction and the polynomials of sine and cosine for one precision."""

    magic: float  # adding it rounds to an integer, left in the low bits
    limit: float
    half_pi: tuple[float, float, float]
    sin: tuple[float, ...]  # of r^2, highest power first, for (sin r - r) / r^3; the coefficients of Cephes
    cos: tuple[float, ...]  # for (cos r - 1 + r^2/2) / r^4


_REDUCTIONS = {
    "double": _Reduction(
        magic=6755399441055744.0,
        limit=2.0**30,
        half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        sin=(
            1.58962301576546568060e-10,
            -2.50507477628578072866e-8,
            2.75573136213857245213e-6,
            -1.98412698295895385996e-4,
            8.33333333332211858878e-3,
            -1.66666666666666307295e-1,
        ),
        cos=(
            -1.13585365213876817300e-11,
            2.08757008419747316778e-9,
            -2.75573141792967388112e-7,
            2.48015872888517045348e-5,
            -1.38888888888730564116e-3,
            4.16666666666665929218e-2,
        ),
    ),
    "float": _Reduction(
        magic=12582912.0,
        limit=2.0**20,
        half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        sin=(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
        cos=(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
    ),
}


@dataclass(frozen=True)
class _Angle:
    """An angle of at most pi/4 in size, after so many quarter turns."""

    r: Number
    low: Number | None
    quadrant: Whole


def define_sincos(module: Module) -> None:
    """Define `{V, V} @sincos(V)` on the type of a module."""
    _define(module, module.type, "sincos", _reduce, _sincos, 2)


def define_sincos_near(module: Module) -> None:
    """Define `{V, V} @sincos.near(V)` for angles up to `limit_of_near`."""
    define(module, module.type, "sincos.near", lambda x: _sincos(x, _reduce(x)), 1, 2, attributes="alwaysinline")


def limit_of_near(t: VectorType) -> float:
    """The largest angle that is reduced without a branch."""
    return _REDUCTIONS[t.scalar].limit


def define_tan(module: Module, t: VectorType, symbol: str) -> None:
    """Define `V @symbol(V)`, the tangent, on lanes of double."""
    _define(module, t, symbol, _reduce_to_pair, _tan, 1)


def _define(
    module: Module, t: VectorType, symbol: str, reduce: Callable[[Number], _Angle],
    finish: Callable[[Number, _Angle], Sequence[Number]], results: int,
) -> None:  # fmt: skip
    """Define a circular function, with its cold branch beside it."""
    define_large_angle(module)

    def body(x: Number) -> Sequence[Number]:
        code = x.code
        large = x.size() > bits_of(_REDUCTIONS[t.scalar].limit, t)
        code.branch(code.any(large), "cold", "hot")
        code.begin("hot")
        code.give(finish(x, reduce(x)))
        code.begin("cold")
        return code.call(f"@{symbol}.cold", results, x, large)

    def cold(x: Number, large: Mask) -> Sequence[Number]:
        limit = _REDUCTIONS[t.scalar].limit
        near, far = reduce(select(large, 0.0, x)), _reduce_large(select(large, x, limit))
        low = near.low if near.low is None or far.low is None else select(large, far.low, near.low)
        angle = _Angle(select(large, far.r, near.r), low, choose(large, far.quadrant, near.quadrant))
        return finish(x, angle)

    define(module, t, symbol, body, 1, results)
    define(module, t, f"{symbol}.cold", cold, 1, results, masks=1, attributes="noinline cold")


def _reduce(x: Number) -> _Angle:
    """The angle less quarter turns, as one number."""
    red = _REDUCTIONS[x.code.t.scalar]
    shifted = fma(x, 0.63661977236758134308, red.magic)
    k = shifted - red.magic
    r = x
    for part in red.half_pi:
        r = fma(k, -part, r)
    return _Angle(r, None, shifted.bits())


def _reduce_to_pair(x: Number) -> _Angle:
    """The angle less quarter turns, as a pair."""
    red = _REDUCTIONS["double"]
    shifted = fma(x, 0.63661977236758134308, red.magic)
    k = shifted - red.magic
    first = fma(k, -red.half_pi[0], x)
    second = exact_product(k, -red.half_pi[1])
    s = exact_sum(first, second.high)
    r = ordered_sum(s.high, s.low + fma(k, -red.half_pi[2], second.low))
    return _Angle(r.high, r.low, shifted.bits())


def _reduce_large(x: Number) -> _Angle:
    """Large angles less quarter turns, lane by lane."""
    code, t = x.code, x.code.t
    result = "{ double, double, i64 }"
    types = ("double", "double", "i64")
    lanes = ["poison"] * 3
    for lane in range(t.width):
        one = x.name if t.width == 1 else code.new(f"extractelement {t.vector} {x.name}, i64 {lane}")
        if t.scalar == "float":
            one = code.new(f"fpext float {one} to double")
        reduced = code.new(f"call {result} @large.angle(double {one})")
        for n, kind in enumerate(types):
            value = code.new(f"extractvalue {result} {reduced}, {n}")
            if t.width > 1:
                value = code.new(f"insertelement {t.of(kind)} {lanes[n]}, {kind} {value}, i64 {lane}")
            lanes[n] = value
    if t.scalar == "float":
        lanes = [
            *(code.new(f"fptrunc {t.of('double')} {value} to {t.vector}") for value in lanes[:2]),
            code.new(f"trunc {t.of('i64')} {lanes[2]} to {t.of('i32')}"),
        ]
    return _Angle(Number(code, lanes[0]), Number(code, lanes[1]), Whole(code, lanes[2]))


def _sincos(x: Number, angle: _Angle) -> Sequence[Number]:
    """Sine and cosine of an angle in its quadrant."""
    red, r, last = _REDUCTIONS[x.code.t.scalar], angle.r, 8 * x.code.t.bytes - 1
    z = r * r
    sine = fma(polynomial(z, red.sin) * z, r, r)
    cosine = fma(polynomial(z, red.cos) * z, z, fma(z, -0.5, 1.0))
    odd = angle.quadrant.odd()
    results = select(odd, cosine, sine), select(odd, sine, cosine)
    quadrants = angle.quadrant, angle.quadrant + 1
    return [with_sign(v, (q << (last - 1)) & -(2**last)) for v, q in zip(results, quadrants, strict=True)]


def _tan(x: Number, angle: _Angle) -> Sequence[Number]:
    """Tangent of an angle in its quadrant: the quotient of sine and cosine as pairs."""
    assert angle.low is not None
    r, low = angle.r, angle.low
    z = exact_product(r, r)
    s = ordered_sum(r, r * z.high * polynomial(z.high, SIN))
    sine = ordered_sum(s.high, s.low + low * fma(z.high, -0.5, 1.0))
    c = ordered_sum(1.0, -0.5 * z.high)
    d = ordered_sum(c.high, z.high * z.high * polynomial(z.high, COS))
    cosine = ordered_sum(d.high, fma(z.low, -0.5, c.low + d.low) - r * low)
    odd = angle.quadrant.odd()
    t = quotient(select_pair(odd, -cosine, sine), select_pair(odd, sine, cosine)).rounded()
    return [select(x.size() < bits_of(2.0**-27), x, t)]
