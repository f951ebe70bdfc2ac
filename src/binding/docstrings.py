"""Writes a C header with the docstrings and signatures of chapoly.pure: docstrings.py OUTPUT PURE_FILE...

A function f of pure/m.py becomes DOC_m_f, a class C DOC_C, its method m DOC_C_m (inherited ones too). The
files are read with ast and never imported.
"""

import ast
import copy
import inspect
import sys
from pathlib import Path

Function = ast.FunctionDef

HEADER = """\
/* Written by docstrings.py from chapoly.pure. */
#ifndef CHAPOLY_DOCSTRINGS_H
#define CHAPOLY_DOCSTRINGS_H
"""


def signature(function: Function, *, bound: str | None) -> str:
    """The parameters without annotations; `bound`, if not None, stands for the first (self or the class)."""
    arguments = copy.deepcopy(function.args)
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    names = ast.unparse(arguments).split(", ", 1) if bound is not None else [ast.unparse(arguments)]
    if bound is not None:
        names[:1] = [bound] if bound else []
    return "(" + ", ".join(name for name in names if name) + ")"


def is_decorated(function: Function, name: str) -> bool:
    """Whether the function has this decorator."""
    return any(ast.unparse(decorator).split(".")[-1] == name for decorator in function.decorator_list)


def functions_of(body: list[ast.stmt]) -> dict[str, Function]:
    """The functions defined in a module or class, without the overloads that only type checkers read."""
    return {f.name: f for f in body if isinstance(f, Function) and not is_decorated(f, "overload")}


def documented(name: str, parameters: str, node: Function | ast.ClassDef) -> str:
    """The text from which CPython takes both __text_signature__ and __doc__."""
    return f"{name}{parameters}\n--\n\n{inspect.cleandoc(ast.get_docstring(node, clean=False) or '')}"


def methods_of(name: str, classes: dict[str, ast.ClassDef]) -> dict[str, Function]:
    """The methods of a class and of its bases in pure."""
    if name not in classes:
        return {}
    methods: dict[str, Function] = {}
    for base in reversed(classes[name].bases):
        methods |= methods_of(ast.unparse(base).split(".")[-1], classes)
    return methods | functions_of(classes[name].body)


def c_string(text: str) -> str:
    """A C string literal, a line of text to a line."""
    escaped = (
        "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in line.encode())
        for line in text.splitlines(keepends=True)
    )
    return " \\\n    ".join(f'"{line}"' for line in escaped)


def main(output: str, *inputs: str) -> None:
    """Reads the inputs and writes the header."""
    modules = {Path(file).stem: ast.parse(Path(file).read_text(encoding="utf-8")) for file in inputs}
    texts: dict[str, str] = {}
    classes = {c.name: c for tree in modules.values() for c in tree.body if isinstance(c, ast.ClassDef)}
    for module, tree in modules.items():
        for name, function in functions_of(tree.body).items():
            texts[f"{module}_{name}"] = documented(name, signature(function, bound=None), function)
    for name, node in classes.items():
        methods = methods_of(name, classes)
        constructor = methods.get("__init__") or methods.get("__new__")
        texts[name] = documented(name, signature(constructor, bound="") if constructor else "()", node)
        for method, function in methods.items():
            static = is_decorated(function, "staticmethod")
            parameters = signature(function, bound=None if static else "$self")
            texts[f"{name}_{method}"] = documented(method, parameters, function)
    lines = [f"#define DOC_{name} \\\n    {c_string(text)}\n" for name, text in sorted(texts.items())]
    Path(output).write_text(HEADER + "".join(lines) + "#endif\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
