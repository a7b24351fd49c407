"""The blackboard: items of several agents and runs, in sections, durable and shared by threads and processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from metatree.blackboard.finding import Triple, all_triples, find
from metatree.blackboard.fork import Merge, OnConflict, fork_rows, merge_rows
from metatree.blackboard.images import Images
from metatree.blackboard.item import SECTIONS, Item, as_dict, encoded, estimate, kept
from metatree.blackboard.pairs import read_lines
from metatree.blackboard.render import HEADINGS, TITLE, Renderer, Rendering, Summarise
from metatree.blackboard.rows import Draft, Filter, Rows, find_or_make_board
from metatree.blackboard.section import Section
from metatree.errors import BadItem, Conflict, UnknownItem, UserError
from metatree.settings import Settings
from metatree.store import Store

if TYPE_CHECKING:
    from metatree.tree import Tree

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
class _Shared:
    """What all views of a board in this process share."""

    store: Store
    owns_store: bool
    rows: Rows
    images: Images
    settings: Settings
    now: Callable[[], float]
    new_id: Callable[[], str]
    name: str
    closed: bool = field(default=False)


class Blackboard:
    """What agents share: questions, requests, trajectories, screenshots, and whatever sections they agree on.

    A call that adds or changes something has done so, durably, when it returns. Threads may share a board, processes
    may open the same file. `with` closes it.

    Args:
        place: None or `:memory:` for one in memory; a file, made when it is not there; a tree, whose memory it then
            lives in; a store.
        name: of the board; a place may hold several.
        agent: who writes here, and who reads: what names an audience is seen by that audience alone. Without an
            agent everything is seen.
        settings: None to read them from the environment and the file that it names.
        now: the clock, in seconds since the epoch.
        new_id: makes the ids of items.

    Raises:
        UserError: the place cannot be opened, or the file with question pairs in the settings cannot be read.

    Example:
        >>> board = Blackboard()
        >>> item = board.add_trajectories({"step": 1, "subtask": "log in", "thought": "not among the kept keys"})
        >>> board.trajectories_to_json()
        '[{"step": 1, "subtask": "log in"}]'
        >>> board.update(item.id, {"subtask": "sign in"}, if_version=1).version
        2
    """

    def __init__(
        self,
        place: str | Path | Tree | Store | None = None,
        *,
        name: str = "main",
        agent: str = "",
        settings: Settings | None = None,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        settings = settings if settings is not None else Settings.load()
        store, owns_store = _opened(place)
        self._view = Filter(reader=agent)
        self.agent = agent
        self._share = _Shared(
            store,
            owns_store,
            None,  # type: ignore[arg-type]  # the next statement makes it; the drafts of its first items need the rest
            Images(store, settings),
            settings,
            now,
            new_id or _random_id,
            name,
        )
        try:
            self._share.rows = find_or_make_board(store, name, first=self._first_drafts)
        except BaseException:
            if owns_store:
                store.close()
            raise

    def _first_drafts(self, _: int) -> list[Draft]:
        """Return the question pairs that a board begins with."""
        settings = self.settings
        if not settings.qa_pair_file:
            return []
        if not Path(settings.qa_pair_file).expanduser().is_file():
            raise UserError(
                f"`qa_pair_file` names {settings.qa_pair_file!r}, which is no file: change the setting"
            )
        pairs = read_lines(settings.qa_pair_file, settings.qa_pair_num)
        return [self._draft("questions", pair, {}) for pair in pairs]

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
    def version(self) -> int:
        """Raised by every change, also one that this view does not show; 0 for a board that was never written to."""
        return self._share.rows.version()

    # Adding ----------------------------------------------------------------------------------------------------

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
        return self._landed(draft, self._share.rows.add((draft,), if_version=if_version)[0])

    def add_many(
        self, section: str, items: Iterable[Any], *, if_version: int | None = None, **about: Unpack[About]
    ) -> list[Item]:
        """Add several items in one commit, all or none; the rest as `add` does."""
        if "id" in about:
            raise UserError("several items cannot have one id: add them one by one")
        drafts = [self._draft(section, data, about) for data in items]
        if not drafts:
            return []
        made = self._share.rows.add(drafts, if_version=if_version)
        return [self._landed(draft, place) for draft, place in zip(drafts, made, strict=True)]

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

    def last_id(self, prefix: str) -> str | None:
        """Return the greatest id that begins with a text, also of a removed item; None when there is none."""
        return self._share.rows.last_id(prefix)

    def add_data(self, data: Any, memory: Section | str, **about: Unpack[About]) -> Item:
        """Add an item to a section; raises as `add` does."""
        return self.add(memory if isinstance(memory, str) else memory.name, data, **about)

    def add_questions(self, questions: Any, **about: Unpack[About]) -> Item:
        """Add a question, with its answer when there is one: `{"question": …, "answer": …}`; raises as `add` does."""
        return self.add("questions", questions, **about)

    def add_requests(self, requests: Any, **about: Unpack[About]) -> Item:
        """Add what the user asks for; it begins a round unless `round` names one. Raises as `add` does."""
        if about.get("round") is None:
            about["round"] = self._share.rows.last_round() + 1
        return self.add("requests", requests, **about)

    def add_trajectories(self, trajectories: Any, **about: Unpack[About]) -> Item:
        """Add a step: of a dictionary those keys that `Settings.history_keys` names, if it has one of them.

        Raises as `add` does.
        """
        data = as_dict(trajectories)
        keys = self.settings.history_keys
        return self.add("trajectories", kept(data, keys) if keys else data, **about)

    def add_image(
        self,
        screenshot_path: str | Path = "",
        metadata: Mapping[str, Any] | str | None = None,
        *,
        content: bytes | None = None,
        **about: Unpack[About],
    ) -> Item | None:
        """Add a screenshot; its bytes are kept once, however often the same image is added.

        Args:
            screenshot_path: the file; it may be deleted afterwards.
            metadata: why it is kept, what it shows; of a dictionary with the one key `metadata`, what is under it.
            content: the image itself, instead of a file.
            about: see `About`.

        Returns:
            The item; None when `Settings.screenshot_to_memory` is off.

        Raises:
            BadItem: there is no such file, or it is no PNG, JPEG, GIF or WebP, or JSON cannot hold the metadata.
                Nothing is added.
        """
        if not self.settings.screenshot_to_memory:
            return None
        if isinstance(metadata, Mapping) and set(metadata) == {"metadata"}:
            metadata = metadata["metadata"]
        said = {"metadata": {} if metadata is None else metadata, "image_path": str(screenshot_path)}
        encoded(said)
        images = self._share.images
        if content is not None:
            image = images.add_bytes(content)
        elif str(screenshot_path):
            image = images.add_file(screenshot_path)
        else:
            raise BadItem("there is no image: give its path, or its bytes as `content`")
        draft = self._draft("screenshots", said, about, image)
        item = self._landed(draft, self._share.rows.add((draft,))[0])
        images.settle()
        return item

    def _draft(self, section: str, data: Any, about: About, image: str = "") -> Draft:
        if not section or not isinstance(section, str):
            raise BadItem(f"a section is a text that is not empty, not {section!r}")
        share = self._share
        text = encoded(as_dict(data))
        if not about:
            return Draft(
                share.new_id(), section, text, share.now(), self.agent, "", None, None, (), None, False, image
            )
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

    def _landed(self, draft: Draft, place: tuple[int, int] | None) -> Item:
        """Return the item that a draft has become, or the same one that was there already. Raises Conflict."""
        if place is not None:
            return draft.item(*place)
        try:
            there = self._share.rows.get(draft.id, self._view)
        except UnknownItem:
            raise Conflict(f"the id {draft.id!r} was used before on this board: choose another") from None
        if (
            there.section != draft.section
            or there.data != json.loads(draft.json)
            or there.image != draft.image
        ):
            raise Conflict(
                f"item {draft.id!r} is there and says something else: change it with `update`, or choose another id",
                found=there.version,
            )
        return there

    # Changing --------------------------------------------------------------------------------------------------

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
            text = encoded(dict(data(item.data)) if callable(data) else {**item.data, **data})
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

    def clear(self) -> None:
        """Remove all items that this view shows, of all sections."""
        self._share.rows.remove_all(self._view)

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

    def forget_removed(self) -> int:
        """Delete what is kept of removed items, and images that no item shows; return how many items.

        A reader that asks for `changes` since an older version does not learn of these removals.
        """
        forgotten = self._share.rows.forget_removed()
        self._share.images.sweep()
        return forgotten

    # Reading ---------------------------------------------------------------------------------------------------

    def section(self, name: str) -> Section:
        """Return a section by its name; it need not exist yet."""
        return Section(self, name)

    @property
    def questions(self) -> Section:
        """The questions put to the person, with their answers."""
        return Section(self, "questions")

    @property
    def requests(self) -> Section:
        """What the user asked for, by round."""
        return Section(self, "requests")

    @property
    def trajectories(self) -> Section:
        """What agents did and decided, step by step."""
        return Section(self, "trajectories")

    @property
    def screenshots(self) -> Section:
        """Images with their metadata."""
        return Section(self, "screenshots")

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
            >>> board = Blackboard(new_id=lambda: "i1")
            >>> _ = board.add("facts", {"colour": "red", "parts": ["a", "b"]})
            >>> [tuple(each) for each in board.triples(relation="parts")]
            [('i1', 'parts', 'a'), ('i1', 'parts', 'b')]
        """
        asked = self._filter(which)
        if item is not None:
            asked = asked.within(Filter(ids=(item,)))
        any_value = value is _ANY
        return all_triples(self._share.rows, asked, relation, value, any_value)

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

    def is_empty(self) -> bool:
        """Say whether this view shows no item of any section."""
        return not self._share.rows.select(self._view, limit=1)

    def image_path(self, item: Item) -> Path | None:
        """Return the file of an item's image, None when it has none."""
        return self._share.images.path(item.image) if item.image else None

    def dicts(self, items: Iterable[Item]) -> list[dict[str, Any]]:
        """Return what items say, screenshots with their images as `image_str`."""
        urls: dict[str, str] = {}
        found = []
        for item in items:
            data = item.data
            if item.image:
                if item.image not in urls:
                    urls[item.image] = self._share.images.data_url(item.image)
                data["image_str"] = urls[item.image]
            found.append(data)
        return found

    def _filter(self, which: Which) -> Filter:
        unknown = which.keys() - Which.__annotations__.keys()
        if unknown:
            raise UserError(f"items have no {sorted(unknown)[0]!r} to be chosen by: see `Which`")
        number = which.get("round")
        asked = Filter(
            sections=_several(which.get("sections")),
            agents=_several(which.get("by")),
            runs=_several(which.get("run")),
            rounds=None if number is None else (number,),
            pinned=which.get("pinned"),
            since=which.get("added_since"),
            until=which.get("added_until"),
        )
        return self._view.within(asked)

    # Views, forks ----------------------------------------------------------------------------------------------

    def view(self, agent: str | None = None, **which: Unpack[Which]) -> Blackboard:
        """Return this board as an agent sees it: only what `which` lets through and it may see.

        What is written there is on the board for all who may see it. A view of a view sees no more than that.
        """
        made = object.__new__(Blackboard)
        made._share = self._share
        made.agent = self.agent if agent is None else agent
        seen = self._filter(which)
        if agent is not None and not self._view.reader:
            seen = replace(seen, reader=agent)
        elif agent is not None and agent != self._view.reader:
            raise UserError(
                f"a view of {self._view.reader!r} cannot become one of {agent!r}: ask the whole board"
            )
        made._view = seen
        return made

    def fork(self, name: str, *, agent: str | None = None) -> Blackboard:
        """Return a copy of what this view shows, under a name of its own in the same place, for a child agent.

        `merge` brings back what it changes. Ids, versions and authors stay the same; images are not copied.

        Raises:
            UserError: there is a board of this name.
        """
        made = object.__new__(Blackboard)
        rows = fork_rows(self._share.store, self._share.rows.board, name, self._view)
        made._share = replace(self._share, rows=rows, name=name, owns_store=False)
        made.agent = self.agent if agent is None else agent
        made._view = Filter(reader=made.agent)
        return made

    def merge(self, fork: Blackboard, *, on_conflict: OnConflict = "error") -> Merge:
        """Bring into this board what was added, changed and removed on a fork of it, all or nothing.

        Args:
            fork: made by `fork`; it may be used on and merged again.
            on_conflict: for items changed on both: keep `ours`, take `theirs`, or raise.

        Raises:
            Conflict: an item was changed on both.
            UserError: it is no fork of this board, or of another store.
        """
        return merge_rows(self._share.rows, fork._share.rows, on_conflict)

    # Prompts ---------------------------------------------------------------------------------------------------

    def render(
        self,
        max_tokens: int,
        *,
        shares: Mapping[str, float] | None = None,
        count_tokens: Callable[[str], int] | None = None,
        summarise: Summarise | None = None,
    ) -> Rendering:
        """Return a prompt of at most `max_tokens`: of each section the newest and the pinned items, oldest first.

        Args:
            max_tokens: 128 or more.
            shares: section -> its part of the tokens; None for those of the settings. What a section does not need
                goes to the others. A section without a share is not shown.
            count_tokens: None for an estimate that rather takes too many, a token for three bytes.
            summarise: given a section, the summary so far and the items that are left out since, returns one short
                text that stands for them; it is kept on the board and asked for again when the cut moves on.

        Raises:
            UserError: the limit is too small.
        """
        return self._renderer().render(
            max_tokens,
            self.settings.prompt_shares if shares is None else shares,
            count=count_tokens,
            summarise=summarise,
        )

    def blackboard_to_prompt(self, max_tokens: int | None = None) -> list[dict[str, Any]]:
        """Return all four sections as parts of a prompt, or what `render` gives for a limit."""
        if max_tokens is not None:
            return self.render(max_tokens).parts
        parts: list[dict[str, Any]] = [{"type": "text", "text": TITLE}]
        for name, heading in HEADINGS.items():
            parts += self.texts_to_prompt(self.section(name), heading)
        return parts + self.screenshots_to_prompt()

    def texts_to_prompt(self, memory: Section, prefix: str) -> list[dict[str, Any]]:
        """Return a section as one text part under a heading."""
        return memory.board._renderer().all_text(memory.name, prefix)

    def screenshots_to_prompt(self) -> list[dict[str, Any]]:
        """Return the screenshots as parts: metadata and image of each, an image that is there several times once."""
        return self._renderer().all_screenshots()

    def _renderer(self) -> Renderer:
        return Renderer(self._share.rows, self._share.images, self._view)

    # Dictionaries and files ------------------------------------------------------------------------------------

    def blackboard_to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """Return the four sections as lists of dictionaries, images as `data:` URLs."""
        return {name: self.section(name).to_list_of_dicts() for name in SECTIONS}

    def blackboard_from_dict(self, blackboard_dict: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Put what `blackboard_to_dict` gave in the place of the four sections, all or nothing.

        Raises:
            BadItem: a section is no list, or JSON cannot hold an item.
        """
        sections = {}
        for name in SECTIONS:
            items = blackboard_dict.get(name, [])
            if isinstance(items, str | Mapping) or not isinstance(items, Sequence):
                raise BadItem(
                    f"the section {name!r} must be a list of dictionaries, not {type(items).__name__}"
                )
            sections[name] = items
        self.replace_sections(sections)

    def blackboard_to_json(self) -> str:
        """Return the four sections as a JSON object."""
        return json.dumps(self.blackboard_to_dict())

    def questions_to_json(self) -> str:
        """Return the questions as a JSON list."""
        return self.questions.to_json()

    def requests_to_json(self) -> str:
        """Return the requests as a JSON list."""
        return self.requests.to_json()

    def trajectories_to_json(self) -> str:
        """Return the trajectories as a JSON list."""
        return self.trajectories.to_json()

    def screenshots_to_json(self) -> str:
        """Return the screenshots as a JSON list, images as `data:` URLs."""
        return self.screenshots.to_json()

    def load_questions(self, file_path: str | Path, last_k: int = -1) -> None:
        """Add the questions in a file, all or none; see `read_json_file`. Raises as `add` does."""
        self.add_many("questions", self.read_json_file(file_path, last_k))

    @staticmethod
    def read_json_file(file_path: str | Path, last_k: int = -1) -> list[Any]:
        """Return the JSON values in the lines of a file.

        Blank lines are skipped, and lines that are no JSON, with a warning in the log. A file that is not there has
        no values.

        Args:
            file_path: the file.
            last_k: how many lines to read, from the end; -1 is all, 0 is none.
        """
        return read_lines(file_path, last_k)

    # Questions for the person ----------------------------------------------------------------------------------

    def ask(self, question: str, **about: Unpack[About]) -> Item:
        """Put a question to the person; `answer` answers it, `wait_for_answer` waits for that."""
        if not question.strip():
            raise BadItem("the question is empty: give it some words")
        return self.add("questions", {"question": question, "answer": None}, **about)

    def open_questions(self, **which: Unpack[Which]) -> list[Item]:
        """Return the questions that were put to the person and have no answer, oldest first."""
        which["sections"] = "questions"
        return [item for item in self._share.rows.select(self._filter(which)) if is_open(item)]

    def answer(self, question_id: str, answer: str) -> Item:
        """Answer a question that is open; an empty answer declines it.

        Args:
            question_id: its id, or the beginning of it when no other begins so.

        Raises:
            UnknownItem: there is no such question.
            UserError: several begin so, or it has an answer already.
        """
        ids = self._share.rows.find_ids(question_id, self._view.within(Filter(sections=("questions",))))
        if question_id in ids:
            ids = [question_id]
        if len(ids) > 1:
            raise UserError(
                f"several questions begin with {question_id!r}: {', '.join(ids)}; give more of the id"
            )
        if not ids:
            raise UnknownItem(question_id)
        item = self.get(ids[0])
        if not is_open(item):
            raise UserError(f"question {item.id!r} has an answer already: {item.get_value('answer')!r}")
        said: dict[str, Any] = {"answer": answer}
        if self.agent:
            said["answered_by"] = self.agent
        try:
            return self.update(item.id, said, if_version=item.version)
        except Conflict:
            return self.answer(item.id, answer)  # it says that somebody was faster, unless only a pin was

    def wait_for_answer(self, question_id: str, timeout_s: float | None = None) -> str | None:
        """Wait until a question is answered, from whichever process, and return the answer; None when time is over.

        Raises:
            UnknownItem: there is no such question, or it was removed meanwhile.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._share.rows.bell.listen() as listener:
            while is_open(item := self.get(question_id)):
                left = 3600.0 if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return None
                listener.wait(left)
        return str(item.get_value("answer"))

    # Changes ---------------------------------------------------------------------------------------------------

    def changes(self, since: int = 0, *, limit: int | None = None, **which: Unpack[Which]) -> list[Item]:
        """Return what was added, changed or removed after a version of the board, in this order.

        An item is told of once, as it is now; `Item.removed` is true for one that is gone. The `changed` of the last
        one is the version to go on from.
        """
        return self._share.rows.changes(since, self._filter(which), limit)

    def wait(self, since: int | None = None, timeout_s: float | None = None) -> int:
        """Wait until the board is past a version, and return its version; also when the time is over.

        Args:
            since: None for the version at this moment.
            timeout_s: None to wait for ever.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        since = self.version if since is None else since
        if (version := self.version) > since:
            return version
        with self._share.rows.bell.listen() as listener:
            while (version := self.version) <= since:
                left = 3600.0 if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    break
                listener.wait(left)
        return version

    async def await_change(self, since: int | None = None, timeout_s: float | None = None) -> int:
        """Do what `wait` does, in an event loop."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        since = self.version if since is None else since
        if (version := self.version) > since:
            return version
        with self._share.rows.bell.listen() as listener:
            while (version := self.version) <= since:
                left = 3600.0 if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    break
                await listener.wait_async(left)
        return version

    def subscribe(
        self, since: int | None = None, *, timeout_s: float | None = None, **which: Unpack[Which]
    ) -> Iterator[Item]:
        """Yield what changes, as `changes` tells it, from whichever process; ends after `timeout_s` without a change.

        Args:
            since: a version to begin after; None for the one at the call.
        """
        since = self.version if since is None else since
        return self._subscribed(since, timeout_s, self._filter(which))

    def _subscribed(self, since: int, timeout_s: float | None, which: Filter) -> Iterator[Item]:
        rows = self._share.rows
        with rows.bell.listen() as listener:
            quiet_since = time.monotonic()
            while True:
                for item in rows.changes(since, which):
                    since = item.changed
                    yield item
                    quiet_since = time.monotonic()
                left = 3600.0 if timeout_s is None else quiet_since + timeout_s - time.monotonic()
                if left <= 0:
                    return
                listener.wait(left)

    async def watch(
        self, since: int | None = None, *, timeout_s: float | None = None, **which: Unpack[Which]
    ) -> AsyncIterator[Item]:
        """Do what `subscribe` does, in an event loop; `since` counts from the first step of the loop."""
        since = self.version if since is None else since
        rows, wanted = self._share.rows, self._filter(which)
        with rows.bell.listen() as listener:
            quiet_since = time.monotonic()
            while True:
                for item in rows.changes(since, wanted):
                    since = item.changed
                    yield item
                    quiet_since = time.monotonic()
                left = 3600.0 if timeout_s is None else quiet_since + timeout_s - time.monotonic()
                if left <= 0:
                    return
                await listener.wait_async(left)

    def listeners(self) -> int:
        """Return how many wait for a change of this board at this moment, in all processes."""
        return self._share.rows.bell.listeners()

    # The end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file if this object opened it; a board in memory is gone then. Closing twice is allowed."""
        share = self._share
        if not share.closed and share.owns_store:
            share.closed = True
            share.images.close()
            share.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        seen = f", agent={self.agent!r}" if self.agent else ""
        return (
            f"Blackboard({':memory:' if self.path is None else str(self.path)!r}, name={self.name!r}{seen})"
        )


def is_open(item: Item) -> bool:
    """Say whether an item is a question that waits for an answer."""
    data = item.data
    return "question" in data and "answer" in data and data["answer"] is None


def _opened(place: str | Path | Tree | Store | None) -> tuple[Store, bool]:
    """Return the store at a place, and whether it was opened here."""
    if place is None:
        return Store.open(":memory:"), True
    if isinstance(place, Store):
        return place, False
    if isinstance(place, str | Path):
        path = Path(place).expanduser()
        if path.is_dir():
            memory = (path if path.name == ".metatree" else path / ".metatree") / "memory.db"
            if not memory.parent.is_dir():
                raise UserError(
                    f"{str(place)!r} is a folder without a tree: name a file in it, such as board.db"
                )
            path = memory
        return Store.open(":memory:" if str(place) == ":memory:" else path), True
    return place.memory, False


def _random_id() -> str:
    return os.urandom(8).hex()


def _several(value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _text(name: str, value: Any, *, empty: bool = True) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise BadItem(f"{name}={value!r}: it must be a text{'' if empty else ' that is not empty'}")
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
