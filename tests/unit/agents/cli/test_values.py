"""Values of options that are taken without pydantic are those that Typer gives."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from metatree_agents.cli._values import PlainCommand

_SEEN: list[Any] = []


def _upper(text: str) -> str:
    if text == "no":
        raise ValueError("not that")
    return text.upper()


def _command(
    texts: Annotated[list[str], typer.Argument()],
    k: Annotated[int, typer.Option("-k", min=1)] = 5,
    kind: Annotated[list[str] | None, typer.Option("--kind")] = None,
    loud: Annotated[str | None, typer.Option("--loud", parser=_upper)] = None,
    name: Annotated[str, typer.Option("--name")] = "",
    share: Annotated[float, typer.Option("--share", max=1.0)] = 0.5,
) -> None:
    _SEEN.append((texts, k, kind, loud, name, share))


def _told(cls: type[typer.core.TyperCommand], line: str, **defaults: Any) -> Any:
    app = typer.Typer(rich_markup_mode=None)
    app.command(cls=cls)(_command)
    _SEEN.clear()
    try:
        typer.main.get_command(app)(args=line.split(), standalone_mode=False, default_map=defaults)
    except Exception as error:
        return type(error), str(error)
    return _SEEN[0]


@pytest.mark.parametrize(
    "line",
    [
        "a b",
        "a -k 7",
        "a -k 0",
        "a -k seven",
        "a --kind file --kind section",
        "a --loud now",
        "a --loud no",
        "a --name x",
        "a --share 2",
        "a --share .25",
        "",
    ],
)
@pytest.mark.parametrize(
    "defaults", [{}, {"k": 3}, {"k": 0}, {"name": 5}, {"kind": ["file"]}, {"kind": "file"}]
)
def test_values_are_those_of_typer(line: str, defaults: dict[str, Any]) -> None:
    assert _told(PlainCommand, line, **defaults) == _told(typer.core.TyperCommand, line, **defaults)
