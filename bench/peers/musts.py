"""What is asked of a CPU with AVX-512 IFMA, and what is reached for beyond it.

The ratios are those of the best batches. What is asked of the NEON kernels is in bench/neon_counts.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

from libraries import Operation
from timing import Result

BOTH = ("encrypt", "decrypt")
INTO = tuple(f"{operation} into a buffer, at offsets 0, 1, 32" for operation in BOTH)
NOT_SLOWER = 0.97


class Must(NamedTuple):
    """Each of the operations at each of the sizes at least so many times as fast as a peer."""

    operations: tuple[str, ...]
    sizes: tuple[int, ...]
    asked: float
    aim: float | None = None
    peer: str = "cryptography"
    kernel: str | None = None  # if one is forced


MUSTS = (
    Must(BOTH, (0, 16), 3.0),
    Must(BOTH, (64,), 3.5, 4.0),
    Must(BOTH, (256,), 3.3),
    Must(BOTH, (1420,), 3.0, 4.0),
    Must(BOTH, (4096,), 1.7),
    Must(BOTH, (16384,), 1.7),
    Must(BOTH, (65536,), 1.8),
    Must(INTO, (16384, 65536), NOT_SLOWER, 2.1),
    Must(INTO, (1 << 20,), 1.7, 2.1),
    Must(BOTH, (64 << 20,), 2.0),
    Must(tuple(f"{operation}, new key: object" for operation in BOTH), (64,), 6.0),
    Must(tuple(f"{operation}, new key: function" for operation in BOTH), (64,), 7.0, 8.0),
    Must(("ChaCha20 stream into a buffer",), (1 << 20,), 1.5, 1.7),
    Must(("Poly1305",), (64,), 20.0),
    Must(("Poly1305",), (1 << 20,), 2.5, 3.0),
    Must(("XChaCha encrypt",), (64,), 2.1, peer="pymonocypher"),
    Must(("XChaCha decrypt",), (64,), 1.9, peer="pymonocypher"),
    Must(("XChaCha encrypt", "XChaCha decrypt"), (16384,), 5.0, peer="PyNaCl"),
    Must(BOTH, (64,), 2.5, kernel="avx2"),
    Must(BOTH, (16384,), 0.68, 0.79, kernel="avx2"),
    Must(BOTH, (16384,), 0.29, kernel="sse2"),
    Must(("encrypt 64 packets: list to list",), (64,), 15.0, 27.0),
    Must(("encrypt 64 packets: list to list",), (1420,), 4.5),
    Must(("encrypt 64 packets: packed",), (64,), 26.0, 32.0),
    Must(("encrypt 64 packets of 40 to 1500 bytes",), (770,), 5.0),
)


class Check(NamedTuple):
    """One line of the list."""

    what: str
    peer: str
    asked: float
    aim: float | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str  # "met", "MISSED", or why neither can be said


def cases(kernel: str, of: Sequence[tuple[Operation, int]]) -> list[tuple[Operation, int]]:
    """Those that a forced kernel is asked for."""
    asked = {
        (o, size) for must in MUSTS if must.kernel == kernel for o in must.operations for size in must.sizes
    }
    return [(operation, size) for operation, size in of if (operation.name, size) in asked]


def checks(
    results: Sequence[Result], kernel: str, fastest: bool, ifma: bool, missing: Sequence[str]
) -> list[Check]:
    """Each operation and size of each must; `fastest` if the kernel is what this CPU would get."""
    found = {(r.kernel, r.operation, r.size, r.library): r for r in results}
    lines = []
    for must in MUSTS:
        for operation in must.operations:
            for size in must.sizes:
                r = found.get((must.kernel or kernel, operation, size, must.peer))
                if r is None:
                    verdict = "not in this chapoly" if operation in missing else "not measured in this run"
                elif not ifma:
                    verdict = "needs AVX-512 IFMA: cannot be judged on this CPU"
                elif must.kernel is None and not fastest:
                    verdict = "asked of the fastest kernel"
                else:
                    verdict = "met" if r.ratio >= must.asked else "MISSED"
                ratio, low, high = (r.ratio, r.low, r.high) if r else (None, None, None)
                what = f"{operation}, {size} B" + (f", kernel {must.kernel}" if must.kernel else "")
                lines.append(Check(what, must.peer, must.asked, must.aim, ratio, low, high, verdict))
    return lines


def slower(results: Sequence[Result], kernel: str) -> list[Result]:
    """Where another library is faster than the kernel by more than 3 %."""
    others = (r for r in results if r.kernel == kernel and not r.library.startswith("chapoly"))
    return [r for r in others if r.ratio < NOT_SLOWER]
