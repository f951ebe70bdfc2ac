"""How much faster chapoly's readable implementation is than another one in pure Python, tlslite-ng.

    python -m pip install . tlslite-ng
    python bench/pure_vs_tlslite.py

Both run in this one process, in turn; the best of many short batches counts, since everything else on the machine only
ever makes a batch slower. Each timed call takes the next of many nonces. Results are compared before any is timed.
"""

import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

from chapoly import pure
from tlslite.utils.chacha import ChaCha
from tlslite.utils.chacha20_poly1305 import CHACHA20_POLY1305

SIZES = (0, 1, 16, 64, 65, 128, 256, 1024, 4096, 16384, 65536, 1048576)
ASSOCIATED_DATA = bytes(range(13))
NONCES = [i.to_bytes(12, "little") for i in range(256)]
BATCHES = 25
BATCH_SECONDS = 0.02  # about, for the slower of the two

# What is asked of the readable implementation: at least so many times faster at these sizes, and nowhere slower.
ASKED = {("ChaCha20", 1048576): 10, ("AEAD", 65536): 8}

Call = Callable[[bytes], bytes]


def ours_and_theirs(size: int) -> dict[str, tuple[Call, Call]]:
    """The two ways to encrypt `size` bytes, by what they do; each takes a nonce."""
    key, data = bytes(range(32)), bytes(i % 251 for i in range(size))
    ours, theirs = pure.ChaCha20Poly1305(key), CHACHA20_POLY1305(bytearray(key), "python")
    their_key, their_data, their_associated_data = bytearray(key), bytearray(data), bytearray(ASSOCIATED_DATA)
    return {
        "ChaCha20": (
            lambda nonce: pure.chacha20_cipher(key, 1, nonce, data),
            lambda nonce: ChaCha(their_key, bytearray(nonce), counter=1).encrypt(their_data),
        ),
        "AEAD": (
            lambda nonce: ours.encrypt(nonce, data, ASSOCIATED_DATA),
            lambda nonce: theirs.seal(bytearray(nonce), their_data, their_associated_data),
        ),
    }


def seconds(call: Call, nonces: cycle, times: int) -> float:
    """How long one call takes, on average over a batch."""
    start = time.perf_counter()
    for _ in range(times):
        call(next(nonces))
    return (time.perf_counter() - start) / times


def measured(ours: Call, theirs: Call) -> tuple[float, float]:
    """The best seconds per call of both, interleaved."""
    nonces = cycle(NONCES)
    times = max(1, round(BATCH_SECONDS / seconds(theirs, nonces, 1)))
    batches = [(seconds(ours, nonces, times), seconds(theirs, nonces, times)) for _ in range(BATCHES if times > 1 else 5)]
    return tuple(min(each) for each in zip(*batches, strict=True))


def processor() -> str:
    """The name of the processor, as well as it can be known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> int:
    print(f"chapoly {version('chapoly')} (pure), tlslite-ng {version('tlslite-ng')}, "
          f"{platform.python_implementation()} {platform.python_version()}, {processor()}")
    print(f"{'':10}{'bytes':>9}{'ours us':>12}{'theirs us':>12}{'ours MB/s':>11}{'ratio':>8}")
    missed = []
    for size in SIZES:
        for what, (ours, theirs) in ours_and_theirs(size).items():
            assert ours(NONCES[1]) == bytes(theirs(NONCES[1]))
            our_time, their_time = measured(ours, theirs)
            ratio, asked = their_time / our_time, ASKED.get((what, size), 1)
            note = f"  (at least {asked} asked)" if (what, size) in ASKED else ""
            print(f"{what:10}{size:9}{our_time * 1e6:12.1f}{their_time * 1e6:12.1f}{size / our_time / 1e6:11.2f}{ratio:8.1f}{note}",
                  flush=True)
            if ratio < asked:
                missed.append(f"{what} of {size} bytes")
    if missed:
        print("too slow:", ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
