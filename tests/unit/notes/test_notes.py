"""Remember, say again, update, list and forget, on trees in memory."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree import Node, Tree, UserError, forget, memories, remember, search
from metatree._util.secret_text import redacted, secrets_in
from metatree.errors import UnknownNode
from metatree.notes.notes import MAX_CHARS, MAX_MENTIONS, mentions, said_by
from metatree.notes.placement import BRANCH
from metatree.protocols import DescribeRequest, Description, Scored


class Says:
    """Evidence that gives fixed scores."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        return [Scored(i.replace("__", "/"), s, "") for i, s in self.scores.items()]


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:")
    made.add(Node("src", "src", kind="folder"))
    made.add(Node("src/app.py", "app.py", kind="file", content="x"), "src")
    made.add(Node("src/app.py::Shop.pay", "pay", kind="definition", content="x"), "src/app.py")
    made.add(Node("docs", "docs", kind="folder"))
    made.add(Node("docs/a.md", "a.md", kind="file", content="x"), "docs")
    return made


def test_a_text_about_several_places_is_not_said_to_be_about_none(tree: Tree) -> None:
    made = remember(tree, "Apps want docs.", evidence=False)
    assert (made.parent, made.why) == (BRANCH, "no one place in the tree stands out for it")


def test_same_text_is_one_memory_with_both_mentions(tree: Tree) -> None:
    first = remember(tree, "Tea is at four.", who="ann", source="a call", evidence=False, now=lambda: 0.0)
    again = remember(tree, "  Tea is\nat four. ", who="bob", evidence=False, now=lambda: 86_400.0)
    assert (first.known, again.known, again.node.id) == (False, True, first.node.id)
    assert mentions(tree.get(first.node.id)) == [
        {"who": "ann", "at": "1970-01-01T00:00:00+00:00", "source": "a call"},
        {"who": "bob", "at": "1970-01-02T00:00:00+00:00", "source": None},
    ]
    assert tree.content(first.node.id) == "Tea is at four."
    assert said_by(tree.get(first.node.id)) == "said by ann on 1970-01-01 (a call), and 1 more time"


def test_mentions_are_bounded_and_keep_the_first(tree: Tree) -> None:
    for number in range(MAX_MENTIONS + 5):
        made = remember(tree, "again", who=f"w{number}", evidence=False)
    all_mentions = mentions(made.node)
    assert len(all_mentions) == MAX_MENTIONS
    assert (all_mentions[0]["who"], all_mentions[-1]["who"]) == ("w0", f"w{MAX_MENTIONS + 4}")


def test_a_memory_goes_to_what_it_names(tree: Tree) -> None:
    assert remember(tree, "`src/app.py` wants a review", evidence=False).parent == "src/app.py"
    assert remember(tree, "The folder docs/ is old, see ./docs/a.md", evidence=False).parent == "docs/a.md"
    hits = Says(**{"src/app.py::Shop.pay": 0.9})
    made = remember(tree, "Shop.pay rounds down", evidence=hits)
    assert (made.parent, made.why) == ("src/app.py", "it names Shop.pay")


def test_a_memory_goes_to_the_branch_that_it_is_about_not_below_its_files(tree: Tree) -> None:
    made = remember(
        tree, "rounding of prices", evidence=Says(**{"src/app.py::Shop.pay": 0.9, "src/app.py": 0.9})
    )
    assert made.parent == "src"
    both = remember(tree, "prices and words", evidence=Says(**{"src/app.py": 0.9, "docs/a.md": 0.85}))
    assert both.parent == BRANCH
    weak = remember(tree, "hardly about it", evidence=Says(**{"src/app.py": 0.3}))
    assert weak.parent == BRANCH


def test_memories_on_one_subject_make_a_group(tree: Tree) -> None:
    first = remember(tree, "Ann likes green tea", evidence=False).node
    second = remember(tree, "Green tea is in the kitchen", evidence=Says(**{first.id: 0.8}))
    assert tree.parent(first) == second.parent != BRANCH
    assert tree.parent(second.parent) == BRANCH
    assert tree.get(second.parent).title == "Green, tea"
    third = remember(tree, "There is no tea left", evidence=Says(**{second.node.id: 0.8}))
    assert third.parent == second.parent
    for node in (first, second.node, third.node):
        forget(tree, node.id)
    assert BRANCH not in tree, "empty groups are taken away"


def test_under_puts_it_there_and_moves_what_is_known(tree: Tree) -> None:
    made = remember(tree, "Tea", evidence=False)
    assert made.parent == BRANCH
    moved = remember(tree, "Tea", under="docs", evidence=False)
    assert (moved.known, moved.parent, tree.parent(made.node)) == (True, "docs", "docs")
    with pytest.raises(UserError, match="is a memory itself"):
        remember(tree, "more tea", under=made.node.id)
    with pytest.raises(UnknownNode):
        remember(tree, "more tea", under="dogs")


def test_update_keeps_id_place_and_history(tree: Tree) -> None:
    made = remember(tree, "Tea is at four.", who="ann", under="docs", evidence=False)
    new = remember(tree, "Tea is at five.", who="bob", update=made.node.id)
    assert (new.node.id, tree.content(new.node.id), new.parent) == (made.node.id, "Tea is at five.", "docs")
    assert new.node.title == "Tea is at five."
    assert new.node.provenance["earlier"][0]["text"] == "Tea is at four."
    assert not remember(tree, "Tea is at four.", evidence=False).known, "the earlier text is another memory"
    assert remember(tree, "Tea is at five.", evidence=False).node.id == made.node.id
    with pytest.raises(UserError, match="says the same already"):
        remember(tree, "Tea is at four.", update=made.node.id)
    with pytest.raises(UserError, match="is no memory"):
        remember(tree, "x", update="docs")


def test_memories_lists_the_latest_first(tree: Tree) -> None:
    remember(tree, "one", who="ann", evidence=False, now=lambda: 1.0)
    remember(tree, "two", who="bob", evidence=False, now=lambda: 2.0)
    remember(tree, "one", who="bob", under="docs", evidence=False, now=lambda: 3.0)
    assert [node.content for node in memories(tree)] == ["one", "two"]
    assert [node.content for node in memories(tree, who="ann")] == ["one"]
    assert [node.content for node in memories(tree, under="docs")] == ["one"]


def test_forget_takes_back_what_was_added_and_says_how_to_undo(tree: Tree) -> None:
    made = remember(tree, "It's tea; at 'four'", who="ann", source="a call", under="docs", evidence=False)
    forgotten = forget(tree, made.node.id)
    assert made.node.id not in tree
    assert forgotten.nodes[0].content == "It's tea; at 'four'"
    back = remember(tree, **forgotten.undo, evidence=False)
    assert (back.node.id, back.parent, back.node.provenance["who"]) == (made.node.id, "docs", "ann")
    assert forgotten.command == (
        "metatree remember 'It'\"'\"'s tea; at '\"'\"'four'\"'\"'' --title 'It'\"'\"'s tea; at '\"'\"'four'\"'\"''"
        " --from 'a call' --under docs --who ann"
    )


@pytest.mark.parametrize("node", [".", "docs", "src/app.py"])
def test_forget_never_takes_what_was_made_with_the_tree(tree: Tree, node: str) -> None:
    with pytest.raises(UserError, match="only what was added can be forgotten"):
        forget(tree, node)
    assert node in tree


def test_forget_does_not_take_built_nodes_that_were_moved_below(tree: Tree) -> None:
    made = remember(tree, "Tea", evidence=False)
    tree.move("docs/a.md", made.parent)
    forget(tree, made.parent)
    assert tree.parent("docs/a.md") == "." and made.node.id not in tree


@pytest.mark.parametrize("under", [None, "docs"])
def test_forget_overwrites_the_words(tree: Tree, under: str | None) -> None:
    made = remember(tree, "the word is xylophone", under=under, evidence=False)
    forget(tree, made.node.id)
    assert not tree.memory.rows("SELECT 1 FROM content WHERE text LIKE '%xylophone%'")
    assert not tree.memory.rows("SELECT 1 FROM meta WHERE key LIKE 'memory-text:%'")


def test_forgetting_takes_a_call_back_too(tree: Tree) -> None:
    """Or the next search would bring the node back from the record of the call."""
    tree.memory.execute(
        "INSERT INTO call(hash, tool, version, arguments, key, run_id, expires_at, at, result)"
        " VALUES ('h', 't', '1', '{}', 'k', 'r', 0, 0, '{}')"
    )
    tree.add(Node("made", "made", provenance={"tool": "t", "call": "h"}))
    forget(tree, "made")
    assert tree.memory.rows("SELECT * FROM call") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing to remember"),
        (" \n ", "nothing to remember"),
        ("x" * (MAX_CHARS + 1), "at most 200,000"),
    ],
)
def test_what_cannot_be_remembered_is_said(tree: Tree, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        remember(tree, text, evidence=False)


def test_a_describer_writes_the_words(tree: Tree) -> None:
    class Writes:
        async def describe(self, request: DescribeRequest) -> Description:
            await asyncio.sleep(0)
            return Description("a\ntitle", f"on {request.content}")

    node = remember(tree, "tea", evidence=False, describer=Writes()).node
    assert (node.title, node.description) == ("a title", "on tea")
    assert remember(tree, "tea 2", title="mine", evidence=False, describer=Writes()).node.title == "mine"


@given(st.text(min_size=1), st.text(), st.text())
def test_any_text_is_kept_as_one_printable_memory_or_refused(text: str, who: str, source: str) -> None:
    tree = Tree.create(":memory:")
    try:
        made = remember(tree, text, who=who, source=source, evidence=False)
    except UserError:
        assert not any(c.isalnum() for c in text)
        return
    assert made.node.title and not any(unicodedata.category(c) == "Cc" for c in made.node.title)
    assert remember(tree, text, who=who, evidence=False).node.id == made.node.id
    assert len(memories(tree)) == 1
    forget(tree, made.node.id)
    assert len(tree) == 1


def test_it_is_found_by_the_next_search(tree: Tree) -> None:
    remember(tree, "The kettle of the office is in the cellar.", who="ann")
    result = search("Where is the kettle?", tree=tree)
    assert result.answer == "The kettle of the office is in the cellar."
    remember(tree, "The ladder hangs behind the door.", who="ann")
    assert search("Where does the ladder hang?", tree=tree).answer == "The ladder hangs behind the door."


AWS = "AKIA" + "IOSFODNN7EXAMPLE"
SECRETS = [
    f"the key is {AWS}",
    "ghp_" + "a1B2" * 9,
    "use postgres://ann:pa55word@db/shop",
    'api_key = "abcd1234efgh"',
    "DB_PASSWORD=hunter2hunter2",
    "Authorization: Bearer abcdef0123456789abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----",
    "sk-" + "proj-" + "x1" * 15,
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_warned_of_and_can_be_left_out(tree: Tree, text: str) -> None:
    assert "looks like it holds" in remember(tree, text, evidence=False).warnings[0]
    left, number = redacted(f"before {text} after")
    assert number == 1 and left.startswith("before ") and left.endswith(" after")
    assert not secrets_in(left)


def test_a_secret_of_two_shapes_is_left_out_once() -> None:
    token = "ghp_" + "a1B2" * 9
    left, number = redacted(f"token: {token}; x")
    assert number == 1 and token not in left and left.endswith("; x")


@pytest.mark.parametrize(
    "text",
    [
        "the token is validated twice",
        "password: see the vault",
        "https://a.org/x:y@z",
        "sk-learn is nice",
        "a: b@c",
    ],
)
def test_plain_words_are_no_secrets(tree: Tree, text: str) -> None:
    assert remember(tree, text, evidence=False).warnings == ()


@pytest.mark.parametrize("piece", ["a", "-", "a.", "a/", "a_", "aB", "a-", "//", ".-"])
def test_a_long_word_is_put_where_it_belongs_at_once(piece: str) -> None:
    """Of 99,000 letters, quadratic is a minute and more: this does not end, rather than fail."""
    tree = Tree.create()
    assert remember(tree, piece * (99_000 // len(piece)), who="ann").node.id in tree
