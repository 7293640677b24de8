"""Arrays where they are: those of torch, CuPy, JAX, Numba and Warp on a card, read and answered without a copy.

A `View` is what kernels need of an array. A `Library` reads its arrays, makes empty ones for results, and says on which
stream it computes now; the first array on a card among the arguments decides which library answers. Arrays of other
libraries are read through `__cuda_array_interface__` or DLPack, and answered by `DeviceArray`, which speaks both.

`take` reads the arguments of a call and `give` makes or checks its results; what cannot be done is one sentence that
names the port.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cuda import streams
from cardan.machines.cuda.constants import Constants
from cardan.machines.cuda.device_array import DeviceArray, to_device
from cardan.machines.cuda.dlpack import from_capsule
from cardan.machines.cuda.driver import DeviceError, DeviceMemoryError
from cardan.machines.cuda.geometry import Geometry, launch_geometry
from cardan.machines.cuda.view import DEFAULT_STREAM, FLOAT32, FLOAT64, View, contiguous_strides, ordered_strides
from cardan.machines.host_constant import HostConstant
from cardan.on_card import is_device_array, package_of

if TYPE_CHECKING:
    from cardan.program.program import Port

__all__ = [
    "DeviceArray", "Geometry", "Library", "Taken", "View", "fetched", "give", "launch_geometry", "library_of", "take",
    "to_device", "view_of",
]  # fmt: skip

Order = tuple[int, ...] | None  # axes in memory, from the slowest on; None for C order
_WIDE, _MANY = 32, 256  # numbers of a row, and rows, from which on results have the rows beside each other in memory
CONSTANTS = Constants()
_SMALL = 64  # elements of a constant that is compared by its content


class Library:
    """A library of arrays: how its arrays are read, and how results are made in it.

    This one, without a name, is for objects that Cardan knows only by their protocols.
    """

    name = "cardan"
    orders_memory = False
    """Whether memory that it releases is used again only after work that its current stream has by then."""

    def view(self, owner: str, name: str, x: Any, stream: int) -> View:
        """The array as kernels see it, ordered before work that is put on `stream` from now on."""
        if hasattr(x, "__cuda_array_interface__"):
            return _by_interface(owner, name, x, borrowed=not self.orders_memory)
        return _by_dlpack(owner, name, x, stream)

    def device(self, owner: str, name: str, x: Any) -> int:
        """The number of the card that an array of this library is on."""
        return self.view(owner, name, x, DEFAULT_STREAM).device

    def is_writable(self, x: Any) -> bool:
        """Whether an array of this library can be given as `out`."""
        told = getattr(x, "__cuda_array_interface__", None)
        return not (told and told["data"][1])

    def stream(self, device: int) -> int:
        """The stream on which the library computes now on a card."""
        return DEFAULT_STREAM

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """An array of this library without values, its axes in memory in this `order`, if it has a choice."""
        return DeviceArray.empty(shape, dtype, device, order=order, stream=self.stream(device))

    def maker(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order) -> Callable[[], Any]:
        """A function that makes such empty arrays, again and again."""
        return partial(self.empty, shape, dtype, device, order)

    def answer(self, array: Any) -> Any:
        """What the caller gets of an array from `empty`, after the kernel that fills it was launched."""
        return array

    def signature(self, x: Any) -> tuple[Any, ...] | None:
        """All of a view but its address, quick to get and to compare; None if there is nothing quicker than the view.

        Arrays of one signature differ by their addresses alone, and need no order with work of other libraries.
        """
        return None

    def pointer(self, x: Any) -> int:
        """The address of an array that has a signature."""
        raise NotImplementedError

    def how_to_move(self, name: str, device: int) -> str:
        """What to write so that a host array is on a card."""
        return f"cd.to_device({name}, {device})"


class _Own(Library):
    """Cardan's own arrays."""

    orders_memory = True

    def device(self, owner: str, name: str, x: Any) -> int:
        """It knows."""
        return x.device

    def view(self, owner: str, name: str, x: Any, stream: int) -> View:
        """It knows."""
        return x.view()

    def signature(self, x: Any) -> tuple[Any, ...] | None:
        """Of arrays on the default stream."""
        return ("cardan", x.shape, x.strides, x.dtype, x.device) if x.stream == DEFAULT_STREAM else None

    def pointer(self, x: Any) -> int:
        """It knows."""
        return x.pointer


class _Torch(Library):
    """Tensors of PyTorch."""

    name = "torch"
    orders_memory = True
    _dtypes: dict[Any, np.dtype[Any]] | None = None

    def device(self, owner: str, name: str, x: Any) -> int:
        """As the tensor says."""
        return x.get_device()

    def is_writable(self, x: Any) -> bool:
        """Always."""
        return True

    def _table(self) -> dict[Any, np.dtype[Any]]:
        if self._dtypes is None:
            torch = sys.modules["torch"]
            self._dtypes = {torch.float64: FLOAT64, torch.float32: FLOAT32}
        return self._dtypes

    def view(self, owner: str, name: str, x: Any, stream: int) -> View:
        """From the tensor's own methods, which take a microsecond; the protocols take several."""
        dtype = self._table().get(x.dtype)
        if dtype is None:
            raise _wrong_dtype(owner, name, str(x.dtype).removeprefix("torch."))
        if x.requires_grad and sys.modules["torch"].is_grad_enabled():
            raise InputError(
                f"{owner}: {name} requires a gradient, which this function does not record; use cd.torch_function, or "
                f"give {name}.detach()"
            )
        try:
            if x.is_neg():  # a sign that is still to be applied
                x = x.resolve_neg()
            size = dtype.itemsize
            strides = tuple([size * step for step in x.stride()])
            return View(x.data_ptr(), tuple(x.shape), strides, dtype, x.get_device(), x)
        except RuntimeError as error:  # sparse tensors, and those of torch.func
            why = str(error).strip().splitlines()[0]
            raise InputError(f"{owner}: {name} is a tensor without memory of its own ({why})") from None

    def signature(self, x: Any) -> tuple[Any, ...] | None:
        """Of tensors proper, whose gradient nobody asks for."""
        try:
            return None if x.requires_grad or x.is_neg() else (x.shape, x.stride(), x.dtype, x.get_device())
        except RuntimeError:  # sparse tensors
            return None

    def pointer(self, x: Any) -> int:
        """As the tensor says."""
        return x.data_ptr()

    def stream(self, device: int) -> int:
        """The current stream of this thread."""
        torch = sys.modules["torch"]
        quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # which torch's own compiled kernels call
        return (quick(device) if quick else torch.cuda.current_stream(device).cuda_stream) or DEFAULT_STREAM

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """From torch's allocator, which knows the current stream and CUDA graphs."""
        return self.maker(shape, dtype, device, order)()

    def maker(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order) -> Callable[[], Any]:
        """Torch's own function, with all that stays."""
        torch = sys.modules["torch"]
        options = {"dtype": torch.float64 if dtype == FLOAT64 else torch.float32, "device": self._place(device)}
        if order is not None:
            return partial(torch.empty_strided, shape, ordered_strides(shape, order, 1), **options)
        return partial(torch.empty, shape, **options)

    def _place(self, device: int) -> Any:
        return sys.modules["torch"].device("cuda", device)

    def how_to_move(self, name: str, device: int) -> str:
        """As for a tensor, or anything else."""
        return f"torch.as_tensor({name}, device='cuda:{device}')"


class _CuPy(Library):
    """Arrays of CuPy."""

    name = "cupy"
    orders_memory = True

    def device(self, owner: str, name: str, x: Any) -> int:
        """As the array says."""
        return x.device.id

    def view(self, owner: str, name: str, x: Any, stream: int) -> View:
        """From the array's attributes."""
        if x.dtype != FLOAT64 and x.dtype != FLOAT32:
            raise _wrong_dtype(owner, name, str(x.dtype))
        return View(x.data.ptr, x.shape, x.strides, np.dtype(x.dtype), x.device.id, x)

    def signature(self, x: Any) -> tuple[Any, ...] | None:
        """From the array's attributes."""
        return "cupy", x.shape, x.strides, x.dtype, x.data.device_id

    def pointer(self, x: Any) -> int:
        """As the array says."""
        pointer = x.data.ptr
        if pointer % x.itemsize:
            raise RuntimeError("not aligned")
        return pointer

    def stream(self, device: int) -> int:
        """The current stream of this thread."""
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.cuda.get_current_stream().ptr or DEFAULT_STREAM

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """From CuPy's memory pool."""
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            if order is None:
                return cupy.empty(shape, dtype)
            return cupy.empty(tuple(shape[axis] for axis in order), dtype).transpose(np.argsort(order).tolist())

    def how_to_move(self, name: str, device: int) -> str:
        """On the current card."""
        return f"cupy.asarray({name})"


class _JAX(Library):
    """Arrays of JAX: they cannot be written into, and may still be in computation."""

    name = "jax"

    def device(self, owner: str, name: str, x: Any) -> int:
        """The one that has all of it."""
        if len(x.devices()) > 1:
            raise InputError(
                f"{owner}: {name} is spread over {len(x.devices())} devices; give an array on one, e.g. "
                f"jax.device_put({name}, jax.devices()[0])"
            )
        return int(x.__dlpack_device__()[1])

    def view(self, owner: str, name: str, x: Any, stream: int) -> View:
        """By DLPack: the stream waits until JAX has computed the array."""
        self.device(owner, name, x)
        return _by_dlpack(owner, name, x, stream)

    def is_writable(self, x: Any) -> bool:
        """Never."""
        return False

    def answer(self, array: Any) -> Any:
        """A JAX array on the same memory, which JAX reads after the kernel is done."""
        import jax

        if array.dtype == FLOAT64 and not jax.config.read("jax_enable_x64"):
            raise InputError(
                "JAX is set to 32 bits and cannot hold a result in float64; call jax.config.update('jax_enable_x64', "
                "True) first"
            )
        return jax.dlpack.from_dlpack(array) if array.size else jax.numpy.empty(array.shape, array.dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """Our own array in C order, handed to JAX when it is filled."""
        return DeviceArray.empty(shape, dtype, device)

    def how_to_move(self, name: str, device: int) -> str:
        """To a device of JAX."""
        return f"jax.device_put({name}, jax.devices('gpu')[{device}])"


class _Numba(Library):
    """Device arrays of Numba."""

    name = "numba"
    orders_memory = True

    def stream(self, device: int) -> int:
        """Numba's default stream."""
        handle = sys.modules["numba"].cuda.default_stream().handle
        return int(getattr(handle, "value", handle) or DEFAULT_STREAM)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """From Numba's memory manager, in C order: others cannot be reshaped."""
        cuda = sys.modules["numba"].cuda
        with cuda.gpus[device]:
            return cuda.device_array(shape, dtype)

    def how_to_move(self, name: str, device: int) -> str:
        """On the current card."""
        return f"numba.cuda.to_device({name})"


class _Warp(Library):
    """Arrays of Warp."""

    name = "warp"
    orders_memory = True

    def stream(self, device: int) -> int:
        """The current stream of the device."""
        return sys.modules["warp"].get_stream(f"cuda:{device}").cuda_stream or DEFAULT_STREAM

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, order: Order = None) -> Any:
        """From Warp's allocator; its arrays are in C order."""
        warp = sys.modules["warp"]
        return warp.empty(
            shape=shape, dtype=warp.float64 if dtype == FLOAT64 else warp.float32, device=f"cuda:{device}"
        )

    def how_to_move(self, name: str, device: int) -> str:
        """To a device of Warp."""
        return f"warp.array({name}, device='cuda:{device}')"


_OTHER = Library()
LIBRARIES: dict[str, Library] = {
    "cardan": _Own(), "torch": _Torch(), "cupy": _CuPy(), "jax": _JAX(), "numba": _Numba(), "warp": _Warp(),
}  # fmt: skip


def _library_of(x: Any) -> Library | None:
    """The library of an array on a card or on the host; None for NumPy arrays and numbers."""
    package = package_of(type(x))
    return None if package is None else LIBRARIES.get(package, _OTHER)


def library_of(args: Sequence[Any]) -> Library:
    """The library that answers: that of the first array on a card, also where others follow."""
    for x in args:
        if is_device_array(x):
            return _library_of(x) or _OTHER
    raise InputError("none of the arrays is on a card")


def signature_of(args: Sequence[Any], out: Any) -> tuple[Any, ...] | None:
    """What a call depends on beside the addresses of its arguments; None where it cannot be told quickly.

    Addresses are part of it where there is `out`: it may not overlap the arguments.
    """
    try:
        found = [_SIGNATURES[type(x)](x) for x in args]
    except KeyError:
        found = [_SIGNATURES.setdefault(type(x), _signature_for(type(x)))(x) for x in args]
    if None in found:
        return None
    if out is None:
        return tuple(found)
    given = out if isinstance(out, tuple) else (out,)
    targets = [x for x in given if x is not None]
    marks = signature_of(targets, None)
    if marks is None or not all(package_of(type(x)) for x in targets):
        return None
    try:
        places = [LIBRARIES[package].pointer(x) for x in (*args, *targets) if (package := package_of(type(x)))]
    except RuntimeError:  # tensors without memory of their own
        return None
    return (*found, tuple(x is None for x in given), marks, *places)


def _small(x: np.ndarray) -> Any:
    """A constant by its content, if it is small."""
    return (x.shape, x.dtype, x.tobytes()) if x.size <= _SMALL else None


def _signature_for(kind: type) -> Callable[[Any], Any]:
    """How to get the signature of objects of a type."""
    package = package_of(kind)
    return (lambda x: None) if package is None else LIBRARIES.get(package, _OTHER).signature


_SIGNATURES: dict[type, Callable[[Any], Any]] = {
    np.ndarray: _small,
    float: float.hex,  # which tells -0.0 from 0.0
    HostConstant: lambda x: (HostConstant, x.array.shape),
}


def view_of(owner: str, name: str, x: Any, stream: int = DEFAULT_STREAM) -> View:
    """An array on a card as kernels see it; `stream` is where it will be read, for producers that are asked for it."""
    library = _library_of(x)
    if library is None or not is_device_array(x):
        raise InputError(f"{owner}: {name} is a {_kind(x)} in the host's memory, not an array on a card")
    return library.view(owner, name, x, stream)


def fetched(owner: str, name: str, x: Any) -> tuple[np.ndarray, int]:
    """A copy of an array on a card in the host's memory, and the number of the card."""
    library = library_of((x,))
    device = library.device(owner, name, x)
    stream = library.stream(device)
    view = library.view(owner, name, x, stream)
    if view.stream is not None and not streams.is_same(view.stream, stream):
        streams.let_wait(device, stream, view.stream)
    there = DeviceArray(view.owner, view.pointer, view.shape, view.strides, view.dtype, device, stream)
    return there.numpy(), device


def _kind(x: Any) -> str:
    """The type of an argument in words."""
    if isinstance(x, np.ndarray):
        return "NumPy array"
    package = type(x).__module__.partition(".")[0]
    return type(x).__name__ if package == "builtins" else f"{package}.{type(x).__name__}"


def _wrong_dtype(owner: str, name: str, dtype: str) -> InputError:
    why = {"float16": "; 3 digits are too few for dynamics", "bfloat16": "; 2 digits are too few for dynamics"}
    return InputError(
        f"{owner}: {name} has dtype {dtype}, kernels compute in float64 or float32{why.get(dtype, '')}; convert it to "
        "one of them"
    )


def _by_interface(owner: str, name: str, x: Any, borrowed: bool) -> View:
    """An array by its `__cuda_array_interface__`, version 2 or 3."""
    try:
        told = x.__cuda_array_interface__
        shape = tuple(int(n) for n in told["shape"])
        kind, (pointer, _) = str(told["typestr"]), told["data"]
        strides, stream = told.get("strides"), told.get("stream")
        mask = told.get("mask")
    except Exception as error:  # an object of others may raise anything
        raise InputError(f"{owner}: {name}, a {_kind(x)}, has no readable __cuda_array_interface__ ({error})") from None
    if mask is not None:
        raise InputError(f"{owner}: {name} has a mask; fill its entries, or leave their rows out")
    dtype = np.dtype(kind)
    if dtype not in (FLOAT64, FLOAT32) or not dtype.isnative:
        raise _wrong_dtype(owner, name, dtype.name if dtype.isnative else f"{dtype.name} with swapped bytes")
    steps = contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(int(step) for step in strides)
    if len(steps) != len(shape):
        raise InputError(f"{owner}: {name} has {len(shape)} axes and {len(steps)} strides")
    device = streams.device_of(int(pointer)) if math.prod(shape) else 0
    return View(int(pointer or 0), shape, steps, dtype, device, x, None if stream is None else int(stream), borrowed)


def _by_dlpack(owner: str, name: str, x: Any, stream: int) -> View:
    """An array by DLPack."""
    try:
        found, dtype = from_capsule(x.__dlpack__(stream=stream), x)
    except Exception as error:  # an object of others may raise anything
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{owner}: {name}, a {_kind(x)}, does not hand over its memory by DLPack: {why}") from None
    if found is None:
        raise _wrong_dtype(owner, name, dtype)
    return found


@dataclass(frozen=True, slots=True)
class Taken:
    """The arguments of a call on a card."""

    owner: str
    library: Library
    device: int
    stream: int
    dtype: np.dtype[Any]
    views: tuple[View, ...]
    batch: tuple[int, ...]
    order_like: View | None
    """The argument whose order in memory results follow."""
    others: tuple[int, ...]
    """Streams of other libraries that work on arguments or results: they wait for the kernel, as it waits for them."""
    borrowed: tuple[Any, ...]
    """Holds memory that must stay until the kernel is done."""
    is_of_one_library: bool
    """Whether all arrays on the card, results included, are of the library that answers."""

    def order(self, port: Port) -> Order:
        """The axes of a result in memory, from the slowest on: as the arguments', or rows beside each other.

        Threads write a result of many numbers a row much faster where the numbers of neighbouring rows are neighbours.
        """
        rows, axes = len(self.batch), range(len(self.batch) + len(port.shape))
        if self.order_like is not None and self.order_like.is_columns_first:
            return (*reversed(axes),)
        if port.size > _WIDE and math.prod(self.batch) >= _MANY:
            return (*axes[rows:], *axes[:rows])
        return None

    def launched(self) -> None:
        """To be called after the launch: memory of other libraries is neither written nor freed before it is done."""
        for other in self.others:
            streams.let_wait(self.device, other, self.stream)
        if self.borrowed:
            streams.hold(self.device, self.stream, self.borrowed)


def take(owner: str, ports: Sequence[Port], args: Sequence[Any], out: Any = None) -> Taken:
    """Read the arguments of a call, at least one of which is an array on a card.

    Numbers, lists and NumPy arrays without batch axes are constants: they are uploaded once and held on the card. The
    stream of the library that answers waits for those of other libraries, also of arrays in `out`.
    """
    if len(args) != len(ports):
        names = ", ".join(port.name for port in ports)
        raise InputError(f"{owner}: takes {len(ports)} arrays ({names}), got {len(args)}")
    first = next((k for k, x in enumerate(args) if is_device_array(x)), None)
    if first is None:
        raise InputError(f"{owner}: none of the arrays is on a card")
    library = library_of(args[first : first + 1])
    device = library.device(owner, ports[first].name, args[first])
    stream = library.stream(device)
    leading = library.view(owner, ports[first].name, args[first], stream)
    dtype = leading.dtype
    views, foreign, alone = list[View](), set[int](), True
    for k, (port, x) in enumerate(zip(ports, args, strict=True)):
        view = leading if k == first else _argument(owner, port, x, library, leading, ports[first].name, stream)
        views.append(view)
        if view.device != device and view.size:
            raise InputError(
                f"{owner}: {port.name} is on gpu:{view.device} and {ports[first].name} on gpu:{device}; move all "
                "arrays to one card"
            )
        if view.dtype != dtype:
            raise InputError(
                f"{owner}: {port.name} is {view.dtype} and {ports[first].name} {dtype}; on a card all arrays have one "
                "dtype: convert one of them"
            )
        _require_aligned(owner, port.name, view)
    targets = [x for x in (out if isinstance(out, tuple) else (out,)) if is_device_array(x)]
    for x in (*args, *targets):
        if is_device_array(x) and (own := library_of((x,))) is not library:
            foreign.add(own.stream(device))
            alone = False
    every = [*views, *(view_of(owner, "out", x, stream) for x in targets)]
    foreign |= {view.stream for view in every if view.stream is not None}
    others = tuple(other for other in foreign if not streams.is_same(other, stream))
    for other in others:
        streams.let_wait(device, stream, other)
    borrowed = tuple(view.owner for view in views if view.borrowed)
    like = next((view for view in views if view.ndim > 1), None)
    return Taken(
        owner, library, device, stream, dtype, tuple(views), _batch(owner, ports, views), like, others, borrowed, alone
    )


def _require_aligned(owner: str, name: str, view: View) -> None:
    """Refuse memory that a card cannot read: a misaligned address would end all work on it."""
    size = view.dtype.itemsize
    if view.size and (view.pointer % size or any(step % size for step in view.strides)):
        raise InputError(f"{owner}: {name} is not aligned to its {size} bytes in memory; give a copy of it")


def _argument(owner: str, port: Port, x: Any, library: Library, leading: View, other: str, stream: int) -> View:
    """The view of one argument: an array on a card, or a constant that is taken there."""
    if is_device_array(x):
        return view_of(owner, port.name, x, stream)
    if type(x) is HostConstant:
        return CONSTANTS.copy_of(owner, port.name, x, leading.dtype, leading.device, stream).constant()
    where = f"{other} is on gpu:{leading.device}"
    move = library.how_to_move(port.name, leading.device)
    if package_of(type(x)) is not None:
        raise InputError(
            f"{owner}: {port.name} is a {_kind(x)} in the host's memory and {where}; move it there: {move}"
        )
    if np.ma.is_masked(x):
        raise InputError(f"{owner}: {port.name} has masked entries; fill them, or leave their rows out")
    try:
        array = np.asarray(x)
    except Exception as error:  # a list may hold objects of others
        raise InputError(
            f"{owner}: {port.name} is not an array of numbers ({' '.join(str(error).split())[:200]}); give an array on "
            f"gpu:{leading.device}"
        ) from None
    if array.dtype.kind not in "fiu" or not np.can_cast(array.dtype, FLOAT64, "safe"):
        raise InputError(f"{owner}: {port.name} has dtype {array.dtype}, which cannot be cast to float64 safely")
    if isinstance(x, np.ndarray) and array.ndim > len(port.shape):
        raise InputError(
            f"{owner}: {port.name} is a NumPy array with batch axes (shape {array.shape}) and {where}; move it there: "
            f"{move}"
        )
    array = np.ascontiguousarray(array, leading.dtype).reshape(array.shape)
    if not array.size:
        return View(0, array.shape, contiguous_strides(array.shape, 1), leading.dtype, leading.device, None)
    return CONSTANTS.on_device(owner, port.name, array, leading.device, stream).constant()


def _batch(owner: str, ports: Sequence[Port], views: Sequence[View]) -> tuple[int, ...]:
    """The broadcast of all axes before those of a row."""
    try:
        return _broadcast(tuple(port.shape for port in ports), tuple(view.shape for view in views))
    except ValueError:
        from cardan.machines.ufunc.kernel import shape_fault

        fault = shape_fault(ports, [view.shape for view in views])
        raise InputError(f"{owner}: {fault}") from None


@lru_cache(maxsize=4096)
def _broadcast(cores: tuple[tuple[int, ...], ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    batches = []
    for core, shape in zip(cores, shapes, strict=True):
        split = len(shape) - len(core)
        if split < 0 or shape[split:] != core:
            raise ValueError("wrong core shape")
        batches.append(shape[:split])
    return np.broadcast_shapes(*batches)


def give(taken: Taken, ports: Sequence[Port], out: Any) -> tuple[list[Any], list[View]]:
    """Arrays for the results, made by the library that answers or given as `out`, and their views."""
    given = out if isinstance(out, tuple) else (out,)
    if out is not None and len(given) != len(ports):
        raise InputError(f"{taken.owner}: out has {len(given)} arrays, the results are {len(ports)}")
    arrays: list[Any] = []
    views: list[View] = []
    for port, array in zip(ports, (None,) * len(ports) if out is None else given, strict=True):
        shape = taken.batch + port.shape
        if array is None:
            array = _made(taken, port)
            view = view_of(taken.owner, port.name, array, taken.stream)
        else:
            view = _checked(taken, port.name, array, shape, views)
        arrays.append(array)
        views.append(view)
    return arrays, views


def _made(taken: Taken, port: Port) -> Any:
    """An array for a result; one sentence if it does not fit."""
    name, shape = port.name, taken.batch + port.shape
    try:
        return taken.library.empty(taken.batch + port.shape, taken.dtype, taken.device, taken.order(port))
    except Exception as error:  # every library has its own error
        size = math.prod(shape) * taken.dtype.itemsize
        full = isinstance(error, MemoryError) or any(
            word in f"{type(error).__name__} {error}".lower() for word in ("out of memory", "outofmemory", "exhausted")
        )
        if full:
            raise DeviceMemoryError(
                f"{taken.owner}: {name} of shape {shape} takes {size / 2**20:.1f} MiB, for which gpu:{taken.device} "
                "has too little free memory; take a smaller batch, or release arrays"
            ) from None
        why = " ".join(str(error).split())[:200]
        raise DeviceError(
            f"{taken.owner}: {taken.library.name} makes no array of shape {shape} for {name}: {why}"
        ) from None


def _checked(taken: Taken, name: str, array: Any, shape: tuple[int, ...], before: Sequence[View]) -> View:
    """The view of an array given as `out`, if a kernel may write into it."""
    owner, label = taken.owner, f"out for {name}"
    library = _library_of(array)
    if library is None or not is_device_array(array):
        raise InputError(f"{owner}: {label} is a {_kind(array)} in the host's memory; the arguments are on a card")
    if not library.is_writable(array):
        raise InputError(f"{owner}: {label} is a {_kind(array)} that cannot be written into; leave it out")
    view = view_of(owner, label, array, taken.stream)
    if view.shape != shape:
        raise InputError(f"{owner}: {label} has shape {view.shape}, the result has {shape}")
    if view.dtype != taken.dtype:
        raise InputError(f"{owner}: {label} is {view.dtype}, the result {taken.dtype}")
    if view.device != taken.device and view.size:
        raise InputError(f"{owner}: {label} is on gpu:{view.device}, the arguments are on gpu:{taken.device}")
    _require_aligned(owner, label, view)
    if any(step == 0 and n > 1 for n, step in zip(view.shape, view.strides, strict=True)) and view.size:
        raise InputError(
            f"{owner}: {label} has one place for several results (a stride of 0); give one of its own size"
        )
    if any(view.overlaps(other) for other in (*taken.views, *before)):
        raise InputError(f"{owner}: {label} shares memory with an argument or another result; give an array of its own")
    return view
