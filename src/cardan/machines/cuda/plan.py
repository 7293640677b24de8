"""A call that was checked and put together once, for arguments that differ from those by their addresses alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.machines.cuda.arrays import Taken, View
from cardan.machines.cuda.launch import Launch
from cardan.machines.cuda.streams import is_capturing
from cardan.machines.host_constant import HostConstant
from cardan.on_card import package_of
from cardan.program.program import Program


class Plan:
    """What a call does for arguments of one signature."""

    def __init__(
        self, program: Program, taken: Taken, outputs: Sequence[View], args: Sequence[Any], launches: list[Launch]
    ) -> None:
        self.library, self.device, self.dtype = taken.library, taken.device, taken.dtype
        self.launches = launches
        self.makers = [
            taken.library.maker(taken.batch + port.shape, taken.dtype, taken.device, taken.order(port))
            for port in program.outputs
        ]
        # addresses go by ports that have elements; a number of the host is a view of its copy, which is held
        self.filled = [k for k, port in enumerate(program.outputs) if port.size]
        self.inputs = [
            (k, None if type(x) is HostConstant or package_of(type(x)) is not None else taken.views[k])
            for k, (port, x) in enumerate(zip(program.inputs, args, strict=True))
            if port.size
        ]
        self.places = [k for k, _ in self.inputs]
        self.has_constants = any(package_of(type(x)) is None for x in args)

    def __call__(self, args: Sequence[Any], out: Any) -> Any:
        """The result; None where the call must be checked again."""
        library = self.library
        stream = library.stream(self.device)
        try:
            if not self.has_constants:
                pointers = [library.pointer(args[k]) for k in self.places]
            elif is_capturing(self.device, stream):
                return None  # constants that a CUDA graph reads must be held
            else:
                pointers = [self._pointer(args[k], constant) for k, constant in self.inputs]
            if out is None:
                results = [make() for make in self.makers]
            else:
                given = out if isinstance(out, tuple) else (out,)
                results = [make() if x is None else x for make, x in zip(self.makers, given, strict=True)]
            pointers += [library.pointer(results[k]) for k in self.filled]
        except Exception:  # no memory, or a tensor without memory of its own: the checked call says so
            return None
        for launch in self.launches:
            launch(pointers, stream)
        return tuple(results) if len(results) > 1 else results[0]

    def _pointer(self, x: Any, constant: View | None) -> int:
        if constant is not None:
            return constant.pointer
        if type(x) is HostConstant:
            address: int = x.copies[self.device, self.dtype].pointer
            return address
        return self.library.pointer(x)
