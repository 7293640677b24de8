"""Shaded pictures of a mechanism in three dimensions, made with NumPy alone: no display and no graphics driver."""
