"""Benchmarks of Cardan and other programs in the same run: `python -m benchmarks`."""
