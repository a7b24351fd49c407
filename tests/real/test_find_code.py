"""What `find` lists first in five projects of others: names, and questions in words, from the root and below."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import NodeRef, Tree, search

pytestmark = pytest.mark.real

PROJECTS = {
    # folder of the code, names, questions in words with what answers them
    "requests": (
        "src",
        [
            "SessionRedirectMixin.resolve_redirects",
            "HTTPAdapter",
            "utils.get_environ_proxies",
            "HTTPDigestAuth.build_digest_header",
        ],
        {
            "how are proxies read from the environment": "get_environ_proxies",
            "which exception is raised for too many redirects": "TooManyRedirects",
            "dictionary with case insensitive keys": "CaseInsensitiveDict",
            "how is the basic authentication header built": "_basic_auth_str HTTPBasicAuth",
        },
    ),
    "flask": (
        "src",
        ["Flask.full_dispatch_request", "Blueprint", "send_from_directory", "SecureCookieSessionInterface"],
        {
            "render a template string with a context": "render_template_string",
            "convert a python object to a json response": "jsonify JSONProvider.response DefaultJSONProvider.response",
            "flash a message to the next request": "flash",
            "load configuration from environment variables with a prefix": "Config.from_prefixed_env",
        },
    ),
    "click": (
        "src",
        ["Context.invoke", "BadParameter", "echo_via_pager", "CliRunner"],
        {
            "progress bar for an iterable": "progressbar ProgressBar",
            "ask the user for confirmation": "confirm confirmation_option",
            "edit text in the default editor": "edit Editor.edit Editor.edit_files",
            "parameter type for a range of integers": "IntRange",
        },
    ),
    "httpx": (
        "httpx",
        ["AsyncClient", "Response.raise_for_status", "DigestAuth", "MockTransport"],
        {
            "decode a gzip compressed response": "GZipDecoder",
            "parse a url into its components": "urlparse URL",
            "encode multipart form data files": "MultipartStream FileField",
            "which proxies come from the environment": "get_environment_proxies",
        },
    ),
    "jinja2": (
        "src",
        ["Environment.from_string", "SandboxedEnvironment", "do_groupby", "FileSystemLoader"],
        {
            "cache of compiled template bytecode on the file system": "FileSystemBytecodeCache",
            "sort a sequence in a template filter": "do_sort",
            "undefined variable that raises errors strictly": "StrictUndefined",
            "loader that looks in a python package": "PackageLoader",
        },
    ),
}


@pytest.fixture(scope="module", params=list(PROJECTS))
def project(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module", params=["the root", "the code"])
def tree(
    request: pytest.FixtureRequest, project: str, real_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Tree:
    (folder,) = (real_files / project).glob("*/")
    if request.param == "the code":
        folder = folder / PROJECTS[project][0]
    return build_tree(folder, out=tmp_path_factory.mktemp(project) / "tree")


def found(tree: Tree, question: str) -> list[NodeRef]:
    return list(search(question, tree=tree, returns="nodes", k=5).nodes)


def test_a_name_finds_its_definition_with_its_lines_first(tree: Tree, project: str) -> None:
    for name in PROJECTS[project][1]:
        first = found(tree, name.rpartition(".")[2])[0]
        wanted = name.rpartition(".")[2]
        assert first.id.partition("::")[2].rpartition(".")[2] == wanted, (name, first)
        assert first.lines is not None and first.lines[0] <= first.lines[1], first
        assert first.path is not None and first.path.endswith(".py"), first


def test_a_question_in_words_finds_the_definition(tree: Tree, project: str) -> None:
    ranks = {}
    for question, wanted in PROJECTS[project][2].items():
        titles = [node.id.partition("::")[2].removesuffix(".<class>") for node in found(tree, question)]
        right = [
            at for at, title in enumerate(titles, 1) if set(wanted.split()) & {title, title.split(".")[0]}
        ]
        ranks[question] = right[0] if right else 0
    assert sum(0 < rank <= 5 for rank in ranks.values()) >= 2, ranks
    assert sum(rank == 1 for rank in ranks.values()) >= 1, ranks
