"""The reciprocal of float on a card without a branch: the card's own estimate, refined; for ordinary numbers.

The operations are those that NVIDIA's compiler prints for 1 / x before its branch for other numbers: an estimate to one
unit in the last place, refined so that it rounds as a division does. So the bits are those of 1 / x.
"""

from __future__ import annotations

import struct

from cardan.machines.llvm.module import Module

SYMBOL = "reciprocal.near"
LOWEST, HIGHEST = 2.0**-110, 2.0**110  # sizes of ordinary numbers

_TEXT = """define internal {{ float, i1 }} @{symbol}(float %x) alwaysinline {{
  %estimate = call float {estimate}(float %x)
  %minus = fneg float %x
  %rest = call float {fma}(float %minus, float %estimate, float 1.0)
  %y = call float {fma}(float %estimate, float %rest, float %estimate)
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %above = sub i32 %size, {lowest}
  %other = icmp ugt i32 %above, {span}
  %half = insertvalue {{ float, i1 }} poison, float %y, 0
  %both = insertvalue {{ float, i1 }} %half, i1 %other, 1
  ret {{ float, i1 }} %both
}}"""


def reciprocal_near(module: Module) -> str:
    """Define `{ float, i1 } @reciprocal.near(float %x)`: 1 / x, and whether x is no ordinary number; its symbol.

    Of other numbers (0, infinity, NaN, and those near the ends of the exponents) the result is wrong.
    """
    estimate, fma = "@llvm.nvvm.rcp.approx.ftz.f", module.intrinsic("fma", 3)
    module.declarations.add(f"declare float {estimate}(float)")
    lowest, highest = (_bits(size) for size in (LOWEST, HIGHEST))
    module.functions[SYMBOL] = _TEXT.format(
        symbol=SYMBOL, estimate=estimate, fma=fma, lowest=lowest, span=highest - lowest
    )
    return f"@{SYMBOL}"


def _bits(size: float) -> int:
    """Those of a float, as an integer."""
    (word,) = struct.unpack("<i", struct.pack("<f", size))
    return int(word)
