"""Cardan and its peers measured in the same run: `python -m benchmarks`."""
