"""Recorded graphs become compiled, batched NumPy functions.

Program (what) -> Graph (values) -> IR on lanes -> object code (cached on disk) -> gufunc -> Kernel
"""

from cardan.kernels.kernel import Kernel, compile_program
from cardan.kernels.program import Port, Program
from cardan.kernels.threads import get_threads, set_threads

__all__ = ["Kernel", "Port", "Program", "compile_program", "get_threads", "set_threads"]
