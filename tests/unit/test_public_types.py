"""What a public name returns can be imported from where that name is, for annotations and `isinstance`."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import metatree


def _hints(what: Any) -> dict[str, Any]:
    """Return annotations, with names that its module imports for type checkers alone."""
    module = sys.modules[what.__module__]
    names = dict(vars(module))
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec("\n".join(map(ast.unparse, node.body)), names)
    return typing.get_type_hints(what, globalns=names, localns=names)


def _classes(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, list | tuple):
        for each in annotation:
            yield from _classes(each)
    elif isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    else:
        yield from _classes(typing.get_args(annotation))


def _returned(what: Any) -> Iterator[Any]:
    """Yield the annotations of what a function returns, or of the public fields and methods of a class."""
    if inspect.isfunction(what):
        yield _hints(inspect.unwrap(what)).get("return")
    elif inspect.isclass(what):
        yield from (found for name, found in _hints(what).items() if not name.startswith("_"))
        for name, member in vars(what).items():
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(member):
                yield _hints(member).get("return")


def _not_exported(package: ModuleType) -> dict[str, str]:
    """Return classes that public names give and that are not public themselves -> such a name."""
    public = {getattr(package, name): name for name in package.__all__ if callable(getattr(package, name))}
    missing: dict[str, str] = {}
    for what, name in public.items():
        for annotation in _returned(what):
            for found in _classes(annotation):
                if found.__module__.startswith("metatree") and found not in public:
                    missing.setdefault(f"{found.__module__}.{found.__name__}", name)
    return missing


def test_every_type_that_a_public_name_returns_is_public() -> None:
    assert _not_exported(metatree) == {}


def test_a_type_that_is_not_exported_is_found() -> None:
    shorter = ModuleType("shorter")
    vars(shorter).update(
        vars(metatree), __all__=[n for n in metatree.__all__ if n not in ("RunInfo", "Quote")]
    )
    found = _not_exported(shorter)
    assert set(found.values()) == {"runs", "QuestionAnswer"}
    assert importlib.import_module("metatree.result").Quote is metatree.Quote
