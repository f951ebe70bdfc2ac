"""The stopwatch: libraries in turn, batch by batch, in one process on one core.

Whatever else the machine does only ever makes a batch slower, so the best batch of each counts; the spread is
that of the ratios within the rounds, in each of which every library has a batch. The time is the wall's.
"""

import time
from collections.abc import Callable, Sequence
from itertools import count
from statistics import median, quantiles
from types import ModuleType
from typing import Any, NamedTuple

from inputs import Inputs
from libraries import LIBRARIES, SAME, Operation, Way

from chapoly._bench import ASSOCIATED_DATA, BATCH, KEY

REPEATED = 4  # so that batches of the shortest calls take over 100 times as long as reading the clock
LONGEST = 1.5  # seconds of a call that is still measured

SOURCE = """
def make():
    {once}
    def run(rows):
        start = clock()
        for ({each},) in rows:
            {before}
            {call}
        return clock() - start
    def answers(rows):
        found = []
        for ({each},) in rows:
            {before}
            result = {call}
            found.append(bytes({answer}))
        return found
    return run, answers
"""

Names = dict[str, Any]
Rows = Sequence[tuple[object, ...]]
Run = Callable[[Rows], float]


class Result(NamedTuple):
    """What one library needs for one call, and its ratio to what chapoly needs."""

    kernel: str  # of chapoly
    operation: str
    size: int
    library: str
    seconds: float  # the best batch's, per call
    median: float
    ratio: float  # of the best batches
    low: float  # the lower quartile of the ratios of all rounds
    high: float  # the upper one
    rounds: int


def names_of(library: str) -> Names:
    """What the ways of a library may name."""
    names: Names = {}
    exec(f"{LIBRARIES[library].imports}\n{LIBRARIES[library].setup}", names)
    return names


def public_names(chapoly: ModuleType) -> Names:
    """The same for chapoly, with the kernel in use."""
    return {name: getattr(chapoly, name) for name in chapoly.__all__}


def compiled(
    way: Way, each: str, names: Names, clock: Callable[[], float]
) -> tuple[Run, Callable[[Rows], list[bytes]]]:
    """A function that gives the seconds of calls for these rows, and one that gives their answers."""
    names = names | {"KEY": KEY, "AD": ASSOCIATED_DATA, "clock": clock}
    exec(SOURCE.format(**way._replace(each=way.each or each)._asdict()), names)
    run, answers = names["make"]()
    return run, answers


class Contender:
    """A library at an operation."""

    def __init__(self, library: str, way: Way, operation: Operation, names: Names, inputs: Inputs) -> None:
        self.library = library
        self.rows = inputs.rows(way.each or operation.each) * REPEATED
        self.run, self.answers = compiled(way, operation.each, names, time.perf_counter)
        self.batch, self.position, self.spent = 1, 0, 0.0
        self.seconds: list[float] = []
        self.ratios: list[float] = []

    def run_batch(self) -> float:
        """Seconds per call of the next calls."""
        rows = self.rows[self.position : self.position + self.batch]  # fewer at the end
        elapsed = self.run(rows)
        self.position = (self.position + len(rows)) % len(self.rows)
        self.spent += elapsed
        return elapsed / len(rows)

    def size_batch(self) -> None:
        """Makes batches as long as BATCH says, or as there are rows."""
        while self.run_batch() * self.batch < BATCH / 2 and self.batch < len(self.rows):
            self.batch, self.position = self.batch * 2, 0
        self.spent = 0.0


def contenders(
    operation: Operation, inputs: Inputs, ours: dict[str, Names], theirs: dict[str, Names]
) -> list[Contender]:
    """The chapolys, by the name to show, then the others."""
    ways = {name: (operation.ours, names) for name, names in ours.items()}
    for name, names in theirs.items():
        if name in operation.theirs:
            way = operation.theirs[name]
            ways[name] = (operation.ours if way is SAME else way, names)
    return [Contender(name, way, operation, names, inputs) for name, (way, names) in ways.items()]


def measure(
    contenders: Sequence[Contender], operation: Operation, size: int, kernel: str, seconds: float, rounds: int
) -> list[Result]:
    """Each for so many seconds and at least so many rounds; the first is the one that ratios are to."""
    compared = 4 if size < 1 << 20 else 2  # each kind of buffer, if it costs little
    ours = contenders[0]
    expected = ours.answers(ours.rows[:compared])
    for other in contenders[1:]:
        if other.answers(other.rows[:compared]) != expected:
            raise SystemExit(f"{other.library} and {ours.library} differ: {operation.name}, {size} bytes")

    for each in contenders:
        each.size_batch()
    for turn in count():
        racing = [each for each in contenders if each.spent < seconds or len(each.seconds) < rounds]
        if not racing:
            break
        if ours not in racing:
            racing.append(ours)
        start = turn % len(racing)  # nobody always comes after the same one
        for each in racing[start:] + racing[:start]:
            each.seconds.append(each.run_batch())
        for each in racing:
            each.ratios.append(each.seconds[-1] / ours.seconds[-1])
    return [result(each, ours, operation, size, kernel) for each in contenders]


def result(each: Contender, ours: Contender, operation: Operation, size: int, kernel: str) -> Result:
    """What a contender's batches say."""
    best = min(each.seconds)
    low, _, high = quantiles(each.ratios, n=4)
    return Result(
        kernel,
        operation.name,
        size,
        each.library,
        best,
        median(each.seconds),
        best / min(ours.seconds),
        low,
        high,
        len(each.seconds),
    )
