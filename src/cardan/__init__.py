"""Multibody dynamics for Python: one mechanism, every formulation, every machine."""

__version__ = "0.1.0"
