"""What the models of the commands' JSON share.

They are pydantic models, from which `--json`, `metatree schema` and docs/json.md come. Lost: dataclasses with a
`TypeAdapter` for the schema alone, which would load no pydantic for `--json`; but typer itself loads it to parse the
arguments of any command, so what is left to save is the making of a command's models. Commands import them where they
print JSON, never at the top of a module: `metatree --version` does without.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class Output(BaseModel):
    """What a command prints, made from an object of the library by `model_validate`, or field by field.

    A field that has a default is printed only where it was given.
    """

    model_config = ConfigDict(from_attributes=True, defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """Return it as `json` writes it."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, fallback=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _stamp(value: float | str) -> str:
    return (
        value if isinstance(value, str) else datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    )


Time = Annotated[str, BeforeValidator(_stamp)]
"""ISO 8601 in UTC, also from seconds since 1970."""

Score = Annotated[float, AfterValidator(lambda value: round(value, 4))]
Seconds = Annotated[float, AfterValidator(lambda value: round(value, 3))]
