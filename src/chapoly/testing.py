"""For tests: choose the kernel that chapoly uses."""

from collections.abc import Iterator
from contextlib import contextmanager

import chapoly
from chapoly import _backend, pure


@contextmanager
def use_kernel(name: str) -> Iterator[None]:
    """Within this context chapoly uses the kernel `name`, one of chapoly.kernels().

    It affects functions called through the package (`chapoly.chacha20.block`, not a `block` imported before)
    and objects made within it; those made before keep their kernel. It is for one thread at a time, and for
    one interpreter: a native kernel is chosen for the whole process.
    Raises ValueError for a kernel that is not available.

        >>> import chapoly
        >>> from chapoly.testing import use_kernel
        >>> with use_kernel("pure"):
        ...     chapoly.backend
        'pure'
    """
    if name not in chapoly.kernels():
        raise ValueError(f"kernel {name!r} is not available here; available: {', '.join(chapoly.kernels())}")
    before = chapoly.kernel
    _use(name)
    try:
        yield
    finally:
        _use(before)


def _use(name: str) -> None:
    """Binds every public name to the implementation that the kernel belongs to."""
    implementation = pure if name == "pure" or _backend.native is None else _backend.native
    if name != "pure":
        implementation.use(name)
    chapoly.kernel = name
    chapoly.backend = "pure" if name == "pure" else "native"
    for module, prefix in (
        (chapoly, ""),
        (chapoly.chacha20, "chacha20_"),
        (chapoly.xchacha20, "xchacha20_"),
        (chapoly.poly1305, "poly1305_"),
        (chapoly.chacha20poly1305, "chacha20poly1305_"),
        (chapoly.xchacha20poly1305, "xchacha20poly1305_"),
    ):
        for public in module.__all__:
            if prefix + public in pure.__all__:
                setattr(module, public, getattr(implementation, prefix + public))
