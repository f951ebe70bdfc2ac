"""chapoly beside the other libraries that Python has for the same: make bench-peers.

    python bench/peers --help

Writes README.md, results.json and plots. Needs Linux, and the libraries of libraries.py. Exits with 1 if a
must of musts.py is missed, or another library is faster.
"""

import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import imports
import lengths
import machine
import mallocs
import musts
import report
import threads
from inputs import Inputs
from libraries import LIBRARIES, OPERATIONS, Operation, present
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import track
from timing import LONGEST, Names, Result, compiled, contenders, measure, names_of, public_names

import chapoly
from chapoly.testing import use_kernel

SIZES = (0, 16, 64, 114, 256, 1024, 1420, 4096, 16384, 65536, 1 << 20, 64 << 20)
PARTS = ("speed", "lengths", "mallocs", "imports", "threads")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
STDERR = Console(stderr=True)


@click.command()
@click.option(
    "--kernel",
    type=click.Choice(chapoly.kernels()),
    default=chapoly.kernels()[0],
    show_default=True,
    help="chapoly's kernel.",
)
@click.option("--quick", is_flag=True, help="Take a minute: shorter, and nothing over 1 MiB.")
@click.option("--only", "parts", type=click.Choice(PARTS), multiple=True, help="This part; may be repeated.")
@click.option("--operation", "words", multiple=True, help="Operations named so; may be repeated.")
@click.option("--size", "sizes", type=int, multiple=True, help="This size in bytes; may be repeated.")
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure the chapoly in this wheel too, beside the installed one.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; docs/benchmarks/KERNEL if everything is measured, else nowhere.",
)
def main(
    kernel: str,
    quick: bool,
    parts: tuple[str, ...],
    words: tuple[str, ...],
    sizes: tuple[int, ...],
    wheel: Path | None,
    output: Path | None,
) -> None:
    """Measure chapoly beside the other libraries."""
    if output is None and not (quick or parts or words or sizes):
        output = DOCS / kernel
    operations = [each for each in OPERATIONS if not words or any(word in each.name for word in words)]
    sizes = sizes or (SIZES[:-1] if quick else SIZES)
    with ExitStack() as stack:
        stack.enter_context(use_kernel(kernel))
        ours = {"chapoly": public_names(chapoly)}
        if wheel is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            second, use_kernel_of_second = machine.unpacked(wheel, folder)
            stack.enter_context(use_kernel_of_second(kernel))
            ours[f"chapoly, {wheel.stem.split('-')[-2]} wheel"] = public_names(second)
        facts = measured(kernel, quick, parts or PARTS, operations, sizes, ours)

    text = report.markdown(facts)
    stdout = Console()
    if stdout.is_terminal:
        stdout.print(Markdown(text))
    else:
        print(text)
    if output is not None:
        report.write(facts, text, output)
        print(f"written: {output}")
    sys.exit(bool(facts["slower"]) or any(check["verdict"] == "MISSED" for check in facts["checks"]))


def measured(
    kernel: str,
    quick: bool,
    parts: Sequence[str],
    operations: Sequence[Operation],
    sizes: Sequence[int],
    ours: dict[str, Names],
) -> dict[str, Any]:
    """All figures. The first of `ours` is what the others are compared with."""
    cores = os.sched_getaffinity(0)
    theirs = {library: names_of(library) for library in LIBRARIES}
    fastest = kernel == chapoly.kernels()[0]
    missing = {each.name: each.needs for each in operations if not present(each.needs)}
    operations = [each for each in operations if each.name not in missing]
    facts: dict[str, Any] = {"machine": machine.facts(), "kernel": kernel, "quick": quick, "missing": missing}
    results: list[Result] = []
    gc.disable()

    if "imports" in parts:
        facts["imports"] = rows(imports.measure(kernel, 3 if quick else 12))
    if "mallocs" in parts:
        facts["mallocs"] = rows(mallocs.count(kernel))
    if "threads" in parts:
        found = threads.measure(ours, theirs, 5 if quick else 20) if len(cores) > 1 else ()
        facts["threads"] = rows(found)
    os.sched_setaffinity(0, {max(cores)})
    if "lengths" in parts:
        native = [name for name in chapoly.kernels() if name != "pure" and (fastest or name == kernel)]
        curves = length_curves(native, theirs, 9 if quick else 41)
        facts["lengths"] = {label: [round(1e9 * each, 1) for each in curves[label]] for label in curves}
        facts["violations"] = {label: lengths.violations(curves[label])._asdict() for label in curves}
    if "speed" in parts:
        cases = [(o, size) for o in operations for size in o.sizes or sizes if size <= o.most]
        results += race(cases, ours, theirs, kernel, cores, quick)
        for forced in {must.kernel for must in musts.MUSTS if must.kernel} & {*chapoly.kernels()[1:]}:
            if fastest:
                with use_kernel(forced):
                    names = {"chapoly": public_names(chapoly)}
                    results += race(musts.cases(forced, cases), names, theirs, forced, cores, quick)
    ifma = bool((facts["machine"]["cpu features"] or {}).get("avx512ifma"))
    facts["checks"] = rows(musts.checks(results, kernel, fastest, ifma, [*missing]))
    facts["slower"] = [f"{r.library}: {r.operation}, {r.size} B" for r in musts.slower(results, kernel)]
    facts["results"] = rows(results)
    facts["machine"]["load at the end"] = machine.load()
    return facts


def race(
    cases: Sequence[tuple[Operation, int]],
    ours: dict[str, Names],
    theirs: dict[str, Names],
    kernel: str,
    cores: set[int],
    quick: bool,
) -> Iterator[Result]:
    """The results of all cases; whoever would take longer than LONGEST for a call is left out of its case."""
    before: dict[tuple[str, str], Result] = {}  # of a smaller size
    for operation, size in track(
        cases,
        f"measuring {kernel}",
        console=STDERR,
        transient=True,
        auto_refresh=False,  # that would be a thread, which takes time from what is measured
        disable=not STDERR.is_terminal,
    ):
        os.sched_setaffinity(0, sorted(cores)[-operation.cores :])
        slow = {
            library
            for library in (*ours, *theirs)
            if (last := before.get((operation.name, library)))
            and last.size > 0
            and last.seconds * size / last.size > LONGEST
        }
        if slow & {*ours}:
            continue
        others = {library: names for library, names in theirs.items() if library not in slow}
        entered = contenders(operation, Inputs(size), ours, others)
        seconds, rounds = (0.02, 3) if quick else (0.2, 5)
        for result in measure(entered, operation, size, kernel, seconds, rounds):
            before[operation.name, result.library] = result
            yield result


def length_curves(kernels: Sequence[str], theirs: dict[str, Names], sweeps: int) -> dict[str, list[float]]:
    """Those of chapoly's kernels, and that of cryptography."""
    encrypt = next(each for each in OPERATIONS if each.name == "encrypt")
    clock, runs = time.perf_counter, {}
    for kernel in kernels:
        with use_kernel(kernel):
            runs[f"chapoly, {kernel}"], _ = compiled(encrypt.ours, encrypt.each, public_names(chapoly), clock)
    runs["cryptography"], _ = compiled(encrypt.ours, encrypt.each, theirs["cryptography"], clock)
    return lengths.curves(runs, sweeps)


def rows(found: Iterable[Any]) -> list[dict[str, Any]]:
    """Named tuples as JSON has them."""
    return [each._asdict() for each in found]


if __name__ == "__main__":
    main()
