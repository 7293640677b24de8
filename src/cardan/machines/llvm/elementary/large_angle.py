"""Large angles less quarter turns, exactly (M. H. Payne, R. N. Hanek 1983), in integers, one lane at a time.

|x| = m 2^e with an integer m < 2^53. Of x 2/pi only what is left modulo 4 counts, so the bits of 2/pi that weigh 4 or
more in the product are left out. 192 bits from there on suffice: no double is nearer to a multiple of pi/2 than about
2^-61 quarter turns, so the error of 2^-137 quarter turns is at most 2^-76 of the rest.
"""

from __future__ import annotations

from functools import cache

from cardan.machines.llvm.module import Module

# 2/pi, 64 bits a word from the first after the point on, after one word of zeros for angles below 2^53
_WORDS = 20


@cache
def _two_over_pi(bits: int) -> int:
    """The integer part of 2^bits 2/pi, by Machin's formula pi/4 = 4 atan(1/5) - atan(1/239)."""
    more = bits + 64
    one = 1 << more

    def inverse_tangent(n: int) -> int:
        total, power, k = 0, one // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    quarter_pi = 4 * inverse_tangent(5) - inverse_tangent(239)
    return (one * one // (2 * quarter_pi)) >> 64


def define_large_angle(module: Module) -> None:
    """Define `{double, double, i64} @large.angle(double)`: the rest as a pair, and the number of quarter turns.

    For |x| >= 2^20; NaN for infinity and NaN.
    """
    if "large.angle" in module.functions:
        return
    digits = _two_over_pi(64 * _WORDS)
    words = [0, *((digits >> 64 * n) & (2**64 - 1) for n in reversed(range(_WORDS)))]
    signed = ", ".join(f"i64 {w - 2**64 if w >> 63 else w}" for w in words)
    module.declarations.add(f"@two.over.pi = internal constant [{len(words)} x i64] [{signed}]")
    module.declarations.add("declare double @llvm.fma.f64(double, double, double)")
    module.functions["large.angle"] = _TEXT


def _words() -> str:
    """Four words of the table from the one with bit %bit on, and the three that begin with this bit."""
    lines = []
    for n in range(4):
        lines += [
            f"  %i{n} = add i64 %word, {n}",
            f"  %p{n} = getelementptr i64, ptr @two.over.pi, i64 %i{n}",
            f"  %t{n} = load i64, ptr %p{n}, align 8",
        ]
    for n in range(3):
        lines += [
            f"  %l{n} = shl i64 %t{n}, %shift",
            f"  %h{n} = lshr i64 %t{n + 1}, 1",
            f"  %g{n} = lshr i64 %h{n}, %unshift",
            f"  %w{n} = or i64 %l{n}, %g{n}",
        ]
    return "\n".join(lines)


def _pieces() -> str:
    """The absolute fraction, in units of 2^-190 quarter turns, as a pair: six pieces of 32 bits, the largest first."""
    lines, high, low = [], "0.0", "0.0"
    for n in range(6):
        word, weight = n // 2, -30 - 32 * n
        piece = f"lshr i64 %f{word}, 32" if n % 2 == 0 else f"and i64 %f{word}, 4294967295"
        lines += [
            f"  %u{n} = {piece}",
            f"  %d{n} = uitofp i64 %u{n} to double",
            f"  %e{n} = fmul double %d{n}, 0x{(1023 + weight) << 52:016X}",
            f"  %low{n} = fadd double {low}, %e{n}",  # at most 53 + 32 bits: what is lost is far below the pair's end
            f"  %high{n} = fadd double {high}, %low{n}",
            f"  %back{n} = fsub double %high{n}, {high}",
            f"  %rest{n} = fsub double %low{n}, %back{n}",
        ]
        high, low = f"%high{n}", f"%rest{n}"
    return "\n".join(lines)


_TEXT = f"""define internal {{ double, double, i64 }} @large.angle(double %x) noinline cold {{
  %bits = bitcast double %x to i64
  %up = lshr i64 %bits, 52
  %field = and i64 %up, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %bit = sub i64 %field, 1013
  %word = lshr i64 %bit, 6
  %shift = and i64 %bit, 63
  %unshift = sub i64 63, %shift
{_words()}
  %m128 = zext i64 %m to i128
  %w1.128 = zext i64 %w1 to i128
  %w2.128 = zext i64 %w2 to i128
  %a = mul i128 %w2.128, %m128
  %a.up = lshr i128 %a, 64
  %b = mul i128 %w1.128, %m128
  %ab = add i128 %b, %a.up
  %n2 = trunc i128 %a to i64
  %n1 = trunc i128 %ab to i64
  %ab.up = lshr i128 %ab, 64
  %carry = trunc i128 %ab.up to i64
  %c = mul i64 %w0, %m
  %n0 = add i64 %c, %carry
  %rounded = add i64 %n0, 2305843009213693952
  %quarter = lshr i64 %rounded, 62
  %off = shl i64 %n0, 2
  %over = ashr i64 %off, 63
  %s0 = ashr i64 %off, 2
  %f0 = xor i64 %s0, %over
  %f1 = xor i64 %n1, %over
  %f2 = xor i64 %n2, %over
{_pieces()}
  %p = fmul double %high5, 0x3FF921FB54442D18
  %np = fneg double %p
  %re = call double @llvm.fma.f64(double %high5, double 0x3FF921FB54442D18, double %np)
  %r1 = call double @llvm.fma.f64(double %high5, double 0x3C91A62633145C07, double %re)
  %r2 = call double @llvm.fma.f64(double %rest5, double 0x3FF921FB54442D18, double %r1)
  %rh = fadd double %p, %r2
  %r3 = fsub double %rh, %p
  %rl = fsub double %r2, %r3
  %sign = and i64 %bits, -9223372036854775808
  %flip = and i64 %over, -9223372036854775808
  %way = xor i64 %sign, %flip
  %rh.bits = bitcast double %rh to i64
  %rl.bits = bitcast double %rl to i64
  %rh.way = xor i64 %rh.bits, %way
  %rl.way = xor i64 %rl.bits, %way
  %rh.signed = bitcast i64 %rh.way to double
  %rl.signed = bitcast i64 %rl.way to double
  %minus = ashr i64 %bits, 63
  %q1 = xor i64 %quarter, %minus
  %q = sub i64 %q1, %minus
  %finite = icmp ult i64 %field, 2047
  %not.number = fsub double %x, %x
  %high.out = select i1 %finite, double %rh.signed, double %not.number
  %out0 = insertvalue {{ double, double, i64 }} poison, double %high.out, 0
  %out1 = insertvalue {{ double, double, i64 }} %out0, double %rl.signed, 1
  %out2 = insertvalue {{ double, double, i64 }} %out1, i64 %q, 2
  ret {{ double, double, i64 }} %out2
}}"""
