"""Executes the arithmetic functions of src/native, as they stand there, on the words of words.py.

The source is preprocessed by gcc and parsed by pycparser; intrinsics are those of intrinsics.py, and inline
assembly is read instruction by instruction. Control flow must not depend on unknown values. After each
statement what the comment on its line states of the variables is compared with their intervals.
"""

from __future__ import annotations

import operator
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_parser
from words import Fault, Poly, Word, World, constant

HERE = Path(__file__).parent
BITS = {"uint128": 128, "uint64_t": 64, "uint32_t": 32, "uint8_t": 8}


class Vector(tuple[Word, ...]):
    """The lanes of a vector register, the lowest first."""


class Array(list[Any]):
    """An array, or the fields of a structure under its numbers."""


@dataclass
class Pointer:
    """An element of an array, or of a message, whose bytes are unknown."""

    to: Any
    at: int = 0

    def __add__(self, n: int) -> Pointer:
        """So many elements further on."""
        return Pointer(self.to, self.at + int(n))


class Message:
    """Bytes in memory, as little-endian words of 64 bits; all zero if it has no name."""

    def __init__(self, world: World, name: str = "", size: int = 1 << 62) -> None:
        self.world, self.name, self.size = world, name, size
        self.words: dict[int, Word] = {}

    def load64(self, at: int) -> Word:
        """The word at a multiple of 8."""
        if at % 8 or not 0 <= at <= self.size - 8:
            raise Fault(f"a load at {at} of {self.size} bytes")
        if at not in self.words:
            new = self.world.fresh(f"{self.name}{at}", 2**64 - 1) if self.name else self.world.known(0, 64)
            self.words[at] = new
        return self.words[at]


@dataclass
class Cut:
    """Where values become unknown ones of the same value mod p: after each turn of a loop, or at the end of a
    function. Lvalues with their weights and greatest values."""

    limbs: list[tuple[str, int, int]]
    loop: bool = False


class Return(Exception):  # noqa: N818
    """A value on its way out of a function."""


class Lvalue:
    """Where an expression can be assigned to."""

    def __init__(self, holder: Any, key: Any) -> None:
        self.holder, self.key = holder, key

    def get(self) -> Any:
        """The value; arrays become pointers."""
        try:
            value = self.holder[self.key]
        except IndexError:
            raise Fault("outside of an array") from None
        return Pointer(value) if isinstance(value, Array | Message) else value

    def set(self, value: Any) -> None:
        """Assigns, in the type of what was there."""
        if isinstance(self.key, int) and not 0 <= self.key < len(self.holder):
            raise Fault("outside of an array")
        self.holder[self.key] = value


def take_balanced(text: str, at: int) -> int:
    """The end of the parenthesis that begins there."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise AssertionError("unbalanced")


def preprocess(path: Path, defines: list[str]) -> str:
    """The source without GNU extensions; each asm becomes ASM("its text")."""
    command = ["gcc", "-E", "-nostdinc", "-I", str(HERE / "stubs"), *defines, str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"^#pragma.*$", "", text, flags=re.M).replace("unsigned __int128", "unsigned long")
    text = re.sub(r"__extension__|__inline__", "", text)
    for word in ("__attribute__", "__asm__"):
        while found := re.search(rf"{word}\s*(__volatile__)?\s*\(", text):
            end = take_balanced(text, found.end() - 1)
            inner = text[found.end() : end - 1]
            quoted = inner.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            text = text[: found.start()] + (f'ASM("{quoted}")' if word == "__asm__" else "") + text[end:]
    return text


NUMBER = re.compile(r"[\d.^*+\-() ]+")
CLAIM = re.compile(r"^((?:[\w\[\].]+(?:, )?)*) ?(?=<)")
BOUND = re.compile(r"(<=|<) (\d[\d.^*+() ]*)(?![a-z]\d?\b)(?=[<a-zA-Z,:]|$)")  # not of variables


def greatest(comparison: str, bound: str) -> int:
    """The greatest integer that a stated bound allows."""
    text = NUMBER.match(bound)
    assert text
    value = Fraction(0)
    for term in text[0].strip(" .").split(" + "):
        product = Fraction(1)
        for factor in term.split(" * "):
            base, _, exponent = factor.strip(" ()").partition("^")
            if "." in exponent:
                product *= Fraction(2 ** float("0." + exponent.split(".")[1])) * 2 ** int(
                    exponent.split(".")[0]
                )
            else:
                product *= Fraction(base) ** int(exponent or 1)
        value += product
    return value.__ceil__() - 1 if comparison == "<" else value.__floor__()


def claims(comment: str) -> list[tuple[list[str], int]]:
    """What a comment states: names, none for the variables of its line, and their greatest value."""
    out = []
    for part in re.split(
        r"; |: |, and | for |, (?=<)|(?<=\d), (?=[a-z][\w\[\]]*(?:, [a-z][\w\[\]]*)* <)", comment
    ):
        part = part.strip()
        if (found := CLAIM.match(part)) and (bound := BOUND.search(part)):
            names = []
            for name in found[1].split(", ") if found[1] else []:
                if dots := re.fullmatch(r"(\w+?)\[?(\d)\.\.(?:\w+?)?(\d)\]?", name):
                    bracket = "[{}]" if "[" in name else "{}"
                    names += [dots[1] + bracket.format(i) for i in range(int(dots[2]), int(dots[3]) + 1)]
                else:
                    names.append(name)
            out.append((names, greatest(bound[1], bound[2])))
    return out


class Interpreter:
    """One translation unit, and what was proved on the way."""

    def __init__(
        self, world: World, path: Path, defines: list[str], builtins: dict[str, Callable[..., Any]]
    ) -> None:
        self.world, self.builtins = world, builtins
        self.lines: dict[str, list[str]] = {}
        self.functions: dict[str, c_ast.FuncDef] = {}
        self.types: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}
        self.cuts: dict[str, Cut] = {}
        self.checked: set[tuple[str, int]] = set()
        self.name = ""
        self.unit = c_parser.CParser().parse(preprocess(path, defines), str(path))
        for item in self.unit.ext:
            if isinstance(item, c_ast.FuncDef):
                self.functions[item.decl.name] = item
            elif isinstance(item, c_ast.Typedef):
                self.types[item.name] = item.type
            elif isinstance(item, c_ast.Decl):
                if isinstance(item.type, c_ast.Struct):
                    self.types["struct " + item.type.name] = item.type
                elif isinstance(item.type, c_ast.Enum):
                    self.enumerate(item.type, self.globals)
                elif item.name and item.init:
                    self.declare(item, self.globals)

    # ---- Types. ----

    def enumerate(self, enum: c_ast.Enum, scope: dict[str, Any]) -> None:
        """Constants."""
        value = -1
        for e in enum.values.enumerators:
            value = int(self.value(e.value, scope)) if e.value else value + 1
            scope[e.name] = value

    def make(self, kind: Any, init: Any, scope: dict[str, Any]) -> Any:
        """An object of a type, from an initialiser, a value or nothing."""
        if isinstance(kind, c_ast.ArrayDecl):
            n = int(self.value(kind.dim, scope)) if kind.dim else len(init.exprs)
            if self.base(kind.type) == "uint8_t" and init is None:
                return Message(self.world, size=n)  # zeros: the only such arrays
            inits = list(init.exprs) if isinstance(init, c_ast.InitList) else []
            return Array(self.make(kind.type, inits[i] if i < len(inits) else None, scope) for i in range(n))
        name = self.base(kind)
        if name in self.types and name not in BITS:
            return self.make(self.types[name], init, scope)
        inner = kind.type if isinstance(kind, c_ast.TypeDecl) else kind
        if isinstance(inner, c_ast.Struct) and isinstance(kind, c_ast.TypeDecl | c_ast.Struct):
            struct = inner if inner.decls else self.types["struct " + inner.name]
            if init is not None and not isinstance(init, c_ast.InitList):
                return self.copy(self.value(init, scope))
            inits = list(init.exprs) if init else []
            return {
                d.name: self.make(d.type, inits[i] if i < len(inits) else None, scope)
                for i, d in enumerate(struct.decls)
            }
        if init is None:
            return None
        return self.copy(self.convert(kind, self.value(init, scope)))

    def copy(self, value: Any) -> Any:
        """Structures are values."""
        if isinstance(value, dict):
            return {k: self.copy(v) for k, v in value.items()}
        return Array(map(self.copy, value)) if isinstance(value, Array) else value

    def base(self, kind: Any) -> str:
        """The name of a type, or nothing."""
        while isinstance(kind, c_ast.TypeDecl | c_ast.Typename):
            kind = kind.type
        return " ".join(kind.names) if isinstance(kind, c_ast.IdentifierType) else ""

    def convert(self, kind: Any, value: Any) -> Any:
        """In the type that is declared; int and size_t are Python's integers."""
        name = self.base(kind)
        if name in BITS and isinstance(value, int):
            return self.world.known(value, BITS[name])
        if name in BITS and isinstance(value, Word):
            return self.world.cast(value, BITS[name])
        if name in ("int", "size_t", "unsigned") and isinstance(value, Word):
            return int(value)
        return value

    def declare(self, decl: c_ast.Decl, scope: dict[str, Any]) -> None:
        """A variable, or a type within a function."""
        scope[decl.name] = self.make(decl.type, decl.init, scope)
        scope["type of " + decl.name] = decl.type

    # ---- Expressions. ----

    def lvalue(self, e: Any, scope: dict[str, Any]) -> Lvalue:
        """Where it is."""
        if isinstance(e, c_ast.ID):
            return Lvalue(scope if e.name in scope else self.globals, e.name)
        if isinstance(e, c_ast.ArrayRef):
            p = self.value(e.name, scope) + int(self.value(e.subscript, scope))
            return Lvalue(p.to, p.at)
        if isinstance(e, c_ast.StructRef):
            holder = self.value(e.name, scope)
            if isinstance(holder, Pointer):
                holder = holder.to[holder.at] if isinstance(holder.to, Array) else holder.to
            return Lvalue(holder, e.field.name)
        if isinstance(e, c_ast.UnaryOp) and e.op == "*":
            p = self.value(e.expr, scope)
            return Lvalue(p.to, p.at)
        if isinstance(e, c_ast.CompoundLiteral):
            return Lvalue(Array([self.make(e.type.type, e.init, scope)]), 0)
        raise Fault(f"{e.coord}: not an lvalue that is known here")

    def value(self, e: Any, scope: dict[str, Any]) -> Any:
        """What an expression has for a value."""
        if isinstance(e, c_ast.Constant):
            digits = e.value.rstrip("uUlL")
            suffix = e.value[len(digits) :].lower()
            number = int(digits, 0) if digits.isalnum() else 0
            return self.world.known(number, 64 if "l" in suffix else 32) if suffix else number
        if isinstance(e, c_ast.ID | c_ast.ArrayRef | c_ast.StructRef | c_ast.CompoundLiteral):
            if isinstance(e, c_ast.ID) and e.name not in scope and e.name not in self.globals:
                return e.name  # a function
            return self.lvalue(e, scope).get()
        if isinstance(e, c_ast.ExprList):
            return [self.value(x, scope) for x in e.exprs][-1]
        if isinstance(e, c_ast.Cast):
            return self.convert(e.to_type.type, self.value(e.expr, scope))
        if isinstance(e, c_ast.Assignment):
            return self.assign(e, scope)
        if isinstance(e, c_ast.TernaryOp):
            return self.value(e.iftrue if int(self.value(e.cond, scope)) else e.iffalse, scope)
        if isinstance(e, c_ast.UnaryOp):
            return self.unary(e, scope)
        if isinstance(e, c_ast.FuncCall):
            args = [self.value(a, scope) for a in e.args.exprs] if e.args else []
            if e.name.name == "ASM":
                return self.assembly(e.args.exprs[0].value[1:-1], scope)
            return self.call(e.name.name, args)
        if isinstance(e, c_ast.BinaryOp):
            if e.op in ("&&", "||"):
                left = bool(int(self.value(e.left, scope)))
                return left if left == (e.op == "||") else bool(int(self.value(e.right, scope)))
            return self.binary(e.op, self.value(e.left, scope), self.value(e.right, scope))
        raise Fault(f"{e.coord}: {type(e).__name__} is not known here")

    def unary(self, e: c_ast.UnaryOp, scope: dict[str, Any]) -> Any:
        """Of one operand."""
        if e.op == "&":
            place = self.lvalue(e.expr, scope)
            if isinstance(place.holder, Array | list):
                return Pointer(place.holder, place.key)
            inner = place.holder[place.key]
            return Pointer(inner if isinstance(inner, dict | Array) else place.holder, place.key)
        if e.op == "*":
            return self.lvalue(e, scope).get()
        if e.op == "sizeof":
            return 0  # of what is wiped
        if e.op in ("++", "--", "p++", "p--"):
            place = self.lvalue(e.expr, scope)
            old = place.get()
            place.set(old + (1 if "+" in e.op else -1))
            return old if e.op[0] == "p" else place.get()
        x = self.value(e.expr, scope)
        if e.op == "~" and isinstance(x, Word):
            return self.world.known(~int(x), x.bits)
        unary: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "~": operator.invert, "!": operator.not_}
        return unary[e.op](x)

    def binary(self, op: str, x: Any, y: Any) -> Any:
        """Of two: of integers, or in words as wide as the wider one."""
        if isinstance(x, Pointer):
            return x + int(y)
        if op in ("<<", ">>") and isinstance(x, Word):
            return (self.world.left if op == "<<" else self.world.right)(x, int(y))
        if not isinstance(x, Word) and not isinstance(y, Word):
            return INTEGERS[op](x, y)
        bits = max(w.bits for w in (x, y) if isinstance(w, Word))
        x, y = (
            self.world.cast(w, bits) if isinstance(w, Word) else self.world.known(int(w), bits)
            for w in (x, y)
        )
        w = self.world
        if op in ("==", "!=", "/", "%"):
            return INTEGERS[op](int(x), int(y))
        if op == "<" and x.low == x.high and y.low == y.high:
            return int(x) < int(y)
        if op in (">", "<=", ">="):
            return INTEGERS[op](int(x), int(y))
        return {"+": w.add, "-": w.subtract, "*": w.multiply, "&": w.both, "|": w.either, "<": w.less}[op](
            x, y
        )

    def assign(self, e: c_ast.Assignment, scope: dict[str, Any]) -> Any:
        """=, or an operation with what is there."""
        place = self.lvalue(e.lvalue, scope)
        value = self.value(e.rvalue, scope)
        old = (
            place.holder[place.key]
            if not isinstance(place.holder, dict) or place.key in place.holder
            else None
        )
        if e.op != "=":
            value = self.binary(e.op[:-1], old, value)
        if isinstance(old, Word) and isinstance(value, Word | int):
            value = (
                self.world.known(value, old.bits)
                if isinstance(value, int)
                else self.world.cast(value, old.bits)
            )
        elif isinstance(e.lvalue, c_ast.ID) and "type of " + e.lvalue.name in scope:
            value = self.convert(scope["type of " + e.lvalue.name], value)
        place.set(self.copy(value))
        return value

    # ---- Assembly: additions with the carry flag, and products, of x86-64 and AArch64. ----

    def assembly(self, text: str, scope: dict[str, Any]) -> None:
        """One asm statement."""
        text = text.encode().decode("unicode_escape")
        template, *rest = re.split(r"(?<!:):(?!:)", text)
        operands = []
        for part in rest[:2]:
            for match in re.finditer(r'"[^"]*"\s*\(', part):
                inner = part[match.end() - 1 : take_balanced(part, match.end() - 1)]
                parsed = c_parser.CParser().parse(
                    "typedef int uint64_t; typedef int uint128; void f(void) { x = " + inner + "; }"
                )
                operands.append(parsed.ext[-1].body.block_items[0].rvalue)
        code = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', template)).encode().decode("unicode_escape")
        if not code:  # it only keeps values where they are
            return
        values = operands
        inputs: dict[int, Word] = {}

        def read(name: str) -> Word:
            if name == "xzr":
                return self.world.known(0, 64)
            n = int(name.strip("%"))
            if n not in inputs:
                value = self.value(values[n], scope)
                inputs[n] = self.convert(U64, value)
            return inputs[n]

        def write(name: str, word: Word) -> None:
            n = int(name.strip("%"))
            inputs[n] = word
            self.lvalue(values[n], scope).set(word)

        # Inputs are read before anything is written, as registers are.
        for n in re.findall(r"%\d", code):
            if isinstance(self.value(values[int(n[1:])], scope), Word | int):
                read(n)
        carry = self.world.known(0, 64)
        for line in re.split(r"\n\t?|\\n\\t", code):
            name, args = line.strip().split(" ", 1)
            a = args.split(", ")
            if name in ("addq", "adcq"):
                a = [a[1], a[1], a[0]]
            if name in ("mul", "umulh"):
                x, y = read(a[1]), read(a[2])
                wide = self.world.multiply(self.world.cast(x, 128), self.world.cast(y, 128))
                wide = self.world.right(wide, 64) if name == "umulh" else wide
                write(a[0], self.world.cast(wide, 64))
                continue
            total = self.world.add(read(a[1]), read(a[2]))
            out = total
            over = total.carry[2] if total.carry else constant(0)
            if name in ("adcq", "adc", "adcs"):
                out = self.world.add(total, carry)
                over = over.plus(out.carry[2]) if out.carry else over
            elif name not in ("addq", "adds"):
                raise Fault(f"instruction {name}")
            carry = self.world.word(over, 0, 1, 64)
            write(a[0], out)

    # ---- Statements. ----

    def call(self, name: str, args: list[Any]) -> Any:
        """A function of the source, or one that is given."""
        if name in self.builtins:
            return self.builtins[name](*args)
        if name not in self.functions:
            raise Fault(f"{name} is not modelled")
        function = self.functions[name]
        scope: dict[str, Any] = {}
        parameters = function.decl.type.args.params if function.decl.type.args else []
        for p, a in zip(parameters, args, strict=False):
            scope[p.name] = self.convert(p.type, self.copy(a))
        outer, self.name = self.name, name
        result = None
        try:
            self.execute(function.body, scope)
        except Return as found:
            result = found.args[0]
        if name in self.cuts and not self.cuts[name].loop:
            self.cut(self.cuts[name], scope)
        self.name = outer
        return self.convert(function.decl.type.type, result)

    def execute(self, s: Any, scope: dict[str, Any]) -> None:
        """One statement."""
        if s is None or isinstance(s, c_ast.Pragma | c_ast.EmptyStatement):
            return
        if isinstance(s, c_ast.Compound):
            items = s.block_items or []
            for i, item in enumerate(items):
                self.execute(item, scope)
                if i + 1 == len(items) or items[i + 1].coord.line != item.coord.line:
                    self.check_line([x for x in items[: i + 1] if x.coord.line == item.coord.line], scope)
        elif isinstance(s, c_ast.Decl):
            if isinstance(s.type, c_ast.Enum):
                self.enumerate(s.type, scope)
            elif "static" not in s.storage or s.name not in scope:
                self.declare(s, scope)
        elif isinstance(s, c_ast.DeclList):
            for d in s.decls:
                self.declare(d, scope)
        elif isinstance(s, c_ast.If):
            taken = s.iftrue if int(self.value(s.cond, scope)) else s.iffalse
            self.execute(taken, scope)
        elif isinstance(s, c_ast.For | c_ast.While):
            self.loop(s, scope)
        elif isinstance(s, c_ast.Return):
            raise Return(self.value(s.expr, scope) if s.expr else None)
        else:
            self.value(s, scope)

    def loop(self, s: Any, scope: dict[str, Any]) -> None:
        """for and while."""
        if isinstance(s, c_ast.For):
            self.execute(s.init, scope)
        cut = self.cuts.get(self.name)
        outermost = cut is not None and cut.loop and isinstance(s.cond, c_ast.BinaryOp) and s.init is None
        while int(self.value(s.cond, scope)):
            self.execute(s.stmt, scope)
            self.check_line([s.stmt], scope)
            if cut and outermost:
                self.cut(cut, scope)
            if isinstance(s, c_ast.For) and s.next:
                self.value(s.next, scope)

    def place(self, text: str, scope: dict[str, Any]) -> Lvalue:
        """The lvalue that a text names."""
        parsed = c_parser.CParser().parse("void f(void) { " + text + "; }")
        return self.lvalue(parsed.ext[0].body.block_items[0], scope)

    def cut(self, cut: Cut, scope: dict[str, Any]) -> None:
        """Replaces values; vectors lane by lane."""
        places = [(self.place(text, scope), weight, high) for text, weight, high in cut.limbs]
        values = [p.get() for p, _, _ in places]
        if isinstance(values[0], Vector):
            lanes = [
                self.world.cut(
                    [(w, v[lane], high) for v, (_, w, high) in zip(values, places, strict=True)], self.name
                )
                for lane in range(len(values[0]))
            ]
            for i, (place, _, _) in enumerate(places):
                place.set(Vector(lane[i] for lane in lanes))
        else:
            limbs = [(w, v, high) for v, (_, w, high) in zip(values, places, strict=True)]
            for word, (place, _, _) in zip(self.world.cut(limbs, self.name), places, strict=True):
                place.set(word)

    # ---- What the comments state. ----

    def check_line(self, statements: list[Any], scope: dict[str, Any]) -> None:
        """The comment at the end of a statement's line, if the statement ends there."""
        coord = statements[-1].coord
        if not Path(coord.file).is_file():
            return
        lines = self.lines.setdefault(coord.file, Path(coord.file).read_text().split("\n"))
        line = lines[coord.line - 1]
        comment = re.search(r"[;,] +/\* (.*?) ?\*/$", line)
        if not comment or (line.count(";") == 0 and "CARRY" not in line):
            return
        stated, targets = claims(comment[1]), [t for s in statements for t in assigned(s)]
        if len(stated) == len(targets) and not any(names for names, _ in stated):
            stated = [([name], high) for name, (_, high) in zip(targets, stated, strict=True)]
        for names, high in stated:
            for name in names or targets:
                try:
                    value = self.place(name, scope).get()
                except (KeyError, Fault):
                    continue
                for word in value if isinstance(value, Vector) else [value]:
                    if isinstance(word, Word) and word.high > high:
                        raise Fault(
                            f"{Path(coord.file).name}:{coord.line}: {name} may be {word.high:#x} > {high:#x}"
                        )
                    self.checked.add((coord.file, coord.line))


def assigned(s: Any) -> list[str]:
    """The plain names that a statement declares or assigns."""
    if isinstance(s, c_ast.Decl):
        return [s.name]
    if isinstance(s, c_ast.Assignment) and isinstance(s.lvalue, c_ast.ID):
        return [s.lvalue.name]
    return []


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
U64 = c_ast.TypeDecl(None, None, None, c_ast.IdentifierType(["uint64_t"]))


def value_mod_p(world: World, h: Array) -> Poly:
    """h[0] + 2^64 h[1] + 2^128 h[2], reduced."""
    total = constant(0)
    for i, word in enumerate(h):
        total = total.plus(word.poly, 2 ** (64 * i))
    return world.reduce(total)
