"""Evidence: scores in [0, 1], the same under every restriction, honest when there is none."""

from __future__ import annotations

import asyncio
import pickle
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metatree_routers.evidence.evidence import TextEvidence, text_evidence
from metatree_routers.evidence.report import rank_files

from metatree import search
from metatree.errors import UnknownNode
from metatree.node import Node
from metatree.protocols import Evidence
from metatree.trees.tree import Tree
from tests.profiles import examples

QUESTIONS = st.lists(
    st.text(alphabet="tokensrefundpayhour \n`._()3", max_size=60) | st.text(max_size=40),
    min_size=1,
    max_size=3,
)


def test_it_is_evidence(note_tree: Tree) -> None:
    assert isinstance(TextEvidence(note_tree), Evidence)


def test_the_best_node_comes_first_with_its_line(note_tree: Tree) -> None:
    (best, *_) = TextEvidence(note_tree).score(["How long is a token valid?"])
    assert best.node_id == "auth/tokens"
    assert best.line == "A token is valid for one hour. It is signed with RS256."
    assert 0.6 < best.score <= 1.0


def test_several_questions_give_each_its_best(note_tree: Tree) -> None:
    result = TextEvidence(note_tree).score(["How long is a token valid?", "When are refunds paid?"], k=2)
    assert {scored.node_id for scored in result} == {"auth/tokens", "money/refunds"}


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QUESTIONS)
def test_scores_are_shares_and_do_not_change_under_restriction(note_tree: Tree, questions: list[str]) -> None:
    evidence = TextEvidence(note_tree)
    everything = evidence.score(questions, k=100)
    scores = {scored.node_id: scored.score for scored in everything}
    assert all(0 < score <= 1 for score in scores.values())
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert evidence.score(questions, k=2) == everything[:2]
    for under in ("auth", "money", "money/tax"):
        inside = evidence.score(questions, under=under, k=100)
        assert inside == [s for s in everything if s.node_id == under or s.node_id.startswith(under + "/")]
        remaining = evidence.score(questions, k=100, exclude=[under])
        assert remaining == [s for s in everything if s not in inside]
    ids = {node.id for _, node in note_tree.walk()} - {note_tree.root}
    reached = {scored.node_id: scored.score for scored in evidence.score(questions, among=ids, k=100)}
    undoubted = {scored.node_id: scored.score for scored in evidence.rank(questions, k=100)}
    assert list(undoubted) == list(scores)
    for id_ in ids:
        below = [
            score for node_id, score in undoubted.items() if node_id == id_ or node_id.startswith(id_ + "/")
        ]
        assert reached.get(id_, 0.0) == pytest.approx(max(below, default=0.0))


def test_hints_come_from_below_each_option(note_tree: Tree) -> None:
    evidence = TextEvidence(note_tree)
    hints = evidence.below(
        ["How long is a token valid after a refund is paid?"], ["auth", "money", "gone"], k=1
    )
    assert [scored.node_id for scored in hints["auth"]] == ["auth/tokens"]
    assert [scored.node_id for scored in hints["money"]] == ["money/refunds"]
    assert hints["gone"] == []
    without = evidence.below(["refund"], ["auth", "money"], exclude=["money/refunds"])
    assert all(scored.node_id != "money/refunds" for scored in without["money"])


@pytest.mark.parametrize("question", ["", "  \n", "the of and what", "\x00", "🙂🙂", "?!", "zyxwv qponm"])
def test_a_question_without_a_known_word_has_no_evidence(note_tree: Tree, question: str) -> None:
    evidence = TextEvidence(note_tree, embeddings=False)
    assert evidence.score([question]) == []
    assert evidence.below([question], ["auth"]) == {"auth": []}


def test_a_question_of_a_megabyte_is_answered(note_tree: Tree) -> None:
    question = "How long is a token valid? " + "lorem ipsum dolor " * 60_000
    assert TextEvidence(note_tree).score([question])[0].node_id == "auth/tokens"


def test_an_unknown_start_is_an_error(note_tree: Tree) -> None:
    with pytest.raises(UnknownNode, match="nowhere"):
        TextEvidence(note_tree).score(["token"], under="nowhere")


def test_changes_of_the_tree_are_seen(note_tree: Tree) -> None:
    evidence = TextEvidence(note_tree)
    assert evidence.score(["zebra"]) == [] or evidence.score(["zebra"])[0].score < 0.5
    note_tree.add(Node(id="z", title="Zebra", content="A zebra has stripes."), note_tree.root)
    assert evidence.score(["zebra"])[0].node_id == "z"
    note_tree.delete("z")
    assert all(scored.node_id != "z" for scored in evidence.score(["zebra stripes"]))


def test_progress_is_told_while_the_index_is_built(note_tree: Tree) -> None:
    reports: list[tuple[int, int]] = []
    evidence = TextEvidence(note_tree, progress=lambda done, todo: reports.append((done, todo)))
    evidence.refresh()
    assert reports and reports[-1] == (7, 7)


def test_an_index_is_only_made_where_it_is_required(note_tree: Tree) -> None:
    assert text_evidence(note_tree, required=False) is None
    made = text_evidence(note_tree)
    assert made is not None
    made.refresh()
    assert text_evidence(note_tree, required=False) is not None


@pytest.mark.parametrize(
    ("issue", "path", "reason"),
    [
        ("Client.follow_redirects loses the body", "shop/http.py", "defines `Client.follow_redirects`"),
        ("The bug is in shop/cart/forms.py I think", "shop/cart/forms.py", "names `shop/cart/forms.py`"),
        ("`clean_price` rounds down", "shop/cart/forms.py", "defines `clean_price`"),
        ("shop.cart.models breaks", "shop/cart/models.py", "is the module `shop.cart.models`"),
        ("Why does `TIMEOUT_S` not work?", "shop/http.py", "defines `TIMEOUT_S`"),
    ],
)
def test_what_an_issue_names_outright_comes_first(
    code_tree: Tree, issue: str, path: str, reason: str
) -> None:
    files = rank_files(TextEvidence(code_tree), code_tree, issue, 3)
    assert files[0].path == path
    assert reason in files[0].reason


TRACEBACK = """Adding to a cart fails

This happens on every request since yesterday, with all browsers and for all users, and it is very annoying. We
have restarted the machine, which did not help, and we have asked everyone who might know something about it as well.

```
Traceback (most recent call last):
  File "/home/me/app.py", line 3, in main
    client.post("/cart", item)
  File "/usr/lib/python3/site-packages/shop/http.py", line 9, in post
    cart.add(item)
  File "/usr/lib/python3/site-packages/shop/cart/models.py", line 4, in add
    self.items.append(item)
  File "/usr/lib/python3/json/text.py", line 2, in dump
    raise
AttributeError: 'NoneType' object has no attribute 'append'
```
"""


def test_the_last_frame_inside_the_tree_counts_most(code_tree: Tree) -> None:
    files = rank_files(TextEvidence(code_tree), code_tree, TRACEBACK, 5)
    reasons = {file.path: file.reason for file in files}
    assert files[0].path == "shop/cart/models.py"
    assert "innermost frame of the traceback" in reasons["shop/cart/models.py"]
    assert "named in the traceback" in reasons["shop/http.py"]
    assert "traceback" not in reasons.get("shop/text.py", "")  # json/text.py is a file of another package


def test_a_line_that_a_message_names_is_no_frame_of_a_traceback(code_tree: Tree) -> None:
    message = (
        "Warnings\n\nIt compiles, but see shop/text.js:12:5: warning: unused. " + "We do not know why. " * 20
    )
    code_tree.add(Node("shop/text.js", "text.js", "", kind="file", content="//"), parent="shop")
    reasons = {f.path: f.reason for f in rank_files(TextEvidence(code_tree), code_tree, message, 5)}
    assert "named with a line" in reasons["shop/text.js"]
    assert "traceback" not in reasons["shop/text.js"]


def test_a_package_is_the_folder_that_has_its_name_without_the_version(code_tree: Tree) -> None:
    for folder in ("axum", "axum-extra"):
        code_tree.add(Node(folder, folder, "", kind="folder"), parent=".")
        code_tree.add(Node(f"{folder}/src/mod.rs", "mod.rs", "", kind="file", content="//"), parent=folder)
    panic = (
        "It panics\n\nat /me/.cargo/registry/src/index.crates.io-6f17d2/{}/src/mod.rs:27:9\n\n" + "Why? " * 60
    )
    for installed, folder in (("axum-0.7.4", "axum"), ("axum-extra-0.9.2-rc.1", "axum-extra")):
        files = rank_files(TextEvidence(code_tree), code_tree, panic.format(installed), 9)
        framed = [file.path for file in files if "frame of the traceback" in file.reason]
        assert framed == [f"{folder}/src/mod.rs"]


def test_an_import_of_java_points_to_the_file_of_the_class(code_tree: Tree) -> None:
    for folder in ("com/acme/shop", "org/other"):
        path = f"src/main/java/{folder}/Till.java"
        node = Node(
            id=path, title="Till.java", kind="file", attributes={"path": path}, content="class Till {}\n"
        )
        code_tree.add(node, code_tree.root)
    issue = f"Sums are wrong\n\n{'It worked before. ' * 20}\n\n```java\nimport com.acme.shop.Till;\n```\n"
    files = {file.path: file.reason for file in rank_files(TextEvidence(code_tree), code_tree, issue, 9)}
    assert "is `com.acme.shop.Till`" in files["src/main/java/com/acme/shop/Till.java"]
    assert "is `" not in files.get("src/main/java/org/other/Till.java", "")


def test_a_frame_right_below_a_package_is_a_file_of_the_root(code_tree: Tree) -> None:
    for place in ("", "shop/"):
        path = f"{place}context.go"
        node = Node(
            id=path, title="context.go", kind="file", attributes={"path": path}, content="package shop\n"
        )
        code_tree.add(node, place.strip("/") or code_tree.root)
    trace = "panic: nil\ngoroutine 1 [running]:\nshop.Next()\n\t/root/go/pkg/mod/example.org/{}/context.go:17 +0x2b\n"
    for below, expected in (("till@v1.2.3", ["context.go"]), ("other", [])):
        issue = f"Next fails\n\n{'It worked before. ' * 20}\n\n{trace.format(below)}"
        files = rank_files(TextEvidence(code_tree), code_tree, issue, 9)
        assert [file.path for file in files if "frame" in file.reason] == expected


def test_a_linked_file_is_found_and_one_of_another_project_is_not(code_tree: Tree) -> None:
    issue = "Sums are wrong\n\nSomething is off by one, see {}#L12-L14. " + "We do not know why. " * 20
    link = "https://example.org/me/shop/blob/0a1b2c3/"
    files = rank_files(TextEvidence(code_tree), code_tree, issue.format(link + "shop/text.py"), 5)
    assert {file.path: file.reason.partition(";")[0] for file in files}["shop/text.py"] == "is linked"
    for elsewhere in ("other/text.py", "shop/text.pyx", "text.py.orig"):
        others = rank_files(TextEvidence(code_tree), code_tree, issue.format(link + elsewhere), 5)
        assert not any("is linked" in file.reason for file in others)


def test_an_import_points_to_the_file_that_defines_the_name(code_tree: Tree) -> None:
    issue = (
        "Sums are wrong\n\n"
        + "Prices do not add up any more. " * 12
        + "\n\n```\nfrom shop.cart import Cart\n```\n"
    )
    code_tree.add(
        Node(
            id="shop/cart/__init__.py",
            title="__init__.py",
            kind="file",
            attributes={"path": "shop/cart/__init__.py"},
        ),
        "shop/cart",
    )
    node = Node(
        id="shop/cart/models.py::Cart", title="Cart", kind="definition", content="class Cart:\n    pass\n"
    )
    code_tree.add(node, "shop/cart/models.py")
    files = {file.path: file.reason for file in rank_files(TextEvidence(code_tree), code_tree, issue, 5)}
    assert "defines `shop.cart.Cart`" in files["shop/cart/models.py"]


def test_a_method_comes_before_the_class_that_only_holds_it(code_tree: Tree) -> None:
    lines = {"start_line": 1, "end_line": 9}
    about = "class Basket — Methods: refund_coupon, refund_coupons, add"
    code_tree.add(
        Node(
            id="shop/text.py::Basket", title="Basket", description=about, kind="definition", attributes=lines
        ),
        "shop/text.py",
    )
    code_tree.add(
        Node(
            id="shop/text.py::Basket.refund_coupon",
            title="Basket.refund_coupon",
            kind="definition",
            content="def refund_coupon(self, coupon):\n    return self.pay(coupon, twice=True, at=now())\n"
            * 4,
            attributes=lines,
        ),
        "shop/text.py::Basket",
    )
    files = rank_files(TextEvidence(code_tree), code_tree, "refund coupon is paid twice", 1)
    assert files[0].definitions[0].name == "Basket.refund_coupon"


def defined(**definitions: tuple[str, int]) -> Tree:
    """Return a tree of one file whose definitions say these words, and others up to a number."""
    tree = Tree.create(":memory:")
    tree.add(Node("pay.py", "pay.py", kind="file"))
    for name, (comment, words) in definitions.items():
        others = " ".join(f"{name}{number}" for number in range(words - len(comment.split())))
        lines = {"start_line": 1, "end_line": 2}
        node = Node(
            f"pay.py::{name}", name, content=f"{comment} {others}", kind="definition", attributes=lines
        )
        tree.add(node, "pay.py")
    return tree


def test_a_long_definition_that_says_much_comes_before_a_short_one_that_says_little() -> None:
    tree = defined(small=("coupon " * 2, 20), large=("coupon " * 4, 100), other=("", 20))
    [file] = rank_files(TextEvidence(tree), tree, "coupon is paid twice", 1)
    assert [definition.name for definition in file.definitions] == ["large", "small"]


def test_definitions_are_listed_down_to_a_fifth_of_the_best() -> None:
    # `some` is a little above a fifth of the best one, `other` and `little` are below it.
    tree = defined(
        most=("coupon paid twice refund", 20), some=("coupon", 20), little=("twice", 60), other=("twice", 20)
    )
    [file] = rank_files(TextEvidence(tree), tree, "coupon paid twice refund", 1)
    assert [definition.name for definition in file.definitions] == ["most", "some"]


def test_a_reason_says_only_what_is_there(code_tree: Tree) -> None:
    issue = "follow redirects drops the http body"
    [file] = rank_files(TextEvidence(code_tree), code_tree, issue, 1)
    assert file.reason == (
        "its path says http; has “follow redirects” in a row;"
        " `Client.follow_redirects` has follow, redirects, body"
    )
    content = "def follow_redirects(self, response):\n    return response\n"
    code_tree.update(replace(code_tree.get("shop/http.py::Client.follow_redirects"), content=content))
    [file] = rank_files(TextEvidence(code_tree), code_tree, issue, 1)
    assert file.reason == (
        "its path says http; has “follow redirects” in a row;"
        " `Client.follow_redirects` has follow, redirects; also has body"
    )
    attributes = {"path": "shop/web.py"}
    code_tree.update(replace(code_tree.get("shop/http.py"), title="web.py", attributes=attributes))
    assert "its path" not in rank_files(TextEvidence(code_tree), code_tree, issue, 1)[0].reason


def test_a_reason_names_no_small_numbers_and_no_parts_of_a_name_that_is_there(code_tree: Tree) -> None:
    content = "def follow_redirects(self, response):\n    return response.status in (2, 3, 32, 1404)\n"
    code_tree.update(replace(code_tree.get("shop/http.py::Client.follow_redirects"), content=content))
    issue = "The follow_redirects function has 2 of 3 responses in 32 lines, not 1404"
    [file] = rank_files(TextEvidence(code_tree), code_tree, issue, 1)
    print(file.reason)
    reason_words = set(re.findall(r"\w+", file.reason))
    assert {"follow_redirects", "1404"} <= reason_words
    assert not {"2", "3", "32", "follow", "redirects"} & reason_words
    [file] = rank_files(TextEvidence(code_tree), code_tree, "32", 1)
    assert "32" in file.reason, "where nothing else is there"


def test_files_may_be_left_out(code_tree: Tree) -> None:
    files = rank_files(
        TextEvidence(code_tree), code_tree, "follow redirects", 9, accept=lambda path: path != "shop/http.py"
    )
    assert "shop/http.py" not in [file.path for file in files]


def test_a_search_finds_its_way_by_evidence(note_tree: Tree) -> None:
    from metatree import search

    result = search(["How long is a token valid?"], tree=note_tree)
    assert result.ended == "answered"
    assert "valid for one hour" in result.answer
    assert result.nodes[0].id == "auth/tokens"
    nothing = search(["Which zebra has stripes?"], tree=note_tree)
    assert nothing.ended == "exhausted" and nothing.answer == ""


def test_evidence_is_the_same_from_many_threads(note_tree: Tree) -> None:
    evidence = TextEvidence(note_tree)
    questions = ["token valid", "refund paid", "tax rate", "password failures"] * 8

    async def ask() -> list[str]:
        result = await asyncio.gather(
            *(asyncio.to_thread(evidence.score, [question]) for question in questions)
        )
        return [scored[0].node_id for scored in result]

    assert asyncio.run(ask()) == ["auth/tokens", "money/refunds", "money/tax", "auth/login"] * 8


def test_a_word_that_no_text_has_leaves_next_to_no_evidence(note_tree: Tree) -> None:
    evidence = TextEvidence(note_tree)
    question = "How long is a PostgreSQL token valid?"
    assert evidence.missing(question) == ("PostgreSQL",)
    assert 0 < evidence.score([question])[0].score <= 0.01
    assert evidence.missing("How long is a token valid?") == ()
    assert evidence.score([question], among=["auth/tokens"])[0].score > 0.01


def test_lines_of_many_results_are_computed_when_they_are_asked_for() -> None:
    tree = Tree.create(":memory:")
    for i in range(30):
        tree.add(Node(id=f"n{i}", title=f"n{i}", content=f"first\nthe token number {i}"), parent=tree.root)
    evidence = TextEvidence(tree)
    late, plain = evidence.score(["token"], k=30), evidence.score(["token"], k=20)
    assert len(late) == 30 and late[:20] == plain and plain == late[:20]
    assert late[29].line == f"the token number {late[29].node_id[1:]}"
    assert pickle.loads(pickle.dumps(late[3])) == plain[3]


def test_collecting_nodes_gives_the_best_though_a_decisive_word_is_nowhere() -> None:
    tree = Tree.create(":memory:")
    tree.add(Node("a", "Scaling", content="How the number of builders is scaled with the load."))
    tree.add(Node("b", "Colours", content="How the colours of the theme are set."))
    question = "How is Kubernetes autoscaling configured for the number of builders?"
    assert search(question, tree=tree).answers == ()
    assert [node.id for node in search(question, tree=tree, returns="nodes", k=1).nodes] == ["a"]
