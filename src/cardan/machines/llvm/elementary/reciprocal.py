"""The reciprocal on a card without a branch: the card's own estimate, refined; for ordinary numbers.

The operations are those that NVIDIA's compiler prints for 1 / x before its branch for other numbers: an estimate of 20
bits (double) or 23 (float), refined until it rounds as a division does. So the bits are those of 1 / x. The lower half
of the estimate of a double is any number: the same one is taken as there.
"""

from __future__ import annotations

from cardan.machines.llvm.module import Module

SYMBOL = "reciprocal.near"

# By type: the name of the estimate, bits below the exponent in the upper 32, and exponents (biased) of ordinary numbers
_LOWER = 0x300402
_ORDINARY = {"double": ("d", 20, 64, 1984), "float": ("f", 23, 16, 240)}


def reciprocal_near(module: Module) -> str:
    """Define `{ T, i1 } @reciprocal.near(T %x)`: 1 / x, and whether x is no ordinary number, for which it is wrong.

    Wrong are the results for 0, infinity and NaN, and near the ends of the exponents. Its symbol is returned.
    """
    t = module.type
    letter, mantissa, low, high = _ORDINARY[t.scalar]
    v = t.vector
    estimate, fma = f"@llvm.nvvm.rcp.approx.ftz.{letter}", module.intrinsic("fma", 3)
    module.declarations.add(f"declare {v} {estimate}({v})")
    lines = [f"  %minus = fneg {v} %x", f"  %estimate = call {v} {estimate}({v} %x)"]
    one, last = t.splat(1.0), "%estimate"
    if t.scalar == "double":
        lines += [
            "  %bits = bitcast double %x to i64",
            "  %upper = lshr i64 %bits, 32",
            "  %word = trunc i64 %upper to i32",
            f"  %any = add i32 %word, {_LOWER}",
            "  %lower = zext i32 %any to i64",
            "  %of.estimate = bitcast double %estimate to i64",
            "  %coarse = and i64 %of.estimate, -4294967296",
            "  %joined = or i64 %coarse, %lower",
            "  %y0 = bitcast i64 %joined to double",
            f"  %e0 = call {v} {fma}({v} %minus, {v} %y0, {v} {one})",
            f"  %s0 = call {v} {fma}({v} %e0, {v} %e0, {v} %e0)",
            f"  %y1 = call {v} {fma}({v} %y0, {v} %s0, {v} %y0)",
        ]
        last = "%y1"
    else:
        lines.append("  %word = bitcast float %x to i32")
    place = mantissa + 1
    lines += [
        f"  %e = call {v} {fma}({v} %minus, {v} {last}, {v} {one})",
        f"  %y = call {v} {fma}({v} {last}, {v} %e, {v} {last})",
        "  %size = shl i32 %word, 1",
        f"  %above = sub i32 %size, {_signed(low << place)}",
        f"  %not = icmp uge i32 %above, {_signed((high - low) << place)}",
        f"  %pair = insertvalue {{ {v}, i1 }} poison, {v} %y, 0",
        f"  %both = insertvalue {{ {v}, i1 }} %pair, i1 %not, 1",
        f"  ret {{ {v}, i1 }} %both",
    ]
    head = f"define internal {{ {v}, i1 }} @{SYMBOL}({v} %x) alwaysinline {{"
    module.functions[SYMBOL] = "\n".join([head, *lines, "}"])
    return f"@{SYMBOL}"


def _signed(word: int) -> int:
    """32 bits as LLVM reads them."""
    return word - 2**32 if word >= 2**31 else word
