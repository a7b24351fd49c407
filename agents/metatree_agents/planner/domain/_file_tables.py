"""The tables of a domain's file, with the types of their values."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class _FileTable(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class RelationTable(_FileTable):
    arity: int | None = None
    dynamic: bool = False
    parameters: list[str] = []
    definition: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_plain_arity(cls, table: Any) -> Any:
        return {"arity": table} if isinstance(table, int) and not isinstance(table, bool) else table


class _GoalTable(_FileTable):
    again: bool = False
    timeout_s: float | None = None


class _ActionTable(_FileTable):
    goal: str
    name: str | None = None
    when: str = ""
    cost: float | str = 0.0
    title: str = ""
    description: str = ""


class _TaskTable(_ActionTable):
    effect: str = ""
    does: dict[str, Any] = {}
    repeatable: bool = True
    attempts: int = 1
    backoff_s: float = 0.5
    timeout_s: float | None = None
    heartbeat_s: float | None = None
    undo: str = ""


class _RuleTable(_ActionTable):
    subgoals: list[str] = []
    order: bool | list[Annotated[list[int], Field(min_length=2, max_length=2)]] = True


class DomainFile(_FileTable):
    name: str | None = None
    version: str = ""
    takes_over: list[str] = []
    relations: dict[str, RelationTable] = {}
    goals: dict[str, _GoalTable] = {}
    tasks: list[_TaskTable] = []
    rules: list[_RuleTable] = []
    facts: list[str] = []
    goal: Any = None
    """For whoever reads the file: goals to plan for are given apart from it."""


_PROBLEMS: Final = {
    "missing": "it is missing",
    "extra_forbidden": "unknown key",
    "model_type": "expected a table",
    "list_type": "expected a list",
}


def problem_of(exc: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Return where the first problem is, and it with its place, `tasks 2, cost: …`; of several types each may fail."""
    first, *others = exc.errors()
    place = ""
    for part in first["loc"][:3]:  # the types of a value that may be of several come behind
        place += f" {part + 1}" if isinstance(part, int) else f", {part}" if place else part
    ways = [first, *(one for one in others if one["loc"][:3] == first["loc"][:3])]
    return first["loc"][:3], f"{place}: " + ", or ".join(
        _PROBLEMS.get(one["type"], one["msg"].lower()) for one in ways
    )
