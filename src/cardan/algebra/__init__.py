"""Vectors and matrices of mechanics, as text that runs on NumPy arrays and on CasADi symbols alike."""
