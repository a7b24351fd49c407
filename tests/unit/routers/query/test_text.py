"""Terms, sentences and sections of a text."""

from __future__ import annotations

import itertools
import tracemalloc
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from metatree_routers.embedded._sentences import sentences
from metatree_routers.index.roles import Role, factors, role_of
from metatree_routers.index.vocabulary import TEXT_END, Vocabulary, spaced_texts
from metatree_routers.query.mentions import find_mentions
from metatree_routers.query.parse import MAX_CHARS, sections
from metatree_routers.query.terms import (
    STOP_WORDS,
    expand,
    expand_cached,
    raw_tokens,
    term_counts,
    terms,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("redirects", ("redirect",)),
        ("Redirects", ("redirect",)),
        ("resolve_redirects", ("resolv", "redirect", "resolve_redirects")),
        ("HTTPAdapter", ("http", "adapt", "httpadapter")),
        ("getURL2", ("get", "url", "geturl2")),
        ("os.path.join", ("os", "path", "join", "os.path.join")),
        ("self.session", ("session",)),
        ("__init__", ("init",)),
        ("base64", ("base", "64", "base64")),
        ("2018", ("2018",)),
        ("Über", ("über",)),
        ("日本語", ("日本", "本語")),
        ("the", ()),
        ("__", ()),
    ],
)
def test_a_raw_token_gives_its_parts_and_the_whole(raw: str, expected: tuple[str, ...]) -> None:
    assert expand(raw) == expected


def test_terms_of_a_question_leave_out_what_says_nothing() -> None:
    assert terms("Where are the redirects of getURL followed?") == [
        "redirect",
        "get",
        "url",
        "geturl",
        "follow",
    ]
    assert terms(" ".join(STOP_WORDS)) == []
    assert terms("\x00 🙂 …") == []


@given(st.text(max_size=300))
@example("搜索功能 Größe straße café.end ...x i.e. İstanbul HTTPServer snake_case 3rd ٣")
def test_any_text_has_the_same_terms_by_both_ways(text: str) -> None:
    vocabulary = Vocabulary()
    chunks = list(vocabulary.encode(text))
    flat, sizes = vocabulary.expand_all()
    ends = list(accumulate(sizes, initial=0))
    numbers = [number for chunk in chunks for number in flat[ends[chunk] : ends[chunk + 1]]]
    assert [vocabulary.terms[number] for number in numbers] == terms(text)
    assert term_counts(text).total() == len(numbers)


@given(st.lists(st.text(max_size=40), max_size=8))
@example(["a\0b", "", "see os.path.join. At", "\0"])
def test_texts_that_are_encoded_together_are_cut_as_if_alone(texts: list[str]) -> None:
    together, alone = Vocabulary(), Vocabulary()
    chunks = list(together.encode_all(spaced_texts(texts)))
    flat, sizes = together.expand_all()
    ends = list(accumulate(sizes, initial=0))
    said: list[list[str]] = [[]]
    for chunk in chunks:
        said[-1] += [together.terms[number] for number in flat[ends[chunk] : ends[chunk + 1]]]
        if chunk == TEXT_END:
            said.append([])
    assert said == [*(terms(text) for text in texts), []]
    assert [chunk for text in texts for chunk in alone.encode(text)] == [c for c in chunks if c != TEXT_END]


def test_a_token_without_end_is_cut() -> None:
    assert all(len(term) <= 80 for term in terms("a" * 1_000_000))
    assert len(raw_tokens("x" * 1_000_000)) == 1


@given(st.text(alphabet="ab .!?\n-*1\"'()#A", max_size=120))
def test_sentences_are_stretches_in_order_that_leave_out_white_space_alone(text: str) -> None:
    spans = list(sentences(text))
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    assert "".join(text[a:b] for a, b in spans).split() == text.split() or "".join(
        "".join(text[a:b] for a, b in spans).split()
    ) == "".join(text.split())


REPORT = """`follow()` loses the body

Calling `follow` on a POST drops the body. See https://example.org/a/b.py for more.

```python
from shop.http import Client
Client().post("/")
```

Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/shop/http.py", line 10, in post
    return self.follow(x)
  File "/usr/lib/python3/json/encoder.py", line 2, in encode
    raise
ValueError: no body

- [x] I have searched the tracker

### Versions
python: 3.7.6
numpy  1.2.3

### What I expected
The body is sent again.
"""


def test_a_report_is_cut_into_sections() -> None:
    parts = sections(REPORT)
    assert parts.is_long
    assert parts.title == "`follow()` loses the body"
    assert "Calling `follow` on a POST" in parts.prose and "example.org" not in parts.prose
    assert "The body is sent again." in parts.prose
    assert "ValueError: no body" in parts.prose
    assert "Client().post" in parts.code and "post" not in parts.prose.split()
    assert 'http.py", line 10' in parts.traceback
    everything = "".join(parts.texts().values())
    assert "3.7.6" not in everything and "numpy" not in everything and "tracker" not in everything


def test_the_title_of_a_report_weighs_most() -> None:
    weights = sections(REPORT).term_weights()
    assert weights["lose"] > weights["post"] > weights["encod"]


def test_a_question_of_a_sentence_is_all_title() -> None:
    parts = sections("Where are redirects followed?\nI mean in requests.")
    assert not parts.is_long and parts.prose == "" and "requests" in parts.title


@given(st.text(max_size=2_000))
def test_any_question_can_be_cut(text: str) -> None:
    parts = sections(text)
    assert all(weight > 0 for weight in parts.term_weights().values())


def test_a_question_without_end_is_cut() -> None:
    parts = sections("word " * 200_000)
    assert parts.is_long and len(parts.title) + len(parts.prose) <= MAX_CHARS + 1


@given(st.text("aB1.? `_\n", min_size=1_000, max_size=5_000))
def test_the_title_of_a_long_first_line_is_bounded(text: str) -> None:
    """Each word of a title is looked up in each text: 99,000 characters in one line took minutes."""
    parts = sections(text)
    assert len(parts.title) <= 1_000
    assert " ".join(parts.title.split()) == " ".join(text.split())[: len(" ".join(parts.title.split()))]


def test_of_a_paragraph_the_title_is_whole_sentences_and_the_rest_is_prose() -> None:
    sentences = [f"The valve of pump {number} leaks, and nobody knows why." for number in range(40)]
    parts = sections(" ".join(sentences))
    assert parts.title == " ".join(sentences[: parts.title.count(".")]) and parts.title.count(".") > 10
    assert f"{parts.title} {parts.prose}".strip() == " ".join(sentences)
    assert sections(" ".join(sentences[:10])).prose == ""


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app.py", Role.SOURCE),
        ("django/contrib/admin/options.py", Role.SOURCE),
        ("tests/app.py", Role.TEST),
        ("pkg/test_app.py", Role.TEST),
        ("pkg/app_test.go", Role.TEST),
        ("web/app.spec.ts", Role.TEST),
        ("web/app.test-d.tsx", Role.TEST),
        ("src/test/java/com/acme/Till.java", Role.TEST),
        ("core/TillTest.java", Role.TEST),
        ("core/TestTill.kt", Role.TEST),
        ("core/Latest.java", Role.SOURCE),
        ("src/latest.rs", Role.SOURCE),
        ("features/till.feature", Role.TEST),
        ("conftest.py", Role.TEST),
        ("docs/api.rst", Role.DOCUMENT),
        ("README.md", Role.DOCUMENT),
        ("docs/conf.py", Role.DOCUMENT),
        ("CHANGES.rst", Role.LOG),
        ("docs/releases/1.2.txt", Role.DOCUMENT),
        ("examples/run.py", Role.SIDE),
        ("scripts/package.json", Role.SIDE),
        ("setup.py", Role.SETTINGS),
        ("Cargo.toml", Role.SETTINGS),
        ("web/vite.config.mjs", Role.SETTINGS),
        ("gson/pom.xml", Role.SETTINGS),
        ("CMakeLists.txt", Role.SETTINGS),
        (".github/workflows/ci.yml", Role.SETTINGS),
        (".github/CONTRIBUTING.md", Role.DOCUMENT),
        ("./app.py", Role.SOURCE),
        ("src/config.py", Role.SOURCE),
        ("pkg/_vendor/six.py", Role.VENDORED),
        ("deps/lua/src/lgc.c", Role.VENDORED),
        ("dist/axios.js", Role.GENERATED),
        ("web/jquery.min.js", Role.GENERATED),
        ("Cargo.lock", Role.GENERATED),
        ("package-lock.json", Role.GENERATED),
        ("api/till.pb.go", Role.GENERATED),
        ("api/till_pb2.py", Role.GENERATED),
        ("src/distance.py", Role.SOURCE),
        ("src/admin.js", Role.SOURCE),
        ("docs/changes/123.feature.rst", Role.LOG),
        ("src/TypeSpec.java", Role.SOURCE),
        ("src/TillSpec.scala", Role.TEST),
        ("lib/till_spec.rb", Role.TEST),
        ("packaging/till.spec", Role.SETTINGS),
        ("api/till-spec.yaml", Role.SOURCE),
        ("base/till_unittest.cc", Role.TEST),
        ("src/test-till.c", Role.TEST),
        ("web/till.cy.ts", Role.TEST),
        ("Zend/closure_001.phpt", Role.TEST),
        ("t/pay.t", Role.TEST),
        ("src/Acme.Till.Tests/Fakes.cs", Role.TEST),
        ("TillTests/Fakes.swift", Role.TEST),
        ("app/src/androidTest/java/Fakes.kt", Role.TEST),
        ("integration-tests/src/fakes.rs", Role.TEST),
        ("contests/Entry.java", Role.SOURCE),
        ("tokio-test/src/io.rs", Role.SOURCE),
        ("Dockerfile", Role.SETTINGS),
        ("Dockerfile.dev", Role.SETTINGS),
        ("build/app.Dockerfile", Role.SETTINGS),
        ("parser/dockerfile.go", Role.SOURCE),
        ("parser/dockerfile_parser.py", Role.SOURCE),
        ("tidy/makefile.rb", Role.SOURCE),
        ("Makefile.am", Role.SETTINGS),
        ("gulpfile.js", Role.SETTINGS),
        ("phpunit.xml.dist", Role.SETTINGS),
        ("pnpm-workspace.yaml", Role.SETTINGS),
        ("go.work.sum", Role.GENERATED),
        ("web/app.js.map", Role.GENERATED),
        ("src/libtill.map", Role.SOURCE),
        ("api/till_pb.d.ts", Role.GENERATED),
        ("src/Till.g.cs", Role.GENERATED),
        ("src/parser.tab.c", Role.GENERATED),
        ("src/release.c", Role.SOURCE),
        ("shop/builders/changes.py", Role.SOURCE),
        ("src/changes/Change.java", Role.SOURCE),
        ("web/history.ts", Role.SOURCE),
        (".github/workflows/release.yml", Role.SETTINGS),
        ("LICENSE-MIT", Role.LOG),
        ("LICENCE.txt", Role.LOG),
        ("docs/changes/123.bugfix.rst", Role.LOG),
        ("HISTORY", Role.LOG),
    ],
)
def test_a_path_tells_the_role_of_a_file(path: str, role: Role) -> None:
    assert role_of(path) == role


def test_a_role_that_is_asked_for_is_not_held_back() -> None:
    assert factors("Redirects fail", of="report")[Role.TEST] < 1
    assert factors("Tests of redirects fail", of="report")[Role.TEST] == 1
    assert factors("", of="question")[Role.SOURCE] == 1
    assert factors("How are redirects followed?", of="question")[Role.HISTORY] < 1
    assert factors("Why are redirects followed?", of="question")[Role.HISTORY] == 1
    assert factors("Who wrote it?", of="question")[Role.LOG] == 1


def test_comments_are_left_out_and_what_only_begins_like_one_is_kept() -> None:
    parts = sections(f"Title\n\n<!-- one --> A <!-- two\n\nthree --> B <!-- never ends. {'More. ' * 60}")
    assert " ".join(parts.prose.split()).startswith("A B <!-- never ends. More.")


@pytest.mark.parametrize(
    "piece",
    [
        "-",
        " ",
        "a/",
        "a.",
        "at a.",
        "a::",
        "`",
        "=\n",
        "\n",
        "\t",
        "E ",
        "import a, ",
        "from a import ",
        "#1 ",
        "1-1-",
        "<!--",
    ],
)
def test_a_question_that_is_made_to_be_slow_is_cut_like_any_other(piece: str) -> None:
    """Each took seconds to minutes while the time grew with the square of the length, or faster."""
    hostile = (piece * MAX_CHARS)[: MAX_CHARS - 600]
    report = f"Title\n\n{'Words before. ' * 30}\nE{hostile}x\n"
    for text in (hostile, report):
        parts = sections(text)
        assert len(find_mentions(parts)) <= 400
    assert "Words before." in parts.prose


def test_the_terms_of_lines_without_spaces_are_not_remembered() -> None:
    """Each line has sixty terms and comes once: 60,000 lines of a PDF took 300 MB."""
    tracemalloc.start()
    try:
        for number in range(2_000):
            line = "".join(chr(0x4E00 + (number * 977 + at * 131) % 20_000) for at in range(60))
            assert len(expand(line)) == 59 and len(expand_cached(line)) == 59
            assert len(terms(f"x.{line}")) > 59
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000
