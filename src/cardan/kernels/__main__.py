"""`python -m cardan.kernels`: where compiled kernels are kept, or why they are not."""

import sys

from cardan.kernels.cache import report

sys.stdout.write(report() + "\n")
