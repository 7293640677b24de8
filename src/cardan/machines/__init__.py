"""Recorded graphs become compiled, batched NumPy functions.

Program (what) -> Graph (values) -> IR on lanes -> object code (cached on disk) -> gufunc -> Kernel
"""

from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.machines.ufunc.threads import get_threads, set_threads
from cardan.program.program import Port, Program

__all__ = ["Kernel", "Port", "Program", "compile_program", "get_threads", "set_threads"]
