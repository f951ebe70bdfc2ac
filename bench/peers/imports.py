"""What an import costs, in new processes: time, and resident memory as smaps_rollup counts it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from libraries import LIBRARIES

CHILD = """
import json
from time import perf_counter

def resident():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))

before, start = resident(), perf_counter()
{statement}
seconds = perf_counter() - start
print(json.dumps([seconds, resident() - before]))
"""


class Import(NamedTuple):
    """The least of several processes."""

    library: str
    statement: str
    seconds: float
    resident: int  # bytes


def measure(kernel: str, times: int) -> Iterator[Import]:
    """The libraries in turn, so that a busy machine slows all of them."""
    statements = {"chapoly": "import chapoly"} | {name: lib.user_imports for name, lib in LIBRARIES.items()}
    found: dict[str, list[tuple[float, int]]] = {library: [] for library in statements}
    for _ in range(times):
        for library, statement in statements.items():
            command = [sys.executable, "-s", "-c", CHILD.format(statement=statement)]
            environment = os.environ | {"CHAPOLY_KERNEL": kernel}
            out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
            found[library].append(json.loads(out))
    for library, statement in statements.items():
        seconds, resident = (min(column) for column in zip(*found[library], strict=True))
        yield Import(library, statement, seconds, int(resident))
