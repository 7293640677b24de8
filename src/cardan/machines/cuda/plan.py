"""A call that was checked and put together once, for arguments that differ from those by their addresses alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
        # addresses in the order of the ports that have elements: an argument's, or that of a constant, which is held
        self.inputs: list[tuple[int, View | None]] = []
        for k, (port, x) in enumerate(zip(program.inputs, args, strict=True)):
            if port.size:
                given = type(x) is HostConstant or package_of(type(x)) is not None
                self.inputs.append((k, None if given else taken.views[k]))
        self.outputs = [(taken.batch + port.shape, port.size > 0) for port in program.outputs]
        like = taken.order_like
        self.order_like = None if like is None else replace(like, owner=None)  # it is not for the plan to hold
        self.has_constants = any(package_of(type(x)) is None for x in args)

    def __call__(self, args: Sequence[Any], out: Any) -> Any:
        """The result; None where the call must be checked again."""
        library, device = self.library, self.device
        stream = library.stream(device)
        if self.has_constants and is_capturing(device, stream):
            return None  # constants that a CUDA graph reads must be held
        pointers = []
        for k, constant in self.inputs:
            x = args[k]
            if constant is not None:
                pointers.append(constant.pointer)
            elif type(x) is HostConstant:
                copy = x.copies.get((device, self.dtype))
                if copy is None:
                    return None
                pointers.append(copy.pointer)
            else:
                try:
                    pointers.append(library.pointer(x))
                except RuntimeError:  # a tensor without memory of its own
                    return None
        given = (out if isinstance(out, tuple) else (out,)) if out is not None else (None,) * len(self.outputs)
        results = []
        for (shape, has_elements), array in zip(self.outputs, given, strict=True):
            if array is None:
                try:
                    array = library.empty(shape, self.dtype, device, self.order_like)
                except Exception:  # the checked call says what is wrong
                    return None
            results.append(array)
            if has_elements:
                pointers.append(library.pointer(array))
        for launch in self.launches:
            launch(pointers, stream)
        return tuple(results) if len(results) > 1 else results[0]
