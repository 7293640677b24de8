"""Benchmarks of Cardan and other programs in the same run: `python -m benchmarks`."""

import os

os.environ.setdefault("CARDAN_QUICK", "0")  # rates are those of full code
