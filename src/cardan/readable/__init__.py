"""Equations of motion as SymPy expressions and LaTeX, read back from the recorded graph."""
