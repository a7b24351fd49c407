"""The items of a board: added, changed, read, found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from metatree.blackboard._find import Triple, all_triples, find
from metatree.blackboard._images import Images
from metatree.blackboard._item import SECTIONS, Item, as_dict, encode, estimate
from metatree.blackboard._rows import Draft, Filter, Rows
from metatree.errors import BadItem, Conflict, UnknownItem, UserError
from metatree.settings import Settings
from metatree.storage.database import Database

_ANY: Final[Any] = object()
_LARGEST: Final = 2**63 - 1


class About(TypedDict, total=False):
    """What can be said about an item when it is added."""

    id: str
    """A random one when it is left out. The same item under the same id is added once."""
    agent: str
    """Who wrote it; the board's own agent when it is left out."""
    run: str
    step: int | None
    round: int | None
    sources: Sequence[str]
    audience: Sequence[str] | None
    pinned: bool


class Which(TypedDict, total=False):
    """Which items are meant; every field that is set must hold. A text is a list of one."""

    sections: str | Sequence[str] | None
    by: str | Sequence[str] | None
    """The agents that wrote them."""
    run: str | Sequence[str] | None
    round: int | None
    pinned: bool | None
    added_since: float | None
    """Added at this time or later, in seconds since the epoch."""
    added_until: float | None
    """Added before this time."""


@dataclass(frozen=True, slots=True)
class Round:
    """The requests of one round and what they led to."""

    number: int
    requests: tuple[Item, ...]
    results: tuple[Item, ...]
    """Items of other sections that belong to the round or name one of its requests among their sources."""


@dataclass(slots=True)
class OpenBoard:
    """What all views of a board in this process share."""

    store: Database
    owns_store: bool
    rows: Rows
    images: Images
    settings: Settings
    now: Callable[[], float]
    new_id: Callable[[], str]
    name: str
    closed: bool = field(default=False)


class Items:
    """The part of a board that holds items, as one reader sees it."""

    _share: OpenBoard
    _view: Filter
    agent: str
    """Who writes here, where nothing else is said."""

    @property
    def settings(self) -> Settings:
        """The settings that it was opened with."""
        return self._share.settings

    @property
    def name(self) -> str:
        """The name of the board."""
        return self._share.name

    @property
    def path(self) -> Path | None:
        """The file that it lives in, None for one in memory."""
        return self._share.store.path

    @property
    def shared(self) -> bool:
        """Whether several machines may see it."""
        return self._share.store.shared

    @property
    def version(self) -> int:
        """Raised by every change, also one that this view does not show; 0 for a board that was never written to."""
        return self._share.rows.version()

    def add(self, section: str, data: Any, *, if_version: int | None = None, **about: Unpack[About]) -> Item:
        """Add an item: a dictionary, a `MemoryItem`, an `Item`, a dataclass, a pydantic model, or a plain text.

        Args:
            section: one of the four, or any other name.
            data: what it says; copied.
            if_version: add it only if the board is at this version.
            about: see `About`.

        Returns:
            The item; with an id that is there already, and the same data, the item that is there.

        Raises:
            BadItem: JSON cannot hold it. Nothing is added.
            Conflict: the board is at another version, or the id is that of another item, or of a removed one.
        """
        draft = self._draft(section, data, about)
        return self._added_item(draft, self._share.rows.add((draft,), if_version=if_version)[0])

    def add_many(
        self, section: str, items: Iterable[Any], *, if_version: int | None = None, **about: Unpack[About]
    ) -> list[Item]:
        """Add several items in one commit, all or none; the rest as `add` does."""
        if "id" in about:
            raise UserError("several items cannot have one id: add them one by one")
        drafts = [self._draft(section, data, about) for data in items]
        if not drafts:
            return []
        places = self._share.rows.add(drafts, if_version=if_version)
        return [self._added_item(draft, place) for draft, place in zip(drafts, places, strict=True)]

    def add_all(self, items: Iterable[tuple[str, Any, About]]) -> None:
        """Add items of several sections in one commit; one whose id is there already stays as it is there.

        Args:
            items: section, data and what is said about it, of each.

        Raises:
            BadItem: JSON cannot hold one of them. Nothing is added.
        """
        drafts = [self._draft(section, data, about) for section, data, about in items]
        if drafts:
            self._share.rows.add(drafts)

    def _draft(self, section: str, data: Any, about: About, image: str = "") -> Draft:
        if section not in SECTIONS:
            _text("section", section, empty=False)
        share = self._share
        text = encode(as_dict(data))
        if not about:
            return Draft(share.new_id(), section, text, share.now(), self.agent, image=image)
        unknown = about.keys() - About.__annotations__.keys()
        if unknown:
            raise UserError(f"{sorted(unknown)[0]!r} is nothing that can be said about an item: see `About`")
        audience = about.get("audience")
        return Draft(
            _text("id", about["id"], empty=False) if "id" in about else share.new_id(),
            section,
            text,
            share.now(),
            _text("agent", about.get("agent", self.agent)),
            _text("run", about.get("run", "")),
            _number("step", about.get("step")),
            _number("round", about.get("round")),
            _texts("sources", about.get("sources", ())),
            None if audience is None else _texts("audience", audience),
            bool(about.get("pinned", False)),
            image,
        )

    def _added_item(self, draft: Draft, place: tuple[int, int] | None) -> Item:
        """Return the item that a draft has become, or the same one that was there already. Raises Conflict."""
        if place is not None:
            return draft.item(*place)
        try:
            stored = self._share.rows.get(draft.id, self._view)
        except UnknownItem:
            raise Conflict(f"the id {draft.id!r} was used before on this board: choose another") from None
        if (
            stored.section != draft.section
            or stored.data != json.loads(draft.json)
            or stored.image != draft.image
        ):
            raise Conflict(
                f"item {draft.id!r} is there and says something else: change it with `update`, or choose another id",
                found=stored.version,
            )
        return stored

    def update(
        self,
        item_id: str,
        data: Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]],
        *,
        if_version: int | None = None,
    ) -> Item:
        """Put values into an item, beside those it has; or a function makes all its data from what it says now.

        Raises:
            UnknownItem: there is no such item.
            Conflict: it is not at the version `if_version`.
            BadItem: JSON cannot hold the values.
        """

        def change(item: Item) -> dict[str, Any]:
            text = encode(dict(data(item.data)) if callable(data) else {**item.data, **data})
            return {} if text == item.json else {"data": text, "tokens": estimate(text) + 1}

        return self._share.rows.change(item_id, change, visible=self._view, if_version=if_version)

    def pin(self, item_id: str, pinned: bool = True) -> Item:
        """Have prompts show an item however old it is, or no longer; raises `UnknownItem`."""

        def change(item: Item) -> dict[str, Any]:
            return {} if item.pinned == pinned else {"pinned": pinned}

        return self._share.rows.change(item_id, change, visible=self._view)

    def remove(self, item_id: str, *, if_version: int | None = None) -> None:
        """Remove an item; raises as `update` does."""

        def change(_: Item) -> dict[str, Any]:
            return {"removed": 1, "data": "", "tokens": 0, "image": ""}

        self._share.rows.change(item_id, change, visible=self._view, if_version=if_version)

    def remove_all(self, *sections: str) -> int:
        """Remove all items of the sections that this view shows; return how many."""
        return self._share.rows.remove_all(self._view.within(Filter(sections=sections)))

    def replace_sections(self, sections: Mapping[str, Sequence[Any]]) -> None:
        """Put other items in the place of those in some sections, all or nothing; raises as `add` does."""
        drafts = []
        for name, items in sections.items():
            for data in items:
                image = ""
                if name == "screenshots":
                    data = dict(as_dict(data))
                    url = data.get("image_str")
                    image = (isinstance(url, str) and self._share.images.add_data_url(url)) or ""
                    if image:
                        del data["image_str"]
                drafts.append(self._draft(name, data, {}, image))
        with self._share.rows.transaction():
            self.remove_all(*sections)
            if drafts:
                self._share.rows.add(drafts)

    def clear(self) -> None:
        """Remove all items that this view shows, of all sections."""
        self._share.rows.remove_all(self._view)

    def get(self, item_id: str) -> Item:
        """Return an item by its id; raises `UnknownItem`."""
        return self._share.rows.get(item_id, self._view)

    def items(
        self,
        section: str | None = None,
        *,
        limit: int | None = None,
        newest: bool = False,
        **which: Unpack[Which],
    ) -> list[Item]:
        """Return items, oldest first.

        Args:
            section: None for all.
            limit: at most this many.
            newest: whether the newest come first.
            which: see `Which`.
        """
        if section is not None:
            which["sections"] = section
        return self._share.rows.select(self._filter(which), limit=limit, newest=newest)

    def count(self, section: str | None = None, **which: Unpack[Which]) -> int:
        """Return how many items there are; the arguments are those of `items`."""
        if section is not None:
            which["sections"] = section
        return self._share.rows.count(self._filter(which))

    def find(self, text: str, *, k: int = 10, **which: Unpack[Which]) -> list[Item]:
        """Return at most `k` items that hold words of a text, best first; see `Which` for what may limit them."""
        return find(self._share.rows, self._filter(which), text, k)

    def triples(
        self, item: str | None = None, relation: str | None = None, value: Any = _ANY, **which: Unpack[Which]
    ) -> Iterator[Triple]:
        """Yield what items say as `(item, relation, value)`, oldest first; what is given must match.

        Example:
            >>> from metatree import Blackboard
            >>> board = Blackboard(new_id=lambda: "i1")
            >>> _ = board.add("facts", {"colour": "red", "parts": ["a", "b"]})
            >>> [tuple(each) for each in board.triples(relation="parts")]
            [('i1', 'parts', 'a'), ('i1', 'parts', 'b')]
        """
        filter_ = self._filter(which)
        if item is not None:
            filter_ = filter_.within(Filter(ids=(item,)))
        any_value = value is _ANY
        return all_triples(self._share.rows, filter_, relation, value, any_value)

    def rounds(self) -> list[Round]:
        """Return the requests by round, with the items that they led to."""
        requests: dict[int, list[Item]] = {}
        for request in self.items("requests"):
            requests.setdefault(request.round or 0, []).append(request)
        number_of = {item.id: number for number, items in requests.items() for item in items}
        results: dict[int, list[Item]] = {number: [] for number in requests}
        for item in self.items():
            if item.section == "requests":
                continue
            number = item.round if item.round in results else None
            if number is None:
                number = next((number_of[source] for source in item.sources if source in number_of), None)
            if number is not None:
                results[number].append(item)
        return [Round(n, tuple(items), tuple(results[n])) for n, items in sorted(requests.items())]

    def last_id(self, prefix: str) -> str | None:
        """Return the greatest id that begins with a text, also of a removed item; None when there is none."""
        return self._share.rows.last_id(prefix)

    def is_empty(self) -> bool:
        """Say whether this view shows no item of any section."""
        return not self._share.rows.select(self._view, limit=1)

    def image_path(self, item: Item) -> Path | None:
        """Return the file of an item's image, None when it has none, or one that is not kept with the board."""
        return self._share.images.path(item.image) if item.image else None

    def dicts(self, items: Iterable[Item]) -> list[dict[str, Any]]:
        """Return what items say, screenshots with their images as `image_str`."""
        urls: dict[str, str] = {}
        dicts = []
        for item in items:
            data = item.data
            if item.image:
                if item.image not in urls:
                    urls[item.image] = self._share.images.data_url(item.image)
                data["image_str"] = urls[item.image]
            dicts.append(data)
        return dicts

    def _filter(self, which: Which) -> Filter:
        unknown = which.keys() - Which.__annotations__.keys()
        if unknown:
            raise UserError(f"items have no {sorted(unknown)[0]!r} to be chosen by: see `Which`")
        number = which.get("round")
        filter_ = Filter(
            sections=_as_tuple(which.get("sections")),
            agents=_as_tuple(which.get("by")),
            runs=_as_tuple(which.get("run")),
            rounds=None if number is None else (number,),
            pinned=which.get("pinned"),
            since=which.get("added_since"),
            until=which.get("added_until"),
        )
        return self._view.within(filter_)


def _as_tuple(value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _text(name: str, value: Any, *, empty: bool = True) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise BadItem(f"{name}={value!r}: it must be a text{'' if empty else ' that is not empty'}")
    if not value.isascii() and not value.isprintable():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadItem(f"{name}={value!r} holds half of a character: it cannot be kept") from None
    return value


def _texts(name: str, values: Any) -> tuple[str, ...]:
    several = (values,) if isinstance(values, str) else tuple(values)
    return tuple(_text(name, value) for value in several)


def _number(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
        raise BadItem(f"{name}={value!r}: it must be a whole number of at most 64 bits")
    return value
