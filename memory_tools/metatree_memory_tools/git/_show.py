"""What git says of one commit, of the lines of a file, and of a text: as plain text, bounded, without secrets.

Of lines they are masked as in the file that they are of, by its name; of what a commit says, as in a document.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.trees.history_text import day
from metatree.trees.masking import is_code
from metatree.trees.source_files import read_inside
from metatree.trees.text import decode, lines_of
from metatree_memory_tools.file_names import is_secret, path_text
from metatree_memory_tools.git._command import (
    GitFailed,
    checked_revision,
    git_bytes,
    git_stream,
    git_text,
    without_settings,
)

MAX_DIFF_CHARS = 15_000
MAX_FILES = 200
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--encoding=UTF-8", "--relative")
_SEARCH_S = 30.0
_KEY_LINE = re.compile(
    r"(?m)(?:(?<=^[ +-])|(?<=@@ ))(?=[0-9a-f]*[A-Zg-z+/])[A-Za-z0-9+/]{60,76}={0,2}(?=\r?$)"
)
"""A line of a key in PEM form, whose first line a change may leave out."""
_FILE = re.compile(r"(?m)^(?=diff --git )")
_NAMED = re.compile(r"(?m)^(?:\+\+\+|---) \"?[abciow]/(.+?)\"?\t?$")


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
    name = checked_revision(name)
    try:
        revision = git_text(
            root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
    except GitFailed as exc:
        raise UserError(f"there is no commit {name!r} in this repository: give its hash") from exc
    try:
        git_text(root, "merge-base", "--is-ancestor", revision, "HEAD")
    except GitFailed as exc:
        raise UserError(f"commit {name!r} is not part of what is checked out") from exc
    return revision


def commit_text(root: Path, name: str, *, secrets: bool = False) -> CommitText:
    """Return what a commit says and changed in a folder.

    Args:
        root: the folder; what the commit did elsewhere in the repository is left out.
        name: hash, tag or branch; only what led to the checked out commit is shown.
        secrets: whether keys and passwords are shown, and changes of files that are likely to hold them.

    Raises:
        UserError: see `resolved`.
        GitFailed: git cannot show it.
    """
    commit = resolved(root, name)
    fields = git_text(
        root, "show", "-s", "--encoding=UTF-8", "--format=%at%x00%an%x00%s%x00%b", commit
    ).split("\0", 3)
    at, author, *said = (*fields, "", "", "", "")[:4]
    subject, body = said if secrets else (masked(text)[0] for text in said)
    changed = list(_changed(root, commit))
    files = tuple(path for _, path, _ in changed)
    hidden = [path for path in files if not secrets and _is_secret(root, path)]
    lines = [
        f"commit {commit}",
        f"author {author}, {day(int(at or 0))}",
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
    lines += [f"the changes of {path} may hold secrets and are not shown" for path in hidden]
    wanted = [
        each for _, path, old in changed[:MAX_FILES] if path not in hidden for each in (path, old) if each
    ]
    if wanted:
        lines += ["", _diff(root, commit, wanted, secrets=secrets)]
    return CommitText(commit, subject, author, day(int(at or 0)), "\n".join(lines).strip() + "\n", files)


def _changed(root: Path, commit: str) -> Iterator[tuple[str, str, str | None]]:
    arguments = (
        "--format=",
        "-z",
        "--name-status",
        "--find-renames",
        "--first-parent",
        "-m",
        *_PLAIN,
        commit,
    )
    with git_stream(root, "show", *arguments, "--", ".") as pieces:
        for piece in pieces:
            status = piece.strip(b"\n")[:1].decode("ascii", "replace")
            if status == "R":
                old, new = path_text(next(pieces, b"")), path_text(next(pieces, b""))
                yield "R", new, old
            elif status:
                yield status, path_text(next(pieces, b"")), None


def _is_secret(root: Path, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return is_secret(name, f"{root.name}/{folder}".rstrip("/"))


def _diff(root: Path, commit: str, paths: Sequence[str], *, secrets: bool) -> str:
    arguments = ("--format=", "--patch", "--find-renames", "--first-parent", "-m", *_PLAIN, commit)
    data = git_bytes(root, "show", *arguments, "--", *paths)
    text = data[: 4 * MAX_DIFF_CHARS].decode("utf-8", "replace")
    text = text if secrets else "".join(map(_file_masked, _FILE.split(text)))
    if len(text) <= MAX_DIFF_CHARS and len(data) <= 4 * MAX_DIFF_CHARS:
        return text
    return text[:MAX_DIFF_CHARS] + f"\n… cut: the changes are {len(data):,} bytes long"


def _file_masked(changes: str) -> str:
    """Return the changes of one file without what looks like secrets."""
    named = _NAMED.search(changes)
    return _masked(changes, named[1] if named else "")


def _masked(lines: str, path: str) -> str:
    """Return lines of a file, or what a commit changed in them, without what looks like secrets."""
    return _KEY_LINE.sub(lambda line: "*" * len(line[0]), masked(lines, code=is_code(path))[0])


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
    try:
        committed = git_bytes(root, "cat-file", "blob", f"HEAD:./{path}")
    except GitFailed as exc:
        raise UserError(f"{path!r} is not committed, so nobody can be named for its lines") from exc
    now = _lines_now(root, path)
    then = lines_of(decode(committed)[0])
    # Comparing with what is committed leaves out git's own look at the file, which may run filters.
    place = {line: line for line in range(1, len(then) + 1)} if now == then or not now else _places(then, now)
    last = min(last or len(now or then), first + limit - 1)
    wanted = {place[line]: line for line in range(first, last + 1) if line in place}
    output: list[str] = []
    previous = ""
    commits = _blamed(root, path, min(wanted), max(wanted)) if wanted else {}
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


def _lines_now(root: Path, path: str) -> list[str]:
    """Return the lines of a file as it is; none when it is not there, or a link that leads out of the folder."""
    try:
        return lines_of(decode(read_inside(root, path)[0])[0])
    except (OSError, UserError):
        return []


def _places(then: list[str], now: list[str]) -> dict[int, int]:
    """Return which committed line each present line is."""
    blocks = difflib.SequenceMatcher(a=then, b=now, autojunk=len(then) > 5_000).get_matching_blocks()
    return {b + i + 1: a + i + 1 for a, b, size in blocks for i in range(size)}


def _blamed(root: Path, path: str, first: int, last: int) -> dict[int, tuple[str, str]]:
    """Return commit and description of each committed line."""
    with without_settings(root) as (head, prefix, variables):
        arguments = ("--line-porcelain", "--no-textconv", "--encoding=UTF-8", f"-L{first},{last}", head)
        output = git_bytes(root, "blame", *arguments, "--", prefix + path, variables=variables)
    text = output.decode("utf-8", "replace")
    commits: dict[int, tuple[str, str]] = {}
    commit, number, facts = "", 0, dict[str, str]()
    for line in text.split("\n"):
        if line.startswith("\t"):
            when = day(int(facts.get("author-time") or 0))
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


def changes_of_text(root: Path, path: str, text: str, *, limit: int = 20, secrets: bool = False) -> str:
    """Return the commits that added or took away a text in a file or folder, newest first, with these lines.

    Raises:
        UserError: the text is empty.
        GitFailed: git cannot tell within half a minute.
    """
    if not text.strip():
        raise UserError("give the text whose changes are wanted")
    text = text.strip("\n").split("\n")[0]
    form = "--format=%x01%h %as %an: %s"
    arguments = (
        "log",
        f"--max-count={limit}",
        "--no-merges",
        form,
        "--unified=0",
        "--patch",
        *_PLAIN,
        f"-S{text}",
    )
    follow = ("--follow",) if (root / path).is_file() else ()
    data = git_bytes(root, *arguments, *follow, "HEAD", "--", path, timeout_s=_SEARCH_S)
    lines: list[str] = []
    file = ""
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith("\x01"):
            lines.append(line[1:] if secrets else masked(line[1:])[0])
        elif line.startswith(("--- ", "+++ ")):
            file = line[6:] if line[4:] != "/dev/null" else file
        elif line[:1] in "+-" and text in line and (secrets or not _is_secret(root, file)):
            lines.append(f"  {file}: {(line if secrets else _masked(line, file))[:300]}")
    return "\n".join(lines)
