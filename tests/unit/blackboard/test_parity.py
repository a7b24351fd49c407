"""The names and the behaviour of the class that the blackboard follows."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from metatree import Blackboard, Settings
from metatree.blackboard import MemoryItem

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SHOT = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
EXPORTED: dict[str, list[dict[str, Any]]] = {
    "questions": [{"question": "Which account?", "answer": "the second"}, {"text": "Größe?"}],
    "requests": [{"request": "pay the bill"}],
    "trajectories": [
        {"step": 1, "subtask": "log in", "plan": ["a", "b"], "cost": None},
        {"step": 2, "x": 1.5},
    ],
    "screenshots": [
        {"metadata": {"reason": "total shown"}, "image_path": "/tmp/a.png", "image_str": SHOT},
        {"metadata": None, "image_path": "/gone.png", "image_str": ""},
        {"metadata": "odd", "image_path": "b.jpg", "image_str": "data:image/jpeg;base64,AAA="},
    ],
}


def test_exported_dictionary_loads_unchanged() -> None:
    board = Blackboard()
    board.add_requests("is replaced")
    board.blackboard_from_dict(EXPORTED)
    assert board.blackboard_to_dict() == EXPORTED
    assert json.loads(board.blackboard_to_json()) == EXPORTED
    assert [list(each) for each in board.blackboard_to_dict()["screenshots"]] == [
        ["metadata", "image_path", "image_str"]
    ] * 3


def test_missing_sections_of_a_dictionary_are_emptied() -> None:
    board = Blackboard()
    board.add_requests("is gone")
    board.blackboard_from_dict({"questions": [{"question": "q"}]})
    assert board.blackboard_to_dict() == {
        "questions": [{"question": "q"}],
        "requests": [],
        "trajectories": [],
        "screenshots": [],
    }


def test_dictionary_item_and_text_are_accepted_in_every_section() -> None:
    board = Blackboard()
    for add, memory, read in (
        (board.add_questions, board.questions, board.questions_to_json),
        (board.add_requests, board.requests, board.requests_to_json),
        (board.add_trajectories, board.trajectories, board.trajectories_to_json),
    ):
        add({"step": 1})
        add(MemoryItem({"step": 2}))
        add("plain")
        board.add_data({"step": 4}, memory)
        assert json.loads(read()) == [{"step": 1}, {"step": 2}, {"text": "plain"}, {"step": 4}]
        assert memory.length == 4


@pytest.mark.integration
def test_prompt_has_the_documented_parts(tmp_path: Path) -> None:
    board = Blackboard()
    board.blackboard_from_dict({**EXPORTED, "screenshots": EXPORTED["screenshots"][:1]})
    assert board.blackboard_to_prompt() == [
        {"type": "text", "text": "[Blackboard:]"},
        {"type": "text", "text": f"[Questions & Answers:]\n {json.dumps(EXPORTED['questions'])}"},
        {"type": "text", "text": f"[Request History:]\n {json.dumps(EXPORTED['requests'])}"},
        {
            "type": "text",
            "text": f"[Step Trajectories Completed Previously:]\n {json.dumps(EXPORTED['trajectories'])}",
        },
        {"type": "text", "text": '{"reason": "total shown"}'},
        {"type": "image_url", "image_url": {"url": SHOT}},
    ]
    assert board.texts_to_prompt(board.requests, "[R:]") == [
        {"type": "text", "text": '[R:]\n [{"request": "pay the bill"}]'}
    ]


def test_empty_board_has_headings_and_no_screenshots() -> None:
    board = Blackboard()
    assert board.is_empty()
    assert [part["text"] for part in board.blackboard_to_prompt()] == [
        "[Blackboard:]",
        "[Questions & Answers:]\n []",
        "[Request History:]\n []",
        "[Step Trajectories Completed Previously:]\n []",
    ]
    assert board.screenshots_to_prompt() == []


def test_clear_empties_all_sections() -> None:
    board = Blackboard()
    board.blackboard_from_dict(EXPORTED)
    assert not board.is_empty()
    board.clear()
    assert board.is_empty()
    assert board.screenshots.is_empty()


def test_sections_have_the_names_of_the_memory_class() -> None:
    board = Blackboard()
    board.blackboard_from_dict(EXPORTED)
    steps = board.trajectories
    assert steps.filter_memory_from_keys(["step"]) == [{"step": 1}, {"step": 2}]
    assert steps.filter_memory_from_steps([2]) == [{"step": 2, "x": 1.5}]
    latest = steps.get_latest_item()
    assert latest is not None
    assert latest.to_dict() == {"step": 2, "x": 1.5}
    steps.delete_memory_item(1)
    assert steps.to_list_of_dicts() == steps.list_content == [{"step": 2, "x": 1.5}]
    steps.add_memory_item(MemoryItem({"step": 3}))
    assert json.loads(steps.to_json()) == [{"step": 2, "x": 1.5}, {"step": 3}]
    steps.from_list_of_dicts([{"step": 9}])
    assert steps.list_content == [{"step": 9}]
    steps.clear()
    assert steps.is_empty()
    assert steps.get_latest_item() is None


def test_trajectories_keep_the_configured_keys() -> None:
    step = {"step": 1, "subtask": "s", "thought": "t", "user_confirm": None, "action_representation": "click"}
    board = Blackboard()
    board.add_trajectories(step)
    assert board.trajectories.list_content == [{k: v for k, v in step.items() if k != "thought"}]
    chosen = Blackboard(settings=Settings(history_keys=("thought",)))
    chosen.add_trajectories(step)
    assert chosen.trajectories.list_content == [{"thought": "t"}]
    everything = Blackboard(settings=Settings(history_keys=()))
    everything.add_trajectories(step)
    assert everything.trajectories.list_content == [step]


def test_dictionary_without_any_configured_key_is_kept_whole() -> None:
    board = Blackboard()
    board.add_trajectories({"observation": "a dialogue opened"})
    assert board.trajectories.list_content == [{"observation": "a dialogue opened"}]


@pytest.mark.integration
def test_questions_are_read_from_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "pairs.jsonl"
    lines = [f'{{"question": "q{i}", "answer": "a{i}"}}' for i in range(4)]
    file.write_text("\n\n".join(lines) + "\n \nno json\n", encoding="utf-8")
    board = Blackboard()
    board.load_questions(str(file))
    assert [each["question"] for each in board.questions.list_content] == ["q0", "q1", "q2", "q3"]
    assert "no json" in caplog.text
    assert Blackboard.read_json_file(str(file), 3) == [json.loads(line) for line in lines[2:]]
    assert Blackboard.read_json_file(str(file), 0) == []
    assert len(Blackboard.read_json_file(str(file), 100)) == 4
    assert Blackboard.read_json_file(str(tmp_path / "none")) == []


@pytest.mark.integration
def test_setting_loads_questions_when_a_board_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f'{{"question": "q{i}", "answer": "a"}}\n' for i in range(5)), encoding="utf-8")
    monkeypatch.setenv("METATREE_QA_PAIR_FILE", str(file))
    assert Blackboard().questions.length == 5
    monkeypatch.setenv("METATREE_QA_PAIR_NUM", "2")
    assert [each["question"] for each in Blackboard().questions.list_content] == ["q3", "q4"]
    with Blackboard(tmp_path / "b.db") as board:
        assert board.questions.length == 2
    with Blackboard(tmp_path / "b.db") as again:  # it is made once
        assert again.questions.length == 2


def test_all_names_of_the_documentation_are_there() -> None:
    text = """add_questions add_requests add_trajectories add_image add_data questions_to_json requests_to_json
        trajectories_to_json screenshots_to_json blackboard_to_dict blackboard_from_dict blackboard_to_json
        blackboard_to_prompt texts_to_prompt screenshots_to_prompt load_questions read_json_file is_empty clear
        questions requests trajectories screenshots"""
    assert [name for name in re.findall(r"\w+", text) if not hasattr(Blackboard, name)] == []
