"""The tools that an agent sees: what they give, what it stands on, what is cut, and why nothing was found."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents import function_tools
from metatree_agents.context import token_counter
from metatree_agents.tools.mcp_server import mcp_server
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree

from metatree import Tree, UserError

pytestmark = pytest.mark.integration

ARGUMENTS: dict[str, dict[str, Any]] = {
    "ask": {"questions": ["When are refunds paid?", "Which zeppelin carried the refunds?"]},
    "search": {"query": "charge a credit card, put an item into the cart, refunds"},
    "files_to_edit": {"issue": "charge a credit card: the cart and its prices"},
    "context": {"issue": "charge a credit card: the cart and its prices"},
    "read": {"node": "src/shop/cart.py"},
    "outline": {"node": ".", "depth": 4},
    "grep": {"pattern": "[a-z]+"},
    "references": {"name": "charge"},
    "remember": {"text": "Refunds above 100 need a manager"},
    "browse": {"node": "src/shop"},
}


@pytest.fixture
def tree(project: Path) -> Iterator[Tree]:
    (project / "src/shop/checkout.py").write_text(
        "from shop.payment import charge\n\n\ndef check_out(card):\n    return charge(card, 5)\n"
    )
    with build_tree(project) as tree:
        yield tree


def called(tree: Tree, called_tool: str, /, **arguments: Any) -> Any:
    (tool,) = function_tools(tree, only=[called_tool])
    answer = json.loads(tool(**arguments))
    assert "error" not in answer, answer
    return answer


def test_ten_tools_whose_listing_is_short() -> None:
    async def listed() -> list[Any]:
        return await mcp_server(Toolkit(Tree.create(":memory:"))).list_tools()

    tools = [tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in asyncio.run(listed())]
    assert [tool["name"] for tool in tools] == list(ARGUMENTS)
    assert token_counter()[0](json.dumps(tools, separators=(",", ":"))) <= 1_500
    for name in ("ask", "search", "files_to_edit", "context", "references"):
        [about] = [tool["description"] for tool in tools if tool["name"] == name]
        assert about.startswith("Better than ")  # models prefer grep


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_answer_fits_its_tokens_and_says_what_it_stands_on(tree: Tree, name: str) -> None:
    kit = Toolkit(tree)
    count = token_counter()[0]

    async def call(most: int) -> Any:
        return await getattr(kit, name)(**ARGUMENTS[name], max_tokens=most)

    full = asyncio.run(call(6_000))
    assert full.basis is not None and full.basis.stale is False and full.basis.indexed_at
    assert "basis: " in full.text_for_model(kit.basis().line)
    less = asyncio.run(call(140))
    assert count(less.text_for_model(kit.basis().line)) <= 140
    if count(full.text_for_model(kit.basis().line)) > 140:
        assert less.cut or less.empty


def test_what_changed_since_is_never_silent(tree: Tree, project: Path) -> None:
    for command in (
        ["init", "-q"],
        ["add", "src"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=project, check=True)
    kit = Toolkit(tree, refresh=False)
    assert (kit.basis().stale, kit.basis().dirty) == (False, False) or kit.basis().commit
    (project / "src/shop/cart.py").write_text("items = []\n")
    (project / "new.md").write_text("# New\n")
    later = Toolkit(tree, refresh=False)
    answer = asyncio.run(later.grep("items", max_tokens=500))
    assert answer.basis is not None
    assert (answer.basis.stale, answer.basis.changed_since, answer.basis.dirty) == (True, 2, True)
    assert len(answer.basis.commit or "") == 40
    assert "stale: true, 2 file(s) changed since" in answer.text_for_model(later.basis().line)


def test_what_changed_between_a_search_and_a_read_is_said_with_its_new_lines(
    tree: Tree, project: Path
) -> None:
    kit = Toolkit(tree)
    asyncio.run(kit.search("charge a credit card"))  # looked at the source just now, so does not look again
    payment = project / "src/shop/payment.py"
    payment.write_text("import os\n\n" + payment.read_text())
    found = asyncio.run(kit.read("src/shop/payment.py::charge"))
    assert (found.first_line, found.last_line) == (8, 14)
    assert found.text.startswith("def charge(")
    assert "changed since it was found: these are its lines now, it had 6-12" in found.text_for_model("")
    payment.write_text("import os\n")
    with pytest.raises(UserError, match="was found before its file changed, and is gone"):
        asyncio.run(kit.read("src/shop/payment.py::charge"))


def test_references_to_what_nobody_calls_or_imports_are_its_definition(tree: Tree) -> None:
    assert called(tree, "references", name="check_out")["rows"] == [
        "defined: src/shop/checkout.py:4-5 check_out [src/shop/checkout.py::check_out]"
    ]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_ten_tokens_are_too_few_and_break_nothing(tree: Tree, name: str) -> None:
    kit = Toolkit(tree)
    answer = asyncio.run(getattr(kit, name)(**ARGUMENTS[name], max_tokens=10))
    text = answer.text_for_model("")
    assert token_counter()[0](text) <= 100
    assert answer.cut.count("cut: ") <= 1 and ("max_tokens" in answer.cut or "grep" in answer.cut or answer.empty
                                               or name == "remember")  # fmt: skip


def test_binary_files_are_left_out_and_said_and_generated_ones_come_last(project: Path) -> None:
    (project / "blob.dat").write_bytes(bytes(range(256)) * 20)
    code = "def ship_parcel(parcel):\n    return parcel\n"
    (project / "src/shop/ship.py").write_text(code)
    (project / "src/shop/a_ship.py").write_text(f"# Code generated by shipgen. DO NOT EDIT.\n{code}")
    with build_tree(project) as tree:
        paths = [node["path"] for node in called(tree, "search", query="ship_parcel")["nodes"]]
        assert paths.index("src/shop/ship.py") < paths.index("src/shop/a_ship.py")
        assert "1 file was left out" in called(tree, "grep", pattern="zeppelin")["empty"]


def test_an_expression_that_explodes_ends(tree: Tree, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "long.txt").write_text("a" * 500 + "!\n")
    tree.refresh()
    monkeypatch.setattr(
        "metatree_memory_tools.text.pattern.matching_lines.__kwdefaults__",
        {"ignore_case": False, "limit_s": 2.0},
    )
    (grep,) = function_tools(tree, only=["grep"])
    began = time.monotonic()
    answer = json.loads(grep(pattern="(a+)+$"))
    assert "takes more than" in answer["error"] and time.monotonic() - began < 60
    assert "no regular expression" in json.loads(grep(pattern="("))["error"]


def test_grep_lines_and_where_nothing_is(tree: Tree) -> None:
    assert called(tree, "grep", pattern=r"time\.sleep\(")["rows"] == [
        "src/shop/payment.py:11: time.sleep(2**attempt)"
    ]
    assert called(tree, "grep", pattern="CHARGE A", ignore_case=True, under="src")["rows"]
    empty = called(tree, "grep", pattern="zeppelin", under="src")["empty"]
    assert "below src" in empty and "'zeppelin'" in empty and "search" in empty


def test_references_are_definition_callers_and_importers(tree: Tree) -> None:
    rows = called(tree, "references", name="charge")["rows"]
    assert rows[0].startswith("defined: src/shop/payment.py:6-12 charge")
    assert any(row.startswith("call: src/shop/checkout.py:5") for row in rows)
    assert any(row.startswith("import of src/shop/payment.py: src/shop/checkout.py") for row in rows)
    empty = called(tree, "references", name="chargee")["empty"]
    assert "'chargee'" in empty and "src/shop/payment.py::charge" in empty


def test_an_outline_and_lines_with_their_numbers(tree: Tree) -> None:
    rows = called(tree, "outline", node="src/shop/cart.py")["rows"]
    assert any("total" in row and "18-20" in row for row in rows)
    part = called(tree, "read", node="src/shop/cart.py::Cart.total")
    assert (part["first_line"], part["last_line"]) == (18, 20)
    kit = Toolkit(tree)
    text = asyncio.run(kit.read("src/shop/cart.py", lines="18-19")).text_for_model("")
    assert text.split("\n")[1].startswith("18:     def total(self):")
    (read,) = function_tools(tree, only=["read"])
    assert "are not in" in json.loads(read(node="src/shop/cart.py", lines="900-"))["error"]


def test_context_and_files_of_an_issue(tree: Tree) -> None:
    issue = "Declined credit card is charged again"
    files = called(tree, "files_to_edit", issue=issue)["files"]
    assert files[0]["path"] == "src/shop/payment.py" and files[0]["definitions"][0]["name"] == "charge"
    ranges = called(tree, "context", issue=issue)["ranges"]
    assert ranges[0]["name"] == "charge" and "card.pay(amount)" in ranges[0]["text"]
    assert "no definition fits" in called(tree, "context", issue=issue, max_tokens=50)["empty"]


def test_an_empty_result_says_why(tree: Tree) -> None:
    empty = called(tree, "search", query="zzyzx chek_out")["empty"]
    assert "zzyzx" in empty and "check_out" in empty
