"""What huge pages save where memory is touched for the first time: it sets HUGE_PAGES_THRESHOLD in binding.h.

    python -m pip install .
    python bench/huge_pages.py

First, encryption into a new mapping, which the system fills with zeros page by page; into one that has asked
for huge pages as the binding does; and into memory that has been touched before. Then encrypt(), whose result
malloc takes from where it likes, in a process that may not have huge pages, and in one that may. In turn; the
best counts, in processor time. Needs Linux with huge pages for those who ask ("madvise" in
/sys/kernel/mm/transparent_hugepage/enabled).
"""

import ctypes
import mmap
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import chapoly

HUGE_PAGE = 2 << 20
HEADER = 48  # malloc's and that of a bytes object, before the bytes
PR_SET_THP_DISABLE = 41
SIZES = tuple(1 << n for n in range(20, 29))  # 1 to 256 MiB

stream = chapoly.ChaCha20(bytes(32), bytes(12))
aead = chapoly.ChaCha20Poly1305(bytes(32))


def into_mapping(data: bytes, *, ask: bool) -> None:
    """Encrypts into memory that nobody has touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, HEADER + len(data), flags=flags) as memory:
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + HEADER
        first, last = -start % HUGE_PAGE, len(data) - (start + len(data)) % HUGE_PAGE
        if ask and first < last:
            memory.madvise(mmap.MADV_HUGEPAGE, HEADER + first, last - first)
        with memoryview(memory) as whole, whole[HEADER:] as out:
            stream.update_into(data, out)


def encrypt(data: bytes, *, allow: bool) -> None:
    """Encrypts into a new object."""
    if ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 0 if allow else 1, 0, 0, 0) != 0:
        raise SystemExit("the system does not let a process forbid itself huge pages")
    aead.encrypt(bytes(12), data)


def best(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Seconds of each."""
    seconds = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            seconds[i] = min(seconds[i], time.process_time() - start)
    return seconds


def main() -> None:
    """Prints the table."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii").strip()
    print(f"chapoly {chapoly.__version__}, kernel {chapoly.kernel}, Linux {platform.release()}: {offered}")
    print("GB/s, and how many times as fast with huge pages\n")
    print("   MiB |  new mapping  with      |  touched before |  encrypt()  with")
    for size in SIZES:
        data = bytes(size)
        calls: list[Callable[[], object]] = [
            partial(into_mapping, data, ask=False),
            partial(into_mapping, data, ask=True),
            partial(stream.update_into, data, bytearray(size)),
            partial(encrypt, data, allow=False),
            partial(encrypt, data, allow=True),
        ]
        rounds = max(9, min(50, (1 << 30) // size))
        new, asked, touched, without, with_ = (size / each / 1e9 for each in best(calls, rounds))
        print(
            f"{size >> 20:6} |{new:13.2f}{asked:6.2f}{asked / new:6.2f} |{touched:16.2f} "
            f"|{without:11.2f}{with_:6.2f}{with_ / without:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
