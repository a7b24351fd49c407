"""The pages of the reference: every public name with its signature and its docstring, as Markdown.

Signatures are those of the imported objects: `search` takes the fields of a class by a decorator, which a reader of the
source alone (griffe, mkdocstrings) shows as one parameter, `options`.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, get_args

PACKAGES = MappingProxyType(
    {
        "metatree": "Trees, searches, what goes into them and what comes out, and memories.",
        "metatree.rules": "Productions over facts, their schedule, and the control shell.",
        "metatree_memory_tools": "Trees from sources.",
        "metatree_routers": "The parts that a search thinks with.",
        "metatree_routers.llm": "The parts that ask a chat model.",
        "metatree_routers.decisions": "The parts that ask a decision model.",
        "metatree_agents": "Files to edit, lines to read, and tools for other agents.",
        "metatree_agents.planner": "Domains, plans, and agents that carry them out.",
        "metatree.blackboard": "What agents share.",
        "metatree.trees.source_types": "What a type of files or of sources is given and gives: for plug-ins.",
        "metatree.testing": "Parts, a clock and a model server for tests.",
        "metatree.errors": "All errors.",
    }
)
"""The packages whose public names are described, those that others export again first."""
SECTION = re.compile(
    r"^(Args|Attributes|Raises|Returns|Yields|Example|Source):\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE
)
WIDTH = 100


def reference_pages() -> dict[str, str]:
    """Return the Markdown of each page by its path in the site."""
    described: dict[int, str] = {}
    where: dict[str, str] = {}
    for package in PACKAGES:
        for name in names_of(package):
            page = described.setdefault(id(getattr(importlib.import_module(package), name)), package)
            anchor = f"{page}.md#{name.lower()}"
            # `Tool` and `tool` would have the same; Markdown numbers the second.
            where.setdefault(name, f"{anchor}_1" if anchor in where.values() else anchor)
    pages = {f"reference/{package}.md": _page(package, where) for package in PACKAGES}
    rows = [f"| [`{package}`]({package}.md) | {what} |" for package, what in PACKAGES.items()]
    pages["reference/index.md"] = "\n".join(
        [
            "# Python",
            "",
            "The public names of the packages, from their docstrings; a name without one of these pages may change",
            "at any time. What a name is for is said in the guides; here is what it takes and gives.",
            "",
            "| package | |",
            "|---|---|",
            *rows,
            "",
        ]
    )
    return pages


def names_of(package: str) -> list[str]:
    """Return the public names of a package, or of a module that does not list them."""
    module = importlib.import_module(package)
    described = [(name, value) for name, value in vars(module).items() if callable(value)]
    own = [name for name, value in described if value.__module__ == package and value.__doc__]
    listed = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    return sorted(listed, key=str.lower)


def _page(package: str, where: dict[str, str]) -> str:
    module = importlib.import_module(package)
    lines = [f"# {package}", "", *_text(inspect.getdoc(module) or PACKAGES[package]), ""]
    elsewhere = [name for name in names_of(package) if not where[name].startswith(f"{package}.md")]
    for name in names_of(package):
        if name not in elsewhere:
            lines += [f"## {name}", "", *_entry(name, getattr(module, name)), ""]
    if elsewhere:
        links = ", ".join(f"[`{name}`]({where[name]})" for name in elsewhere)
        lines += ["## Also here", "", f"Described where they are exported first: {links}.", ""]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))

    def link(found: re.Match[str]) -> str:
        return (
            f"[{found[0]}]({where[found[1]].removeprefix(f'{package}.md')})"
            if found[1] in where
            else found[0]
        )

    parts = re.split(r"(^```.*?^```$|^(?:#|    )[^\n]*$|\[`\w+`\])", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if number % 2 else re.sub(r"(?<!`)`(\w+)`(?!`)", link, part) for number, part in enumerate(parts)
    )


def _entry(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.isfunction(value):
        yield from _function(name, value)
    elif get_args(value):
        yield f"One of {', '.join(f'`{word!r}`' for word in get_args(value))}."
    else:
        yield from _text(inspect.getdoc(type(value)) or "")


def _function(name: str, function: FunctionType) -> Iterator[str]:
    before = "async " if inspect.iscoroutinefunction(function) else ""
    yield from _code(f"{before}def {name}", inspect.signature(function))
    yield ""
    yield from _text(inspect.getdoc(function) or "")


def _class(name: str, value: type[Any]) -> Iterator[str]:
    bases = [base.__name__ for base in value.__bases__ if base.__module__.startswith("metatree")]
    made = _is_made_by_callers(value)
    if made:
        yield from _code(f"class {name}", made)
    else:
        yield from ("```py", f"class {name}" + f"({', '.join(bases)})" * bool(bases), "```")
    yield ""
    yield from _text(_own_doc(value))
    fields = [(field, says) for field, says in _fields(value).items() if not field.startswith("_")]
    if fields:
        yield from ("", *(f"- `{field}`" + f": {says}" * bool(says) for field, says in fields))
    for method, found in _methods(value):
        yield from ("", f"### {name}.{method}", "")
        if isinstance(found, FunctionType):
            yield from _function(method, found)
        else:
            yield from _text(inspect.getdoc(found) or "")


def _is_made_by_callers(value: type[Any]) -> inspect.Signature | None:
    if getattr(value, "_is_protocol", False):
        return None
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return found.replace(return_annotation=inspect.Signature.empty)


def _own_doc(value: type[Any]) -> str:
    said = inspect.cleandoc(value.__doc__ or "")
    # A dataclass without a docstring gets its signature for one.
    return "" if said.startswith(f"{value.__name__}(") else said


def _methods(value: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that have a docstring, those of bases in these packages too."""
    seen: set[str] = set()
    for base in value.__mro__:
        if not base.__module__.startswith("metatree"):
            continue
        for name, found in vars(base).items():
            inner = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            if name.startswith("_") or name in seen or not isinstance(inner, FunctionType | property):
                continue
            seen.add(name)
            if inner.__doc__:
                yield name, inner


@cache
def _class_nodes(file: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _fields(value: type[Any]) -> dict[str, str]:
    """Return what the texts below the fields of a class say; a field without one is there when it is one of data."""
    found: dict[str, str] = {}
    for base in reversed(value.__mro__):
        file = inspect.getsourcefile(base) if base.__module__.startswith("metatree") else None
        node = _class_nodes(file).get(base.__name__) if file else None
        body = node.body if node else []
        for at, each in enumerate(body):
            if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
                continue
            after = body[at + 1] if at + 1 < len(body) else None
            text = after.value if isinstance(after, ast.Expr) else None
            says = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            if each.target.id != "_" and (says or dataclasses.is_dataclass(base)):
                found[each.target.id] = " ".join(says.split())
    return found


def _code(before: str, signature: inspect.Signature) -> Iterator[str]:
    words = _parameters(signature)
    end = (
        ""
        if signature.return_annotation is inspect.Signature.empty
        else f" -> {_type(signature.return_annotation)}"
    )
    line = f"{before}({', '.join(words)}){end}"
    yield "```py"
    if len(line) <= WIDTH or not words:
        yield line
    else:
        yield f"{before}("
        yield from (f"    {word}," for word in words)
        yield f"){end}"
    yield "```"


def _parameters(signature: inspect.Signature) -> list[str]:
    words, starred = [], False
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (
            parameter.kind is parameter.VAR_KEYWORD
        )
        starred = starred or stars == "*"
        typed = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        given = (
            ""
            if parameter.default is parameter.empty
            else f"{' = ' if typed else '='}{_default(parameter.default)}"
        )
        words.append(f"{stars}{name}{typed}{given}")
    return words


def _type(annotation: Any) -> str:
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:metatree\w*|collections|typing|pathlib|decimal)(?:\.\w+)*\.(?=\w)", "", shown).strip(
        "'"
    )


def _default(value: Any) -> str:
    # An object without a literal of its own, such as the factory of a list, has an address in its name.
    return "…" if " object at 0x" in repr(value) or repr(value).startswith("<") else repr(value)


def _text(doc: str) -> Iterator[str]:
    """Yield a docstring as Markdown: its sections as lists, its examples as code."""
    at = 0
    doc = doc.rstrip("\n") + "\n"
    for section in SECTION.finditer(doc):
        yield from _prose(doc[at : section.start()])
        title, body = section[1], textwrap.dedent(section[2])
        at = section.end()
        yield from ("", f"**{title}**", "")
        if title in ("Args", "Attributes", "Raises"):
            yield from _items(body)
        else:
            yield from _prose(body)
    yield from _prose(doc[at:])


def _items(body: str) -> Iterator[str]:
    for item in re.split(r"\n(?=\S)", body.strip()):
        names, colon, says = " ".join(item.split()).partition(": ")
        shown = ", ".join(f"`{name}`" for name in names.split(", ")) if colon else names
        yield f"- {shown}" + f": {says}" * bool(colon)


def _prose(text: str) -> Iterator[str]:
    """Yield a text with its examples (`>>>`, or what is moved in) as blocks of code."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if not block.strip():
            continue
        plain = textwrap.dedent(block)
        if plain.startswith(">>>"):
            yield from ("```pycon", *plain.splitlines(), "```", "")
        else:
            yield from (*block.splitlines(), "")
