"""Compiled programs as NumPy generalized ufuncs."""
