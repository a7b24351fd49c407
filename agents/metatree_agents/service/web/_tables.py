"""Pages of lists as data: tables of cells and small forms, which one template shows (`tables.html`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import Request
from fastapi.responses import Response

from metatree_agents.service.web._replies import link, page
from metatree_agents.service.web.sessions import Session

PAGE = 50
"""Rows of a table on one page."""


@dataclass(frozen=True, slots=True)
class LinkCell:
    """A cell that goes somewhere."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Button:
    """A button in a cell, which posts a form."""

    label: str
    action: str
    fields: Mapping[str, object] = field(default_factory=dict)
    about: str = ""
    """What it does to which row, for those who hear the page."""
    choices: Sequence[str] = ()
    """What is to be chosen from, as the field `choice`."""
    chosen: str = ""
    asks: str = ""
    """What is asked before it is done, where there is no way back."""


@dataclass(frozen=True, slots=True)
class TimeCell:
    """A cell that says how long ago something was."""

    at: float


@dataclass(frozen=True, slots=True)
class GoneCell:
    """A cell whose text holds no more."""

    text: str
    why: str


Cell = str | LinkCell | TimeCell | GoneCell | Sequence[Button] | None


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table with its heading, and the pages before and after it."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    empty: str
    """What is said when there are no rows."""
    earlier: str | None = None
    later: str | None = None
    hint: str = ""
    """What is to be known of the rows."""


@dataclass(frozen=True, slots=True)
class PageForm:
    """A form of some fields."""

    heading: str
    action: str
    button: str
    inputs: Sequence[FormField] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form: of text, or of choices."""

    name: str
    label: str
    choices: Sequence[str] = ()
    value: str = ""
    pattern: str = ""
    required: bool = True
    """Whether it is filled in the browser already; of choices that need not be, none is chosen at first."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """What is shown this once: a secret, a key or a link."""

    what: str
    value: str
    example: str = ""
    """How it is used, as lines to copy."""


def paged(
    rows: Sequence[Sequence[Cell]], path: str, start: int, *, page: int = PAGE, **given: object
) -> tuple[Sequence[Sequence[Cell]], str | None, str | None]:
    """Return the rows of a page, of which there may be one more than fits, and the addresses of its neighbours."""
    earlier = link(path, **given, start=max(0, start - page)) if start else None
    later = link(path, **given, start=start + page) if len(rows) > page else None
    return rows[:page], earlier, later


def tables_page(
    request: Request,
    session: Session,
    title: str,
    tables: Sequence[ListedTable] = (),
    *,
    lead: str = "",
    tabs: Sequence[tuple[str, str]] = (),
    forms: Sequence[PageForm] = (),
    figures: Sequence[tuple[str, str]] = (),
    shown: Sequence[ShownOnce] = (),
    notice: str = "",
    wrong: str = "",
    again: int = 0,
    status: int = 200,
) -> Response:
    """Return a page of tables and forms.

    Args:
        tabs: (name, path) of the pages beside this one.
        figures: (number, what it counts).
        notice: what has just happened.
        wrong: what is wrong.
        again: after how many seconds an open page is brought up to date, its forms apart; 0 for never.
    """
    return page(
        request,
        "tables.html",
        session=session,
        status=status,
        title=title,
        tables=tables,
        lead=lead,
        tabs=tabs,
        forms=forms,
        figures=figures,
        shown=shown,
        notice=notice,
        wrong=wrong,
        again=again,
    )
