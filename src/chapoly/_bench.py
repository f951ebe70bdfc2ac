"""What `chapoly bench` measures and shows: time and memory per call, for each kernel.

The kernels take turns within one run, so that a busy machine slows all of them; of many short batches the
best counts, since whatever else runs only ever makes a batch slower. No two calls in a row have the same
nonce or buffer, so that nothing remembered from the call before could win. What the kernels answer is
compared before any is timed.
"""

import mmap
import operator
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import cycle, starmap
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import chapoly
from chapoly._selftest import _SUNSCREEN as SUNSCREEN
from chapoly.testing import use_kernel

if TYPE_CHECKING:
    from rich.table import Table

SIZES = (16, 64, 114, 128, 256, 1024, 4096, 65536, 1048576)  # 114: RFC 8439's text about sunscreen
KEY = bytes(range(32))
NONCES = [i.to_bytes(12, "little") for i in range(256)]
ASSOCIATED_DATA = bytes(range(13))  # as long as that of TLS 1.2

# The bytes of upstream's three keys: r has no bit, some, or every one that it may have; time must not tell.
MAC_KEYS = {"mac, small key": b"\x00", "mac, mid key": b"\x88", "mac, big key": b"\xff"}

CASES: list[tuple[str, int | None]] = [
    *((operation, None) for operation in ("block", "tag == equal", "tag == unequal")),
    *((operation, size) for operation in ("cipher", *MAC_KEYS, "encrypt", "decrypt") for size in SIZES),
]
QUICK_CASES = [(operation, size) for operation, size in CASES if size is None or size <= 65536]

BATCH = 0.001  # seconds that a batch of more than one call may take
MEMORY = 16 << 20  # bytes of ciphertext that decryption is given in turn

Call = Callable[..., object]


class Result(NamedTuple):
    """What one kernel needs for one call; size is None for what has none."""

    operation: str
    size: int | None
    kernel: str
    seconds: float
    held: int  # bytes that the result keeps allocated
    peak: int  # the most bytes allocated at any time of the call


# ---- What is measured. ----


def measure(operation: str, size: int | None, kernels: Sequence[str], quick: bool) -> Iterator[Result]:
    """Measures one of CASES for 0.5 s, or 0.02 if quick; longer if three batches each, or one, need it."""
    seconds, batches, compared = (0.02, 1, 1) if quick else (0.5, 3, 4)
    contenders = [Contender(operation, size, kernel) for kernel in kernels]

    expected = contenders[0].answers(compared)
    for other in contenders[1:]:
        if other.answers(compared) != expected:
            raise SystemExit(f"{other.kernel} and {contenders[0].kernel} differ: {operation}, size {size}")

    for _ in range(batches):
        for contender in contenders:
            contender.run_batch()
    while (next_one := min(contenders, key=lambda each: each.spent)).spent < seconds / len(contenders):
        next_one.run_batch()
    for contender in contenders:
        yield Result(operation, size, contender.kernel, contender.best, *contender.memory())


class Contender:
    """A kernel at one task."""

    def __init__(self, operation: str, size: int | None, kernel: str) -> None:
        self.kernel = kernel
        with use_kernel(kernel):
            self.call, self.arguments = task(operation, size or 0)
        self.batch, self.position = 1, 0
        self.best, self.spent = float("inf"), 0.0

    def answers(self, count: int) -> list[object]:
        """The results of the first calls, one for each kind of buffer."""
        with use_kernel(self.kernel):
            return list(starmap(self.call, self.arguments[:count]))

    def run_batch(self) -> None:
        """Times the next calls."""
        began = time.perf_counter()
        calls = self.arguments[self.position : self.position + self.batch]
        with use_kernel(self.kernel):
            elapsed = timed(self.call, calls)
        self.best = min(self.best, elapsed / len(calls))
        self.position = (self.position + self.batch) % len(self.arguments)
        if elapsed < BATCH / 2 and self.batch < len(self.arguments):
            self.batch, self.position = self.batch * 2, 0
        self.spent += time.perf_counter() - began

    def memory(self) -> tuple[int, int]:
        """What a Result calls held and peak, beyond what measuring itself takes."""
        with use_kernel(self.kernel):
            tracemalloc.start(1)
            try:
                ballast = bytes(4096)  # so that measuring itself meets no int that CPython keeps ready
                idle = allocated(len, (b"",))
                busy = allocated(self.call, self.arguments[0])
                del ballast
            finally:
                tracemalloc.stop()
        return busy[0] - idle[0], busy[1] - idle[1]


def timed(call: Call, calls: Sequence[tuple[Any, ...]]) -> float:
    """Seconds that calls with these arguments take, one after another. The loop runs in C."""
    start = time.perf_counter()
    deque(starmap(call, calls), maxlen=0)
    return time.perf_counter() - start


def empty_call() -> float:
    """Seconds per call that this loop takes for a call that does next to nothing."""
    calls = [(b"",)] * 256
    return min(timed(len, calls) for _ in range(1000)) / len(calls)


def allocated(call: Call, arguments: tuple[Any, ...]) -> tuple[int, int]:
    """Bytes that are allocated when the call has returned its result, and at most during the call."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    result = call(*arguments)
    after, peak = tracemalloc.get_traced_memory()
    del result
    return after - before, peak - before


# ---- What is called. ----


def task(operation: str, size: int) -> tuple[Call, list[tuple[Any, ...]]]:
    """A function of the kernel in use, and the arguments of calls to it: a power of two of them."""
    if operation == "block":
        return chapoly.chacha20.block, [(KEY, 1, nonce) for nonce in NONCES]
    if operation == "cipher":
        return chapoly.chacha20.cipher, [(KEY, 1, nonce, data) for nonce, data in plaintexts(size)]
    if operation in MAC_KEYS:
        first = MAC_KEYS[operation] * 31
        return chapoly.poly1305.mac, [(first + nonce[:1], data) for nonce, data in plaintexts(size)]
    if operation == "encrypt":
        calls = [(nonce, data, ASSOCIATED_DATA) for nonce, data in plaintexts(size)]
        return chapoly.ChaCha20Poly1305(KEY).encrypt, calls
    if operation == "decrypt":
        calls = [(nonce, data, ASSOCIATED_DATA) for nonce, data in ciphertexts(size)]
        return chapoly.ChaCha20Poly1305(KEY).decrypt, calls
    # They differ in the first byte, where a careless comparison would stop.
    first = b"\x00" if operation == "tag == equal" else b"\x01"
    return operator.eq, [(chapoly.Tag(bytes(4) + nonce), first + bytes(3) + nonce) for nonce in NONCES]


def plaintexts(size: int) -> list[tuple[bytes, bytes | memoryview]]:
    """Each nonce, and the same text in the next of four buffers."""
    text = (SUNSCREEN * (size // len(SUNSCREEN) + 1))[:size]
    return list(zip(NONCES, placed([text] * 4) * 64, strict=True))


@lru_cache(maxsize=1)
def ciphertexts(size: int) -> list[tuple[bytes, bytes | memoryview]]:
    """Nonces, as many as MEMORY allows, and what the kernel that comes first has encrypted under them."""
    encrypt = chapoly.ChaCha20Poly1305(KEY).encrypt
    encrypted = [encrypt(nonce, data, ASSOCIATED_DATA) for nonce, data in plaintexts(size)[: MEMORY // size]]
    return list(zip(NONCES, placed(encrypted), strict=False))


def placed(contents: list[bytes]) -> list[bytes | memoryview]:
    """In turn as bytes, and in memory that begins 0, 1 and 32 bytes after a multiple of 64."""
    views = memories(contents, (0, 0, 1, 32))
    return [view if i % 4 else content for i, (content, view) in enumerate(zip(contents, views, strict=True))]


def memories(contents: list[bytes], offsets: Sequence[int] = (0, 1, 32)) -> list[memoryview]:
    """In memory of their own, in turn at these offsets from a multiple of 64."""
    distance = (len(contents[0]) + 32 + 63) // 64 * 64
    memory = memoryview(mmap.mmap(-1, distance * len(contents)))  # begins at a page
    views = []
    for i, content in enumerate(contents):
        start = distance * i + offsets[i % len(offsets)]
        views.append(memory[start : start + len(content)])
        views[-1][:] = content
    return views


# ---- What is shown. ----

UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))

# Okabe and Ito's colours, which colour-blind people can tell apart; markers and dashes say the same again.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "X", "-."),
)


def tables(results: Sequence[Result]) -> list["Table"]:
    """Calls without a size, and calls by size. A cell has a time and, below it, the peak of memory."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = {(result.operation, result.size, result.kernel): result for result in results}
    operations = dict.fromkeys((result.operation, result.size is not None) for result in results)
    kernels = list(dict.fromkeys(result.kernel for result in results))
    sizes = list(dict.fromkeys(result.size for result in results if result.size is not None))

    style: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "title_justify": "left"}
    unsized = Table("operation", title="Calls without a size", **style)
    for kernel in kernels:
        unsized.add_column(kernel, justify="right")
    sized = Table("operation", "kernel", title="Calls by size of the message", **style)
    sized.columns[0].no_wrap = sized.columns[1].no_wrap = True
    for size in sizes:
        sized.add_column(in_bytes(size), justify="right")

    for operation, has_size in operations:
        if not has_size:
            unsized.add_row(operation, *(cell(found[operation, None, kernel]) for kernel in kernels))
            continue
        for kernel in kernels:
            cells = [cell(found[operation, size, kernel]) for size in sizes]
            sized.add_row(operation if kernel == kernels[0] else "", kernel, *cells)
        sized.add_section()
    return [unsized, sized]


def legend() -> str:
    """How to read the tables."""
    return (
        "Above: time per call, the best of many short batches, the kernels in turn. Nothing is subtracted: "
        f"the same loop takes {in_time(empty_call())} for a call of len(b'').\n"
        "Below: the most memory allocated at any time of the call, its result included (tracemalloc)."
    )


def cell(result: Result) -> str:
    """Time and memory, for a table."""
    return f"{in_time(result.seconds)}\n[dim]{in_bytes(result.peak)}[/]"


def in_time(seconds: float) -> str:
    """Three digits and a unit."""
    factor, unit = next((each for each in UNITS if seconds < 999.5 * each[0]), UNITS[-1])
    return f"{seconds / factor:.3g} {unit}"


def in_bytes(size: float) -> str:
    """Bytes if they are few, else three digits of a larger unit."""
    if size < 10_000:
        return f"{size:.0f} B"
    return f"{size / 1024:.3g} KiB" if size < 999.5 * 1024 else f"{size / 1024**2:.3g} MiB"


def plot(results: Sequence[Result], title: str, file: IO[bytes]) -> None:
    """Draws time against size as SVG: a panel for each operation, a line for each kernel."""
    kernels = list(dict.fromkeys(result.kernel for result in results))
    panels: Panels = {}
    for operation in ("cipher", "mac, big key", "encrypt", "decrypt"):
        lines = panels[operation] = {}
        for kernel in kernels:
            line = [r for r in results if (r.operation, r.kernel) == (operation, kernel)]
            lines[kernel] = ([r.size or 0 for r in line], [r.seconds for r in line])
    title = f"Time per call by size of the message: lower is better\n{title}"
    draw(panels, title, "time per call", in_time, "kernel", file)


Panels = dict[str, dict[str, tuple[list[float], list[float]]]]  # title, label of the line, x and y


def draw(
    panels: Panels, title: str, quantity: str, shown: Callable[[float], str], legend: str, file: IO[bytes]
) -> None:
    """Draws a quantity against size as SVG, both on logarithmic axes: a row of two panels for each two."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(10, 0.9 + 3.3 * rows), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
    largest = max(size for lines in panels.values() for sizes, _ in lines.values() for size in sizes)
    ticks = [4**i for i in range(2, 20) if 4**i <= largest]
    styles = dict(zip(dict.fromkeys(label for lines in panels.values() for label in lines), cycle(STYLES)))
    for axes, (name, lines) in zip(grid.flat, panels.items(), strict=False):
        for label, (sizes, values) in lines.items():
            color, marker, dashes = styles[label]
            axes.plot(sizes, values, color=color, marker=marker, linestyle=dashes, label=label)
        axes.set_title(name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: in_bytes(size)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))
        axes.tick_params(axis="x", rotation=45)
        axes.grid(color="0.9")
        axes.label_outer()
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid.flat[max(0, len(panels) - 2) : len(panels)]:  # the last of its column
        axes.tick_params(labelbottom=True)
    figure.supxlabel("size of the message")
    figure.supylabel(quantity)
    handles = {h.get_label(): h for axes in grid.flat for h in axes.get_legend_handles_labels()[0]}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", title=legend)
    with rc_context({"svg.fonttype": "none"}):  # letters stay letters, to be searched and read aloud
        figure.savefig(file, format="svg")
