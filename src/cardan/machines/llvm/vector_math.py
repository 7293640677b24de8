"""Mathematical functions of a vector of lanes: sine and cosine printed as LLVM IR, others from the C library.

Sine and cosine: Cody-Waite reduction with fused multiply-adds: k = round(2x/pi), r = x - k pi/2 with pi/2 in three
parts. The first subtraction is exact: k P1 and x are both multiples of ulp(1)/2 and the difference is below 1. Then
polynomials on |r| <= pi/4 (the coefficients of Cephes) and the quadrant k mod 4. Past the limit of |x|, where k would
lose bits, and for inf and nan, a cold branch calls the C library for these lanes: a row of a batch has the same bits
whatever its neighbours are.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cardan.machines.llvm.module import Module, VectorType

_LIBM_PAIRS = ("pow", "atan2", "hypot", "fmod", "remainder")
LIBM = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "log", "log1p", "expm1", "erf", *_LIBM_PAIRS,
)  # fmt: skip
"""Functions of the C library that code may call; of sines and cosines only those that are hard to reduce."""


def libm(module: Module, name: str) -> str:
    """Define the lane-by-lane call of a C library function; its symbol."""
    if name not in module.functions:
        arity = 2 if name in _LIBM_PAIRS else 1
        s = module.type.scalar
        module.declarations.add(f"declare {s} @{_libm_name(name, module.type)}({', '.join([s] * arity)})")
        module.functions[name] = _print_scalarised(name, arity, module.type)
    return f"@vec.{name}"


def sincos(module: Module) -> str:
    """Define the vector sine and cosine; its symbol."""
    if "sincos" not in module.functions:
        libm(module, "sin")
        libm(module, "cos")
        module.intrinsic("fma", 3)
        module.functions["sincos"] = _print_sincos(module.type)
    return "@sincos"


def sincos_near(module: Module) -> tuple[str, float]:
    """Define sine and cosine of angles up to a limit, without a branch; their symbol and the limit."""
    t = module.type
    if "sincos.near" not in module.functions:
        v, hot = t.vector, _print_sincos(t).split("hot:\n")[1].split("  %h0 =")[0]
        module.intrinsic("fma", 3)
        module.functions["sincos.near"] = f"""define internal {{ {v}, {v} }} @sincos.near({v} %x) alwaysinline {{
{hot}  %h0 = insertvalue {{ {v}, {v} }} poison, {v} %sin.x, 0
  %h1 = insertvalue {{ {v}, {v} }} %h0, {v} %cos.x, 1
  ret {{ {v}, {v} }} %h1
}}"""
    return "@sincos.near", _REDUCTIONS[t.scalar].limit


def _libm_name(name: str, t: VectorType) -> str:
    """The C library's name of a function for the scalar of a type."""
    return name if t.scalar == "double" else name + "f"


@dataclass(frozen=True)
class _Reduction:
    """Constants of the reduction and the polynomials for one precision."""

    magic: float  # adding it rounds to an integer, left in the low bits
    limit: float
    half_pi: tuple[float, float, float]
    sin: tuple[float, ...]  # of r^2, highest power first, for (sin r - r) / r^3
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


def _print_scalarised(name: str, arity: int, t: VectorType) -> str:
    """IR of `@vec.name`: the C library's function, lane by lane."""
    v, s = t.vector, t.scalar
    params = [f"{v} %x{a}" for a in range(arity)]
    lines = [f"define internal {v} @vec.{name}({', '.join(params)}) {{"]
    if t.width == 1:
        call = ", ".join(params)
        return "\n".join([*lines, f"  %r = call {s} @{_libm_name(name, t)}({call})", f"  ret {s} %r", "}"])
    last = "poison"
    for lane in range(t.width):
        for a in range(arity):
            lines.append(f"  %e{lane}.{a} = extractelement {v} %x{a}, i64 {lane}")
        call = ", ".join(f"{s} %e{lane}.{a}" for a in range(arity))
        lines.append(f"  %y{lane} = call {s} @{_libm_name(name, t)}({call})")
        lines.append(f"  %r{lane} = insertelement {v} {last}, {s} %y{lane}, i64 {lane}")
        last = f"%r{lane}"
    return "\n".join([*lines, f"  ret {v} {last}", "}"])


def _print_sincos(t: VectorType) -> str:
    """IR of `{V, V} @sincos(V)` and of its cold branch. Needs `@vec.sin` and `@vec.cos`."""
    red = _REDUCTIONS[t.scalar]
    v, i, m = t.vector, t.of(t.integer), t.of("i1")
    fma = f"call {v} @llvm.fma.{t.suffix}"
    bits = 8 * t.bytes
    limit = struct.unpack("<Q" if bits == 64 else "<I", struct.pack("<d" if bits == 64 else "<f", red.limit))[0]
    any_large = (
        "  %any = icmp eq i1 %large, true"
        if t.width == 1
        else (f"  %mask = bitcast {m} %large to i{t.width}\n  %any = icmp ne i{t.width} %mask, 0")
    )

    def horner(prefix: str, coefficients: tuple[float, ...]) -> str:
        last, lines = t.splat(coefficients[0]), []
        for n, c in enumerate(coefficients[1:]):
            lines.append(f"  %{prefix}{n} = {fma}({v} {last}, {v} %z, {v} {t.splat(c)})")
            last = f"%{prefix}{n}"
        lines.append(f"  %{prefix} = fmul {v} {last}, %z")
        return "\n".join(lines)

    p1, p2, p3 = (t.splat(-p) for p in red.half_pi)
    hot = f"""  %shifted = {fma}({v} %x, {v} {t.splat(0.63661977236758134308)}, {v} {t.splat(red.magic)})
  %quadrant = bitcast {v} %shifted to {i}
  %k = fsub {v} %shifted, {t.splat(red.magic)}
  %ra = {fma}({v} %k, {v} {p1}, {v} %x)
  %rb = {fma}({v} %k, {v} {p2}, {v} %ra)
  %r = {fma}({v} %k, {v} {p3}, {v} %rb)
  %z = fmul {v} %r, %r
{horner("a", red.sin)}
  %sin.r = {fma}({v} %a, {v} %r, {v} %r)
{horner("b", red.cos)}
  %c1 = {fma}({v} %z, {v} {t.splat(-0.5)}, {v} {t.splat(1.0)})
  %cos.r = {fma}({v} %b, {v} %z, {v} %c1)
  %odd = trunc {i} %quadrant to {m}
  %s = select {m} %odd, {v} %cos.r, {v} %sin.r
  %c = select {m} %odd, {v} %sin.r, {v} %cos.r
  %next = add {i} %quadrant, {t.integer_splat(1)}
  %ss = shl {i} %quadrant, {t.integer_splat(bits - 2)}
  %cs = shl {i} %next, {t.integer_splat(bits - 2)}
  %ssign = and {i} %ss, {t.integer_splat(-(2 ** (bits - 1)))}
  %csign = and {i} %cs, {t.integer_splat(-(2 ** (bits - 1)))}
  %si = bitcast {v} %s to {i}
  %ci = bitcast {v} %c to {i}
  %sx = xor {i} %si, %ssign
  %cx = xor {i} %ci, %csign
  %sin.x = bitcast {i} %sx to {v}
  %cos.x = bitcast {i} %cx to {v}"""
    return f"""define internal {{ {v}, {v} }} @sincos({v} %x) {{
  %xi = bitcast {v} %x to {i}
  %abs = and {i} %xi, {t.integer_splat(2 ** (bits - 1) - 1)}
  %large = icmp ugt {i} %abs, {t.integer_splat(limit)}
{any_large}
  br i1 %any, label %cold, label %hot
hot:
{hot}
  %h0 = insertvalue {{ {v}, {v} }} poison, {v} %sin.x, 0
  %h1 = insertvalue {{ {v}, {v} }} %h0, {v} %cos.x, 1
  ret {{ {v}, {v} }} %h1
cold:
  %l = call {{ {v}, {v} }} @sincos.cold({v} %x, {m} %large)
  ret {{ {v}, {v} }} %l
}}

define internal {{ {v}, {v} }} @sincos.cold({v} %given, {m} %large) noinline cold {{
  %x = select {m} %large, {v} {t.splat(0.0)}, {v} %given
{hot}
  %sin.l = call {v} @vec.sin({v} %given)
  %cos.l = call {v} @vec.cos({v} %given)
  %sin.e = select {m} %large, {v} %sin.l, {v} %sin.x
  %cos.e = select {m} %large, {v} %cos.l, {v} %cos.x
  %e0 = insertvalue {{ {v}, {v} }} poison, {v} %sin.e, 0
  %e1 = insertvalue {{ {v}, {v} }} %e0, {v} %cos.e, 1
  ret {{ {v}, {v} }} %e1
}}"""
