"""The release that an entry of a changelog stands under: when it was, and its version, are said there alone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from metatree.node import Node

IS_CHANGES = re.compile(r"change|news|history|release|announce|whats.?new", re.IGNORECASE)
"""How files and sections are called that say what changed, release by release."""
_MOST_CHARS = 100
_MOST_LINES = 1_000
"""Of an entry that are looked at for who signed it."""
_VERSION = r"(?:\d+:)?v?\d+(?:\.\d+)+[\w.+~-]*"
_DAY = (
    r"(?:(?:19|20)\d\d[-./]?(?:\d\d|\w{3})[-./]?\d\d"
    r"|\d{1,2}[-./ ](?:\d\d|[A-Z][a-z]{2,8})[-./ ](?:19|20)\d\d|[A-Z][a-z]{2,8} \d{1,2}, (?:19|20)\d\d)"
)
_RELEASE = re.compile(
    rf" {{0,3}}(?:[#*=-]+\s+)?(?:\w[\w.+-]*[ -]|[Vv]ersion |[Rr]elease |[Cc]hanges (?:in|since) )?\W?"
    rf"(?:{_VERSION}|{_DAY})(?!\w)[\])]?(?:\W*$|[\s:,(\[<-].{{0,60}}$)"
)
_SAYS = re.compile(r"\w")
_SENTENCE = re.compile(r"(?:[a-z]\w* ){6}|[.;]\s*$")


def is_release(line: str) -> bool:
    """Say whether a line is the heading of a release, or the day of an entry.

    Example:
        >>> lines = ("## [2.0.0] - 2019-09-07", "0.1.1 (2018-01-07)", "hdparm-9.65:", "20000309", "Version 1.4")
        >>> [is_release(line) for line in lines]
        [True, True, True, True, True]
        >>> is_release("* 1.9.1: When a packet could not be sent out, the exception is raised."), is_release("- fixes")
        (False, False)
    """
    return len(line) <= _MOST_CHARS and _RELEASE.match(line) is not None and _SENTENCE.search(line) is None


def is_below_release(node: Node) -> bool:
    """Whether a node may be a part of what changed in a release, whose version only the node above it says."""
    return node.kind == "section" and IS_CHANGES.search(node.id) is not None and not is_release(node.title)


def releases_of(lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that are headings of releases."""
    return [number for number, line in enumerate(lines) if line[:1] not in ("\t", "") and is_release(line)]


def release_above(lines: Sequence[str], releases: Sequence[int], first: int, above: str = "") -> str:
    """Return the heading of the release that a line stands under; '' when it is one itself, or there is none.

    A day in a line of its own below the version is added, and so is who signed an entry of Debian's, and when.

    Args:
        releases: of `releases_of`.
        above: what stands above the first line.

    Example:
        >>> lines = ["1.1", "===", "2024-05-01", "", "- fix a leak", "1.0", "- begin"]
        >>> release_above(lines, releases_of(lines), 4), release_above(lines, releases_of(lines), 6)
        ('1.1, 2024-05-01', '1.0')
    """
    at = bisect_right(releases, first) - 1
    if at < 0:
        return above
    number = releases[at]
    if number == first:
        return ""
    heading = lines[number].strip()
    if at and not any(map(_SAYS.search, lines[releases[at - 1] + 1 : number])):
        heading = f"{lines[releases[at - 1]].strip()}, {heading}"
    end = releases[at + 1] if at + 1 < len(releases) else len(lines)
    entry = islice(lines, first, min(end, first + _MOST_LINES))
    signed = next((line for line in entry if line.startswith(" -- ")), "")
    return f"{heading} {signed.strip()}" if signed else heading
