"""How much more two threads do than one: whoever holds the GIL while it works, nothing."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from inputs import Inputs
from libraries import OPERATIONS
from timing import Names, contenders

OPERATION_NAMES = ("encrypt", "Poly1305")
SIZES = (65536, 1 << 20)
SECONDS = 0.05  # of one thread's share
SLOWEST = 0.01  # seconds of a call; what takes longer is left out


class Threads(NamedTuple):
    """Bytes in a second, in the best of several tries."""

    operation: str
    size: int
    library: str
    one: float
    two: float


def measure(ours: dict[str, Names], theirs: dict[str, Names], tries: int) -> Iterator[Threads]:
    """Each thread has its own key object; one and two threads take turns."""
    for operation in OPERATIONS:
        if operation.name not in OPERATION_NAMES:
            continue
        for size in SIZES:
            inputs = Inputs(size)
            pairs = zip(*(contenders(operation, inputs, ours, theirs) for _ in range(2)), strict=True)
            for first, second in pairs:
                call = min(first.run(first.rows[:1]) for _ in range(3))
                if call > SLOWEST:
                    continue
                rows = (first.rows * 100)[: max(1, round(SECONDS / call))]
                with ThreadPoolExecutor(2) as pool:
                    best = [float("inf"), float("inf")]
                    for _ in range(tries):
                        for i, runs in enumerate(([first.run], [first.run, second.run])):
                            start = time.perf_counter()
                            list(pool.map(lambda run, rows=rows: run(rows), runs))
                            best[i] = min(best[i], time.perf_counter() - start)
                done = len(rows) * size
                yield Threads(operation.name, size, first.library, done / best[0], 2 * done / best[1])
