"""Prompts within a token limit: what is chosen, what stays the same, what is said of the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree import Blackboard, Settings
from metatree.blackboard import Item, estimate
from metatree.errors import UserError
from tests.profiles import examples


def steps_of(text: str) -> list[Any]:
    """Return the `n` of the trajectories in a prompt's text."""
    section = text.split("[Step Trajectories Completed Previously:]\n")[1]
    return [each.get("n") for each in json.loads(section[section.index("[{") :].split("\n")[0])]


def filled(count: int, words: int = 12) -> Blackboard:
    board = Blackboard()
    board.add_requests("pay the bill")
    board.add_many("trajectories", [{"n": n, "did": "click a button " * (words // 3)} for n in range(count)])
    return board


def test_everything_is_shown_as_without_a_limit_when_it_fits() -> None:
    board = filled(5)
    rendering = board.render(4_000)
    assert rendering.parts == board.blackboard_to_prompt() == board.blackboard_to_prompt(4_000)
    assert rendering.left_out == {}
    assert rendering.version == board.version


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["questions", "requests", "trajectories"]), st.text(max_size=400), st.booleans()
        ),
        max_size=60,
    ),
    st.integers(128, 3_000),
)
def test_limit_is_kept_and_nothing_is_lost_in_silence(
    items: list[tuple[str, str, bool]], max_tokens: int
) -> None:
    with Blackboard() as board:
        for section, text, pinned in items:
            board.add(section, text, pinned=pinned)
        rendering = board.render(max_tokens)
        assert sum(estimate(part["text"]) for part in rendering.parts) == rendering.tokens <= max_tokens
        for section in ("questions", "requests", "trajectories"):
            left = rendering.left_out.get(section)
            shown = rendering.shown[section]
            assert len(shown) + (left.items if left else 0) == board.count(section)
            order = [item.id for item in board.items(section)]
            assert [item_id for item_id in order if item_id in shown] == list(shown)
            if left and left.items:
                assert f"({left.items} earlier left out)" in rendering.text


def test_newest_are_chosen_and_shown_oldest_first() -> None:
    board = filled(300)
    rendering = board.render(1_500)
    steps = steps_of(rendering.text)
    assert steps == list(range(steps[0], 300))
    assert len(steps) > 20
    left = rendering.left_out["trajectories"]
    assert left.items == steps[0]
    assert f"({left.items} earlier left out)" in rendering.text


def test_pinned_items_stay_in_their_place() -> None:
    board = filled(300)
    third = board.items("trajectories")[3]
    board.pin(third.id)
    steps = steps_of(board.render(1_500).text)
    assert steps[0] == 3
    assert steps[1:] == list(range(steps[1], 300))
    board.pin(third.id, False)
    assert steps_of(board.render(1_500).text)[0] != 3


def test_text_only_grows_between_two_cuts() -> None:
    board = filled(0)
    last, cuts, grown = "", 0, 0
    for n in range(400):
        board.add("trajectories", {"n": n, "did": "click a button"})
        text = board.render(1_000).text
        if last:
            common = next((i for i, (a, b) in enumerate(zip(last, text, strict=False)) if a != b), len(last))
            if common >= len(last) - 1:  # all but the closing bracket
                grown += 1
            else:
                cuts += 1
                assert common >= last.index("[Step Trajectories")  # what stands before is untouched
        last = text
    assert cuts <= 60
    assert grown >= 5 * cuts


@pytest.mark.integration
def test_any_process_gets_the_same_text(tmp_path: Path) -> None:
    with Blackboard(tmp_path / "b.db") as board:
        board.add_many("trajectories", [{"n": n, "text": "x" * (n % 90)} for n in range(500)])
        text = board.render(900).text
    with Blackboard(tmp_path / "b.db") as again:
        assert again.render(900).text == text


def test_sections_get_their_shares_and_what_others_leave() -> None:
    board = Blackboard()
    for section in ("questions", "requests", "trajectories"):
        board.add_many(section, [{"n": n, "text": "some words of it"} for n in range(400)])
    counts = {name: len(ids) for name, ids in board.render(3_000).shown.items()}
    assert counts["trajectories"] > 2 * counts["questions"] > 0
    assert counts["questions"] == counts["requests"]
    even = {name: 1.0 for name in counts if name != "screenshots"}
    by_hand = {name: len(ids) for name, ids in board.render(3_000, shares=even).shown.items()}
    assert by_hand["trajectories"] == by_hand["questions"]
    board.questions.clear()
    board.requests.clear()
    assert len(board.render(3_000).shown["trajectories"]) > 1.3 * counts["trajectories"]


def test_section_of_ones_own_is_shown_when_it_has_a_share() -> None:
    board = Blackboard()
    board.add("open_facts", {"a": 1})
    assert "Open Facts" not in board.render(500).text
    assert '[Open Facts:]\n [{"a": 1}]' in board.render(500, shares={"open_facts": 1}).text


def test_long_item_is_shortened_and_the_result_says_so() -> None:
    board = Blackboard()
    item = board.add_requests({"request": "x" * 30_000, "id": 7})
    rendering = board.render(500)
    assert rendering.left_out["requests"].shortened == 1
    assert rendering.shown["requests"] == (item.id,)
    section = rendering.parts[2]["text"].split("\n ")[1]
    (shown_item,) = json.loads(section)
    assert shown_item["id"] == 7
    assert shown_item["request"].endswith("x…")
    assert rendering.tokens <= 500


def test_counter_of_the_caller_is_obeyed() -> None:
    board = filled(200)

    def by_letters(text: str) -> int:
        return len(text)

    rendering = board.render(2_000, count_tokens=by_letters)
    assert len("".join(part["text"] for part in rendering.parts)) == rendering.tokens <= 2_000
    assert rendering.shown["trajectories"]


def test_letters_of_any_script_are_counted_by_their_bytes() -> None:
    assert estimate("名前" * 30) >= 60
    board = Blackboard()
    board.add_requests("名前を" * 400)
    rendering = board.render(300)
    assert rendering.tokens <= 300
    assert "名前" in rendering.text


def test_summary_stands_for_what_is_left_out_and_is_made_once() -> None:
    board = filled(300)
    calls: list[tuple[str, int]] = []

    def summarise(section: str, earlier: str, items: Sequence[Item]) -> str:
        calls.append((earlier, len(items)))
        return f"{earlier} and {len(items)} clicks".strip()

    first = board.render(1_500, summarise=summarise)
    assert first.tokens <= 1_500
    left = first.left_out["trajectories"].items
    assert f"({left} earlier left out; in short: and {left} clicks)" in first.text
    assert board.render(1_500, summarise=summarise).text == first.text
    assert len(calls) == 1
    board.add_many("trajectories", [{"n": n, "did": "click a button"} for n in range(300, 500)])
    later = board.render(1_500, summarise=summarise)
    assert len(calls) == 2
    assert calls[1][0] == f"and {left} clicks"
    assert sum(count for _, count in calls) == later.left_out["trajectories"].items


def test_limit_below_the_headings_is_an_error() -> None:
    with pytest.raises(UserError, match="at least 128"):
        Blackboard().render(100)
    with pytest.raises(UserError, match="no section has a share"):
        Blackboard().render(1_000, shares={})


@pytest.mark.integration
def test_images_are_shown_within_the_limit(shot: Callable[..., Path]) -> None:
    board = Blackboard()
    for n in range(10):
        board.add_image(shot(width=512, height=512, shade=n), {"n": n})
    rendering = board.render(2_000)
    images = [part for part in rendering.parts if part["type"] == "image_url"]
    assert 0 < len(images) < 10
    assert rendering.left_out["screenshots"].items == 10 - len(images)
    assert rendering.tokens <= 2_000
    numbers = [board.get(i).data["metadata"]["n"] for i in rendering.shown["screenshots"]]
    assert numbers == list(range(10 - len(images), 10))
    assert all(part["image_url"]["url"].startswith("data:image/") for part in images)


@pytest.mark.integration
def test_pinned_image_is_shown(shot: Callable[..., Path]) -> None:
    board = Blackboard()
    first = board.add_image(shot(width=512, height=512, shade=200), "the first", pinned=True)
    for n in range(20):
        board.add_image(shot(width=512, height=512, shade=n), {"n": n})
    assert first is not None
    assert board.render(4_000).shown["screenshots"][0] == first.id


def test_board_in_memory_of_many_items_is_weighed_without_reading_them() -> None:
    board = Blackboard(settings=Settings())
    board.add_many("trajectories", [{"n": n, "did": "x" * 50} for n in range(5_000)])
    assert steps_of(board.render(600).text)[-1] == 4_999
