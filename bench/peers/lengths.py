"""The length curve: what encrypting 0, 1, 2, ... 2048 bytes costs, and where it is not smooth.

All lengths in turn, again and again, each beside as many calls for REFERENCE bytes: what counts is the
median of the ratio to these, so that what slows the machine for a while cancels out. A rise from one length
to the next may be 45 ns or 15 %, whichever is larger; no length may cost more than 1.1 times what any
longer one does.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from timing import Run

from chapoly._bench import NONCES

LAST = 2048
REFERENCE = 512
CALLS = 128  # of a batch: the first ones find the code of another length in the caches
STEP, STEP_SHARE = 45e-9, 0.15
DEARER = 1.1


class Violations(NamedTuple):
    """Where a curve is not smooth."""

    steps: list[tuple[int, float, float]]  # length, rise in seconds, share of the cost before
    dearer: list[tuple[int, int, float]]  # than a longer one: first and last of the lengths, most


def curves(runs: dict[str, Run], sweeps: int) -> dict[str, list[float]]:
    """The median cost of a call by length, of each."""
    ratios: dict[str, list[list[float]]] = {label: [[] for _ in range(LAST + 1)] for label in runs}
    references: dict[str, list[float]] = {label: [] for label in runs}
    reference = bytes(REFERENCE)
    for sweep in range(sweeps):
        for length in range(LAST + 1):
            data = bytes(length)
            first = (sweep + length) * CALLS % len(NONCES)
            nonces = NONCES[first : first + CALLS]
            rows, beside = ([(nonce, text) for nonce in nonces] for text in (data, reference))
            for label, run in runs.items():
                references[label].append(run(beside) / CALLS)
                ratios[label][length].append(run(rows) / CALLS / references[label][-1])
    costs = {label: median(each) for label, each in references.items()}
    return {label: [median(each) * costs[label] for each in by_length] for label, by_length in ratios.items()}


def violations(curve: Sequence[float]) -> Violations:
    """Where a curve is not as it should be."""
    steps = []
    for length, (cost, after) in enumerate(pairwise(curve)):
        if after - cost > max(STEP, STEP_SHARE * cost):
            steps.append((length + 1, after - cost, (after - cost) / cost))
    dearer: list[tuple[int, int, float]] = []
    cheapest = float("inf")  # of the longer ones
    for length in range(len(curve) - 1, -1, -1):
        factor = curve[length] / cheapest
        if factor > DEARER:
            if dearer and dearer[-1][0] == length + 1:
                _, last, most = dearer.pop()
                dearer.append((length, last, max(most, factor)))
            else:
                dearer.append((length, length, factor))
        cheapest = min(cheapest, curve[length])
    return Violations(steps, dearer[::-1])
