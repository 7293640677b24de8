"""Benchmarks of a GPU: `python -m benchmarks.gpu`; Cardan, other programs and the limits of the card in one run."""
