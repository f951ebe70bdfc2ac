"""Every example that a reader might paste into a prompt gives what it says."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from entries import ENTRIES, MADE
from test_types import MODULES, flat

import chapoly.pure
import chapoly.testing

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
MANY = [name for name in ENTRIES if name.endswith(("_many", "_packed"))]


def run(name: str, text: str) -> int:
    """Runs the examples in a text; how many there were."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert results.failed == 0, "".join(said)
    return results.attempted


def public(api: ModuleType) -> dict[str, Any]:
    named = {"chapoly": api, "chapoly.testing": chapoly.testing, "use_kernel": chapoly.testing.use_kernel}
    named |= {module: getattr(api, module) for module in MODULES}
    implementation = chapoly.pure if api.kernel == "pure" else chapoly._backend.native
    return named | {name: flat(implementation, name) for name in (*ENTRIES, *MADE)}


def test_docstrings(api: ModuleType) -> None:
    examples = {name: run(name, inspect.getdoc(thing) or "") for name, thing in public(api).items()}
    lacking = [name for name in (*ENTRIES, *MADE) if not examples[name]]
    assert lacking == []


def test_docstrings_inside_the_readable_implementation() -> None:
    for found in pkgutil.iter_modules(chapoly.pure.__path__, "chapoly.pure."):
        module = importlib.import_module(found.name)
        results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert results.failed == 0
    assert doctest.testmod(chapoly.pure).failed == 0


@pytest.mark.usefixtures("api")
def test_upstream_examples() -> None:
    assert run("upstream", (HERE / "upstream_examples.txt").read_text(encoding="utf-8")) == 10


@pytest.mark.usefixtures("api")
def test_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    for block in blocks:
        if ">>> " in block:
            run("README", block)
        else:
            exec(compile(block, str(README), "exec"), {})
