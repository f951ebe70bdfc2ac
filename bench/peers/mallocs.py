"""How often a call asks for memory, and for how much in all, its result included.

Counted exactly, by replacing malloc in a process in which Python takes all its memory from there
(PYTHONMALLOC=malloc). What 8 calls ask for less what 4 do is what 4 ask for, whatever the counting takes.
Needs Linux with glibc, and a C compiler.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

SIZES = (0, 64, 1024, 4096, 65536)
CALLS = 4
SLOWEST = 0.005  # seconds of a call; what takes longer is left out


class Mallocs(NamedTuple):
    """What one call asks for."""

    operation: str
    size: int
    library: str
    requests: float
    bytes: float


def count(kernel: str) -> list[Mallocs]:
    """Of every library at every operation, in a process of its own."""
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        counter = Path(folder) / "mallocs.so"
        command = ["cc", "-O2", "-shared", "-fPIC", str(here / "mallocs.c"), "-o", str(counter)]
        subprocess.run(command, check=True)
        environment = {"LD_PRELOAD": str(counter), "PYTHONMALLOC": "malloc", "CHAPOLY_KERNEL": kernel}
        child = [sys.executable, __file__]
        out = subprocess.run(child, env=os.environ | environment, check=True, stdout=subprocess.PIPE).stdout
    return [Mallocs(*row) for row in json.loads(out)]


def counted() -> Iterator[Mallocs]:
    """In the process of its own."""
    from inputs import Inputs
    from libraries import LIBRARIES, OPERATIONS, present
    from timing import contenders, names_of, public_names

    import chapoly

    ours = {"chapoly": public_names(chapoly)}
    theirs = {library: names_of(library) for library in LIBRARIES}
    gc.disable()
    for operation in OPERATIONS:
        for size in operation.sizes or SIZES:
            if size <= operation.most and present(operation.needs):
                for each in contenders(operation, Inputs(size), ours, theirs):
                    if each.run(each.rows[:1]) > SLOWEST:
                        continue
                    # What happens once, such as a table that grows, is in few of the tries.
                    tries = [asked_by(each.run, each.rows) for _ in range(5)]
                    requests, total = (median(column) for column in zip(*tries, strict=True))
                    yield Mallocs(operation.name, size, each.library, requests, total)


def asked_by(run: Callable[[Sequence[Any]], float], rows: Sequence[Any]) -> tuple[float, float]:
    """Requests and bytes of one call on average."""
    read = ctypes.CDLL(None).read_mallocs
    start, middle, end = marks = [(ctypes.c_uint64 * 2)() for _ in range(3)]
    few, many = rows[:CALLS], rows[: 2 * CALLS]
    for _ in range(2):  # the first time warms up
        read(start)
        run(few)
        read(middle)
        run(many)
        read(end)
    (r0, b0), (r1, b1), (r2, b2) = marks
    return ((r2 - r1) - (r1 - r0)) / CALLS, ((b2 - b1) - (b1 - b0)) / CALLS


if __name__ == "__main__":
    json.dump(list(counted()), sys.stdout)
