"""Plots of a trajectory with matplotlib."""
