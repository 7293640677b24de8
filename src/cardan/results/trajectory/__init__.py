"""Trajectories: states, computed quantities, interpolation, datasets and files."""
