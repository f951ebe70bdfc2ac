"""What releasing the GIL costs, and from which size on that is little: it sets GIL_THRESHOLD in binding.h.

    python -m pip install .
    python bench/gil_threshold.py

ctypes calls a C function with the GIL held (PyDLL) and released (CDLL), and the difference is the cost. Of
many short batches, taken in turn, the best counts, since whatever else runs only ever makes a batch slower.
"""

import ctypes
import itertools
import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import chapoly
from chapoly.testing import use_kernel

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
FEW = 0.03  # the share of a call's time that may go into the GIL
NONCES = [i.to_bytes(12, "little") for i in range(64)]


def best(*calls: tuple[Callable[..., object], Sequence[tuple[Any, ...]]], rounds: int = 500) -> list[float]:
    """The best seconds per call of each function, which takes each of its arguments in turn."""
    seconds = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, (function, arguments) in enumerate(calls):
            start = time.perf_counter()
            deque(itertools.starmap(function, arguments), maxlen=0)
            seconds[i] = min(seconds[i], (time.perf_counter() - start) / len(arguments))
    return seconds


def encryption(size: int) -> tuple[Callable[..., object], list[tuple[bytes, bytes]]]:
    """Encryption of this many bytes, under each nonce."""
    data = bytes(size)
    return chapoly.ChaCha20Poly1305(bytes(32)).encrypt, [(nonce, data) for nonce in NONCES]


def main() -> None:
    """Prints the cost, and for each native kernel its share in a call by size."""
    one = [(1,)] * 256
    held, released = best((ctypes.PyDLL(None).abs, one), (ctypes.CDLL(None).abs, one), rounds=2000)
    cost = released - held
    print(f"chapoly {chapoly.__version__}, {platform.python_implementation()} {platform.python_version()}")
    print(f"releasing the GIL and taking it again: {cost * 1e9:.0f} ns")
    for kernel in chapoly.kernels()[:-1]:
        with use_kernel(kernel):
            seconds = best(*map(encryption, SIZES))
        print(f"\n{kernel}: encrypt")
        for size, each in zip(SIZES, seconds, strict=True):
            print(f"{size:8} bytes {each * 1e9:8.0f} ns   share {cost / each:6.1%}")
        enough = [size for size, each in zip(SIZES, seconds, strict=True) if cost / each < FEW]
        print(f"under {FEW:.0%} from {min(enough, default='beyond these')} bytes on")


if __name__ == "__main__":
    main()
