"""The four sections by their names, prompts made of them, and what goes in and out as dictionaries and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from metatree.blackboard._item import SECTIONS, Item, as_dict, encode, history_fields
from metatree.blackboard._json_lines import read_lines
from metatree.blackboard._prompt import HEADINGS, TITLE, Renderer, Rendering, Summarise
from metatree.blackboard._section import Section
from metatree.blackboard.items import About, Items
from metatree.errors import BadItem


class Sections(Items):
    """The part of a board that knows the four sections."""

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
        return self.add("trajectories", history_fields(data, keys) if keys else data, **about)

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
        fields = {"metadata": {} if metadata is None else metadata, "image_path": str(screenshot_path)}
        encode(fields)
        images = self._share.images
        if content is not None:
            image = images.add_bytes(content)
        elif str(screenshot_path):
            image = images.add_file(screenshot_path)
        else:
            raise BadItem("there is no image: give its path, or its bytes as `content`")
        draft = self._draft("screenshots", fields, about, image)
        item = self._added_item(draft, self._share.rows.add((draft,))[0])
        images.settle()
        return item

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
            count_tokens: None for an estimate that for most texts is rather too high.
            summarise: given a section, the summary so far and the items that are left out since, returns one short
                text that stands for them; it is kept on the board and asked for again when the cut moves on.

        Raises:
            UserError: the limit is too small.
        """
        return _renderer(self).render(
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
        return _renderer(memory.board).all_text(memory.name, prefix)

    def screenshots_to_prompt(self) -> list[dict[str, Any]]:
        """Return the screenshots as parts: metadata and image of each, an image that is there several times once."""
        return _renderer(self).all_screenshots()

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


def _renderer(board: Items) -> Renderer:
    return Renderer(board._share.rows, board._share.images, board._view)
