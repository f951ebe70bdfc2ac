"""The command `chapoly`, also `python -m chapoly`. Its own dependencies are in the extra chapoly[cli]."""

import json
import platform
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import chapoly
from chapoly import _backend, _build, _selftest, pure
from chapoly.testing import use_kernel

if TYPE_CHECKING:
    from types import ModuleType

    import click
    from rich.console import Console

REBUILD = "pip install --force-reinstall . -Csetup-args=-Dnative=enabled"
REBUILD_NEEDS = (
    "in a checkout of chapoly, which needs gcc and Python.h (on Debian: apt install gcc python3-dev)"
)


def main() -> None:
    """Runs the command; without the extra it says what to install, with exit status 2."""
    missing = [library for library in ("click", "rich", "matplotlib") if find_spec(library) is None]
    if missing:
        print(f"The chapoly command needs {', '.join(missing)}: pip install 'chapoly[cli]'", file=sys.stderr)
        sys.exit(2)
    command()()


def command() -> "click.Group":
    """The commands and their options."""
    import click

    as_json = click.Option(["--json", "as_json"], is_flag=True, help="Print it as JSON.")
    kernels = click.Option(
        ["--kernel", "kernels"],
        type=click.Choice(chapoly.kernels()),
        multiple=True,
        help="Measure this kernel; may be repeated. Without it, all are measured.",
    )
    quick = click.Option(
        ["--quick"], is_flag=True, help="Take seconds, not a minute: shorter, and nothing over 64 KiB."
    )
    json_file = click.Option(
        ["--json", "json_file"],
        type=click.File("w", encoding="utf-8", lazy=False),
        is_flag=False,
        flag_value="-",
        metavar="[FILE]",
        help="Write JSON to this file, or to stdout in place of the tables.",
    )
    plot_file = click.Option(
        ["--plot", "plot_file"],
        type=click.File("wb", lazy=False),
        metavar="FILE",
        help="Plot time against size into this SVG file, or (-) to stdout in place of the tables.",
    )
    group = click.Group(
        "chapoly",
        help="ChaCha20, Poly1305 and their AEAD: what is installed, whether it is right, and how fast it is.",
        commands=[
            click.Command("info", callback=info, help=info.__doc__, params=[as_json]),
            click.Command("selftest", callback=selftest, help=selftest.__doc__),
            click.Command(
                "bench", callback=bench, help=bench.__doc__, params=[kernels, quick, json_file, plot_file]
            ),
        ],
    )
    return click.version_option(chapoly.__version__)(group)


def stdout() -> "Console":
    """Where tables go. What is not a terminal has no width that they must fit."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    return console


# ---- info ----


def info(as_json: bool) -> None:
    """Show what is installed, what this machine offers, and what was chosen and why."""
    facts = about()
    if as_json:
        print(json.dumps(facts, indent=2))
        return

    from rich.markup import escape

    features, built, console = facts["cpu_features"], facts["built"], stdout()
    lines = [
        ("chapoly", facts["version"]),
        ("Python", facts["python"]),
        ("CPU", f"{facts['cpu']} ({facts['architecture']})"),
        ("CPU features", "unknown without the native module" if features is None else present(features)),
    ]
    for kernel in facts["kernels"]:
        lines.append((f"kernel {kernel['name']}", kernel["obstacle"] or "can run"))
    lines.append(("in use", f"{facts['kernel']}: {facts['why']}"))
    if built["file"]:
        lines += [("built", f"with {built['compiler']}, {built['abi']}"), ("", built["file"])]
    else:
        lines += [("built", f"without native code: {built['why_pure']}")]
        lines += [("to rebuild", REBUILD), ("", REBUILD_NEEDS)]
    for label, value in lines:
        console.print(f"[bold]{label:18}[/]{escape(value)}", soft_wrap=True)


def present(features: dict[str, bool]) -> str:
    """Which of the features that a kernel may need the CPU has."""
    named = (f"{name} {'yes' if has else 'no'}" for name, has in features.items())
    return ", ".join(named) or "none that a kernel needs"


def about() -> dict[str, Any]:
    """Facts about this installation and this machine."""
    native = _backend.native
    file = native.__file__ if native is not None else None
    offered = [*(native.kernels() if native is not None else ()), ("pure", None)]
    return {
        "version": chapoly.__version__,
        "python": f"{platform.python_implementation()} {sys.version.partition(' (')[0]}",
        "cpu": cpu(),
        "architecture": platform.machine(),
        "cpu_features": native.cpu_features() if native is not None else None,
        "kernels": [{"name": name, "obstacle": obstacle} for name, obstacle in offered],
        "backend": _backend.backend,
        "kernel": _backend.kernel,
        "why": why(),
        "built": {
            "compiler": _build.compiler or None,
            "abi": abi(file) if file else None,
            "file": file,
            "why_pure": _backend.why_pure() if native is None else None,
        },
        "rebuild": REBUILD if native is None else None,
    }


def cpu() -> str:
    """The processor's name, as well as it can be known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def why() -> str:
    """Why the kernel in use was chosen."""
    wanted, _ = _backend._environment()
    if wanted:
        return "forced by CHAPOLY_KERNEL"
    if _backend.native is None:
        return _backend.why_pure()
    usable = chapoly.kernels()
    wrong = usable[: usable.index(_backend.kernel)]
    if wrong:
        return f"the fastest that can run and answered the self-test right; {', '.join(wrong)} did not"
    return "the fastest that can run, and it answered the self-test right"


def abi(file: str) -> str:
    """Which Pythons an extension is for, by its file name. Windows marks the stable ABI by no tag at all."""
    return "version-specific" if file.endswith(sysconfig.get_config_var("EXT_SUFFIX")) else "abi3"


# ---- selftest ----


def selftest() -> None:
    """Ask every kernel that can run here every known answer. The exit status is 1 if one is wrong."""
    console = stdout()
    answers = 0
    wrong = 0
    for kernel in chapoly.kernels():
        for name, right in known_answers(kernel).items():
            verdict = "[green]right[/]" if right else "[red]WRONG[/]"
            console.print(f"{verdict}  {kernel:10}{name}", soft_wrap=True)
            answers += 1
            wrong += not right
    console.print(f"{answers - wrong} of {answers} known answers are right", soft_wrap=True)
    sys.exit(wrong > 0)


def known_answers(kernel: str) -> dict[str, bool]:
    """What a kernel gets right."""
    implementation = cast("ModuleType", pure if kernel == "pure" else _backend.native)
    with use_kernel(kernel):
        return _selftest.known_answers(implementation)


# ---- bench ----


def bench(
    kernels: Sequence[str], quick: bool, json_file: IO[str] | None, plot_file: IO[bytes] | None
) -> None:
    """Measure time and memory per call, for each kernel and size."""
    import click
    from rich.console import Console
    from rich.progress import track

    from chapoly import _bench

    json_to_stdout = json_file is not None and json_file.name == "<stdout>"
    plot_to_stdout = plot_file is not None and plot_file is sys.stdout.buffer
    if json_to_stdout and plot_to_stdout:
        raise click.UsageError("--json and --plot cannot both go to stdout")

    facts = about()
    machine = f"{facts['cpu']} ({facts['architecture']}), {facts['python']}, chapoly {facts['version']}"
    if facts["built"]["file"]:
        machine += f" by {facts['built']['compiler']}"
    machine += f", kernel in use: {facts['kernel']}"

    names = [name for name in chapoly.kernels() if not kernels or name in kernels]
    cases = _bench.QUICK_CASES if quick else _bench.CASES
    stderr = Console(stderr=True)
    # No auto_refresh: it is a thread, whose time and memory would be measured too.
    shown = track(
        cases, "measuring", console=stderr, transient=True, auto_refresh=False, disable=not stderr.is_terminal
    )
    results = [result for case in shown for result in _bench.measure(*case, names, quick)]

    if plot_file is not None:
        _bench.plot(results, machine, plot_file)
    if json_file is not None:
        facts |= {"quick": quick, "results": [result._asdict() for result in results]}
        print(json.dumps(facts, indent=2), file=json_file)
    if not (json_to_stdout or plot_to_stdout):
        console = stdout()
        console.print(machine, soft_wrap=True)
        for table in _bench.tables(results):
            console.print(table)
        console.print(_bench.legend(), soft_wrap=True)
