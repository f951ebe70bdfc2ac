"""The pages of the documentation: their examples run, and no public name is missing."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
import test_types
from pages import DOCS, blocks, session

# tests/migrating runs the examples that need other libraries, and a command writes benchmarks.
ELSEWHERE = {"migrating", "benchmarks"}
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in ELSEWHERE]
MODULES = {f"chapoly.{name}" for name in test_types.MODULES}


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=name)
def test_examples(api: ModuleType, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    session(page, api)


def test_guide_and_recipes_have_examples() -> None:
    lacking = [
        name(page)
        for page in PAGES
        if page.parent.name in ("guide", "recipes") and page.stem != "index" and not blocks(page)
    ]
    assert lacking == []


def test_no_block_of_python_escapes() -> None:
    """Every block marked as Python is run: none is indented, or has another mark that only looks like it."""
    for page in DOCS.rglob("*.md"):
        fences = re.findall(r"^.*```+ *\{?(?:code-block\} *)?py.*$", page.read_text(encoding="utf-8"), re.M)
        assert fences == ["```python"] * len(blocks(page)), name(page)


def test_every_public_name_has_its_entry(api: ModuleType) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md")))
    said: list[str] = []
    for kind, entry, options in re.findall(r"^\.\. (?:auto|py:)(\w+):: (\S+)\n((?:   :.*\n)*)", text, re.M):
        if kind == "module" and ":members:" in options:  # all that is in its __all__
            said += [f"{entry}.{public}" for public in importlib.import_module(entry).__all__]
        elif kind != "module":
            said.append(entry)
        if kind == "class":  # with its methods and its constants
            assert ":members:" in options, entry
            assert ":undoc-members:" in options, entry
    there = {f"chapoly.{name}" for name in (*api.__all__, "testing.use_kernel")} - MODULES
    there |= {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}
    assert sorted(said) == sorted(there)
