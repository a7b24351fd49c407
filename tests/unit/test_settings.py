"""Settings: where they come from, which wins, and what is said of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metatree import Settings, UserError


def test_arguments_win_over_the_environment_over_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("qa_pair_num = 1\ncontext_tokens = 1\nthumbnail_px = 1\n")
    environment = {"METATREE_QA_PAIR_NUM": "2", "METATREE_CONTEXT_TOKENS": "2"}
    settings = Settings.load(file, environment=environment, qa_pair_num=3)
    assert (settings.qa_pair_num, settings.context_tokens, settings.thumbnail_px) == (3, 2, 1)
    assert settings.history_keys == ("step", "subtask", "action_representation", "user_confirm")
    assert Settings.load(environment={}) == Settings()


def test_file_may_be_named_by_the_environment_be_json_and_have_a_table(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text('[metatree]\nhistory_keys = ["a", "b"]\n[metatree.prompt_shares]\nquestions = 1\n')
    as_json.write_text(json.dumps({"screenshot_to_memory": False}))
    settings = Settings.load(environment={"METATREE_SETTINGS": str(toml)})
    assert (settings.history_keys, dict(settings.prompt_shares)) == (("a", "b"), {"questions": 1.0})
    assert not Settings.load(as_json, environment={}).screenshot_to_memory


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("METATREE_SCREENSHOT_TO_MEMORY", "no", "screenshot_to_memory", False),
        ("METATREE_SCREENSHOT_TO_MEMORY", "False", "screenshot_to_memory", False),
        ("METATREE_SCREENSHOT_TO_MEMORY", "1", "screenshot_to_memory", True),
        ("METATREE_SCREENSHOT_TO_MEMORY", "on", "screenshot_to_memory", True),
        ("METATREE_HISTORY_KEYS", "a, b", "history_keys", ("a", "b")),
        ("METATREE_HISTORY_KEYS", '["a"]', "history_keys", ("a",)),
        ("METATREE_HISTORY_KEYS", "", "history_keys", ()),
        ("METATREE_QA_PAIR_NUM", "-1", "qa_pair_num", -1),
        ("METATREE_QA_PAIR_FILE", "/123", "qa_pair_file", "/123"),
        ("METATREE_PROMPT_SHARES", '{"requests": 0.5}', "prompt_shares", {"requests": 0.5}),
    ],
)
def test_environment_is_read_by_type(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(Settings.load(environment={variable: text}), name) == value


def test_environment_of_the_process_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METATREE_QA_PAIR_NUM", "7")
    assert Settings.load().qa_pair_num == 7
    monkeypatch.delenv("METATREE_QA_PAIR_NUM")
    assert Settings.load().qa_pair_num == -1


def test_wrong_values_and_names_say_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    with pytest.raises(UserError, match="METATREE_QA_PAIR_NUM is 'many': it must be a whole number"):
        Settings.load(environment={"METATREE_QA_PAIR_NUM": "many"})
    with pytest.raises(UserError, match="must be true or false"):
        Settings.load(environment={"METATREE_SCREENSHOT_TO_MEMORY": "perhaps"})
    with pytest.raises(UserError, match="prompt_shares"):
        Settings.load(environment={"METATREE_PROMPT_SHARES": '{"requests": -1}'})
    with pytest.raises(UserError, match="did you mean 'history_keys'"):
        Settings.load(environment={}, history_key=("a",))
    file.write_text("nothing_like_it = 1")
    with pytest.raises(UserError, match="is no setting: there are history_keys"):
        Settings.load(file, environment={})
    file.write_text("= 1")
    with pytest.raises(UserError, match="out of form"):
        Settings.load(file, environment={})
    with pytest.raises(UserError, match="cannot read the settings"):
        Settings.load(tmp_path / "none.toml", environment={})


def test_misspelt_variable_is_told_and_others_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.load(environment={"METATREE_HISTORY_KEY": "a", "METATREE_ROUTER": "x"}) == Settings()
    assert "did you mean METATREE_HISTORY_KEYS?" in caplog.text
    assert "METATREE_ROUTER" not in caplog.text
