"""Settings: one typed class; arguments win over the environment (`METATREE_*`), it over a file, it over defaults."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self

from metatree._util import toml_text
from metatree._util.named_file import read_named, typed_path
from metatree.errors import UserError

PREFIX: Final = "METATREE_"
FILE_VARIABLE: Final = "METATREE_SETTINGS"
"""Names a settings file."""

_log = logging.getLogger("metatree")

_SHARES: Final[Mapping[str, float]] = {
    "questions": 0.15,
    "requests": 0.15,
    "trajectories": 0.45,
    "screenshots": 0.25,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set, with its defaults. Nothing is read before `load` is called, and nothing is kept globally.

    Example:
        >>> Settings.load(environment={"METATREE_HISTORY_KEYS": "step, action"}).history_keys
        ('step', 'action')
        >>> Settings(screenshot_to_memory=False).screenshot_to_memory
        False
    """

    history_keys: tuple[str, ...] = ("step", "subtask", "action_representation", "user_confirm")
    """Keys of a step that a blackboard keeps in its trajectories; none keeps all keys."""
    screenshot_to_memory: bool = True
    """Whether `Blackboard.add_image` keeps images."""
    qa_pair_file: str = ""
    """File with a question and its answer as one JSON object in each line, loaded when a blackboard is made."""
    qa_pair_num: int = -1
    """How many lines of it are loaded, from the end; -1 is all, 0 is none."""
    prompt_shares: Mapping[str, float] = field(default_factory=lambda: dict(_SHARES))
    """Section -> its part of a prompt that has a token limit; they are scaled to a sum of 1."""
    context_tokens: int = 2_000
    """How much of a blackboard a search is told at its start, in tokens; 0 is nothing."""
    image_max_bytes: int = 20_000_000
    """Larger images are refused."""
    thumbnail_px: int = 512
    """Longer side of the thumbnails that prompts with a token limit show; 0 makes none.
    Needs `metatree-memory[images]`."""
    embedding: str = "static"
    """What the evidence compares meanings with: `static`, `minilm` (needs `metatree-memory[minilm]`), or `none`."""
    similar_images: int = 0
    """Images whose perceptual hashes differ in at most this many of 64 bits are stored once; 0 compares contents only.
    Needs `metatree-memory[images]`."""

    @classmethod
    def load(
        cls,
        file: str | Path | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Self:
        """Read the settings of this call.

        Args:
            file: TOML, or JSON when its name ends with `.json`; None for the one that `METATREE_SETTINGS` names,
                if any. Settings stand at its top level or in a table `metatree`.
            environment: None for that of the process. `METATREE_HISTORY_KEYS=step,action`; texts may be JSON.
            arguments: settings by name; these win.

        Raises:
            UserError: the file cannot be read, a name is no setting, or a value is not of its type.
        """
        environment = os.environ if environment is None else environment
        known = {each.name: each for each in fields(cls)}
        values: dict[str, Any] = {}
        if file is None and (named := environment.get(FILE_VARIABLE)):
            file = _whole(named, FILE_VARIABLE)
        if file is not None:
            for name, value in _read(typed_path(file)).items():
                values[name] = _value(
                    _checked_name(name, known, f"{str(file)!r}"), name, value, f"in {str(file)!r}"
                )
        for variable, text in environment.items():
            name = variable.removeprefix(PREFIX).lower()
            if variable.startswith(PREFIX) and name in known:
                values[name] = _value(known[name], name, _from_text(known[name], text), f"from {variable}")
            elif variable.startswith(PREFIX) and (close := get_close_matches(name, known, 1, 0.8)):
                _log.warning("%s is no setting; did you mean %s%s?", variable, PREFIX, close[0].upper())
        if pairs := values.get("qa_pair_file"):
            variable = f"{PREFIX}QA_PAIR_FILE"
            _whole(pairs, variable if environment.get(variable) else f"{str(file)!r}: qa_pair_file")
        for name, value in arguments.items():
            values[name] = _value(_checked_name(name, known, "the arguments"), name, value, "as an argument")
        return cls(**values)


def _whole(named: str, setting: str) -> Path:
    """Return the file that a setting names; a relative one would be of whichever folder is current.

    Raises:
        UserError: it is relative.
    """
    file = Path(named).expanduser()
    if not file.is_absolute():
        raise UserError(f"{setting}={named!r} is relative: give the whole path of the file")
    return file


def _checked_name(name: str, known: Mapping[str, Any], where: str) -> Any:
    if name in known:
        return known[name]
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    raise UserError(f"{name!r} in {where} is no setting: {hint}")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_named(path).decode()
        content = json.loads(text) if path.suffix == ".json" else toml_text.loads(text)
    except OSError as exc:
        raise UserError(f"cannot read the settings in {str(path)!r}: {exc.strerror or exc}") from exc
    except ValueError as exc:  # also of JSON, TOML and UTF-8
        raise UserError(f"the settings in {str(path)!r} are out of form: {exc}") from exc
    if not isinstance(content, dict):
        raise UserError(f"the settings in {str(path)!r} must be an object with names and values")
    inner = content.get("metatree")
    return inner if isinstance(inner, dict) else content


def _from_text(setting: Any, text: str) -> Any:
    """Return what a variable says: JSON where it is some, for a text or a list also the plain words."""
    if setting.type == "str":
        return text
    try:
        return json.loads(text)
    except ValueError:
        pass
    if setting.type.startswith("tuple"):
        return [part.strip() for part in text.split(",") if part.strip()]
    return {"yes": True, "on": True, "no": False, "off": False}.get(text.strip().lower(), _as_bool(text))


def _as_bool(text: str) -> Any:
    return {"true": True, "false": False}.get(text.strip().lower(), text)


def _value(setting: Any, name: str, value: Any, where: str) -> Any:
    """Return a value as the type of its setting. Raises UserError."""
    match setting.type:
        case "bool":
            if isinstance(value, bool):
                return value
            if value in (0, 1):
                return bool(value)
            expected = "true or false"
        case "int":
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            expected = "a whole number"
        case "str":
            if isinstance(value, str | Path):
                return str(value)
            expected = "a text"
        case "tuple[str, ...]":
            if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
                return tuple(value)
            expected = "a list of texts"
        case _:
            if isinstance(value, Mapping) and all(
                isinstance(part, int | float) and not isinstance(part, bool) and part >= 0
                for part in value.values()
            ):
                return {str(key): float(part) for key, part in value.items()}
            expected = "an object with numbers that are not negative"
    raise UserError(f"{name} {where} is {value!r}: it must be {expected}")
