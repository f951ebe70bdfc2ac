"""The command chapoly: info, selftest, bench."""

import contextlib
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from conftest import NATIVE_KERNELS
from interpreter import PACKAGE, PYTHON, python, without_native

import chapoly
from chapoly import _backend, _bench, _build, _selftest, cli

KERNELS = chapoly.kernels()
AVAILABLE = ", ".join(KERNELS)
ANSWERS = len(_selftest.known_answers(chapoly.pure))

needs_extra = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("click", "rich", "matplotlib")),
    reason="the extra chapoly[cli] is not installed",
)
needs_native = pytest.mark.skipif(not NATIVE_KERNELS, reason="this installation has no native module")


def run(*arguments: str) -> Any:
    from click.testing import CliRunner

    return CliRunner().invoke(cli.command(), arguments)


def output(*arguments: str) -> str:
    """What the command prints; it must end well and say nothing on stderr."""
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.exception
    return result.stdout


MODULE = ("-m", "chapoly")
SCRIPT = ("-c", "import sys, chapoly_command; sys.argv[0] = 'chapoly'; sys.exit(chapoly_command.main())")


def start(
    *arguments: str,
    package: Path = PACKAGE,
    stderr: int = subprocess.PIPE,
    way: tuple[str, str] = MODULE,
    **variables: str,
) -> "subprocess.Popen[str]":
    """A new process that runs it, which finds this package."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHAPOLY_")}
    environment |= variables
    environment["PYTHONPATH"] = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    environment["TERM"] = "xterm"
    return subprocess.Popen(
        [*PYTHON, *way, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
    )


def command(*arguments: str, **how: Any) -> tuple[int, str, str]:
    """Its exit status, and what it said."""
    process = start(*arguments, **how)
    stdout, stderr = process.communicate(timeout=300)
    return process.returncode, stdout, stderr


# ---- info ----


@needs_extra
def test_info_says_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAPOLY_KERNEL", raising=False)
    facts = json.loads(output("info", "--json"))
    text = output("info")
    assert [kernel["name"] for kernel in facts["kernels"] if kernel["obstacle"] is None] == list(KERNELS)
    assert facts["version"] == chapoly.__version__
    assert (facts["backend"], facts["kernel"]) == (_backend.backend, _backend.kernel)
    for fact in ("version", "python", "cpu", "architecture", "why"):
        assert facts[fact] in text
    for kernel in facts["kernels"]:
        assert kernel["name"] in text
    for feature, has in (facts["cpu_features"] or {}).items():
        assert f"{feature} {'yes' if has else 'no'}" in text


@needs_extra
@needs_native
def test_info_knows_the_native_build() -> None:
    facts, text = json.loads(output("info", "--json")), output("info")
    assert facts["built"] == {
        "compiler": _build.compiler,
        "abi": "abi3" if ".abi3." in Path(_backend.native.__file__).name else "version-specific",
        "file": _backend.native.__file__,
        "why_pure": None,
    }
    assert facts["rebuild"] is None
    assert _build.compiler in text
    assert _backend.native.__file__ in text
    assert "rebuild" not in text


@needs_extra
def test_info_without_native_code_says_how_to_rebuild(tmp_path: Path) -> None:
    package = without_native(tmp_path)
    status, text, warning = command("info", package=package)
    assert status == 0
    assert "PureBackendWarning" in warning
    assert cli.REBUILD in text
    assert "gcc and Python.h" in text
    facts = json.loads(command("info", "--json", package=package)[1])
    assert facts["kernels"] == [{"name": "pure", "obstacle": None, "drawback": None}]
    assert facts["cpu_features"] is facts["built"]["file"] is None
    assert facts["rebuild"] == cli.REBUILD
    assert facts["built"]["why_pure"]


def test_why_a_kernel_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    native = SimpleNamespace(
        kernels=lambda: (("wide", "no registers", None), ("good", None, None), ("slow", None, None))
    )
    monkeypatch.setattr(_backend, "native", native)
    monkeypatch.setenv("CHAPOLY_KERNEL", "")
    for kernel, reason in {
        "good": "the fastest that can run, and it answered the self-test right",
        "slow": "the fastest that can run and answered the self-test right; good did not",
    }.items():
        monkeypatch.setattr(_backend, "kernel", kernel)
        assert cli.why() == reason
    monkeypatch.setenv("CHAPOLY_KERNEL", "slow")
    assert cli.why() == "forced by CHAPOLY_KERNEL"
    monkeypatch.setenv("CHAPOLY_KERNEL", "")
    monkeypatch.setattr(_backend, "native", None)
    monkeypatch.setattr(_build, "why_pure", "no compiler")
    assert cli.why() == "no compiler"


@needs_extra
@needs_native
def test_info_says_what_keeps_a_kernel_from_running_or_from_being_preferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = (("wide", "no registers", None), (KERNELS[0], None, None), ("hot", None, "it heats"))
    monkeypatch.setattr(_backend.native, "kernels", lambda: offered)
    monkeypatch.setattr(_backend, "kernel", KERNELS[0])
    facts = json.loads(output("info", "--json"))["kernels"]
    assert [tuple(kernel.values()) for kernel in facts] == [*offered, ("pure", None, None)]
    lines = [" ".join(line.split()) for line in output("info").splitlines()]
    for line in ("wide no registers", f"{KERNELS[0]} can run", "hot can run, but is not preferred: it heats"):
        assert f"kernel {line}" in lines


# ---- selftest ----


@needs_extra
def test_selftest_has_a_line_for_each_answer_of_each_kernel() -> None:
    lines = output("selftest").splitlines()
    expected = [["right", kernel] for kernel in KERNELS for _ in range(ANSWERS)]
    assert [line.split()[:2] for line in lines[:-1]] == expected
    assert lines[-1] == f"{len(expected)} of {len(expected)} known answers are right"


@needs_extra
def test_selftest_fails_on_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    known_answers = _selftest.known_answers
    name = "mac (RFC 8439 2.5.2)"
    monkeypatch.setattr(_selftest, "known_answers", lambda chapoly: known_answers(chapoly) | {name: False})
    result = run("selftest")
    assert result.exit_code == 1
    wrong = [line.split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith("WRONG")]
    assert wrong == [["WRONG", kernel, name] for kernel in KERNELS]


# ---- bench ----


@needs_extra
def test_bench_measures_every_case(api: ModuleType, tmp_path: Path) -> None:
    kernel, in_json, in_svg = api.kernel, tmp_path / "bench.json", tmp_path / "bench.svg"
    text = output("bench", "--quick", "--kernel", kernel, "--json", str(in_json), "--plot", str(in_svg))
    facts = json.loads(in_json.read_text(encoding="utf-8"))
    results = [_bench.Result(**result) for result in facts["results"]]

    assert (facts["version"], facts["quick"]) == (chapoly.__version__, True)
    assert [(r.operation, r.size, r.kernel) for r in results] == [
        (operation, size, kernel) for operation, size in _bench.QUICK_CASES
    ]
    for result in results:
        assert 0 < result.seconds < 10
        assert 0 <= result.held <= result.peak
        if result.operation in ("cipher", "encrypt", "decrypt"):
            size = result.size + (16 if result.operation == "encrypt" else 0)
            assert result.held == bytes(0).__sizeof__() + size
        if kernel != "pure":
            assert result.peak == result.held  # the result, and nothing else
    for word in (facts["cpu"], facts["python"], chapoly.__version__, kernel, "64 KiB", "tracemalloc"):
        assert word in text
    for operation, _ in _bench.QUICK_CASES:
        assert operation in text

    svg = ET.parse(in_svg).getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    words = {element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"cipher", "mac, big key", "encrypt", "decrypt", "time per call", "64 KiB", kernel} <= words


@needs_extra
def test_bench_compares_kernels_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "QUICK_CASES", [("block", None), ("tag == equal", None), ("decrypt", 114)])
    for arguments in (["--json", "--quick"], ["--quick", "--json", "-"]):
        results = json.loads(output("bench", *arguments))["results"]
        assert [result["kernel"] for result in results] == [*KERNELS] * 3
    text = output("bench", "--quick")
    assert all(kernel in text for kernel in KERNELS)
    assert chapoly.kernel == _backend.kernel


@needs_extra
def test_bench_writes_one_thing_to_stdout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_bench, "QUICK_CASES", [("decrypt", 114), ("decrypt", 256)])
    in_svg, in_json = tmp_path / "bench.svg", tmp_path / "bench.json"

    plot = output("bench", "--quick", "--plot", "-")
    assert ET.fromstring(plot).tag == "{http://www.w3.org/2000/svg}svg"
    plot = output("bench", "--quick", "--plot", "-", "--json", str(in_json))
    assert ET.fromstring(plot).tag == "{http://www.w3.org/2000/svg}svg"
    assert json.loads(in_json.read_text(encoding="utf-8"))["results"]
    assert json.loads(output("bench", "--quick", "--json", "--plot", str(in_svg)))["results"]
    assert ET.parse(in_svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"

    monkeypatch.setattr(_bench, "measure", None)  # it is refused before anything is measured
    for arguments in (["--json", "--plot", "-"], ["--plot", "-", "--json", "-"]):
        result = run("bench", "--quick", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--json and --plot cannot both go to stdout" in result.stderr
    status, printed, complaint = command("bench", "--quick", "--json", "--plot", "-")
    assert (status, printed) == (2, "")
    assert "--json and --plot cannot both go to stdout" in complaint


def test_a_full_run_measures_what_was_asked() -> None:
    sizes = [16, 64, 114, 128, 256, 1024, 4096, 65536, 1048576]
    for operation in ("cipher", "mac, small key", "mac, mid key", "mac, big key", "encrypt", "decrypt"):
        assert [size for name, size in _bench.CASES if name == operation] == sizes
    assert {name for name, size in _bench.CASES if size is None} == {
        "block",
        "tag == equal",
        "tag == unequal",
    }


@pytest.mark.parametrize(("operation", "size"), _bench.QUICK_CASES)
def test_bench_calls_differ(operation: str, size: int | None) -> None:
    call, arguments = _bench.task(operation, size or 0)
    assert len(arguments) == 256
    assert len({bytes(each[2] if operation in ("block", "cipher") else each[0]) for each in arguments}) == 256
    if operation.startswith("tag"):
        assert {call(*each) for each in arguments} == {operation == "tag == equal"}


def test_bench_times_nothing_if_answers_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([1, 2])
    monkeypatch.setattr(_bench, "task", lambda *_: (abs, [(next(answers),)]))
    with pytest.raises(SystemExit, match="pure and pure differ: block"):
        next(_bench.measure("block", None, ["pure", "pure"], True))


@needs_extra
def test_bench_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    for arguments in (
        ["--kernel", "none"],
        ["--quick", "--plot", str(tmp_path / "no" / "where.svg")],
        ["--quick", "--json", str(tmp_path / "no" / "where.json")],
    ):
        result = run("bench", *arguments)
        assert result.exit_code == 2  # before anything is measured
        assert arguments[-1] in result.stderr


@needs_extra
def test_progress_is_shown_on_a_terminal_only() -> None:
    arguments = ("bench", "--quick", "--kernel", KERNELS[0])
    assert "measuring" not in command(*arguments)[2]

    ours, theirs = os.openpty()
    process = start(*arguments, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # which ends what a terminal says, on Linux
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    table, _ = process.communicate()
    assert process.returncode == 0
    assert b"measuring" in shown
    assert "measuring" not in table
    assert "Calls by size of the message" in table


# ---- the command itself ----


@needs_extra
def test_python_m_chapoly() -> None:
    status, facts, _ = command("info", "--json")
    assert (status, json.loads(facts)["version"]) == (0, chapoly.__version__)
    assert output("--version").strip().endswith(chapoly.__version__)


@needs_extra
def test_the_script() -> None:
    status, facts, _ = command("info", "--json", way=SCRIPT)
    assert (status, json.loads(facts)["version"]) == (0, chapoly.__version__)
    # Where pip did not install it there is none.
    for point in entry_points(group="console_scripts", name="chapoly"):
        assert point.value == "chapoly_command:main"


@pytest.mark.parametrize("way", [SCRIPT, MODULE])
def test_where_chapoly_cannot_be_imported_it_says_why(tmp_path: Path, way: tuple[str, str]) -> None:
    package = without_native(tmp_path)

    def says(reason: str, package: Path = PACKAGE, **variables: str) -> None:
        status, printed, complaint = command("info", way=way, package=package, **variables)
        assert (status, printed) == (1, "")
        (line,) = complaint.splitlines()
        assert reason in line
        assert way == MODULE or line.startswith("chapoly: ")

    says(f"CHAPOLY_KERNEL=bogus is not available here; available: {AVAILABLE}", CHAPOLY_KERNEL="bogus")
    says("CHAPOLY_REQUIRE_NATIVE must be 1, 0 or empty, got 'yes'", CHAPOLY_REQUIRE_NATIVE="yes")
    says("CHAPOLY_REQUIRE_NATIVE=1, but only pure is available: ", package, CHAPOLY_REQUIRE_NATIVE="1")
    (package / f"_native{EXTENSION_SUFFIXES[0]}").write_bytes(b"this is no library")
    says("chapoly's native module does not load: ", package)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGE, tmp_path / "chapoly")  # away from the libraries
    run_it = "import runpy; runpy.run_module('chapoly', run_name='__main__')"
    done = python(run_it, "-I", "-S", "-W", "ignore", package=package)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "The chapoly command needs click, rich, matplotlib: pip install 'chapoly[cli]'"
    ]
