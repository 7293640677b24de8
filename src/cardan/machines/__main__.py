"""`python -m cardan.machines`: where compiled kernels are kept, or why they are not."""

import sys

from cardan.machines.cache import report

sys.stdout.write(report() + "\n")
