"""Python files as trees of classes and functions.

Every line that is not blank lies in one leaf: a function, a class without functions, or what is left of a module
or a class beside its definitions. What is left becomes no node when it is imports, comments and a docstring that
the description repeats in full.

What is left of a module or class becomes no leaf when it is imports, comments and a docstring that the description
repeats in full: an option that answers nothing costs a router attention in every file.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from metatree._util.normal_form import most_marks
from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.code._owned_lines import OwnedLines
from metatree_memory_tools.text.descriptions import (
    docstring_prose,
    first_sentence,
    is_whole,
    shorten,
    with_names,
)
from metatree_memory_tools.text.plain import PlainText
from metatree_memory_tools.text.text_files import TextFiles
from metatree_memory_tools.text.unique_names import UniqueNames, prefix_of

if TYPE_CHECKING:
    from metatree.tools.tool import ToolGroup

SIGNATURE_CHARS = 160
"""How much of a signature a description shows."""

_MOST_WORDS = 250_000
"""Of a longer file no tree is made: for two megabytes of the shortest statements it takes as many gigabytes."""
_OF_NAME = r"[^\x00-/:-@\[-^`{-\x7f\s]"
"""A sign that a name may have: Python takes some that are no letters by `\\w`, such as `℘`."""
_LONG_NAME = re.compile(rf"\.(?:[\s\\]*+{_OF_NAME}++[\s\\]*+\.){{499}}")
"""CPython's parser keeps each beginning of the dotted name of an import: 120 kB of `a.a.a…` take 4 GB.

It begins with a dot and not with the first name: texts are searched for one character at the speed of memory.
"""
_MOST_MARKS = 100
"""Combining marks in a row: of a name with 60,000 Python takes 11 s, and the square of it for more (NFKC)."""
_WORD = re.compile(r"\w+|[^\w\s]")

_COLON = re.compile(r"\s*:\s*(@.*)?$")
"""What ends a signature."""
_BLANKS = re.compile(r"([(\[]) | ([)\]])|,? (?=\))")
"""Blanks in brackets, where a signature stood in several lines."""

_COMMENT_LINES = 20
"""More comment lines than this beside the definitions make a node of their own."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
_WITH_BLOCKS: tuple[type[ast.AST], ...] = (*ast.stmt.__subclasses__(), ast.ExceptHandler, ast.match_case)
_BLOCKS = {
    kind: tuple(name for name in ("body", "orelse", "finalbody", "handlers", "cases") if name in kind._fields)
    for kind in _WITH_BLOCKS
}
"""The fields of a statement that hold others."""


class PythonCode(TextFiles):
    """Python source, by its syntax tree; what does not parse is plain text."""

    name = "python"
    version = "3"

    @property
    def tools(self) -> tuple[ToolGroup, ...]:
        """The tool tree of its nodes."""
        from metatree_memory_tools.code._tools import CODE_TOOLS  # loads pydantic, which no build needs

        return CODE_TOOLS

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as Python source does, or the first line calls for Python."""
        if path.endswith((".py", ".pyi", ".pyw")):
            return True
        first = head.split(b"\n", 1)[0]
        return "." not in path.rpartition("/")[2] and first.startswith(b"#!") and b"python" in first

    def outline(self, file: SourceFile) -> Outline:
        """Return the definitions of a file; a file that does not parse is one piece of text with a note."""
        try:
            if len(file.text) > _MOST_WORDS and sum(1 for _ in _WORD.finditer(file.text)) > _MOST_WORDS:
                raise ValueError(f"more than {_MOST_WORDS:,} words and signs")
            if _LONG_NAME.search(file.text):
                raise ValueError("a name of more than 500 parts")
            if most_marks(file.text) > _MOST_MARKS:
                raise ValueError(f"more than {_MOST_MARKS} combining marks in a row")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = ast.parse(file.text)
            return _ModuleReader(file).outline(module)
        except SyntaxError as exc:
            problem = f"not valid Python: {exc.msg}" + (f" (line {exc.lineno})" if exc.lineno else "")
        except (ValueError, RecursionError, MemoryError, OverflowError) as exc:
            problem = f"not readable as Python: {str(exc) or type(exc).__name__}"
        plain = PlainText().outline(file)
        attributes = {**plain.attributes, "language": "python", "note": problem}
        return Outline(
            description=plain.description, parts=plain.parts, attributes=attributes, problem=problem
        )


@dataclass
class _ModuleReader:
    """One file while it is read."""

    file: SourceFile
    names: UniqueNames = field(default_factory=partial(UniqueNames, "@"))

    def __post_init__(self) -> None:
        self.lines = self.file.lines
        self.owned = OwnedLines(self.lines)

    def outline(self, module: ast.Module) -> Outline:
        docstring = _docstring(module.body)
        summary = first_sentence(docstring_prose(docstring))
        definitions = list(_definitions(module.body))
        parts = self.parts(definitions, "", 1, len(self.lines))
        description = self._describe_module(module, summary, definitions)
        attributes = {"language": "python", "lines": len(self.lines)}
        if summary:
            attributes["summary"] = summary
        if parts:
            left = self.owned.left(1, len(self.lines))
            if left and not self._trivial(module.body, left, docstring, summary):
                parts = (self._remainder("", f"{self.file.name} (module level)", module.body, left), *parts)
        return Outline(
            description=description,
            parts=parts,
            attributes=attributes,
            summary=summary,
            imports=tuple(_imports(module)),
        )

    def parts(
        self, definitions: Sequence[_Definition], prefix: str, first: int, last: int
    ) -> tuple[OutlinePart, ...]:
        """Return the nodes of some definitions in order, and mark their lines as owned."""
        outline_parts = []
        below = first - 1
        for node in definitions:
            start, end = self._range(node, below)
            part = self._part(node, prefix, start, end)
            self.owned.own(start, end)
            below = end
            outline_parts.append(part)
        return tuple(outline_parts)

    def _range(self, node: _Definition, below: int) -> tuple[int, int]:
        """Return the lines of a definition, with its decorators and the comment right above it."""
        start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        start = max(start, below + 1)
        top = start
        indent = self.lines[start - 1][: len(self.lines[start - 1]) - len(self.lines[start - 1].lstrip())]
        while top - 1 > below and self.lines[top - 2].startswith(indent + "#"):
            top -= 1
        return (start if top == 1 else top), max(start, node.end_lineno or start)

    def _part(self, node: _Definition, prefix: str, start: int, end: int) -> OutlinePart:
        qualified = self.names.take(f"{prefix}{node.name}")
        docstring = _docstring(node.body)
        summary = first_sentence(docstring_prose(docstring))
        signature = self._signature(node)
        attributes: dict[str, object] = {
            "language": "python",
            "name": node.name,
            "type": "class" if isinstance(node, ast.ClassDef) else "method" if prefix else "function",
            "signature": signature,
        }
        if summary:
            attributes["summary"] = summary
        description = shorten(signature, SIGNATURE_CHARS)
        if summary:
            description = f"{description} — {summary}"
        parts: tuple[OutlinePart, ...] = ()
        if isinstance(node, ast.ClassDef):
            inner = list(_definitions(node.body))
            names = list(dict.fromkeys(item.name for item in inner))
            description = with_names(description, "Methods", [name for name in names if not _dunder(name)])
            if inner:
                parts = self.parts(inner, prefix_of(qualified), start, end)
                left = self.owned.left(start, end)
                if not self._trivial(node.body, left, docstring, summary):
                    title = f"{qualified} (class level)"
                    parts = (self._remainder(qualified, title, node.body, left), *parts)
        return OutlinePart(
            id=f"::{qualified}",
            title=qualified,
            description=description,
            kind="definition",
            start_line=start,
            end_line=end,
            parts=parts,
            attributes=attributes,
        )

    def _trivial(self, body: Sequence[ast.stmt], left: list[int], docstring: str, summary: str) -> bool:
        """Whether what is left says nothing that is not said elsewhere."""
        if docstring and not is_whole(summary, docstring):
            return False
        if any(not _is_empty_statement(statement) for statement in body):
            return False
        comments = sum(self.lines[line - 1].lstrip().startswith("#") for line in left)
        return comments <= _COMMENT_LINES

    def _remainder(
        self, qualified: str, title: str, body: Sequence[ast.stmt], left: list[int]
    ) -> OutlinePart:
        name = f"::{qualified}.<class>" if qualified else "::<module>"
        names = list(_assigned(body))
        what = first_sentence(docstring_prose(_docstring(body)))
        description = with_names(what, "Sets", names) if names else what
        if not description:
            line = next((self.lines[n - 1] for n in left if not self._import_or_comment(n)), "")
            description = shorten(line or self.lines[left[0] - 1], 200)
        return OutlinePart(
            id=name,
            title=title,
            description=description,
            start_line=left[0],
            end_line=left[-1],
            ranges=tuple(self.owned.ranges(left)),
            attributes={"language": "python", "type": "remainder"},
        )

    def _import_or_comment(self, line: int) -> bool:
        return self.lines[line - 1].lstrip().startswith(("#", "import ", "from "))

    def _signature(self, node: _Definition) -> str:
        """Return the head of a definition in one line, without decorators and colon."""
        body = node.body[0]
        last = min(body.lineno, len(self.lines))
        head = self.lines[node.lineno - 1 : last]
        if body.lineno == node.lineno:
            line = head[-1].encode()
            head = [line[node.col_offset : body.col_offset].decode(errors="replace")]
        else:
            head = head[:-1]
        text = " ".join(" ".join(head).split())
        if "#" in text or "\\" in text:
            text = _unparsed(node)
        text = _COLON.sub("", text)
        return _BLANKS.sub(lambda m: m[1] or m[2] or "", text).replace(",)", ")")

    def _describe_module(self, module: ast.Module, summary: str, definitions: Iterable[_Definition]) -> str:
        classes = [node.name for node in definitions if isinstance(node, ast.ClassDef)]
        functions = [node.name for node in definitions if not isinstance(node, ast.ClassDef)]
        description = with_names(summary, "Classes", _public_first(classes))
        description = with_names(description, "Functions", _public_first(functions))
        if not definitions:
            description = with_names(description, "Sets", list(_assigned(module.body)))
        if not description:
            description = "An empty Python file." if not self.file.text.strip() else ""
        if not description:
            names = [
                alias for _, name, pairs in _imports(module) for alias in ([p[1] for p in pairs] or [name])
            ]
            description = with_names("", "Imports", names)
        return description or shorten(next((line for line in self.lines if line.strip()), ""), 200)


def _definitions(body: Iterable[ast.stmt]) -> Iterator[_Definition]:
    """Yield the functions and classes of a block, also those under `if`, `try` and `with`, in order of lines."""
    for statement in body:
        if isinstance(statement, _Definition):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.TryStar | ast.With):
            for name in ("body", "handlers", "orelse", "finalbody"):
                for inner in getattr(statement, name, ()):
                    yield from _definitions(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _is_empty_statement(statement: ast.stmt) -> bool:
    """Whether a statement is an import, a docstring, a placeholder, a definition, or holds nothing else."""
    if isinstance(statement, _Definition | ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name | ast.Attribute):
        name = statement.test.id if isinstance(statement.test, ast.Name) else statement.test.attr
        return name == "TYPE_CHECKING" and all(map(_is_empty_statement, (*statement.body, *statement.orelse)))
    return False


def _docstring(body: Sequence[ast.stmt]) -> str:
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return first.value.value.strip()
    return ""


def _assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that a block sets, each once."""
    seen = set()
    for statement in body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = list(statement.targets)
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        while targets:
            target = targets.pop(0)
            if isinstance(target, ast.Tuple | ast.List):
                targets[:0] = target.elts
            elif isinstance(target, ast.Name) and target.id not in seen:
                seen.add(target.id)
                yield target.id


def _imports(module: ast.Module) -> Iterator[tuple[int, str, tuple[tuple[str, str], ...]]]:
    """Yield the imports of a module, wherever they stand in it."""
    pending: list[ast.AST] = list(reversed(module.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, ()
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple((a.name, a.asname or a.name) for a in node.names)
        else:
            for name in _BLOCKS.get(type(node), ()):
                pending.extend(reversed(getattr(node, name)))


def _unparsed(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        bases = [ast.unparse(base) for base in node.bases]
        bases += [
            f"{word.arg}={ast.unparse(word.value)}" if word.arg else f"**{ast.unparse(word.value)}"
            for word in node.keywords
        ]
        return f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{start} {node.name}({ast.unparse(node.args)}){returns}"


def _public_first(names: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(names), key=lambda name: name.startswith("_"))


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
