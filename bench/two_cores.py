"""One message on two cores: threads=2 beside two processes that each encrypt one half.

    python -m pip install .
    python bench/two_cores.py

64 MiB go into a buffer, in turn by one call with threads=2 and by both processes at once; the fastest of many
rounds counts. 0.9 is asked: of what the processes reach, which need no joining but are two messages with two
tags. Needs two cores that have nothing else to do.
"""

import multiprocessing
import platform
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import chapoly

SIZE = 64 << 20
ROUNDS = 30
KEY, NONCE = bytes(32), bytes(12)


def half(begin: Barrier, times: "SimpleQueue[tuple[float, float]]") -> None:
    """A process: half of the data each round, and when it began and ended."""
    aead, data, buf = chapoly.ChaCha20Poly1305(KEY), bytes(SIZE // 2), bytearray(SIZE // 2 + 16)
    for _ in range(ROUNDS):
        begin.wait()  # its turn
        start = time.perf_counter()  # the same clock for all processes
        aead.encrypt_into(NONCE, data, None, buf)
        times.put((start, time.perf_counter()))


def main() -> None:
    """Prints the fastest of both in milliseconds, and how they compare."""
    begin = multiprocessing.Barrier(3)
    times: SimpleQueue[tuple[float, float]] = multiprocessing.SimpleQueue()
    processes = [multiprocessing.Process(target=half, args=(begin, times)) for _ in range(2)]
    for process in processes:
        process.start()
    aead, data, buf = chapoly.ChaCha20Poly1305(KEY), bytes(SIZE), bytearray(SIZE + 16)
    best = dict.fromkeys(("one thread", "threads=2", "two processes"), float("inf"))
    for _ in range(ROUNDS):
        for name, threads in (("one thread", 1), ("threads=2", 2)):
            start = time.perf_counter()
            aead.encrypt_into(NONCE, data, None, buf, threads=threads)
            best[name] = min(best[name], time.perf_counter() - start)
        begin.wait()
        starts, ends = zip(times.get(), times.get(), strict=True)
        best["two processes"] = min(best["two processes"], max(ends) - min(starts))
    for process in processes:
        process.join()
    print(f"chapoly {chapoly.__version__}, {chapoly.kernel}, CPython {platform.python_version()}")
    for name, seconds in best.items():
        print(f"{name:14}{seconds * 1e3:7.2f} ms  {SIZE / seconds / 1e9:6.2f} GB/s")
    print(
        f"threads=2 reaches {best['two processes'] / best['threads=2']:.2f} of two processes; 0.90 is asked"
    )


if __name__ == "__main__":
    main()
