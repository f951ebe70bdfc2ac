"""The checks of arguments, with the errors and the texts of the native implementation.

Every function checks its parameters in their order, and of each first the type and then the value.
"""

from __future__ import annotations

from _operator import index

from chapoly.errors import CounterOverflow, Error, InvalidKey, InvalidNonce

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Any, Protocol, SupportsIndex

    from typing_extensions import Buffer as Buffer  # collections.abc.Buffer from Python 3.12 on

    class WritableBuffer(Buffer, Protocol):
        """A buffer whose items can be set. It lets type checkers refuse bytes as an output."""

        def __setitem__(self, index: Any, value: Any, /) -> None: ...


# ---- Buffers. Whoever gets a view releases it: only then can the caller resize what it belongs to. ----


def memory_of(value: object) -> memoryview | None:
    """The memory of any buffer; None if it is no buffer at all. A buffer may raise what it likes."""
    try:
        return memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        # From Python 3.12 on types say so; before, the own TypeError of a buffer in C is not told apart.
        if hasattr(type(value), "__buffer__"):
            raise
        return None


def view(name: str, value: Buffer) -> memoryview:
    """The memory of any C-contiguous buffer, as bytes."""
    memory = memory_of(value)
    if memory is None:
        raise TypeError(f"{name} must be bytes-like, not {type(value).__name__}")
    with memory:
        # What is empty is contiguous, says CPython's PyBuffer_IsContiguous, if it is not reached by pointers.
        if not memory.c_contiguous and (memory.nbytes or memory.suboffsets):
            raise BufferError(f"{name} must be C-contiguous")
        try:
            return memory.cast("B")
        except TypeError:  # a format, a shape or strides that cast() does not know
            from pickle import PickleBuffer

            return PickleBuffer(value).raw()


def octets(name: str, value: Buffer, size: int, error: type[Error]) -> bytes:
    """A copy of a buffer of exactly this size; of bytes themselves, which cannot change, none is needed."""
    if type(value) is bytes and len(value) == size:
        return value
    with view(name, value) as memory:
        if len(memory) != size:
            raise error(f"{name} must be {size} bytes, got {len(memory)}")
        return bytes(memory)


def key_of(key: Buffer) -> bytes:
    """A copy of the key."""
    return octets("key", key, 32, InvalidKey)


def nonce_of(nonce: Buffer, size: int) -> bytes:
    """A copy of the nonce."""
    return octets("nonce", nonce, size, InvalidNonce)


def check_output(name: str, target: memoryview, size: int, **inputs: Buffer) -> None:
    """Refuses an output that cannot be written, has another size, or overlaps an input."""
    if target.readonly:
        raise TypeError(f"{name} must be writable")
    if len(target) != size:
        raise ValueError(f"{name} must be {size} bytes, got {len(target)}")
    check_overlap(name, target, **inputs)


def check_overlap(name: str, target: memoryview, **inputs: Buffer) -> None:
    """Refuses an output that overlaps an input, other than by starting where the data starts."""
    for input_name, value in inputs.items():
        with view(input_name, value) as source:
            if overlap(target, source, in_place=input_name == "data"):
                raise ValueError(f"{name} overlaps {input_name}")


def overlap(target: memoryview, source: memoryview, *, in_place: bool) -> bool:
    """Whether two buffers have memory in common, other than by starting together if that is allowed."""
    if not target or not source:
        return False
    if target.obj is not source.obj and {type(target.obj), type(source.obj)} <= {bytes, bytearray}:
        return False  # two objects that own their memory: no need to ask where it is
    start, source_start = address(target), address(source)
    if in_place and start == source_start:
        return False
    return start < source_start + len(source) and source_start < start + len(target)


def address(memory: memoryview) -> int:
    """Where the memory begins. Python does not tell, but ctypes can ask C.

    The function is an old one of the stable ABI. It gets the buffer and releases it in one call, so that no
    exception, Ctrl-C for one, can come between the two and leave it locked.
    """
    from ctypes import byref, c_ssize_t, c_void_p, py_object, pythonapi

    start, size = c_void_p(), c_ssize_t()
    pythonapi.PyObject_AsReadBuffer(py_object(memory), byref(start), byref(size))
    return start.value or 0


# ---- Numbers. ----


def integer(value: SupportsIndex) -> int:
    """The integer that has this __index__."""
    return int(index(value))


def shown(number: int) -> str:
    """A number for a text. str() would refuse a giant one."""
    return str(number) if number.bit_length() <= 63 else "an integer over 63 bits"


def in_range(name: str, value: SupportsIndex, last: int) -> int:
    """A counter or a position from 0 to `last`."""
    number = integer(value)
    if not 0 <= number <= last:
        raise CounterOverflow(f"{name} must be 0 to {last}, got {shown(number)}")
    return number


def rounds_of(value: SupportsIndex) -> int:
    """A number of rounds."""
    number = integer(value)
    if number not in (8, 12, 20):
        raise ValueError(f"rounds must be 8, 12 or 20, got {shown(number)}")
    return number


def check_threads(value: SupportsIndex) -> None:
    """How many threads may work on a message; here it is always one."""
    number = integer(value)
    if number < 1:
        raise ValueError(f"threads must be 1 or more, got {shown(number)}")


def at_most(name: str, size: int, left: int) -> None:
    """Refuses to go beyond the bytes that are left."""
    if size > left:
        raise CounterOverflow(f"{name} must be at most {left} bytes, got {shown(size)}")
