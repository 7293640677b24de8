"""Explicit integrators: Runge-Kutta methods and the semi-implicit Euler method, compiled for batches."""
