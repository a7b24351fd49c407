"""Which file of a source an import means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from metatree_memory_tools.code._nearest import NearestFiles

Import = Sequence[object]
"""(level, module, ((name, as), …)), as `Outline.imports` has them."""

_ROOTS = ("src", "lib", "python")
_HOPS = 5
"""How many files that hand a name on are passed through."""
_LONGEST = 1_000
"""Characters of a module's name: no path in a tree is longer."""


class Modules:
    """The modules of a source, by their dotted names."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Take the Python files of a source, with `/` in their paths."""
        self.paths = {path for path in paths if path.endswith((".py", ".pyi"))}
        self._packages = {
            path.rpartition("/")[0]
            for path in self.paths
            if path.rpartition("/")[2] in ("__init__.py", "__init__.pyi")
        }
        named = ((name, path) for path in sorted(self.paths) for name in self._names(path))
        self._nearest = NearestFiles(named, rank=lambda path: (path.endswith(".pyi"), len(path)))
        self._handed_on: dict[str, dict[str, tuple[int, str, str]]] = {}

    def _names(self, path: str) -> set[str]:
        """Return the dotted names that a file may be imported by."""
        parts = path.rpartition(".")[0].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        # From the folder that holds the outermost package; from the source; from the folders that hold sources.
        start = len(path.split("/")) - 1
        while start > 0 and "/".join(path.split("/")[:start]) in self._packages:
            start -= 1
        starts = {0, start} | {depth + 1 for depth, part in enumerate(parts[:-1]) if part in _ROOTS}
        return {".".join(parts[begin:]) for begin in starts if parts[begin:]}

    def find(self, name: str, near: str) -> str | None:
        """Return the file of a module, the one nearest to `near` when several have its name."""
        return self._nearest.nearest(name, near.rpartition("/")[0])

    def relative(self, path: str, level: int, module: str) -> str | None:
        """Return the file that `from ..module` means in a file."""
        folder = path.split("/")[:-1]
        if level - 1 > len(folder):
            return None
        folder = folder[: len(folder) - (level - 1)] + (module.split(".") if module else [])
        base = "/".join(folder)
        prefix = base + "/" if base else ""
        options = ([] if not module else [base + ".py", base + ".pyi"]) + [
            prefix + "__init__.py",
            prefix + "__init__.pyi",
        ]
        return next((option for option in options if option in self.paths), None)

    def handed_on(
        self, path: str, imports_of: Mapping[str, Sequence[Import]]
    ) -> dict[str, tuple[int, str, str]]:
        """Return where the names come from that a file imports: level, module and name there, the first of each."""
        known = self._handed_on.get(path)
        if known is None:
            known = self._handed_on[path] = {}
            for level, module, names in imports_of.get(path, ()):
                assert isinstance(level, int) and isinstance(module, str)
                for original, known_as in _pairs(names) if len(module) <= _LONGEST else ():
                    known.setdefault(known_as, (level, module, original))
        return known

    def beside(self, package: str, name: str) -> str | None:
        """Return the submodule of a package's `__init__` that has a name."""
        folder, _, file = package.rpartition("/")
        if not file.startswith("__init__."):
            return None
        prefix = folder + "/" if folder else ""
        options = (f"{prefix}{name}.py", f"{prefix}{name}/__init__.py", f"{prefix}{name}.pyi")
        return next((option for option in options if option in self.paths), None)


def targets(
    path: str, imports: Sequence[Import], modules: Modules, imports_of: Mapping[str, Sequence[Import]]
) -> set[str]:
    """Return the files of the source that a file imports, without itself.

    A name that a package only hands on leads to the file that it comes from.

    Args:
        path: the importing file.
        imports: what it imports.
        modules: the modules of the source.
        imports_of: what each file of the source imports.
    """
    result: set[str] = set()
    for level, module, names in imports:
        assert isinstance(level, int) and isinstance(module, str)
        if len(module) > _LONGEST:
            continue
        pairs = list(_pairs(names))
        if not pairs and not level:
            target = modules.find(module, path)
            if target:
                result.add(target)
            continue
        for name in dict.fromkeys(name for name, _ in pairs):
            target = _source(path, level, module, name, modules, imports_of, _HOPS)
            if target:
                result.add(target)
    result.discard(path)
    return result


def _source(
    path: str,
    level: int,
    module: str,
    name: str,
    modules: Modules,
    imports_of: Mapping[str, Sequence[Import]],
    hops: int,
) -> str | None:
    """Return the file that `from module import name` in a file means."""
    target = modules.relative(path, level, module) if level else modules.find(module, path)
    if target is None:
        # A package without an __init__ has no file, its modules have.
        whole = f"{module}.{name}" if module else name
        return modules.relative(path, level, whole) if level else modules.find(whole, path)
    below = modules.beside(target, name)
    if below or name == "*" or target == path or not hops:
        return below or target
    further = modules.handed_on(target, imports_of).get(name)
    return (further and _source(target, *further, modules, imports_of, hops - 1)) or target


def _pairs(names: object) -> Iterator[tuple[str, str]]:
    assert isinstance(names, Sequence)
    yield from names
