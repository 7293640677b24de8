"""Integrators of SUNDIALS."""
