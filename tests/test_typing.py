"""Type checkers accept what is right and reject what is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, blocks

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


def checked(tmp_path: Path, file: Path) -> str:
    shown = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--config-file="]
    return mypy(tmp_path, "mypy", *shown, str(file))


def test_right_use_is_accepted(tmp_path: Path) -> None:
    assert checked(tmp_path, SAMPLES / "accepted.py") == ""


def test_each_wrong_call_is_rejected(tmp_path: Path) -> None:
    lines = (SAMPLES / "rejected.py").read_text(encoding="utf-8").splitlines()
    expected = {
        i: found[1] for i, line in enumerate(lines, 1) if (found := re.search(r"  # ([a-z-]+)$", line))
    }
    errors = re.findall(
        r"^.*rejected\.py:(\d+): error: .*\[([a-z-]+)\]$", checked(tmp_path, SAMPLES / "rejected.py"), re.M
    )
    assert {int(line): code for line, code in errors} == expected


@pytest.mark.parametrize("page", sorted((DOCS / "recipes").glob("[!i]*.md")), ids=lambda page: page.stem)
def test_recipes_of_the_documentation_are_accepted(tmp_path: Path, page: Path) -> None:
    recipe = tmp_path / "recipe.py"
    recipe.write_text("\n\n".join(b.code for b in blocks(page) if ">>> " not in b.code), encoding="utf-8")
    assert checked(tmp_path, recipe) == ""


# A pure installation has nothing to compare; CI runs it on that as well as on native ones.
@pytest.mark.skipif(chapoly._backend.native is None, reason="this installation has no native module")
def test_the_native_module_has_the_types_of_pure(tmp_path: Path) -> None:
    assert "Success: no issues found" in mypy(tmp_path, "mypy.stubtest", "chapoly._native")
