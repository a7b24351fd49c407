"""Code in the languages of `table`, by tree-sitter; what does not parse keeps what could be read of it.

Every line that is not blank lies in one leaf: a definition without definitions below it, or what is left of a file or
a class beside its definitions. What is left becomes no node when it is imports, comments, brackets, and a comment
that the description repeats in full.
"""

from __future__ import annotations

import re
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING

from metatree._util.process import import_installed, installed_spec, resident_bytes
from metatree.trees.source_types import Outline, SourceFile
from metatree_memory_tools.code.languages._outline import outline_of
from metatree_memory_tools.code.languages._syntax import ABOVE, COMMENTS, is_wreck
from metatree_memory_tools.code.languages._table import LANGUAGES, Language
from metatree_memory_tools.text.plain import PlainText, is_written
from metatree_memory_tools.text.text_files import TextFiles

if TYPE_CHECKING:
    import tree_sitter

    from metatree.tools.tool import ToolGroup

PARSE_S = 10.0
"""A file that takes more of the processor is plain text; on a busy machine, too, the same files are."""
PARSE_BYTES = 300_000_000
"""So is one whose parse takes more memory than this and a hundred bytes for each of its own: nesting that is wrong
takes gigabytes."""
_READ_BYTES = 512
_CHECK_EVERY = 16
"""How many hundreds of steps a parser goes on before its time and memory are looked at, which takes the system long."""

_CPP_IN_HEADER = re.compile(
    rb"^[ \t]*(?:class\s+\w+[^;]*$|namespace\b|template\s*<|using\s+\w+|public:|private:|protected:)",
    re.MULTILINE,
)
_INTERPRETERS = {b"sh": "shell", b"bash": "shell", b"dash": "shell", b"zsh": "shell", b"node": "javascript",
                 b"ruby": "ruby", b"php": "php", b"perl": "perl", b"lua": "lua", b"elixir": "elixir",
                 b"runghc": "haskell", b"runhaskell": "haskell", b"julia": "julia", b"ocaml": "ocaml"}  # fmt: skip


class Code(TextFiles):
    """Code in other languages than Python, of those whose grammars are installed."""

    name = "code"

    @property
    def version(self) -> str:
        """Another one with every other set of grammars: files are then looked at again."""
        names = " ".join(sorted(language.name for language in installed()))
        return "3." + blake2b(names.encode(), digest_size=4).hexdigest()

    @property
    def tools(self) -> tuple[ToolGroup, ...]:
        """The tool tree of its nodes."""
        from metatree_memory_tools.code._tools import CODE_TOOLS  # loads pydantic, which no build needs

        return CODE_TOOLS

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as code of a language that is installed, or the first line calls for one."""
        return language_of(path, head) is not None

    def outline(self, file: SourceFile) -> Outline:
        """Return the definitions of a file, with what it imports."""
        language = language_of(file.path, file.data)
        if language is None:
            return PlainText().outline(file)
        language_name = language.dialect_of or language.name
        if not is_written(file):
            return _plain(file, language_name, "")
        data = file.text.encode("utf-8", "replace")
        if language.noise:
            data = _noise(language).sub(lambda line: b" " * len(line[0]), data)
        try:
            parsed = _parse(language, data)
            if parsed is not None and is_wreck(parsed.root_node):
                problem = "read as plain text: it does not parse, or is nested without end"
            elif parsed is not None:
                return outline_of(file, language, language_name, parsed, *_queries(language))
            else:
                problem = (
                    f"read as plain text: it takes more than {PARSE_S:.0f} seconds or {PARSE_BYTES // 1_000_000} MB"
                    " to parse"
                )
        except (RecursionError, MemoryError, ValueError) as exc:
            problem = f"read as plain text: {type(exc).__name__} while it was parsed"
        return _plain(file, language_name, problem)


def _plain(file: SourceFile, language: str, problem: str) -> Outline:
    """Return a file of a language as plain text, with why."""
    plain = PlainText().outline(file)
    note = {"note": problem} if problem else {}
    return replace(plain, attributes={"language": language, **plain.attributes, **note}, problem=problem)


@cache
def installed() -> tuple[Language, ...]:
    """Return the languages whose grammars are installed."""
    if installed_spec("tree_sitter") is None:
        return ()
    return tuple(language for language in LANGUAGES if installed_spec(language.module) is not None)


def missing() -> dict[str, list[str]]:
    """Return the names of the languages whose grammars are not installed, by the extra that installs them."""
    have, lacking = installed(), defaultdict(list)
    for language in LANGUAGES:
        if language not in have:
            lacking[language.extra].append(language.name)
    return dict(lacking)


@cache
def _by_suffix() -> dict[str, Language]:
    return {suffix: language for language in installed() for suffix in language.suffixes}


@cache
def _by_name() -> dict[str, Language]:
    return {language.name: language for language in installed()}


@cache
def _by_file() -> dict[str, Language]:
    return {name: language for language in installed() for name in language.names}


def language_of(path: str, head: bytes) -> Language | None:
    """Return the language of a file, None for one that is not known or whose grammar is not installed."""
    name = path.rpartition("/")[2]
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix == ".h" and _CPP_IN_HEADER.search(head[:20_000]):
        return _by_name().get("c++")
    if suffix or name in _by_file():
        return _by_suffix().get(suffix) or _by_file().get(name)
    first = head.split(b"\n", 1)[0]
    if not first.startswith(b"#!"):
        return None
    program = first[2:].replace(b"/env ", b"/").split()[:1]
    interpreter = _INTERPRETERS.get(program[0].rpartition(b"/")[2]) if program else None
    return _by_name().get(interpreter) if interpreter else None


@cache
def _grammar(language: Language) -> tree_sitter.Language:
    import tree_sitter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some wheels give a number, and no capsule
        return tree_sitter.Language(getattr(import_installed(language.module), language.function)())


@cache
def _noise(language: Language) -> re.Pattern[bytes]:
    return re.compile(language.noise.encode(), re.MULTILINE)


@cache
def _queries(
    language: Language,
) -> tuple[tree_sitter.Query, tree_sitter.Query | None, tree_sitter.Query | None, tree_sitter.Query | None]:
    import tree_sitter

    grammar = _grammar(language)
    imports = tree_sitter.Query(grammar, language.imports) if language.imports.strip() else None
    nodes = [name for name in (*COMMENTS, *sorted(ABOVE)) if grammar.id_for_node_kind(name, True) is not None]
    comments = (
        tree_sitter.Query(grammar, f"[{' '.join(f'({name})' for name in nodes)}] @comment") if nodes else None
    )
    docs = tree_sitter.Query(grammar, language.docs) if language.docs else None
    return tree_sitter.Query(grammar, language.definitions), imports, comments, docs


def _parse(language: Language, data: bytes) -> tree_sitter.Tree | None:
    """Return the syntax tree, None when it takes too long or too much memory."""
    import tree_sitter

    most = resident_bytes() + PARSE_BYTES + 100 * len(data)
    until, spent = time.monotonic() + PARSE_S, time.thread_time() + PARSE_S
    asked = count(1)

    given: dict[int, bytes] = {}

    # Some grammars ask anew at nearly every word, and tree-sitter 0.26.1 keeps for ever what it is given: so little at
    # a time, to the same ends, and the same object for the same place. Lost: views, which end the process; the whole
    # text at once, which nothing can stop.
    def read(at: int, _: object) -> bytes:
        part = given.get(at)
        if part is None:
            part = given[at] = data[at : at + _READ_BYTES - at % _READ_BYTES]
        return part

    def late(*_: object) -> bool:
        if next(asked) % _CHECK_EVERY:
            return False
        return (time.monotonic() > until and time.thread_time() > spent) or resident_bytes() > most

    try:
        return tree_sitter.Parser(_grammar(language)).parse(read, progress_callback=late)
    except ValueError:
        return None
