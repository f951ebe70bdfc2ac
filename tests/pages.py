"""Pages of the documentation as programs: the Python blocks of a page are, in their order, one session.

A block with prompts shows what comes out, and that is compared. One without is code that the blocks after it,
and tests, may use.
"""

import doctest
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    line: int
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(text.count("\n", 0, m.start(1)), m[1]) for m in BLOCK.finditer(text)]


def session(page: Path, api: ModuleType) -> dict[str, Any]:
    """Runs the blocks of a page, and returns the names that they have defined."""
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        if ">>> " not in block.code:
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(block.code, names, page.stem, str(page), block.line)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=said.append, clear_globs=False)
        assert runner.failures == 0, "".join(said)
        names = test.globs
    return names
