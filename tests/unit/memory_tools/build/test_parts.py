"""Small parts of a build: text, words, rules, imports, positions, renames."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.build._index_writer import BuiltFile, arrange
from metatree_memory_tools.build._renames import Renames
from metatree_memory_tools.code.imports import Import, Modules, targets
from metatree_memory_tools.git.ignore import IgnoreRules
from metatree_memory_tools.text.descriptions import docstring_prose, first_sentence, shorten, with_names
from metatree_memory_tools.text.plain import PIECE_LINES, PlainText

from metatree._util.secret_files import is_secret
from metatree.node import Source
from metatree.trees.overlay import above
from metatree.trees.source_types import SourceFile
from metatree.trees.text import cut, decode, is_binary, lines_of


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("día".encode(), "día", "utf-8"),
        ("\ufeffdía".encode(), "día", "utf-8-sig"),
        ("día".encode("utf-16"), "día", "utf-16"),
        ("\ufeffdía".encode("utf-16-be"), "día", "utf-16"),
        ("día".encode("utf-16") + b"!", "día\ufffd", "utf-16"),
        ("\ufeffdía".encode("utf-16-be") + b"\xd8\x00", "día\ufffd", "utf-16"),
        ("día".encode("latin-1"), "día", "latin-1"),
        (b"a\r\nb\rc\n", "a\nb\nc\n", "utf-8"),
    ],
)
def test_any_bytes_have_a_text(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)


@given(st.binary())
def test_no_bytes_fail(data: bytes) -> None:
    text, encoding = decode(data, python=True)
    assert isinstance(text, str) and encoding
    is_binary(data)
    PlainText().outline(SourceFile("x.txt", data))


def test_utf_16_is_text_and_nul_is_not() -> None:
    assert not is_binary("hello".encode("utf-16")) and is_binary(b"\x7fELF\0\0")


def test_cut_takes_ranges_and_only_newlines_end_lines() -> None:
    text = "1\n2\x0c\u2028\n3\n4\n5"
    assert cut(text, Source(path="a")) == text
    assert cut(text, Source(path="a", start_line=2, end_line=3)) == "2\x0c\u2028\n3"
    assert cut(text, Source(path="a", start_line=1, end_line=5, parts=((1, 1), (4, 5)))) == "1\n4\n5"
    assert lines_of("") == [] and lines_of("a\n\n") == ["a", ""]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("Use e.g. this. Two.", "Use e.g. this."),
        ("By J. Doe and others. Two.", "By J. Doe and others."),
        ("Version 2.0 is out! Yes.", "Version 2.0 is out!"),
        ("no end\n\nnext", "no end"),
        ("wrapped\nline. next", "wrapped line. next"),
        ("", ""),
    ],
)
def test_first_sentences(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@given(st.text(), st.integers(5, 60))
def test_nothing_is_longer_than_it_may_be(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
    assert len(first_sentence(text, limit)) <= limit


@given(st.text(max_size=80), st.lists(st.text(min_size=1, max_size=30)))
def test_names_fit(text: str, names: list[str]) -> None:
    assert len(with_names(text, "Names", names, 120)) <= max(120, len(text))


def test_titles_of_docstrings() -> None:
    assert docstring_prose("a.b\n~~~\n\nSend mail.") == "Send mail."
    assert (
        docstring_prose("====\nHTTP library\n====\n\nSend :py:class:`~a.Mail`.").split("\n")[0]
        == "HTTP library"
    )


def test_git_ignore_rules() -> None:
    top = IgnoreRules("", "*.log\n/build\ndocs/**/tmp\n!keep.log\n# note\n\\#x\n\nvendor/\n")
    deep = IgnoreRules("pkg/", "!a.log\nlocal*\n/only\n", top)
    for path, folder, ignored in [
        ("a.log", False, True),
        ("x/keep.log", False, False),
        ("build", True, True),
        ("x/build", True, False),
        ("docs/a/b/tmp", True, True),
        ("#x", False, True),
        ("vendor", True, True),
        ("vendor", False, False),
        ("pkg/a.log", False, False),
        ("pkg/b.log", False, True),
        ("pkg/x/local.py", False, True),
        ("pkg/only", False, True),
        ("pkg/x/only", False, False),
    ]:
        assert deep.ignores(path, folder=folder) is ignored, path


def test_all_in_a_folder_is_not_the_folder() -> None:
    rules = IgnoreRules("", "\ufeff*.log\nabc/**\n!abc/def/\n!abc/def/ok.txt\nx/** \n")
    for path, folder, ignored in [
        ("a.log", False, True),
        ("abc", True, False),
        ("abc/no", True, True),
        ("abc/no.txt", False, True),
        ("abc/def", True, False),
        ("abc/def/ok.txt", False, False),
        ("abc/def/no.txt", False, True),
        ("x", True, False),
        ("x/y", False, True),
    ]:
        assert rules.ignores(path, folder=folder) is ignored, path


def test_rules_that_are_no_patterns_are_passed_over() -> None:
    rules = IgnoreRules("", "!\n[\n*.log\n/\n!!x\n")
    assert rules.ignores("a.log", folder=False) and not rules.ignores("a.py", folder=False)


@pytest.mark.parametrize(
    ("name", "folder", "secret"),
    [
        (".env", "", True), (".env.local", "", True), (".ENV", "", True), (".env.example", "", False),
        ("server.pem", "", True), ("id_rsa", "", True), ("id_rsa.pub", "", False), ("credentials", ".aws", True),
        ("known_hosts", ".ssh", True), ("work", ".ssh", True), ("keys.py", "", False), ("environment.py", "", False),
        ("secrets.yaml", "", True), ("credentials.json", "", True), ("credential.json", "", True),
        ("secret.toml", "", True), ("credentials.ini", "", True), ("secrets.txt", "", True), ("credentials", "", True),
        ("credentials.py", "", False), ("my-credentials.json", "", False), ("secrets.py", "", False),
        (".netrc", "", True), ("a.key", "x", True),
        ("hosts.yml", "home/.config/gh", True), ("hosts.yml", "home", False), (".bash_history", "home", True),
        (".python_history", "", True), ("fish_history", "x", True), ("history.py", "x", False),
        ("config", "home/.ssh", True), ("a.txt", "home/.gnupg/private-keys-v1.d", True), ("config", ".kube", True),
        ("config.json", "home/.docker", True), ("config", ".git", False), (".npmrc", "", True), (".pypirc", "", True),
        ("rootkey.csv", "", True), ("ann_accessKeys.csv", "", True), ("credentials.csv", "", True),
        ("keys.csv", "", False),
        ("config", "home/.SSH", True), ("credentials", ".Aws", True), ("config", ".KUBE", True),
        (".env~", "", True), ("id_rsa~", "", True), (".netrc.bak", "", True), ("#.env#", "", True),
        (".authinfo", "", True), ("..env.swp", "", True), (".env-prod", "", True), ("a.md~", "", False),
        (".env_example", "", False),
        (".env copy", "", True), (".env - Copy (2)", "", True), ("Copy of .env", "", True), (".env1", "", True),
        (".env (3rd copy)", "", True), ("secrets (1).json", "", True), (".env.example copy", "", False),
        ("notes copy.md", "", False), (".bash_history-04242.tmp", "", True), ("1F.history", "home/.zsh_sessions", True),
        ("history.txt", "home/.config/nushell", True), ("history.txt", "docs", False), ("id_rsa2", "", True),
        (".my.cnf", "", True), (".vault-token", "", True), ("prod.kubeconfig", "", True), ("kubeconfig.md", "", False),
    ],
)  # fmt: skip
def test_secrets(name: str, folder: str, secret: bool) -> None:
    assert is_secret(name, folder) is secret


PATHS = [
    "src/app/__init__.py", "src/app/mail.py", "src/app/web/__init__.py", "src/app/web/views.py",
    "tests/test_mail.py", "tools/run.py", "space/deep/mod.py", "lib/other.py",
]  # fmt: skip
SAID = {
    "src/app/__init__.py": [(1, "mail", (("Mail", "Mail"), ("send", "post"))), (1, "web", (("views", "v"),))]
}


@pytest.mark.parametrize(
    ("path", "imports", "found"),
    [
        ("tests/test_mail.py", [(0, "app", ())], {"src/app/__init__.py"}),
        ("tests/test_mail.py", [(0, "app.mail", ())], {"src/app/mail.py"}),
        ("tests/test_mail.py", [(0, "src.app.mail", ())], {"src/app/mail.py"}),
        ("tests/test_mail.py", [(0, "app", (("Mail", "Mail"),))], {"src/app/mail.py"}),
        ("tests/test_mail.py", [(0, "app", (("post", "post"),))], {"src/app/mail.py"}),
        ("tests/test_mail.py", [(0, "app", (("web", "web"),))], {"src/app/web/__init__.py"}),
        ("tests/test_mail.py", [(0, "app", (("v", "v"),))], {"src/app/web/views.py"}),
        ("tests/test_mail.py", [(0, "app", (("*", "*"),))], {"src/app/__init__.py"}),
        ("tests/test_mail.py", [(0, "space.deep", (("mod", "mod"),))], {"space/deep/mod.py"}),
        ("tests/test_mail.py", [(0, "other", ())], {"lib/other.py"}),
        ("tests/test_mail.py", [(0, "os.path", ()), (0, "json", (("loads", "loads"),))], set()),
        ("src/app/web/views.py", [(2, "mail", (("send", "send"),))], {"src/app/mail.py"}),
        ("src/app/web/views.py", [(2, "", (("mail", "mail"),))], {"src/app/mail.py"}),
        ("src/app/web/views.py", [(1, "", (("views", "views"),))], set()),
        ("src/app/web/views.py", [(9, "x", (("y", "y"),))], set()),
    ],
)
def test_imports_lead_to_files_of_the_source(path: str, imports: list[Import], found: set[str]) -> None:
    assert targets(path, imports, Modules(PATHS), SAID) == found


def test_packages_that_hand_names_round_in_circles_end() -> None:
    imports_of = {"a/__init__.py": [(0, "b", (("x", "x"),))], "b/__init__.py": [(0, "a", (("x", "x"),))]}
    assert (
        targets("c.py", [(0, "a", (("x", "x"),))], Modules([*imports_of, "c.py"]), imports_of)
        <= imports_of.keys()
    )


@given(
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 40)),
)
def test_positions_are_in_order_and_stay_when_they_can(wanted: list[str], known: dict[str, int]) -> None:
    places = arrange(wanted, {node_id: known[node_id] for node_id in wanted if node_id in known})
    assert [places[node_id] for node_id in wanted] == sorted(places.values())
    assert len(set(places.values())) == len(wanted)


def test_positions_of_neighbours_stay() -> None:
    first = arrange(["a", "b", "c"], {})
    second = arrange(["a", "x", "b", "c", "d"], first)
    assert {node_id: second[node_id] for node_id in first} == first


def test_renames_pair_each_file_once() -> None:
    known = {f"old/{n}": BuiltFile(5, 0, "same", "r", 0) for n in "ab"} | {
        "e": BuiltFile(0, 0, "empty", "r", 0),
        "o": BuiltFile(3, 0, "other", "r", 0),
    }
    renames = Renames(known, known)
    assert renames.source("new/b", "same", 5) == "old/b"
    assert renames.source("new/x", "same", 5) == "old/a"
    assert renames.source("new/y", "same", 5) is None
    assert renames.source("n", "empty", 0) is None
    assert list(renames.folders({"old"}, {"new"})) == [("old", "new")]


def test_above() -> None:
    assert list(above("a")) == []
    assert list(above("a/b#x.<intro>")) == ["a/b", "a"]


def test_long_text_is_cut_at_blank_lines() -> None:
    lines = [("" if n % 50 == 49 else f"line {n}") for n in range(3 * PIECE_LINES)]
    outline = PlainText().outline(SourceFile("a.log", "\n".join(lines).encode()))
    spans = [(part.start_line, part.end_line) for part in outline.parts]
    assert spans[0][0] == 1 and spans[-1][1] == len(lines) - 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(spans))
    assert all(lines[end - 1] == "" for _, end in spans[:-1])
    assert PlainText().outline(SourceFile("a.log", b"one\ntwo")).parts == ()


def functions(count: int, lines: int) -> str:
    """Return functions in R, each with a comment above it and a blank line inside."""
    body = ["  y <- x", "", *["  y <- y + 1"] * (lines - 6), "  y"]
    return "\n\n".join(
        "\n".join([f"# Adds {n}.", f"add{n} <- function(x) {{", *body, "}"]) for n in range(count)
    )


@pytest.mark.parametrize("lines", [8, 14, 30, 45])
def test_code_that_no_parser_reads_is_cut_between_definitions(lines: int) -> None:
    file = SourceFile("a.R", functions(30, lines).encode())
    outline = PlainText().outline(file)
    assert outline.attributes["language"] == "r"
    spans = [(part.start_line, part.end_line) for part in outline.parts]
    assert spans[0][0] == 1 and spans[-1][1] == len(file.lines)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(spans))
    assert all(file.lines[first - 1].startswith("# Adds") for first, _ in spans)
    assert all(last - first < 60 for first, last in spans)


def test_code_without_blank_lines_is_cut_where_nothing_is_indented() -> None:
    text = "\n".join(f"sub{n} <- function() {{\n  {n}\n  {n} + 1\n}}" for n in range(60))
    file = SourceFile("a.r", text.encode())
    firsts = [file.lines[part.start_line - 1] for part in PlainText().outline(file).parts]
    assert len(firsts) == 6 and all(line.startswith("sub") for line in firsts)


def test_short_code_minified_code_and_settings_are_not_cut() -> None:
    for name, text in (("a.r", "x <- 1\n" * 60), ("a.dart", "x;" * 200_000), ("a.json", "{}\n" * 200)):
        assert PlainText().outline(SourceFile(name, text.encode())).parts == ()


@pytest.mark.parametrize(
    ("name", "text", "description"),
    [
        (
            "a.rst",
            "Signals\n=======\n\n.. module:: x\n   :synopsis: S\n\nDjango includes signals. More.\n",
            "Signals: Django includes signals.",
        ),
        (
            "a.js",
            "/*\n * Copyright 2020 X\n */\n\n// Draws the chart.\nfunction f() {}\n",
            "Draws the chart.",
        ),
        (
            "a.html",
            "<!doctype html><html><head><title>My page</title><style>p {}</style></head></html>",
            "My page",
        ),
        ("a.toml", "[project]\nname = 'x'\n", "[project] name = 'x'"),
        ("LICENSE", "Copyright (c) Me\n", "Copyright (c) Me"),
        ("a.txt", "", "An empty file."),
    ],
)
def test_descriptions_of_other_files(name: str, text: str, description: str) -> None:
    assert PlainText().outline(SourceFile(name, text.encode())).description == description
