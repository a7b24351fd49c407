"""What part a file plays in a project: source, test, document, … derived from its path alone.

Words are in tests, change logs and examples as often as in the source that they are about. Someone who asks how
something works, or reports that it does not, means the source; so the others come behind it, unless the question
speaks of them. The factors know no project.

What commits say of a file has a role of its own: of 110 places that 22 questions about five projects gave, 22 were
histories, and none is now. Generated files come behind too, and all of their text is indexed: which version a lock
file names is a fair question. Lost: leaving them out; the path alone (parsers and bindings lie beside the source).
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from posixpath import splitext
from typing import Literal

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree_routers.query.stack_frames import CODE_SUFFIXES
from metatree_routers.query.terms import term_counts


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
    GENERATED = 6
    """What a tool made from other files: bundles, lock files, parsers."""
    SETTINGS = 7
    """What a project is built from and by: manifests of packages, settings of tools and of continuous integration."""
    HISTORY = 8
    """What the commits that touched a file say, where a tree has the history of its files."""


_TEST_FOLDERS = frozenset(
    {
        "test",
        "tests",
        "testing",
        "__tests__",
        "__mocks__",
        "spec",
        "specs",
        "testdata",
        "fixtures",
        "e2e",
        "cypress",
        "unittest",
        "unittests",
    }
)
_SIDE_FOLDERS = frozenset(
    {
        "example",
        "examples",
        "benches",
        "benchmark",
        "benchmarks",
        "demo",
        "demos",
        "tutorials",
        "galleries",
        "playground",
        "samples",
        "scripts",
        "tools",
    }
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs"})
_VENDOR_FOLDERS = frozenset(
    {
        "vendor",
        "_vendor",
        "vendored",
        "third_party",
        "third-party",
        "thirdparty",
        "3rdparty",
        "deps",
        "extern",
        "externals",
    }
)
_GENERATED_FOLDERS = frozenset({"dist", "node_modules", "bower_components", "__snapshots__", "__generated__"})
_DOCUMENT_SUFFIXES = frozenset(
    {".md", ".mdx", ".markdown", ".rst", ".txt", ".html", ".adoc", ".tex", ".ipynb", ".pdf"}
)
_MANUAL_PAGE = re.compile(r"\.[1-9](?:[a-z]{1,4})?(?:\.in)?$")
_GENERATED_SUFFIXES = frozenset({".lock", ".snap", ".prebuilt"})
_CODE = rf"\.(?:{CODE_SUFFIXES})"
_NO_LOG = re.compile(rf".*(?:{_CODE}|\.(?:ya?ml|json|toml|xml|ini|cfg))")
"""`history.py` is about what has been, and is not a log of it."""
_LOG_STEM = re.compile(
    r"changelog|changes|history|news|releases?|relnotes|authors|contributors|(?:un)?licen[cs]e(?:[_-].*)?|copying|notice"
)
_LOG_FOLDERS = frozenset({"whatsnew", "changelog", "changes", "newsfragments"})
_TEST_NAME = re.compile(
    rf"""
    test_ .*                                                  # test_api.py
    | .* [_.-] (?: tests? | test-d ) (?: \. \w+ )?             # api_test.go, api.test.js, api.test-d.ts
    | (?: test- .* | .* [_.-] (?: spec | unittests? | cy ) ) {_CODE}  # api_spec.rb, api.spec.ts, api_unittest.cc
    | .* \. (?: feature | phpt | bats | t )
    """,
    re.VERBOSE,
)
_TEST_CLASS = re.compile(
    r"(?:[a-z0-9]Tests?|[a-z0-9]TestCase|^Test[A-Z]\w*)\.(?:java|kt|scala|groovy|cs|php|swift)$"
    r"|[a-z]Spec\.(?:scala|groovy)$"
)
"""A class of tests, by the capital that begins the word; `TypeSpec.java` is none."""
_TEST_FOLDER = re.compile(
    r".*[._-][Tt]ests|.*\.Test|.*[a-z]Tests|(?:android|common|integration|jvm|js|native|unit)Test"
)
"""`Acme.Till.Tests`, `TillTests`, `integration-tests`, `androidTest`; `tokio-test` is a library."""
_GENERATED_NAME = re.compile(
    r"""
    .* [.-] min \. (?: js | css | mjs | cjs )
    | (?: package-lock | npm-shrinkwrap | composer\.lock ) (?: \.json )? | pnpm-lock\.yaml | go (?:\.work)? \.sum
    | gradle\.lockfile | package\.resolved | .* \. (?: js | css | mjs | cjs | ts ) \.map
    | .* _pb2 (?: _grpc )? \. pyi? | .* \.pb (?: \.gw )? \. (?: go | cc | h | swift | dart )
    | .* _pb (?: \.d )? \. (?: js | ts | rb )
    | .* \. (?: g | gr | freezed | mocks ) \.dart | .* \. (?: designer | g | g\.i ) \.cs | .* \.tab \. [ch]
    | .* \.generated\. \w+ | zz_generated .*
    """,
    re.VERBOSE,
)
_SETTINGS_NAME = re.compile(
    r"""
    setup\.(?:py|cfg) | pyproject\.toml | tox\.ini | noxfile\.py | manifest\.in | pipfile | requirements .* \.txt
    | package\.json | tsconfig .* \.json | deno\.jsonc? | lerna\.json | bower\.json | composer\.json
    | .* \.config\.[cm]?[jt]s | \..* rc (?:\.\w+)? | karma\.conf\.\w+ | (?: grunt | gulp | jake ) file .*
    | cargo\.toml | go\.mod | go\.work | pom\.xml | .* \.gradle (?:\.kts)? | .* \.(?: cs | fs | vcx ) proj | .* \.sln
    | build\.(?: sbt | xml | zig\.zon ) | gemfile | .* \.gemspec | rakefile | mix\.exs | package\.swift | .* \.podspec
    | (?: gnu )? makefile (?:\..*)? | .* \.mk | cmakelists\.txt | .* \.cmake | configure\.ac | meson\.build | .* \.bazel
    | (?: .* \.)? (?: dockerfile | containerfile ) | (?: dockerfile | containerfile ) [.-] .*
    | docker-compose .* | vagrantfile | jenkinsfile | (?: appveyor | codecov | azure-pipelines | mkdocs ) \.yml
    | (?: netlify | clippy | rustfmt | deny ) \.toml
    | rust-toolchain (?:\.toml)? | gradle (?:-wrapper)? \.properties | (?: jsconfig | tslint | turbo ) \.json
    | pnpm-workspace\.yaml | pubspec\.yaml | (?: phpunit | psalm ) \.xml (?:\.dist)? | phpstan\.neon (?:\.dist)?
    | directory\.build\.(?: props | targets ) | .* \.cabal | .* \.bzl | .* \.spec | flake\.nix | podfile | justfile
    """,
    re.VERBOSE,
)
_READS_SETTINGS = re.compile(rf"(?:dockerfile|containerfile|docker-compose|makefile).*{_CODE}")
"""`dockerfile.go` is about such a file, and is none."""

# Of the score in a long report, which is about a file to change, and in a question, which a document may answer best.
_IN_REPORT = {
    Role.TEST: 0.4,
    Role.DOCUMENT: 0.5,
    Role.SIDE: 0.7,
    Role.LOG: 0.3,
    Role.VENDORED: 0.8,
    Role.GENERATED: 0.3,
    Role.SETTINGS: 0.6,
}
_IN_QUESTION = {
    Role.TEST: 0.5,
    Role.DOCUMENT: 1.0,
    Role.SIDE: 0.8,
    Role.LOG: 0.4,
    Role.VENDORED: 0.8,
    Role.GENERATED: 0.4,
    Role.SETTINGS: 0.8,
    Role.HISTORY: 0.7,
}
# In a question about code, which the code answers: its documents only speak of it.
_IN_CODE = {
    Role.TEST: 0.5,
    Role.DOCUMENT: 0.6,
    Role.SIDE: 0.7,
    Role.LOG: 0.4,
    Role.VENDORED: 0.6,
    Role.GENERATED: 0.4,
    Role.SETTINGS: 0.6,
    Role.HISTORY: 0.5,
}

_SPEAKS_OF = {
    Role.TEST: {"test", "pytest", "unittest", "fixtur"},
    Role.DOCUMENT: {"doc", "document", "readm", "docstr"},
    Role.SIDE: {"exampl", "benchmark", "script", "tutori", "demo"},
    Role.LOG: {"changelog", "histori", "releas", "licens", "author", "news", "version", "who"},
    Role.VENDORED: {"vendor"},
    Role.GENERATED: {"generat", "bundl", "dist", "lock", "lockfil", "snapshot"},
    Role.SETTINGS: {
        "build",
        "bump",
        "ci",
        "depend",
        "instal",
        "makefil",
        "packag",
        "setup",
        "workflow",
    },
    Role.HISTORY: {
        "ad",
        "author",
        "chang",
        "commit",
        "drop",
        "histori",
        "introduc",
        "last",
        "remov",
        "replac",
        "sinc",
        "version",
        "when",
        "who",
        "why",
    },
}


@lru_cache(maxsize=1_024)  # the nodes of a file come one after the other
def role_of(path: str) -> Role:
    """Tell the role of a file by its path.

    Example:
        >>> [role_of(path).name for path in ("src/app.py", "tests/test_app.py", "CHANGES.rst", "dist/app.min.js")]
        ['SOURCE', 'TEST', 'LOG', 'GENERATED']
        >>> [role_of(path).name for path in ("man/tea.1", "tea.6.in", "Tea.3pm", "tea.h")]
        ['DOCUMENT', 'DOCUMENT', 'DOCUMENT', 'SOURCE']
    """
    spelled = path.rstrip("/").split("/")
    *above, name = path.lower().rstrip("/").split("/")
    folders, suffix = set(above), splitext(name)[1]
    stem = name.partition(".")[0]
    if folders & _GENERATED_FOLDERS or suffix in _GENERATED_SUFFIXES or _GENERATED_NAME.fullmatch(name):
        return Role.GENERATED
    if folders & _TEST_FOLDERS or stem in ("conftest", "test", "tests"):
        return Role.TEST
    if _TEST_NAME.fullmatch(name) or _TEST_CLASS.search(spelled[-1]):
        return Role.TEST
    if any(map(_TEST_FOLDER.fullmatch, spelled[:-1])):
        return Role.TEST
    if folders & _VENDOR_FOLDERS:
        return Role.VENDORED
    if suffix in (".po", ".pot"):
        return Role.LOG
    if (_LOG_STEM.fullmatch(stem) or folders & _LOG_FOLDERS) and not _NO_LOG.fullmatch(name):
        return Role.LOG
    if folders & _SIDE_FOLDERS:
        return Role.SIDE
    if _SETTINGS_NAME.fullmatch(name) and not _READS_SETTINGS.fullmatch(name):
        return Role.SETTINGS
    if suffix in _DOCUMENT_SUFFIXES or folders & _DOCUMENT_FOLDERS or _MANUAL_PAGE.search(name):
        return Role.DOCUMENT
    if any(part.startswith(".") and part.strip(".") for part in (*above, name)):  # .github/, .gitignore
        return Role.SETTINGS
    return Role.SOURCE


def role_of_node(node: Node) -> Role:
    """Tell the role of the file that a node is of, or of what the node itself says of a file."""
    if node.attributes.get("generated"):
        return Role.GENERATED
    if node.kind == "history":
        return Role.HISTORY
    return Role.SOURCE if node.path is None else role_of(node.path)


def factors(heading: str, *, of: Literal["report", "question", "code"]) -> npt.NDArray[np.float32]:
    """Give what the score of a file is multiplied with, by its role; 1 for a role that the heading speaks of.

    Args:
        heading: the first line of a question or a report.
        of: what is scored for: a report, a question, or a question that is asked of a tree of code.
    """
    words = {*term_counts(heading), *heading.lower().split()}  # `who` and `why` are no terms
    table = np.ones(256, dtype=np.float32)
    for role, factor in {"report": _IN_REPORT, "question": _IN_QUESTION, "code": _IN_CODE}[of].items():
        if not _SPEAKS_OF[role] & words:
            table[role] = factor
    return table
