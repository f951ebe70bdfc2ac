"""How much faster the readable implementation is than another library's in pure Python, tlslite-ng.

    python -m pip install . tlslite-ng
    python bench/pure_vs_tlslite.py

Both run in one process on one processor, in turn. The best of many short batches counts, since whatever
else the machine does can only make a batch slower. Each call takes the next of many nonces. That both give
the same is checked first. Exits with 1 if a ratio is less than is asked of it.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

from tlslite.utils.chacha import ChaCha
from tlslite.utils.chacha20_poly1305 import CHACHA20_POLY1305

from chapoly import pure

SIZES = (0, 1, 16, 64, 65, 128, 256, 1024, 4096, 16384, 65536, 1048576)
ASKED = {("ChaCha20", 1048576): 10, ("AEAD", 65536): 8}  # and nowhere slower

KEY = bytes(range(32))
NONCES = [i.to_bytes(12, "little") for i in range(256)]
ASSOCIATED_DATA = bytes(range(13))

BATCHES = 25
BATCH_SECONDS = 0.02  # about, for the slower of the two
LONG_BATCHES = 5  # when one call takes longer than that

Call = Callable[[bytes], bytes]


def calls(size: int) -> dict[str, tuple[Call, Call]]:
    """What is measured with `size` bytes of data: our call and theirs, which both take a nonce."""
    data = bytes(i % 251 for i in range(size))
    ours, theirs = pure.ChaCha20Poly1305(KEY), CHACHA20_POLY1305(bytearray(KEY), "python")
    their_key, their_data, their_associated_data = bytearray(KEY), bytearray(data), bytearray(ASSOCIATED_DATA)
    return {
        "ChaCha20": (
            lambda nonce: pure.chacha20_cipher(KEY, 1, nonce, data),
            lambda nonce: ChaCha(their_key, bytearray(nonce), counter=1).encrypt(their_data),
        ),
        "AEAD": (
            lambda nonce: ours.encrypt(nonce, data, ASSOCIATED_DATA),
            lambda nonce: theirs.seal(bytearray(nonce), their_data, their_associated_data),
        ),
    }


def seconds(call: Call, nonces: Iterator[bytes], times: int) -> float:
    """How long a call takes, on average over a batch."""
    start = time.perf_counter()
    for _ in range(times):
        call(next(nonces))
    return (time.perf_counter() - start) / times


def measure(ours: Call, theirs: Call) -> tuple[float, float]:
    """The seconds of our call and of theirs, in their best batches."""
    nonces = cycle(NONCES)
    times = max(1, round(BATCH_SECONDS / seconds(theirs, nonces, 1)))
    batches = [
        (seconds(ours, nonces, times), seconds(theirs, nonces, times))
        for _ in range(BATCHES if times > 1 else LONG_BATCHES)
    ]
    return min(our for our, _ in batches), min(their for _, their in batches)


def processor() -> str:
    """The processor's name, if the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (*names, platform.processor(), platform.machine())[0]


def main() -> int:
    """Prints the table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"chapoly {version('chapoly')} (pure) and tlslite-ng {version('tlslite-ng')}")
    print(f"{platform.python_implementation()} {platform.python_version()} on {processor()}\n")
    print("             bytes     ours us   theirs us  ours MB/s   ratio")
    missed = False
    for size in SIZES:
        for name, (ours, theirs) in calls(size).items():
            assert ours(NONCES[1]) == theirs(NONCES[1])
            our, their = measure(ours, theirs)
            ratio, asked = their / our, ASKED.get((name, size), 1)
            missed |= ratio < asked
            print(
                f"{name:10}{size:8}{our * 1e6:12.1f}{their * 1e6:12.1f}{size / our / 1e6:11.2f}{ratio:8.1f}",
                f"of {asked} asked" if asked > 1 or ratio < asked else "",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
