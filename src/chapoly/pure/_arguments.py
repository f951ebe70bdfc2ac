"""The checks of arguments, each with the error and the text that the native implementation gives too.

Functions check their parameters in order: of each its type, then its value.
"""

from __future__ import annotations

from _operator import index

from chapoly.errors import CounterOverflow, Error, InvalidKey, InvalidNonce

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Any, Protocol, SupportsIndex

    from typing_extensions import Buffer as Buffer  # collections.abc.Buffer from Python 3.12 on

    class WritableBuffer(Buffer, Protocol):
        """A buffer with items that can be set: so type checkers refuse bytes as an output."""

        def __setitem__(self, index: Any, value: Any, /) -> None: ...


def view(name: str, value: Buffer) -> memoryview:
    """The memory of any C-contiguous buffer as bytes; the caller releases it."""
    try:
        memory = memoryview(value)
    except TypeError:
        raise TypeError(f"{name} must be bytes-like, not {type(value).__name__}") from None
    with memory:
        if not memory.c_contiguous:
            raise BufferError(f"{name} must be C-contiguous")
        try:
            return memory.cast("B")
        except TypeError:  # a format or a shape that cast() does not know
            from pickle import PickleBuffer

            return PickleBuffer(value).raw()


def octets(name: str, value: Buffer, size: int, error: type[Error]) -> bytes:
    """A copy of a buffer of exactly this size."""
    with view(name, value) as memory:
        if memory.nbytes != size:
            raise error(f"{name} must be {size} bytes, got {memory.nbytes}")
        return bytes(memory)


def key_octets(key: Buffer) -> bytes:
    """A copy of the key, 32 bytes."""
    return octets("key", key, 32, InvalidKey)


def nonce_octets(nonce: Buffer, size: int) -> bytes:
    """A copy of the nonce."""
    return octets("nonce", nonce, size, InvalidNonce)


def integer(value: SupportsIndex) -> int:
    """An int from what has __index__."""
    return int(index(value))


def shown(number: int) -> str:
    """A number in a text; str() refuses to write out a giant one."""
    return str(number) if number.bit_length() <= 63 else "an integer over 63 bits"


def position(name: str, value: SupportsIndex, last: int) -> int:
    """An integer from 0 to `last`."""
    number = integer(value)
    if not 0 <= number <= last:
        raise CounterOverflow(f"{name} must be 0 to {last}, got {shown(number)}")
    return number


def number_of_rounds(value: SupportsIndex) -> int:
    """The rounds of ChaCha20, ChaCha12 or ChaCha8."""
    number = integer(value)
    if number not in (8, 12, 20):
        raise ValueError(f"rounds must be 8, 12 or 20, got {shown(number)}")
    return number


def at_most(name: str, size: int, left: int) -> None:
    """Refuses more bytes than there is keystream for."""
    if size > left:
        raise CounterOverflow(f"{name} must be at most {left} bytes, got {shown(size)}")


def output(name: str, value: WritableBuffer, size: int, **inputs: Buffer) -> memoryview:
    """The memory of a writable buffer of exactly this size, which overlaps no input; the caller releases it.

    To start where the data starts is no overlap: the output takes its place.
    """
    memory = view(name, value)
    try:
        if memory.readonly:
            raise TypeError(f"{name} must be writable")
        if memory.nbytes != size:
            raise ValueError(f"{name} must be {size} bytes, got {memory.nbytes}")
        for input_name, input_value in inputs.items():
            with view(input_name, input_value) as other:
                if overlap(memory, other, in_place=input_name == "data"):
                    raise ValueError(f"{name} overlaps {input_name}")
    except BaseException:
        memory.release()
        raise
    return memory


def overlap(output: memoryview, other: memoryview, *, in_place: bool) -> bool:
    """Whether two buffers share memory, other than by starting together if that is allowed."""
    if not output.nbytes or not other.nbytes:
        return False
    if output.obj is not other.obj and type(output.obj) is bytearray and type(other.obj) in (bytes, bytearray):
        return False  # each owns its memory, as most do: no need to ask where it is
    start, other_start = address(output), address(other)
    if in_place and start == other_start:
        return False
    return start < other_start + other.nbytes and other_start < start + output.nbytes


def address(memory: memoryview) -> int:
    """Where a buffer, which must not be empty, lies in memory. Python alone does not tell: ctypes asks the C interface."""
    from ctypes import byref, c_void_p, py_object, pythonapi

    buffer = (c_void_p * 16)()  # room for a Py_buffer; its first field is the address
    pythonapi.PyObject_GetBuffer(py_object(memory), byref(buffer), 0)
    pythonapi.PyBuffer_Release(byref(buffer))
    return buffer[0] or 0
