"""New interpreters, for what a running one cannot show: the environment, the import itself, forks."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import chapoly

# Under emulation the interpreter has a prefix.
PYTHON = shlex.split(os.environ.get("CHAPOLY_TEST_PYTHON", "")) or [sys.executable]
PACKAGE = Path(chapoly.__file__).parent


def without_native(folder: Path) -> Path:
    """A copy in this folder of the installed package, as an installation without a compiler leaves it."""
    package = shutil.copytree(
        PACKAGE,
        folder / "chapoly",
        ignore=shutil.ignore_patterns("_native.*.so", "_native.pyd", "_native.so"),
    )
    with (package / "_build.py").open("a", encoding="utf-8") as file:
        file.write("pure_by_choice = False\n")
    return package


def python(
    code: str, *options: str, package: Path = PACKAGE, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Runs the code in a new interpreter that finds this package; other CHAPOLY_ variables are unset."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CHAPOLY_")}
    # By hand, since -I ignores PYTHONPATH and -S the site-packages.
    code = f"import sys; sys.path.insert(0, {str(package.parent)!r})\n{code}"
    return subprocess.run(
        [*PYTHON, *options, "-c", code],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def prints(code: str, *options: str, package: Path = PACKAGE, **environment: str) -> str:
    """What the code prints; it must end well and say nothing on stderr."""
    done = python(code, *options, package=package, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def last_line(code: str, *options: str, package: Path = PACKAGE, **environment: str) -> str:
    """The last line on stderr of code that must fail with an exception."""
    done = python(code, *options, package=package, **environment)
    assert done.returncode == 1, done.stderr
    return done.stderr.strip().splitlines()[-1]
