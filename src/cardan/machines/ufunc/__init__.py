"""Calling compiled programs from NumPy: `kernel` is what callers use, built from `gufunc`, `threads` and `explain`."""
