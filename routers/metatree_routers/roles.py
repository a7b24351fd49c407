"""What part a file plays in a project: source, test, document, … told from its path alone.

Words are in tests, change logs and examples as often as in the source that they are about. Someone who asks how
something works, or reports that it does not, means the source; so the others come behind it, unless the question
speaks of them. The factors know no project.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from functools import lru_cache
from posixpath import splitext

import numpy as np
import numpy.typing as npt


class Role(IntEnum):
    """The part that a file plays."""

    SOURCE = 0
    TEST = 1
    DOCUMENT = 2
    SIDE = 3
    """Examples, benchmarks, scripts."""
    LOG = 4
    """Change logs, news, lists of authors, licences; catalogues of translations."""
    VENDORED = 5
    """Copies of other projects."""


_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs", "testdata", "fixtures"})
_SIDE_FOLDERS = frozenset(
    {
        "example",
        "examples",
        "benchmark",
        "benchmarks",
        "demo",
        "demos",
        "tutorials",
        "galleries",
        "scripts",
        "tools",
    }
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs"})
_VENDOR_FOLDERS = frozenset(
    {"vendor", "_vendor", "vendored", "third_party", "thirdparty", "extern", "externals"}
)
_DOCUMENT_SUFFIXES = frozenset({".md", ".rst", ".txt", ".html", ".adoc", ".tex", ".ipynb"})
_LOGS = frozenset(
    {
        "changelog",
        "changes",
        "history",
        "news",
        "release",
        "releases",
        "authors",
        "contributors",
        "license",
        "copying",
    }
)

# Of the score in a long report, which is about a file to change, and in a question, which a document may answer best.
_IN_REPORT = {Role.TEST: 0.4, Role.DOCUMENT: 0.5, Role.SIDE: 0.7, Role.LOG: 0.3, Role.VENDORED: 0.8}
_IN_QUESTION = {Role.TEST: 0.5, Role.DOCUMENT: 1.0, Role.SIDE: 0.8, Role.LOG: 0.4, Role.VENDORED: 0.8}

_SPEAKS_OF = {
    Role.TEST: {"test", "pytest", "unittest", "fixtur"},
    Role.DOCUMENT: {"doc", "document", "readm", "docstr"},
    Role.SIDE: {"exampl", "benchmark", "script", "tutori", "demo"},
    Role.LOG: {"changelog", "histori", "releas", "licens", "author", "news", "version", "who"},
    Role.VENDORED: {"vendor"},
}


@lru_cache(maxsize=1_024)  # the nodes of a file come one after the other
def role_of(path: str) -> Role:
    """Tell the role of a file by its path.

    Example:
        >>> role_of("src/app.py").name, role_of("tests/test_app.py").name, role_of("CHANGES.rst").name
        ('SOURCE', 'TEST', 'LOG')
    """
    *above, name = path.lower().rstrip("/").split("/")
    folders, suffix = set(above), splitext(name)[1]
    stem = name.partition(".")[0]
    if folders & _TEST_FOLDERS or stem in ("conftest", "test", "tests") or stem.startswith("test_"):
        return Role.TEST
    if stem.endswith(("_test", "-test", "_spec")):
        return Role.TEST
    if folders & _VENDOR_FOLDERS:
        return Role.VENDORED
    if (
        suffix in (".po", ".pot")
        or stem in _LOGS
        or folders & {"whatsnew", "changelog", "changes", "newsfragments"}
    ):
        return Role.LOG
    if folders & _SIDE_FOLDERS or name == "setup.py":
        return Role.SIDE
    if suffix in _DOCUMENT_SUFFIXES or folders & _DOCUMENT_FOLDERS:
        return Role.DOCUMENT
    return Role.SOURCE


def factors(title_terms: Collection[str], *, is_report: bool) -> npt.NDArray[np.float32]:
    """Give what the score of a file is multiplied with, by its role; 1 for a role that the title speaks of."""
    table = np.ones(256, dtype=np.float32)
    for role, factor in (_IN_REPORT if is_report else _IN_QUESTION).items():
        if not _SPEAKS_OF[role] & set(title_terms):
            table[role] = factor
    return table
