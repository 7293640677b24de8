"""`python -m cardan.machines`: where compiled kernels are kept, or why they are not; and the GPUs of this machine."""

import sys

from cardan.machines import cache
from cardan.machines.cuda import report

sys.stdout.write(f"{cache.report()}\n{report.report()}\n")
