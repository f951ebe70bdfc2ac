"""Type checkers accept what is right and reject what is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import chapoly

pytest.importorskip("mypy", reason="types are the same on every machine, and mypy is not on this one")

SAMPLES = Path(__file__).parent / "typing"


def mypy(tmp_path: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.stdout + done.stderr


def checked(tmp_path: Path, sample: str) -> str:
    shown = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--config-file="]
    return mypy(tmp_path, "mypy", *shown, str(SAMPLES / sample))


def test_right_use_is_accepted(tmp_path: Path) -> None:
    assert checked(tmp_path, "accepted.py") == ""


def test_each_wrong_call_is_rejected(tmp_path: Path) -> None:
    lines = (SAMPLES / "rejected.py").read_text(encoding="utf-8").splitlines()
    expected = {
        i: found[1] for i, line in enumerate(lines, 1) if (found := re.search(r"  # ([a-z-]+)$", line))
    }
    errors = re.findall(
        r"^.*rejected\.py:(\d+): error: .*\[([a-z-]+)\]$", checked(tmp_path, "rejected.py"), re.M
    )
    assert {int(line): code for line, code in errors} == expected


@pytest.mark.skipif(chapoly._backend.native is None, reason="this installation has no native module")
def test_the_native_module_has_the_types_of_pure(tmp_path: Path) -> None:
    assert "Success: no issues found" in mypy(tmp_path, "mypy.stubtest", "chapoly._native")
