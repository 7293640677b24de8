"""What WebAssembly has no instruction for, as LLVM IR under the names by which LLVM calls it.

`fma`, which rounds once (S. Boldo, G. Melquiond, IEEE Trans. Comput. 57 (2008) 462-471): the product and the sums as
exact pairs, the last sum rounded to odd. Only the elementary functions need it; products of graphs are rounded before
they are added. `__multi3`, the product of two integers of 128 bits, for sines of large angles.
"""

from __future__ import annotations


def power_of_two(exponent: int) -> str:
    """A literal of LLVM."""
    return f"0x{(1023 + exponent) << 52:016X}"


def _split(x: str) -> str:
    """`x` as the sum of two numbers of 26 bits (G. W. Veltkamp): `.h` and `.l`."""
    return f"""  %{x}.c = fmul double %{x}, 0x41A0000002000000
  %{x}.d = fsub double %{x}.c, %{x}
  %{x}.h = fsub double %{x}.c, %{x}.d
  %{x}.l = fsub double %{x}, %{x}.h
"""


def _exact_sum(name: str, a: str, b: str) -> str:
    """`a + b` as the pair `name` and `name.e`."""
    return f"""  %{name} = fadd double {a}, {b}
  %{name}.b = fsub double %{name}, {a}
  %{name}.a = fsub double %{name}, %{name}.b
  %{name}.eb = fsub double {b}, %{name}.b
  %{name}.ea = fsub double {a}, %{name}.a
  %{name}.e = fadd double %{name}.ea, %{name}.eb
"""


def _all_below(name: str, limit: str) -> str:
    """Whether a, b, c and the product p are all smaller than a number."""
    return f"""  %a.{name} = fcmp olt double %a.abs, {limit}
  %b.{name} = fcmp olt double %b.abs, {limit}
  %c.{name} = fcmp olt double %c.abs, {limit}
  %p.{name} = fcmp olt double %p.abs, {limit}
  %ab.{name} = and i1 %a.{name}, %b.{name}
  %cp.{name} = and i1 %c.{name}, %p.{name}
  %all.{name} = and i1 %ab.{name}, %cp.{name}
"""


_SIZES = "".join(f"  %{x}.abs = call double @llvm.fabs.f64(double %{x})\n" for x in "abcp")

# parts of numbers beyond 2^900 would overflow: those are scaled before and after
FMA = f"""define double @fma(double %a, double %b, double %c) {{
  %p = fmul double %a, %b
{_SIZES}{_all_below("small", power_of_two(900))}  br i1 %all.small, label %exact, label %large
exact:
  %result = call double @fma.exact(double %a, double %b, double %c)
  ret double %result
large:
{_all_below("finite", "0x7FF0000000000000")}  br i1 %all.finite, label %scale, label %rough
scale:
  %a.scaled = fmul double %a, {power_of_two(-150)}
  %b.scaled = fmul double %b, {power_of_two(-150)}
  %c.scaled = fmul double %c, {power_of_two(-300)}
  %scaled = call double @fma.exact(double %a.scaled, double %b.scaled, double %c.scaled)
  %back = fmul double %scaled, {power_of_two(300)}
  ret double %back
rough:
  %twice = fadd double %p, %c
  ret double %twice
}}
define internal double @fma.exact(double %a, double %b, double %c) {{
  %p = fmul double %a, %b
{_split("a")}{_split("b")}  %hh = fmul double %a.h, %b.h
  %hl = fmul double %a.h, %b.l
  %lh = fmul double %a.l, %b.h
  %ll = fmul double %a.l, %b.l
  %e1 = fsub double %hh, %p
  %e2 = fadd double %e1, %hl
  %e3 = fadd double %e2, %lh
  %e = fadd double %e3, %ll
{_exact_sum("t", "%c", "%e")}{_exact_sum("v", "%p", "%t")}{_exact_sum("z", "%t.e", "%v.e")}
  %bits = bitcast double %z to i64
  %rest = bitcast double %z.e to i64
  %signs = xor i64 %bits, %rest
  %way = ashr i64 %signs, 63
  %step = or i64 %way, 1
  %moved = add i64 %bits, %step
  %last = and i64 %bits, 1
  %even = icmp eq i64 %last, 0
  %inexact = fcmp une double %z.e, 0.0
  %to.odd = and i1 %even, %inexact
  %odd = select i1 %to.odd, i64 %moved, i64 %bits
  %tail = bitcast i64 %odd to double
  %result = fadd double %v, %tail
  ret double %result
}}
"""

MULTI3 = """define void @__multi3(ptr %result, i64 %a, i64 %a.up, i64 %b, i64 %b.up) {
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry = lshr i64 %p00, 32
  %mid = add i64 %p01, %carry
  %mid.low = and i64 %mid, 4294967295
  %mid.up = lshr i64 %mid, 32
  %mid2 = add i64 %p10, %mid.low
  %mid2.up = lshr i64 %mid2, 32
  %low = mul i64 %a, %b
  %up0 = add i64 %p11, %mid.up
  %up1 = add i64 %up0, %mid2.up
  %c1 = mul i64 %a, %b.up
  %c2 = mul i64 %a.up, %b
  %up2 = add i64 %up1, %c1
  %up = add i64 %up2, %c2
  store i64 %low, ptr %result, align 8
  %above = getelementptr i64, ptr %result, i32 1
  store i64 %up, ptr %above, align 8
  ret void
}
"""
