"""How Sphinx builds these pages: make docs. It needs no network, and what it writes asks for none either."""

import os
import re
from typing import Any

# Both implementations have the same docstrings. pure is in every installation, and its signatures have types.
os.environ["CHAPOLY_KERNEL"] = "pure"

from sphinx.pycode import ModuleAnalyzer

import chapoly

project = "chapoly"
author = "The chapoly authors"
copyright = author
version = release = chapoly.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # b"" is code wherever it stands
default_role = "literal"  # docstrings have one backtick on each side
pygments_style, pygments_dark_style = "friendly", "monokai"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"chapoly {release}"
html_static_path = ["_static"]
html_css_files = ["chapoly.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def paragraphs(*event: Any) -> None:
    """Docstrings are written for a terminal. Here their examples lose their indentation, and a line that
    begins with Raises or Returns begins a paragraph.
    """
    lines: list[str] = event[-1]
    text: list[str] = []
    for line in lines:
        if re.match(r"(Raises|Returns) ", line) and text and text[-1].endswith((".", ":")):
            text.append("")
        text.append(line.removeprefix("    "))
    lines[:] = text


def order_members() -> None:
    """Tells autodoc the order of the source; it would look in the module's own file, where no type is."""
    order = ModuleAnalyzer.for_module("chapoly")
    order.analyze()
    for name, kind in vars(chapoly).items():
        if isinstance(kind, type):
            members = sorted(
                vars(kind).items(), key=lambda member: callable(member[1])
            )  # constants come first
            order.tagorder |= {f"{name}.{member}": i for i, (member, _) in enumerate(members)}


def setup(app: Any) -> None:
    """Called by Sphinx."""
    order_members()
    app.connect("autodoc-process-docstring", paragraphs)
