"""Which files of a source the references of its files lead to: imports of many languages, includes, links.

What a name means is derived from the paths of the source, from the packages that its files say they belong to, and from
its `go.mod` files. What is not in the source leads nowhere; a name that may mean many files leads nowhere either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from metatree_memory_tools.code._nearest import NearestFiles

Reference = Sequence[str]
"""(language, text), as `Outline.references` has them."""

_MOST_TARGETS = 20
_MOST_PARTS = 100
"""A name that means more files than this says too little."""

_JS_ENDS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_JVM = ("java", "kotlin", "scala")
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")
_GO_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)


class Files:
    """The files of a source, as references see them.

    Args:
        paths: relative to the source, with `/`.
        declares: what files say they may be called by, by path: (language, package) pairs.
        read: returns the text of a file, empty when it cannot be read.
    """

    def __init__(
        self, paths: Iterable[str], declares: Mapping[str, Sequence[Reference]], read: Callable[[str], str]
    ) -> None:
        self.paths = set(paths)
        self._by_name: dict[str, list[str]] = {}
        self.folders: set[str] = set()
        for path in sorted(self.paths):
            folder, _, name = path.rpartition("/")
            self._by_name.setdefault(name, []).append(path)
            while folder and folder not in self.folders:
                self.folders.add(folder)
                folder = folder.rpartition("/")[0]
        self._nearest = NearestFiles((path, path) for path in sorted(self.paths))
        self._notes: NearestFiles | None = None
        """By what a link in a note may call them; made when the first one is looked for."""
        self._packages: dict[tuple[str, str], list[str]] = {}
        self._stems: dict[tuple[str, str, str], list[str]] = {}
        """The same by their own names, too."""
        self._crates: dict[str, list[str]] = {}
        """The folders of Rust's libraries, by their names."""
        for path in self._by_name.get("lib.rs", ()):
            if path.endswith("/src/lib.rs"):
                crate = path.removesuffix("/src/lib.rs")
                self._crates.setdefault(crate.rpartition("/")[2], []).append(crate)
        for path in sorted(declares):
            for language, package in declares[path]:
                key = (_family(language), package.strip())
                self._packages.setdefault(key, []).append(path)
                self._stems.setdefault((*key, _stem(path)), []).append(path)
        self._go_modules = {
            match[1]: path.rpartition("/")[0]
            for path in self._by_name.get("go.mod", ())
            if (match := _GO_MODULE.search(read(path)))
        }

    def targets(self, path: str, references: Iterable[Reference]) -> dict[str, set[str]]:
        """Return the files (for Go: the folders) that a file's references lead to, by kind of link, without itself.

        A link to a heading leads to the file and to the heading, which may not be there.
        """
        result: dict[str, set[str]] = {"imports": set(), "links": set()}
        for language, text in references:
            kind = "links" if language in ("link", "note") else "imports"
            place, _, heading = text.partition("#") if kind == "links" else (text, "", "")
            hits = set(self._resolve(path, language, place)) - {path}
            if len(hits) <= _MOST_TARGETS:
                result[kind] |= hits
                if heading:
                    result[kind] |= {f"{hit}#{unquote(heading).lower()}" for hit in hits}
        return result

    def _resolve(self, path: str, language: str, text: str) -> Iterable[str]:
        folder = path.rpartition("/")[0]
        match language:
            case "link":
                return self._link(folder, text)
            case "note":
                return self._note(folder, text)
            case "javascript" | "typescript":
                return self._javascript(folder, text.strip("'\"`"))
            case "java" | "kotlin" | "scala":
                return self._jvm(text)
            case "c" | "c++":
                return self._include(folder, text)
            case "c#":
                return self._using(text)
            case "go":
                return self._go(text.strip('"`'))
            case "rust":
                return self._rust(path, text)
            case "ruby":
                return self._ruby(folder, text)
            case "php":
                return self._php(folder, text)
            case "shell":
                return self._beside(folder, text.strip("'\""))
            case "julia" | "zig":
                return self._beside(folder, text.strip('"'))
            case "elixir" | "haskell" | "perl":
                return self._declared(language, folder, text)
            case "lua":
                return self._lua(folder, text.strip("'\"[]"))
            case "ocaml":
                return self._ocaml(folder, text)
            case "hcl":
                return self._beside(folder, text.strip('"') + "/main.tf")
        return ()

    def _first(self, candidates: Iterable[str]) -> list[str]:
        path = next((candidate for candidate in candidates if candidate in self.paths), None)
        return [] if path is None else [path]

    def _ending(self, end: str, near: str) -> list[str]:
        """Return the file whose path ends so, the one nearest to a folder when there are several."""
        path = self._nearest.nearest(end, near)
        return [] if path is None else [path]

    def _beside(self, folder: str, text: str) -> list[str]:
        inside = _joined(folder, text)
        return self._first([] if inside is None else [inside])

    def _link(self, folder: str, text: str) -> list[str]:
        try:
            parts = urlsplit(text)
        except ValueError:
            return []
        if parts.scheme or parts.netloc or not parts.path:
            return []
        place = unquote(parts.path)
        inside = _joined("" if place.startswith("/") else folder, place.lstrip("/"))
        if inside is None:
            return []
        ends = ("", ".md", ".html")
        return self._first([*(inside + end for end in ends), _joined(inside, "index.html") or ""])

    def _note(self, folder: str, text: str) -> list[str]:
        """Return the note that `[[text]]` names: by its path, by its name wherever it lies, by another of its names.

        Of several with the name, the one that lies nearest; case does not count, as in Obsidian.
        """
        beside = _joined(folder, text)
        if beside is not None and (found := self._first([beside, f"{beside}.md"])):
            return found
        if self._notes is None:
            self._notes = NearestFiles(self._names_of_notes())
        name = text.strip("/").casefold()
        path = self._notes.nearest(name, folder) or self._notes.nearest(_note_name(name), folder)
        return [] if path is None else [path]

    def _names_of_notes(self) -> Iterator[tuple[str, str]]:
        """Yield what a note may be called by, and its path: what it is named goes before what another one is called."""
        own = set[str]()
        for path in sorted(self.paths):
            for name in dict.fromkeys((path.casefold(), _note_name(path.casefold()))):
                own.add(name.rpartition("/")[2])
                yield name, path
        for (language, alias), paths in self._packages.items():
            if language == "note" and alias.casefold() not in own:
                yield from ((alias.casefold(), path) for path in paths)

    def _javascript(self, folder: str, text: str) -> list[str]:
        if not text.startswith("."):
            return []
        base = _joined(folder, text)
        if base is None:
            return []
        stem = re.sub(r"\.[cm]?jsx?$", "", base)
        index = f"{base}/index" if base else "index"
        return self._first([base, *(base + end for end in _JS_ENDS), *(stem + end for end in _JS_ENDS),
                            *(index + end for end in _JS_ENDS)])  # fmt: skip

    def _in_package(self, family: str, package: str, name: str) -> list[str]:
        return self._stems.get((family, package, name), [])

    def _jvm(self, text: str) -> Iterator[str]:
        target = re.sub(r"^import\s+(?:static\s+)?|\s+as\s+\w+|;|\s", "", text)
        head, brace, inner = target.partition("{")
        names = [head + item.split("=>")[0] for item in inner.rstrip("}").split(",")] if brace else [target]
        for name in names:
            parts = name.split(".")
            if len(parts) > _MOST_PARTS:
                continue
            if parts[-1] in ("*", "_"):
                yield from self._packages.get(("jvm", ".".join(parts[:-1])), ())
            for end in range(len(parts), 0, -1):
                hits = self._in_package("jvm", ".".join(parts[: end - 1]), parts[end - 1])
                if hits:
                    yield from hits
                    break

    def _include(self, folder: str, text: str) -> list[str]:
        name = text.strip('"<> ')
        if text.startswith('"'):
            return self._beside(folder, name) or self._ending(name, folder)
        paths = self._ending(name, folder)
        return [path for path in paths if "/" in name or {"include", "inc"} & set(path.split("/")[:-1])]

    def _using(self, text: str) -> Collection[str]:
        name = re.sub(r"^(?:global\s+)?using\s+(?:static\s+)?(?:\w+\s*=\s*)?|;|\s", "", text)
        return self._packages.get(("c#", name), ()) or self._in_package("c#", *_split(name, "."))

    def _go(self, text: str) -> list[str]:
        parts = text.split("/")
        for end in range(min(len(parts), _MOST_PARTS), 0, -1):
            module = "/".join(parts[:end])
            if module in self._go_modules:
                inside = "/".join(filter(None, (self._go_modules[module], text[len(module) :].strip("/"))))
                return [inside or "."] if inside in self.folders or not inside else []
        return []

    def _rust(self, path: str, text: str) -> Iterator[str]:
        folder, _, name = path.rpartition("/")
        own = folder if name in ("mod.rs", "lib.rs", "main.rs") else _plus(folder, name.removesuffix(".rs"))
        if text.startswith("mod "):
            module = text[4:].strip()
            yield from self._first([_plus(own, module + ".rs"), _plus(own, module + "/mod.rs")])
            return
        for parts in _expanded(re.sub(r"\s+as\s+\w+|\s", "", text)):
            start: str | None = own
            if parts[0] == "crate":
                start = self._crate(folder)
            elif parts[0] == "super":
                start = own.rpartition("/")[0]
            elif parts[0] != "self":
                start = next((_plus(place, "src") for place in self._named(parts[0])), None)
            if start is not None:
                yield from self._module(start, parts[1:])

    def _module(self, start: str, parts: Sequence[str]) -> list[str]:
        """Return the file of the deepest module that a path of names leads to."""
        at, path = start, self._first([_plus(start, "lib.rs"), start + ".rs", _plus(start, "mod.rs")])
        for part in parts:
            if part == "super":
                at = at.rpartition("/")[0]
                continue
            at = _plus(at, part)
            below = self._first([at + ".rs", at + "/mod.rs"])
            if not below:
                break
            path = below
        return path

    def _crate(self, folder: str) -> str | None:
        while True:
            if _plus(folder, "lib.rs") in self.paths or _plus(folder, "main.rs") in self.paths:
                return folder
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    def _named(self, name: str) -> Iterator[str]:
        for folder in (name, name.replace("_", "-")):
            yield from self._crates.get(folder, ())

    def _ruby(self, folder: str, text: str) -> list[str]:
        quoted = _QUOTED.search(text)
        if quoted is None:
            return []
        name = quoted[1] if quoted[1].endswith(".rb") else quoted[1] + ".rb"
        if text.startswith("require_relative"):
            return self._beside(folder, name)
        return [path for path in self._ending(name, folder) if path in (name, f"lib/{name}") or "/lib/" in path
                or path.endswith(f"lib/{name}")]  # fmt: skip

    def _php(self, folder: str, text: str) -> Iterator[str]:
        if not text.startswith("use"):
            quoted = _QUOTED.search(text)
            if quoted is not None:
                yield from self._beside(folder, quoted[1].lstrip("/"))
            return
        target = re.sub(r"^use\s+(?:function\s+|const\s+)?|\s+as\s+\w+|;|\s", "", text)
        head, brace, inner = target.partition("{")
        for item in [head + part for part in inner.rstrip("}").split(",")] if brace else target.split(","):
            package, name = _split(item.strip("\\"), "\\")
            yield from self._in_package("php", package, name)

    def _declared(self, language: str, folder: str, text: str) -> Iterator[str]:
        """Yield the files that put themselves under a name; a text in quotes is a path."""
        quoted = _QUOTED.search(text)
        if quoted is not None:
            yield from self._beside(folder, quoted[1]) or self._ending(quoted[1], folder)
        head, brace, inner = re.sub(r"\s", "", text).partition("{")
        for name in [head + part for part in inner.rstrip("}").split(",")] if brace else [head]:
            yield from self._packages.get((language, name), ())

    def _lua(self, folder: str, text: str) -> list[str]:
        path = text.removesuffix(".lua").replace(".", "/")
        return self._ending(path + ".lua", folder) or self._ending(path + "/init.lua", folder)

    def _ocaml(self, folder: str, text: str) -> list[str]:
        stem = text.strip()[:1].lower() + text.strip()[1:]
        names = (f"{name}.{end}" for name in (stem, text.strip()) for end in ("ml", "mli"))
        return next(filter(None, (self._ending(name, folder) for name in names)), [])


def _family(language: str) -> str:
    return "jvm" if language in _JVM else language


def _split(name: str, sign: str) -> tuple[str, str]:
    before, _, last = name.rpartition(sign)
    return before, last


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _plus(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _joined(folder: str, place: str) -> str | None:
    """Return a path from a folder; None when it leads out of the source."""
    path = normpath(_plus(folder, place) or ".")
    if path.startswith(("../", "/")) or path == "..":
        return None
    return "" if path == "." else path


def _expanded(text: str) -> Iterator[list[str]]:
    """Yield the paths that a `use` of Rust names: `a::{b, c::d}` is a::b and a::c::d. Nested groups are passed over."""
    head, brace, inner = text.partition("{")
    if not brace:
        yield [part for part in text.split("::") if part]
        return
    for item in re.sub(r"\{[^{}]*\}", "", inner.rstrip("}")).split(","):
        parts = [part for part in (head + item).split("::") if part]
        if parts:
            yield parts


def _note_name(path: str) -> str:
    return re.sub(r"\.(?:md|markdown|mdown|mkd|canvas)$", "", path)
