"""A prompt out of a board: all of it, or what fits a token limit, with a word on what was left out.

Of each section the newest items and the pinned ones are chosen, and shown oldest first. What is too much is dropped
in blocks: the cut moves on by a quarter of the section's tokens at once and then stays, so that between two cuts the
text only grows at its end, and everything before the first section that changed stays the same, byte by byte; that is
what providers' prompt caches need. The cut depends on the items alone: any process that renders the board gets the
same text.

Lost: a sliding window: each new item changes the text from its beginning, and no cache helps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from metatree._util.numbers import whole_number
from metatree.blackboard._image_header import image_tokens
from metatree.blackboard._item import SECTIONS, Item, encode, estimate
from metatree.blackboard._rows import Draft, Filter, Rows
from metatree.errors import UserError

if TYPE_CHECKING:
    from metatree.blackboard._images import Image, Images

HEADINGS: Final[Mapping[str, str]] = {
    "questions": "[Questions & Answers:]",
    "requests": "[Request History:]",
    "trajectories": "[Step Trajectories Completed Previously:]",
}
TITLE: Final = "[Blackboard:]"
SCREENSHOTS: Final = "screenshots"
LEAST_TOKENS: Final = 128
_BLOCKS: Final = 4
_NOTE_TOKENS: Final = 16
_SEVERAL: Final = 3
"""Metadata shown for one image that was added several times, in a prompt with a limit."""

Summarise = Callable[[str, str, Sequence[Item]], str]
"""Told a section, the summary so far, and the items that are left out besides; returns a summary of all of it."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a section holds and a prompt does not show."""

    items: int = 0
    """Not shown at all; for screenshots, images."""
    shortened: int = 0
    """Shown, with their long texts cut."""
    tokens: int = 0
    """What the items that are not shown would take."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A prompt, and what is in it and what is not."""

    parts: list[dict[str, Any]]
    """Text and image parts, as models take them."""
    tokens: int
    """How many tokens it takes, by the counter that was used."""
    left_out: dict[str, LeftOut]
    """By section; sections of which everything is shown are not there."""
    shown: dict[str, tuple[str, ...]]
    """Ids of the items that are shown, by section."""
    version: int
    """The version of the board."""

    @property
    def text(self) -> str:
        """The text parts, without the images."""
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")


@dataclass(slots=True)
class _Section:
    """One section of a prompt in the making."""

    parts: list[dict[str, Any]]
    ids: list[str]
    left_out: LeftOut
    images: int = 0
    """Tokens of the images among the parts."""


@dataclass(slots=True)
class _ImageGroup:
    """An image with the items that show it."""

    name: str
    pinned: bool = False
    items: list[Item] = field(default_factory=list)


class Renderer:
    """Renders one board as one reader sees it."""

    def __init__(self, rows: Rows, images: Images, view: Filter) -> None:
        self._rows = rows
        self._images = images
        self._view = view

    # everything

    def all_text(self, section: str, heading: str) -> list[dict[str, Any]]:
        """Return all items of a section as one text part."""
        texts = self._rows.texts(self._within(section))
        inner = ", ".join(text if text.isascii() else json.dumps(json.loads(text)) for text in texts)
        return [{"type": "text", "text": f"{heading}\n [{inner}]"}]

    def all_screenshots(self) -> list[dict[str, Any]]:
        """Return all screenshots: metadata and image, each image once."""
        parts: list[dict[str, Any]] = []
        for group in self._image_groups():
            texts = dict.fromkeys(json.dumps(item.data.get("metadata", "")) for item in group.items)
            parts += [{"type": "text", "text": text} for text in texts]
            url = (
                self._images.data_url(group.name) if group.name else group.items[0].data.get("image_str", "")
            )
            parts.append({"type": "image_url", "image_url": {"url": url}})
        return parts

    # what fits

    def render(
        self,
        max_tokens: int,
        shares: Mapping[str, float],
        *,
        count: Callable[[str], int] | None = None,
        summarise: Summarise | None = None,
    ) -> Rendering:
        """Return a prompt of at most `max_tokens`.

        Raises:
            UserError: the limit is too small for the headings, or no section has a share.
        """
        if max_tokens < LEAST_TOKENS:
            raise UserError(f"max_tokens={max_tokens}: a prompt of a board needs at least {LEAST_TOKENS}")
        version = self._rows.version()
        sections = _order(shares)
        aim = max_tokens
        while True:
            chosen = self._choose(aim, sections, shares, summarise)
            parts = [{"type": "text", "text": TITLE}]
            parts += [part for section in chosen.values() for part in section.parts]
            counter = count or estimate
            tokens = sum(counter(part["text"]) for part in parts if part["type"] == "text")
            tokens += sum(section.images for section in chosen.values())
            if tokens <= max_tokens:
                break
            if aim < LEAST_TOKENS:
                raise UserError(
                    f"max_tokens={max_tokens} is less than the headings of this board take: raise it"
                )
            aim = min(aim - 16, aim * max_tokens // tokens - 16)
        return Rendering(
            parts,
            tokens,
            {name: s.left_out for name, s in chosen.items() if s.left_out.items or s.left_out.shortened},
            {name: tuple(s.ids) for name, s in chosen.items()},
            version,
        )

    def _choose(
        self, aim: int, sections: Sequence[str], shares: Mapping[str, float], summarise: Summarise | None
    ) -> dict[str, _Section]:
        texts = [name for name in sections if name != SCREENSHOTS]
        fixed = estimate(TITLE) + sum(estimate(_heading(name)) + _NOTE_TOKENS for name in texts)
        room = max(0, aim - fixed)
        groups = self._image_groups() if SCREENSHOTS in sections else []
        known = self._images.known({group.name for group in groups if group.name})
        costs = [_cost(group, known.get(group.name)) for group in groups]
        needs = {name: self._rows.weigh(self._within(name), room)[1] for name in texts}
        needs[SCREENSHOTS] = sum(costs)
        budgets = _budgets(room, {name: shares[name] for name in sections}, needs)
        chosen = {name: self._texts(name, budgets[name], needs[name], summarise) for name in texts}
        if SCREENSHOTS in sections:
            chosen[SCREENSHOTS] = self._screenshots(groups, costs, known, budgets[SCREENSHOTS])
        return chosen

    def _within(self, section: str, pinned: bool | None = None) -> Filter:
        return self._view.within(Filter(sections=(section,), pinned=pinned))

    def _texts(self, section: str, budget: int, need: int, summarise: Summarise | None) -> _Section:
        heading = _heading(section)
        most = budget if need <= budget else max(16, budget // 2)
        chosen: list[Item] = []
        room = budget
        pinned_total, pinned_tokens = self._rows.weigh(self._within(section, True), most)
        for item in self._rows.select(self._within(section, True), limit=budget // 2 + 1, newest=True):
            cost = min(_tokens(item), most)
            if cost > room:
                break
            room -= cost
            chosen.append(item)
        omitted = pinned_total - len(chosen)
        left_tokens = pinned_tokens - (budget - room)

        plain = self._within(section, False)
        total, tokens = self._rows.weigh(plain, most)
        if summarise is not None and tokens > room:
            room = room * 4 // 5  # the summary's part
        start = _dropped_tokens(tokens, room)
        newest: list[Item] = []
        offset, before = tokens, None
        while offset > start and (page := self._rows.select(plain, limit=64, newest=True, before=before)):
            before = page[-1].number
            for item in page:
                offset -= min(_tokens(item), most)
                if offset < start:
                    break
                newest.append(item)
        omitted += max(0, total - len(newest))
        left_tokens += max(0, tokens - sum(min(_tokens(item), most) for item in newest))
        chosen = sorted(chosen + newest, key=lambda item: item.number)
        long = [item for item in chosen if _tokens(item) > most]
        texts = [shorten(item.json, most) if _tokens(item) > most else item.json for item in chosen]
        note = ""
        if omitted:
            note = f"({omitted} earlier left out)\n "
            if summarise is not None and total > len(newest):
                cut = newest[-1].number if newest else None
                summary = self._summary(section, plain, cut, budget // 5, summarise)
                note = f"({omitted} earlier left out; in short: {summary})\n "
        text = f"{heading}\n {note}[{', '.join(texts)}]"
        return _Section(
            [{"type": "text", "text": text}],
            [item.id for item in chosen],
            LeftOut(omitted, len(long), left_tokens),
        )

    def _summary(
        self, section: str, plain: Filter, cut: int | None, max_tokens: int, summarise: Summarise
    ) -> str:
        """Return a summary of what lies before the cut, made once and kept on the board."""
        sign = blake2b(repr(replace(plain, sections=(section,))).encode(), digest_size=4).hexdigest()
        prefix = f"summary:{section}:{sign}:"
        cut = 10**15 if cut is None else cut
        last = self._rows.last_id(prefix)
        earlier, since = "", 0
        if last is not None:
            stored = self._rows.select(Filter(ids=(last,)))
            since = whole_number(last.removeprefix(prefix)) or 0
            if since == cut and stored:
                return str(stored[0].data["text"])
            if since < cut and stored:
                earlier = str(stored[0].data["text"])
            else:
                since = 0
        items = [item for item in self._rows.select(plain, before=cut) if item.number >= since]
        text = " ".join(summarise(section, earlier, items).split())[: max(0, max_tokens - 8) * 3]
        while estimate(text) > max_tokens:
            text = text[: len(text) * 3 // 4]
        draft = Draft(
            f"{prefix}{cut:016d}",
            "summaries",
            encode({"of": section, "text": text}),
            items[-1].at if items else 0.0,
            audience=(self._view.reader,) if self._view.reader else (),
        )
        self._rows.add([draft])
        return text

    # screenshots

    def _image_groups(self) -> list[_ImageGroup]:
        """Return the images with the items that show them, the one that was seen last at the end."""
        groups: dict[str, _ImageGroup] = {}
        for item in self._rows.select(self._within(SCREENSHOTS)):
            key = item.image or item.data.get("image_str") or item.id
            group = groups.pop(key, None) or _ImageGroup(item.image)
            group.items.append(item)
            group.pinned = group.pinned or item.pinned
            groups[key] = group
        return list(groups.values())

    def _screenshots(
        self, groups: Sequence[_ImageGroup], costs: Sequence[int], known: Mapping[str, Image], budget: int
    ) -> _Section:
        pinned = [i for i, group in enumerate(groups) if group.pinned]
        chosen: set[int] = set()
        room = budget
        for i in reversed(pinned):
            if costs[i] > room:
                break
            room -= costs[i]
            chosen.add(i)
        plain = [i for i, group in enumerate(groups) if not group.pinned]
        total = sum(costs[i] for i in plain)
        start, offset = _dropped_tokens(total, room), total
        for i in reversed(plain):
            offset -= costs[i]
            if offset < start:
                break
            chosen.add(i)
        parts: list[dict[str, Any]] = []
        image_cost = 0
        for i in sorted(chosen):
            group = groups[i]
            texts = _metadata(group)
            parts += [{"type": "text", "text": text} for text in texts]
            image = known.get(group.name)
            url = self._images.data_url(image.thumbnail or image.name) if image is not None else ""
            if url:
                parts.append({"type": "image_url", "image_url": {"url": url}})
                image_cost += costs[i] - sum(estimate(text) for text in texts)
        left_out = LeftOut(len(groups) - len(chosen), 0, sum(costs) - sum(costs[i] for i in chosen))
        return _Section(
            parts, [item.id for i in sorted(chosen) for item in groups[i].items], left_out, image_cost
        )


def _cost(group: _ImageGroup, image: Image | None) -> int:
    if image is None:
        image_cost = 0
    elif image.thumbnail is not None:
        image_cost = image_tokens(image.thumbnail_width, image.thumbnail_height)
    else:
        image_cost = image_tokens(image.width, image.height)
    return image_cost + sum(estimate(text) for text in _metadata(group))


def _metadata(group: _ImageGroup) -> list[str]:
    """Return the different metadata of an image, of the last few items that have some."""
    texts = dict.fromkeys(encode({"": item.data.get("metadata", "")})[5:-1] for item in reversed(group.items))
    return [shorten_text(text, 200) for text in list(texts)[:_SEVERAL][::-1]]


def _order(shares: Mapping[str, float]) -> list[str]:
    wanted = [name for name, share in shares.items() if share > 0]
    if not wanted:
        raise UserError("no section has a share of the prompt: give one at least")
    others = [name for name in wanted if name not in SECTIONS]
    return [name for name in (*SECTIONS[:-1], *others, SCREENSHOTS) if name in wanted]


def _heading(section: str) -> str:
    return HEADINGS.get(section, f"[{section.replace('_', ' ').title()}:]")


def _tokens(item: Item) -> int:
    return estimate(item.json) + 1


def _budgets(room: int, shares: Mapping[str, float], needs: Mapping[str, int]) -> dict[str, int]:
    """Divide the room by the shares; what a section does not want goes to the others.

    What is wanted is rounded up to quarters of the share first, so that a section that grows moves the cuts of the
    others three times and not at every item.
    """
    budgets: dict[str, int] = {}
    open_ = dict(shares)
    remaining = room
    while open_:
        total = sum(open_.values())
        full = {name: int(remaining * share / total) for name, share in open_.items()}
        content = {}
        for name, most in full.items():
            quarter = max(1, most // 4)
            need = math.ceil(needs[name] / quarter) * quarter
            if need < most:
                content[name] = need
        if not content:
            return budgets | full
        for name, need in content.items():
            budgets[name] = need
            remaining -= need
            del open_[name]
    return budgets


def _dropped_tokens(total: int, room: int) -> int:
    """Return how many tokens are dropped from the beginning: none, or whole blocks."""
    if total <= room:
        return 0
    block = max(1, room // _BLOCKS)
    return math.ceil((total - room) / block) * block


def shorten(text: str, max_tokens: int) -> str:
    """Return a JSON object with its long texts cut, so that it takes at most `max_tokens`."""
    data = json.loads(text)
    least, most = 0, len(text)
    best = None
    while least <= most:
        middle = (least + most) // 2
        shortened = encode(_trimmed(data, middle))
        if estimate(shortened) + 1 <= max_tokens:
            best, least = shortened, middle + 1
        else:
            most = middle - 1
    return best if best is not None else encode({"text": shorten_text(text, max(0, max_tokens - 8))})


def shorten_text(text: str, max_tokens: int) -> str:
    """Return a text, cut so that it takes at most `max_tokens`."""
    if estimate(text) <= max_tokens:
        return text
    start = text[: max_tokens * 3]  # more cannot fit
    while start and estimate(start + "…") > max_tokens:
        start = start[: len(start) * 3 // 4]
    return start + "…"


def _trimmed(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[:most] + "…"
    if isinstance(value, dict):
        return {key: _trimmed(inner, most) for key, inner in value.items()}
    if isinstance(value, list):
        return [_trimmed(inner, most) for inner in value]
    return value
