"""Equilibria and steady motions: where forces balance, their stability, and paths of them along a parameter."""
