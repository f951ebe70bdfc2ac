"""From which size on two threads are faster than one: it sets WORTH_A_THREAD in src/binding/threads.c.

    CFLAGS=-DWORTH_A_THREAD=16384 python -m pip install .
    python bench/thread_threshold.py

So built, chapoly takes two threads for 32 KiB already. For each kernel, encrypt() and decrypt() with one
thread and with two take turns, and of many calls the fastest counts, since whatever else runs only ever makes
a call slower. Needs two cores that have nothing else to do, or `chrt -f 10` before it, as root.
"""

import platform
import time
from collections.abc import Callable

import chapoly
from chapoly.testing import use_kernel

SIZES = tuple(1 << n for n in range(16, 27))  # 64 KiB to 64 MiB
SECONDS = 0.2  # for each size, at least, and
ROUNDS = 7
NONCE = bytes(12)


def fastest(*calls: Callable[[], object]) -> list[float]:
    """The fastest run of each, in seconds."""
    seconds = [float("inf")] * len(calls)
    begin, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() < begin + SECONDS:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
        rounds += 1
    return seconds


def main() -> None:
    """Prints, for each native kernel, both times by size, and from which size on two threads are faster."""
    print(f"chapoly {chapoly.__version__}, {platform.python_implementation()} {platform.python_version()}")
    for kernel in chapoly.kernels()[:-1]:
        with use_kernel(kernel):
            aead = chapoly.ChaCha20Poly1305(bytes(32))
        print(f"\n{kernel}, ns      encrypt: 1 thread   2 threads          decrypt: 1 thread   2 threads")
        slower = [0, 0]  # the largest size of each at which two threads are no faster
        for size in SIZES:
            data = bytes(size)
            sealed = aead.encrypt(NONCE, data)
            one, two, back_one, back_two = fastest(
                lambda: aead.encrypt(NONCE, data),  # noqa: B023
                lambda: aead.encrypt(NONCE, data, threads=2),  # noqa: B023
                lambda: aead.decrypt(NONCE, sealed),  # noqa: B023
                lambda: aead.decrypt(NONCE, sealed, threads=2),  # noqa: B023
            )
            print(
                f"{size >> 10:6} KiB{one * 1e9:20.0f}{two * 1e9:12.0f}{one / two:7.2f}x"
                f"{back_one * 1e9:20.0f}{back_two * 1e9:12.0f}{back_one / back_two:7.2f}x",
                flush=True,
            )
            for i, gain in enumerate((one / two, back_one / back_two)):
                if gain <= 1:
                    slower[i] = size
        print("two threads are faster above", " and ".join(f"{size >> 10} KiB" for size in slower))


if __name__ == "__main__":
    main()
