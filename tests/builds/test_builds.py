"""The forms in which chapoly is built, each made from a copy of the checkout and imported alone.

Run from a checkout by `make test-builds`, with the build requirements installed; no network is needed.
"""

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SOURCES = ("src", "tests", "meson.build", "meson.options", "pyproject.toml", "LICENSE", "README.md")
WHAT_IT_SAYS = "import chapoly; print(chapoly.backend, chapoly.kernel)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the sources, in a folder with a space in its name."""
    copy = tmp_path / "source tree"
    copy.mkdir()
    for name in SOURCES:
        origin = CHECKOUT / name
        if origin.is_dir():
            shutil.copytree(origin, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy / name)
    return copy


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: what a build may find besides Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("meson", "ninja", "sh"):
        found = shutil.which(tool, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert found, f"{tool} is needed to build"
        (folder / tool).symlink_to(found)
    return folder


def make_wheel(source: Path, path: str, *options: str, fails: bool = False) -> tuple[Path | None, str]:
    """Builds a wheel with PATH=path; the wheel and what the build printed."""
    out = source.parent / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "--no-index"]
    run = subprocess.run(
        [*command, "-w", out, ".", *(f"-Csetup-args={option}" for option in options)],
        cwd=source,
        env={**{k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS")}, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    log = run.stdout + run.stderr
    if fails:
        assert run.returncode != 0, log
        return None, log
    assert run.returncode == 0, log
    (wheel,) = out.glob("*.whl")
    return wheel, log


def import_from(wheel: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Imports chapoly from an unpacked wheel, alone."""
    root = wheel.parent / "unpacked"
    shutil.rmtree(root, ignore_errors=True)
    zipfile.ZipFile(wheel).extractall(root)
    return subprocess.run(
        [sys.executable, "-S", "-W", "always", "-c", WHAT_IT_SAYS],
        env={"PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def script(path: Path, text: str) -> None:
    """An executable shell script."""
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def assert_pure(wheel: Path | None, reason: str, *, by_choice: bool = False) -> None:
    """A py3-none-any wheel that works, and says why it is pure unless that was asked for."""
    assert wheel is not None
    assert wheel.name.endswith("-py3-none-any.whl")
    run = import_from(wheel)
    assert run.stdout.split() == ["pure", "pure"], run.stderr
    if by_choice:
        assert run.stderr == ""
    else:
        assert "PureBackendWarning" in run.stderr
        assert reason in run.stderr
    refused = import_from(wheel, CHAPOLY_REQUIRE_NATIVE="1")
    assert refused.returncode != 0
    assert reason in refused.stderr


class TestNativeOption:
    """-Dnative=auto, enabled, disabled with and without what it needs."""

    def test_no_compiler(self, source: Path, tools: Path) -> None:
        """auto: pure with a warning; enabled: an error."""
        reason = "no working C compiler"
        wheel, log = make_wheel(source, str(tools))
        assert_pure(wheel, reason)
        assert "WARNING: chapoly: " + reason in log
        make_wheel(source, str(tools), "-Dnative=enabled", fails=True)

    def test_compiler_that_fails(self, source: Path, tools: Path) -> None:
        """A cc that cannot compile anything is no compiler."""
        script(tools / "cc", "echo 'cc: internal error' >&2; exit 1\n")
        wheel, _ = make_wheel(source, str(tools))
        assert_pure(wheel, "no working C compiler")
        make_wheel(source, str(tools), "-Dnative=enabled", fails=True)

    def test_compiler_that_says_its_name_and_fails(self, source: Path, tools: Path) -> None:
        """It answers --version like gcc, and then cannot compile."""
        gcc = shutil.which("gcc")
        script(
            tools / "cc", f'case "$*" in *--version*|*-dM*) exec {gcc} "$@";; esac\necho broken >&2; exit 1\n'
        )
        wheel, _ = make_wheel(source, str(tools))
        assert_pure(wheel, "no working C compiler")
        make_wheel(source, str(tools), "-Dnative=enabled", fails=True)

    def test_no_python_headers(self, source: Path, tools: Path) -> None:
        """A working cc that does not find Python.h."""
        include = sysconfig.get_path("include")
        gcc = shutil.which("gcc")
        script(
            tools / "cc",
            f"""for word; do
    case "$word" in *"{include}"*) set -- "$@" -DNO;; *) set -- "$@" "$word";; esac
    shift
done
exec {gcc} "$@"
""",
        )
        for tool in ("ar", "as", "ld", "gcc-ar"):
            (tools / tool).symlink_to(shutil.which(tool) or tool)
        wheel, log = make_wheel(source, str(tools))
        assert_pure(wheel, "Python.h was not found")
        _, log = make_wheel(source, str(tools), "-Dnative=enabled", fails=True)
        assert "chapoly: Python.h was not found at build time; " in log
        assert "python3-dev" in log

    def test_disabled(self, source: Path) -> None:
        """Nobody is asked for a compiler, and nobody warns: pure was asked for."""
        wheel, log = make_wheel(source, os.environ["PATH"], "-Dnative=disabled")
        assert_pure(wheel, "built with -Dnative=disabled", by_choice=True)
        assert "WARNING: chapoly" not in log

    @pytest.mark.parametrize("option", ["-Dnative=auto", "-Dnative=enabled"])
    def test_an_error_in_our_own_c_is_always_an_error(self, source: Path, option: str) -> None:
        """A compiler that works and refuses our source must not lead to a pure install."""
        with (source / "src/native/aead.c").open("a") as file:
            file.write("\nthis is no C\n")
        make_wheel(source, os.environ["PATH"], option, fails=True)


class TestMake:
    """What make needs before it does anything."""

    @pytest.mark.parametrize(
        "lacking",
        [
            "import sys; sys.version_info = (3, 10)",
            "import sys; sys.modules['ensurepip'] = None",
            "import sysconfig; sysconfig.get_path = str",  # no headers there
            "raise SystemExit(1)",
        ],
    )
    def test_what_is_missing_is_said_in_two_lines(self, tools: Path, lacking: str) -> None:
        """Nothing above them, a traceback for one."""
        script(tools / "python", f'exec {sys.executable} -c "{lacking}; exec(sys.argv[1])" "$2"\n')
        run = subprocess.run(
            ["make", "-C", CHECKOUT, "--no-print-directory", "prerequisites", f"PYTHON={tools / 'python'}"],
            env={k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode != 0
        assert run.stdout == ""
        assert run.stderr.splitlines()[:-1] == [
            "chapoly needs CPython 3.11 or later, its headers, and a C compiler; on Debian and Ubuntu:",
            "apt install python3-venv python3-dev gcc make",
        ]
        assert run.stderr.splitlines()[-1].startswith("make: *** ")


class TestCompilers:
    """What not every compiler has."""

    @pytest.mark.parametrize("limited", ["false", "true"])
    def test_no_c11_atomics(self, source: Path, limited: str) -> None:
        """As with MSVC. The second macro makes gcc's and clang's <stdatomic.h> empty, if it is included."""
        wheel, _ = make_wheel(
            source,
            os.environ["PATH"],
            "-Dnative=enabled",
            "-Dwerror=true",
            f"-Dpython.allow_limited_api={limited}",
            "-Dc_args=-D__STDC_NO_ATOMICS__ -D_STDATOMIC_H -D__CLANG_STDATOMIC_H",
        )
        assert wheel is not None
        run = import_from(wheel, CHAPOLY_REQUIRE_NATIVE="1")
        assert run.stdout.startswith("native "), run.stderr


class TestWheels:
    """The version-specific and the abi3 form."""

    def test_a_source_install_is_version_specific(self, source: Path) -> None:
        """The default."""
        wheel, _ = make_wheel(source, os.environ["PATH"], "-Dnative=enabled")
        assert wheel is not None
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
        assert f"-{tag}-{tag}-" in wheel.name
        run = import_from(wheel, CHAPOLY_REQUIRE_NATIVE="1")
        assert run.stdout.startswith("native "), run.stderr
        assert run.stderr == ""

    def test_abi3_by_option(self, source: Path) -> None:
        """One file for 3.11 and later."""
        wheel, _ = make_wheel(
            source, os.environ["PATH"], "-Dnative=enabled", "-Dpython.allow_limited_api=true"
        )
        assert wheel is not None
        assert "-abi3-" in wheel.name
        names = zipfile.ZipFile(wheel).namelist()
        assert {n for n in names if "_native" in n} == {"chapoly/_native.abi3.so", "chapoly/_native.pyi"}
        run = import_from(wheel, CHAPOLY_REQUIRE_NATIVE="1")
        assert run.stdout.startswith("native "), run.stderr

    def test_contents(self, source: Path) -> None:
        """Everything that is imported, the licence, the types; nothing of the tests."""
        wheel, _ = make_wheel(source, os.environ["PATH"], "-Dnative=enabled")
        assert wheel is not None
        names = zipfile.ZipFile(wheel).namelist()
        ours = (source / "src/chapoly").rglob("*")
        expected = {str(p.relative_to(source / "src")) for p in ours if p.suffix in (".py", ".pyi", ".typed")}
        in_package = {n for n in names if n.startswith("chapoly/") and "/_native." not in n}
        assert in_package == expected - {"chapoly/_native.pyi"} | {"chapoly/_build.py"}
        assert {n for n in names if n.endswith(".py") and n not in in_package} == {"chapoly_command.py"}
        assert any(n.endswith("licenses/LICENSE") for n in names)
