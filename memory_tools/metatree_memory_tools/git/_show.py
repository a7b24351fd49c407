"""What git says of one commit, of the lines of a file, and of a text: as plain text, bounded, without secrets.

Of lines they are masked as in the file that they are of, by its name; of what a commit says, as in a document.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from metatree._util.secret_files import is_secret
from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.trees.history_text import day
from metatree.trees.masking import is_code, masked_file
from metatree.trees.source_files import read_inside
from metatree.trees.text import decode, is_binary, lines_of
from metatree_memory_tools.file_names import path_text
from metatree_memory_tools.git._command import GitFailed, Objects, checked_revision, objects_of, rev_parse
from metatree_memory_tools.git._dates import seconds_of
from metatree_memory_tools.git.ignore import SettingsRules, settings_rules
from metatree_memory_tools.git.log import masked_message
from metatree_memory_tools.memory_types import memory_types
from metatree_memory_tools.text.lines import MOST_UNREAD_BYTES

MAX_DIFF_CHARS = 15_000
MAX_FILES = 200
_MOST_PAIRS = 100_000
"""Of a line as it is and one that was committed that say the same; of more, lines that stand once are compared."""
_AGAINST_FIRST = ("--first-parent", "-m")
_SEARCH_S = 30.0
_HEAD = 16_000
"""Characters of a file, or of its changes, that say what it is."""
_CHANGED = re.compile(r"(?ms)\A.*?^@@[^\n]*\n|^[ +-]")
"""What stands around the lines of a file in its changes."""
_SIGN = re.compile(r"^[+-]", re.MULTILINE)
_KEY_LINE = re.compile(
    r"(?m)(?P<before>^[ +-][ \t]*[\"'#*/]{0,3}[ \t]*|@@ )"
    r"(?P<key>(?=[0-9a-f]*[A-Zg-z+/])[A-Za-z0-9+/]{60,76}={0,2})(?=(?:\\n)?[\"']?,?\r?$)"
)
"""A line of a key in PEM form, whose first line a change may leave out."""
_FILE = re.compile(r"(?m)^(?=diff --git )")
_NAMED = re.compile(r"(?m)^(?:\+\+\+|---) (.+)$")
_HEADING = re.compile(r"(?m)^(@@ [^@\n]{1,80} @@)( .*)$")
_LONGEST_HEADING = 78
"""Bytes of what git says behind `@@ … @@`, up to a letter in several bytes; it ends the text at 80."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_REVISION = re.compile(r"(.*?)((?:[~^]|@\{).*)?")
_HASH = re.compile(r"[0-9a-f]{4,64}")
_SHOWN_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = dict(zip("abtnvfr", "\a\b\t\n\v\f\r", strict=True))


@dataclass(frozen=True, slots=True)
class CommitText:
    """One commit, for people."""

    hash: str
    subject: str
    author: str
    day: str
    """Its author's date, `2024-05-17`."""
    text: str
    """Message, files and changes."""
    files: tuple[str, ...]


def resolved(root: Path, name: str) -> str:
    """Return the hash of a commit that the checked out one is made of.

    Raises:
        UserError: the name is none, there is no such commit, or it is not part of the history.
    """
    with objects_of(root) as objects:
        return _resolved(root, objects, name)


def _resolved(root: Path, objects: Objects, name: str) -> str:
    match = _REVISION.fullmatch(checked_revision(name))
    assert match is not None
    base, way = match[1] or "HEAD", match[2] or ""
    missing = UserError(f"there is no commit {name!r} in this repository: give its hash")
    try:
        if not _HASH.fullmatch(base):  # a reference, which only the repository itself has
            base = rev_parse(root, "--verify", "--quiet", "--end-of-options", base)
        revision = objects.text(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}{way}^{{commit}}"
        )
    except GitFailed as exc:
        raise missing from exc
    try:
        objects.text("merge-base", "--is-ancestor", revision, objects.head)
    except GitFailed as exc:
        raise UserError(f"commit {name!r} is not part of what is checked out") from exc
    return revision


def commit_text(
    root: Path, name: str, *, secrets: bool = False, left_out: Collection[str] = ()
) -> CommitText:
    """Return what a commit says and changed in a folder.

    Args:
        root: the folder; what the commit did elsewhere in the repository is left out.
        name: hash, tag or branch; only what led to the checked out commit is shown.
        secrets: whether keys and passwords are shown, and changes of files that are likely to hold them.
        left_out: paths of files and folders whose changes are not shown.

    Raises:
        UserError: see `resolved`.
        GitFailed: git cannot show it.
    """
    with objects_of(root) as objects:
        commit = _resolved(root, objects, name)
        return _commit_text(root, objects, commit, _LeftOut(root, left_out, secrets=secrets), secrets=secrets)


def _commit_text(
    root: Path, objects: Objects, commit: str, left_out: _LeftOut, *, secrets: bool
) -> CommitText:
    fields = objects.text("show", "-s", "--encoding=UTF-8", "--format=%at%x00%an%x00%s%x00%b", commit).split(
        "\0", 3
    )
    at, author, subject, body = (*fields, "", "", "", "")[:4]
    if not secrets:
        author = masked(author)[0]
        subject, body = masked_message(subject, body)
    changed = list(_changed(objects, commit))
    files = tuple(path for _, path, _ in changed)
    reasons = {path: left_out.why(path, old) for _, path, old in changed}
    lines = [
        f"commit {commit}",
        f"author {author}, {day(seconds_of(at))}",
        "",
        subject,
        *body.strip().splitlines(),
    ]
    lines += ["", f"{len(files):,} files changed" if len(files) != 1 else "1 file changed"]
    lines += [
        f"{status} {path}" + (f" (was {old})" if old else "") for status, path, old in changed[:MAX_FILES]
    ]
    if len(files) > MAX_FILES:
        lines.append(f"… {len(files) - MAX_FILES:,} more files")
    lines += [f"the changes of {path} {why} and are not shown" for path, why in reasons.items() if why]
    wanted = [
        each for _, path, old in changed[:MAX_FILES] if not reasons[path] for each in (path, old) if each
    ]
    if wanted:
        lines += ["", _diff(root, objects, commit, wanted, None if secrets else left_out)]
    return CommitText(commit, subject, author, day(seconds_of(at)), "\n".join(lines).strip() + "\n", files)


def _changed(objects: Objects, commit: str) -> Iterator[tuple[str, str, str | None]]:
    arguments = ("--format=", "-z", "--name-status", "--find-renames", *_AGAINST_FIRST, *objects.relative)
    with objects.stream("show", *arguments, commit, *objects.below) as pieces:
        for piece in pieces:
            status = piece.strip(b"\n")[:1].decode("ascii", "replace")
            if status == "R":
                old, new = path_text(next(pieces, b"")), path_text(next(pieces, b""))
                yield "R", new, old
            elif status:
                yield status, path_text(next(pieces, b"")), None


class _LeftOut:
    """Which files of a folder are in no tree of it, by one of their names.

    What a file had as `.env` is in the change that renames it.
    """

    def __init__(self, root: Path, named: Collection[str], *, secrets: bool) -> None:
        self._root, self._named, self._secrets = root, frozenset(named), secrets
        self._rules: SettingsRules | None = None
        self._unread = ""
        try:
            self._rules = settings_rules(root)
        except UserError as exc:
            self._unread = f"may be left out by settings that cannot be read ({exc})"

    def why(self, *paths: str | None) -> str:
        """Return a clause, empty for a file that is not left out."""
        if not self._secrets and any(self._is_secret(path) for path in paths if path):
            return "may hold secrets"
        if self._unread:
            return self._unread
        if self._rules is not None and any(map(self._is_ignored, filter(None, paths))):
            return "are left out by the settings of the folder"
        return "are left out of the tree" if any(self._is_named(path) for path in paths if path) else ""

    def _is_ignored(self, path: str) -> bool:
        assert self._rules is not None
        raw = _SHOWN_BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), path)  # rules speak of bytes
        return self._rules.leaves_out(path) or (raw != path and self._rules.leaves_out(raw))

    def _is_named(self, path: str) -> bool:
        ends = (at for at, sign in enumerate(path) if sign == "/")
        return path in self._named or any(path[:end] in self._named for end in ends)

    def _is_secret(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return is_secret(name, f"{self._root.as_posix()}/{folder}".rstrip("/"))


def _diff(root: Path, objects: Objects, commit: str, paths: Sequence[str], left_out: _LeftOut | None) -> str:
    arguments = ("--format=", "--patch", "--find-renames", *_AGAINST_FIRST, *objects.relative, commit)
    data = objects.output("show", *arguments, "--", *(objects.prefix + path for path in paths))
    text = _HEADING.sub(_without_cut_word, data[: 4 * MAX_DIFF_CHARS].decode("utf-8", "surrogateescape"))
    if len(data) > 4 * MAX_DIFF_CHARS:  # whole lines alone: a key of which half is left is not known
        text = text[: text.rfind("\n") + 1]
    if left_out is not None:
        text = "".join(_file_masked(root, each, left_out) for each in _FILE.split(text))
    text = _shown(text)
    if len(text) <= MAX_DIFF_CHARS and len(data) <= 4 * MAX_DIFF_CHARS:
        return text
    return text[:MAX_DIFF_CHARS] + f"\n… cut: the changes are {len(data):,} bytes long"


def _without_cut_word(heading: re.Match[str]) -> str:
    """Return the heading of a hunk without its last word where git has cut it there: half a key is not known."""
    place, said = heading.groups()
    is_cut = len(said.encode("utf-8", "replace")) >= _LONGEST_HEADING
    return place + (said.rpartition(" ")[0] if is_cut else said)


def _file_masked(root: Path, changes: str, left_out: _LeftOut) -> str:
    """Return the changes of one file without what looks like secrets; nothing of one that is left out.

    Such a file may come where another one is asked for: a folder that has the name of a file that went.
    """
    paths = [*filter(None, map(_path, _NAMED.findall(changes)[:2]))]
    if left_out.why(*paths):
        return ""
    path = paths[-1] if paths else ""
    # Of one that came or went all is there.
    if (
        "/dev/null" in changes[:_HEAD]
        and masked_file(path, _CHANGED.sub("", changes).encode("utf-8", "replace"))[2]
    ):
        return f"the changes of {path} may hold secrets and are not shown\n"
    said = _CHANGED.sub("", changes[:_HEAD]).encode("utf-8", "replace")
    if any(_is_encoded(each, head) for each in paths for head in (said, _bytes_now(root, each)[:_HEAD])):
        return f"the changes of {path} are not shown: it is read whole, not by its lines\n"
    return _masked(changes, path)


def _is_encoded(path: str, head: bytes) -> bool:
    """Whether the lines of a file are none that people read: a letter, a chat or a PDF may break a key in two."""
    known = next((each for each in memory_types() if each.knows(path, head, binary=False)), None)
    if known is None:
        return False
    return known.traits.binary or (known.traits.text is None and known.kind.source_type != "text")


def _masked(lines: str, path: str) -> str:
    """Return what a commit changed in a file, or one line of it, without what looks like secrets.

    The sign before a line is no letter of it: what `-` or `+` stands before is no key to some shapes.
    """
    plain = _SIGN.sub(" ", lines)
    told = _KEY_LINE.sub(
        lambda line: line["before"] + "*" * len(line["key"]), masked(plain, code=is_code(path))[0]
    )
    return "\n".join(
        line[0] + said[1:] if line[:1] in ("+", "-") else said
        for line, said in zip(lines.split("\n"), told.split("\n"), strict=True)
    )


def blame_text(
    root: Path,
    path: str,
    first: int = 1,
    last: int | None = None,
    *,
    limit: int = 400,
    secrets: bool = False,
) -> str:
    """Return who last changed which lines of a file, when and why: groups of lines under their commit.

    Args:
        root: the folder.
        path: of the file, relative to the folder.
        first: first line, counted from 1.
        last: last line, included; None for the end of the file.
        limit: at most so many lines.
        secrets: whether keys and passwords are shown.

    Raises:
        UserError: the file is not part of what is committed.
        GitFailed: git cannot tell.
    """
    with objects_of(root) as objects:
        try:
            committed = objects.output("cat-file", "blob", f"{objects.head}:{objects.prefix}{path}")
        except GitFailed as exc:
            raise UserError(f"{path!r} is not committed, so nobody can be named for its lines") from exc
        return _blame_text(root, objects, path, committed, first, last, limit=limit, secrets=secrets)


def _blame_text(
    root: Path,
    objects: Objects,
    path: str,
    committed: bytes,
    first: int,
    last: int | None,
    *,
    limit: int,
    secrets: bool,
) -> str:
    said = (committed, _bytes_now(root, path))
    if any(map(is_binary, said)) or (not secrets and any(_is_encoded(path, each[:_HEAD]) for each in said)):
        # What is masked in the cells of a database, or in a letter, is not known by its lines.
        raise UserError(f"{path!r} is no text: who changed which of its lines says nothing")
    if not secrets and (what := next(filter(None, (_whole_secret(path, each) for each in said)), "")):
        raise UserError(f"{path!r} may hold secrets, so that no line of it is shown: {what}")
    now = lines_of(decode(_bytes_now(root, path))[0])
    then = lines_of(decode(committed)[0])
    # Comparing with what is committed leaves out git's own look at the file, which may run filters.
    place = {line: line for line in range(1, len(then) + 1)} if now == then or not now else _places(then, now)
    last = min(last or len(now or then), first + limit - 1)
    wanted = {place[line]: line for line in range(first, last + 1) if line in place}
    output: list[str] = []
    previous = ""
    commits = _blamed(objects, path, min(wanted), max(wanted)) if wanted else {}
    by_line = {line: commits.get(line_then, ("", "")) for line_then, line in wanted.items()}
    lines = now or then
    if not secrets:
        lines = masked("\n".join(lines), code=is_code(path))[0].split("\n")
    for line in range(first, min(last, len(lines)) + 1):
        commit, about = by_line.get(line, ("", "not committed yet"))
        if commit != previous or not output:
            output.append(about if secrets else masked(about)[0])
            previous = commit
        output.append(f"  {line}: {lines[line - 1]}")
    return "\n".join(output)


def _whole_secret(path: str, data: bytes) -> str:
    """Return what a file that is nothing but secrets is, empty for any other; a build leaves such files out.

    One that is too large to be looked through is taken for one: that takes many times its memory.
    """
    if len(data) > MOST_UNREAD_BYTES:
        return f"it has more than {MOST_UNREAD_BYTES:,} bytes"
    return masked_file(path, data)[2]


def _bytes_now(root: Path, path: str) -> bytes:
    """Return a file as it is; nothing when it is not there, or reached by a link."""
    try:
        return read_inside(root, path, links=False)[0]
    except (OSError, UserError):
        return b""


def _places(then: list[str], now: list[str]) -> dict[int, int]:
    """Return which committed line each present line is."""
    often, once = Counter(then), Counter(now)
    # Lines that come often cost the product of how often they do, at each step.
    if sum(number * often[line] for line, number in once.items()) <= _MOST_PAIRS:
        blocks = difflib.SequenceMatcher(a=then, b=now, autojunk=False).get_matching_blocks()
        return {b + i + 1: a + i + 1 for a, b, size in blocks for i in range(size)}
    kept = {line: number for number, line in enumerate(then, start=1) if often[line] == once[line] == 1}
    pairs = _in_order([(kept[line], number) for number, line in enumerate(now, start=1) if line in kept])
    found = {}
    for (a, b), (c, d) in pairwise([(0, 0), *pairs, (len(then) + 1, len(now) + 1)]):
        found[b] = a
        while a + 1 < c and b + 1 < d and then[a] == now[b]:
            a, b = a + 1, b + 1
            found[b] = a
        while a < c - 1 and b < d - 1 and then[c - 2] == now[d - 2]:
            c, d = c - 1, d - 1
            found[d] = c
    del found[0]
    return found


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most of some pairs (line then, line now) that go up on both sides; those now do so already."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (then, _) in enumerate(pairs):
        at = bisect_left(tops, then)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1], ends[at : at + 1] = [then], [number]
    found: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _blamed(objects: Objects, path: str, first: int, last: int) -> dict[int, tuple[str, str]]:
    """Return commit and description of each committed line."""
    arguments = ("--line-porcelain", "--encoding=UTF-8", f"-L{first},{last}", objects.head)
    output = objects.output("blame", *arguments, "--", objects.prefix + path)
    text = output.decode("utf-8", "replace")
    commits: dict[int, tuple[str, str]] = {}
    commit, number, facts = "", 0, dict[str, str]()
    for line in text.split("\n"):
        if line.startswith("\t"):
            when = day(seconds_of(facts.get("author-time", "")))
            commits[number] = (
                commit,
                f"{commit[:10]} {when} {facts.get('author', '')}: {facts.get('summary', '')}",
            )
        elif len(words := line.split(" ")) >= 3 and len(words[0]) in (40, 64) and words[2].isdigit():
            commit, number, facts = words[0], int(words[2]), {}
        else:
            key, _, value = line.partition(" ")
            facts[key] = value
    return commits


def changes_of_text(
    root: Path,
    path: str,
    text: str,
    *,
    limit: int = 20,
    secrets: bool = False,
    left_out: Collection[str] = (),
) -> str:
    """Return the commits that added or took away a text in a file or folder, newest first, with these lines.

    Those of files and folders that are `left_out`, by their paths, are not shown.

    Raises:
        UserError: the text is empty.
        GitFailed: git cannot tell within half a minute.
    """
    if not text.strip():
        raise UserError("give the text whose changes are wanted")
    text = text.strip("\n").split("\n")[0]
    arguments = (
        *("log", f"--max-count={limit}", "--no-merges", "--format=%x01%h %as %an: %s", "--encoding=UTF-8"),
        *("--unified=0", "--patch", f"-S{text}"),
    )
    follow = ("--follow",) if (root / path).is_file() else ()
    with objects_of(root) as objects:
        where = objects.head, "--", (objects.prefix + path).removesuffix("/.") or "."
        data = objects.output(*arguments, *objects.relative, *follow, *where, timeout_s=_SEARCH_S)
    found: list[str] = []
    encoded = cache(lambda path: not secrets and _is_encoded(path, _bytes_now(root, path)[:_HEAD]))
    hidden = cache(_LeftOut(root, left_out, secrets=secrets).why)
    whole = cache(lambda path: not secrets and bool(_whole_secret(path, _bytes_now(root, path))))
    for paths, lines in _changed_lines(data.decode("utf-8", "surrogateescape")):
        if not paths:
            found += [_shown(line if secrets else masked(line)[0]) for line in lines]
            continue
        said = [line for line in lines if text in _shown(line)]
        if not said or any(any(map(each, paths)) for each in (hidden, encoded, whole)):
            continue
        # Of a file that came or went all is there.
        change = "\n".join(line[1:] for line in lines).encode("utf-8", "replace")
        if not secrets and (
            _whole_secret(paths[-1], change) or any(_is_encoded(each, change[:_HEAD]) for each in paths)
        ):
            continue
        found += [
            f"  {paths[-1]}: {_shown(line if secrets else _masked(line, paths[-1]))[:300]}" for line in said
        ]
    return "\n".join(found)


def _changed_lines(log: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commits of a log, without paths, and after each the lines that it changed, with a file's paths.

    How many lines there are stands above them: a line that went may read `-- b/notes.md`.
    """
    paths: list[str] = []
    lines: list[str] = []
    old = new = 0
    for line in log.split("\n"):
        if old > 0 or new > 0:
            old, new = old - line.startswith("-"), new - line.startswith("+")
            lines.append(line)
        elif line.startswith(("\x01", "diff --git ")):
            if lines:
                yield paths, lines
            paths, lines = [], [line[1:]] if line.startswith("\x01") else []
        elif named := _NAMED.fullmatch(line):
            paths += filter(None, [_path(named[1])])
        elif hunk := _HUNK.match(line):
            old, new = (1 if number is None else int(number) for number in hunk.groups())
    if lines:
        yield paths, lines


def _path(named: str) -> str:
    """Return the path that `+++ ` or `--- ` names, empty for none.

    git quotes some names, and ends those with blanks by a tab.

    Example:
        >>> _path("b/my app/.env\\t"), _path('"a/a\\\\"b/.env"'), _path("/dev/null")
        ('my app/.env', 'a"b/.env', '')
    """
    named = named.removesuffix("\t")
    if named == "/dev/null":
        return ""
    if named.startswith('"'):
        named = _ESCAPED.sub(lambda found: _unescaped(found[1]), named[1:-1])
    return _shown(named[2:])


def _shown(text: str) -> str:
    """Return a text of git with `\\xe9` for bytes that are not UTF-8, as the names of files have it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _unescaped(code: str) -> str:
    if len(code) < 3:
        return _ESCAPES.get(code, code)
    return bytes([int(code, 8) & 0xFF]).decode("ascii", "surrogateescape")
