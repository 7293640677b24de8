"""Elementary functions printed as LLVM IR on lanes, the same bits on every machine.

`functions` is the entry. `lanes` has values with operators, `pairs` numbers of twice the precision; the other files
have the formulas, with `coefficients` that `docs/make_elementary.py` fits.
"""
