"""The scripted agents: what counts as seen, when they stop, and that they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree

from benchmarks.code_agent.__main__ import MOST_CALLS, Outcome, played, table
from benchmarks.code_agent.by_model import by_model
from benchmarks.code_agent.scripts import queries, with_metatree, with_shell
from benchmarks.code_agent.tool_sets import WINDOW, Call, Metatree, Shell, Shown

FILLER = "\n".join(f"value_{number} = {number}" for number in range(400))
TEXTS = {
    "shop/cart.py": "def add_item(cart, item):\n    cart.append(item)\n",
    "shop/long.py": f"{FILLER}\n\n\ndef total_price(cart):\n    return sum(cart)\n",
    "shop/other.py": FILLER,
}
ISSUE = "total_price is wrong\n\nThe sum of a cart has no tax, see `total_price`."


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Metatree]:
    for path, text in TEXTS.items():
        (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / path).write_text(text)
    with build_tree(tmp_path / "src", out=tmp_path / "tree") as tree:
        yield Metatree(Toolkit(tree, refresh=False))


def test_queries_are_names_then_words_the_rarest_first() -> None:
    asked = list(queries("total_price and add_item fail, cart too; nonsense_name", Shell(TEXTS)))
    assert asked == [r"\badd_item\b", r"\btotal_price\b", r"(?i:\bitem\b)", r"(?i:\bcart\b)"]


def test_lines_that_were_shown_count_and_the_agent_stops_at_the_last() -> None:
    shell = Shell(TEXTS)
    [line] = [number for path, number, _ in shell.hits("return sum") if path == "shop/long.py"]
    outcome = played(with_shell(ISSUE, shell), shell, {"shop/long.py": [[line, line]]}, len)
    assert outcome.seen and outcome.calls <= 5
    never = played(with_shell(ISSUE, shell), shell, {"shop/gone.py": [[1, 1]]}, lambda text: 1)
    assert not never.seen and never.calls <= MOST_CALLS


def test_windows_are_bounded_and_whole_files_are_read_in_the_end() -> None:
    shell = Shell(TEXTS)
    shown = shell.call(Call("read", {"path": "shop/long.py", "first": 10}))
    assert shown.lines == [("shop/long.py", 10, 9 + WINDOW)]
    outcome = played(with_shell(ISSUE, shell), shell, {"shop/long.py": [[1, 1], [300, 300]]}, lambda text: 1)
    assert outcome.seen


def test_the_tools_of_metatree_show_the_lines_of_an_issue(ours: Metatree) -> None:
    shell = Shell(TEXTS)
    outcome = played(with_metatree(ISSUE, shell), ours, {"shop/long.py": [[403, 404]]}, len)
    assert (outcome.seen, outcome.calls) == (True, 1)
    later = played(with_metatree(ISSUE, shell), ours, {"shop/long.py": [[1, 1]]}, lambda text: 1)
    assert later.seen and later.calls > 1


def test_a_model_is_shown_the_tools_and_stops_when_it_calls_none(
    ours: Metatree, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openai.types.chat import ChatCompletion

    asked: list[Any] = []

    def create(**given: Any) -> ChatCompletion:
        asked.append(given)
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "grep", "arguments": '{"pattern": "sum"}'},
        }
        first = len(asked) == 1
        message = {
            "role": "assistant",
            "content": "" if first else "DONE",
            "tool_calls": [call] if first else None,
        }
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return ChatCompletion.model_validate(
            {"id": "x", "created": 1, "model": "m", "object": "chat.completion", "choices": [choice]}
        )

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(
        "openai.resources.chat.completions.Completions.create", lambda self, **given: create(**given)
    )
    for tools in (Shell(TEXTS), ours):
        asked.clear()
        outcome = played(by_model(ISSUE, tools, "m"), tools, {"shop/other.py": [[1, 1]]}, len)
        assert (outcome.seen, outcome.calls) == (False, 1)
        assert "grep" in [tool["function"]["name"] for tool in asked[0]["tools"]]
        assert "shop/long.py:404: return sum(cart)" in asked[1]["messages"][2]["content"]


def test_the_table_counts_what_was_seen_within_tokens() -> None:
    rows = table({
        "grep, glob, read": [Outcome(True, 3, 9_000), Outcome(False, 60, 50_000)],
        "metatree": [Outcome(True, 1, 4_000), Outcome(True, 2, 6_000)],
    })  # fmt: skip
    assert rows[2] == "| grep, glob, read | 0.50 | 0.00 | 0.50 | 0.50 | 0.50 | 29,500 | 29,500 | 32 | 31.5 |"
    assert rows[3] == "| metatree | 1.00 | 0.50 | 1.00 | 1.00 | 1.00 | 5,000 | 5,000 | 2 | 1.5 |"
    assert "fewer in 1" in rows[-1]


def test_a_call_that_shows_nothing_is_counted() -> None:
    def script() -> Any:
        yield Call("grep", {"pattern": "nothing at all"})

    assert played(script(), Shell(TEXTS), {"shop/cart.py": [[1, 1]]}, len) == Outcome(
        False, 1, len(Shown("no line matches").text)
    )
