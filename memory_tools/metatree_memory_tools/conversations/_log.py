"""An agent's own conversation as memory: turns that are added while it goes on, and stay when a tree is built again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from metatree._util.numbers import whole_number
from metatree.errors import UserError
from metatree.node import Node
from metatree.notes.wishes import have_branch, wish_nodes
from metatree.trees.text import encodable
from metatree.trees.tree import ROOT, Tree
from metatree_memory_tools.conversations._dates import iso, moment, shown
from metatree_memory_tools.conversations._model import MOST_TURNS, PAUSE, Turn, turn_text
from metatree_memory_tools.conversations.file_type import turn_attributes
from metatree_memory_tools.node_ids import NOTED_CONVERSATIONS
from metatree_memory_tools.text.descriptions import shorten

_MAX_CHARS = 200_000
_DESCRIPTION_CHARS = 120
_NAME = re.compile(r"[\w.@-][\w.@ -]{0,99}")


class ConversationLog:
    """A conversation in the memory of a tree, to which turns are added.

    A session ends after six hours of silence, after a hundred turns, or with `new_session`. Processes and threads may
    add to the same conversation; their turns follow each other.

    Args:
        tree: the tree; its folder must be writable.
        name: what the conversation is called: letters, digits, `.`, `_`, `-`, `@` and blanks.
        title: what its node is called; the name when None.
        now: the clock.

    Raises:
        UserError: the name cannot be part of an id.

    Example:
        >>> from metatree import Tree
        >>> log = ConversationLog(Tree.create(":memory:"), "support")
        >>> log.say("Ann", "The heating is broken.", at="2026-01-05T09:00")
        'conversations:/support/1/1'
        >>> log.extend([Turn(who, said, "2026-01-05T09:01") for who, said in (("Bob", "When?"), ("Ann", "Sunday."))])
        2
        >>> log.tree.content("conversations:/support/1/3")
        '[5 January 2026 09:01] Ann: Sunday.'
    """

    def __init__(
        self,
        tree: Tree,
        name: str,
        *,
        title: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not _NAME.fullmatch(name) or not name.strip(". "):
            raise UserError(
                f"{name!r} cannot name a conversation: use letters, digits, '.', '_', '-', '@' and blanks"
            )
        self.tree = tree
        self.id = f"{NOTED_CONVERSATIONS}/{name}"
        """Id of the conversation's node."""
        self._title = title or name
        self._now = now
        self._cached: tuple[int, _Place] | None = None

    def say(self, speaker: str, text: str, *, at: str | datetime | float | None = None) -> str:
        """Add one turn and return the id of its node.

        Args:
            speaker: who says it.
            text: what is said.
            at: when; None for now.

        Raises:
            UserError: there is no speaker or no text, or `at` is no date.
        """
        return self._add([self._turn(speaker, text, at)])[-1]

    def extend(self, turns: Iterable[Turn]) -> int:
        """Add turns in order, all or none, and return how many; those without a date are of now. Raises as `say`."""
        return len(self._add([self._turn(turn.speaker, turn.text, turn.at or None) for turn in turns]))

    def new_session(self) -> None:
        """End the session, if there is one: the next turn begins another one."""
        with self.tree.memory.transaction():
            place = self._place()
            if place.number:
                session = self.tree.get(f"{self.id}/{place.number}")
                self.tree.update(replace(session, attributes={**session.attributes, "ended": True}))

    def _turn(self, speaker: str, text: str, at: str | datetime | float | None) -> Turn:
        speaker = " ".join(speaker.split()) if isinstance(speaker, str) else ""
        if not speaker or not isinstance(text, str) or not text.strip():
            raise UserError(f"a turn needs a speaker and a text, not {speaker!r} and {text!r}")
        when = iso(self._now() if at is None else at)
        if not when:
            raise UserError(f"{at!r} is no date: give one as in 2026-05-17T10:00")
        return Turn(encodable(speaker)[:100], encodable(text)[:_MAX_CHARS], when)

    def _add(self, turns: list[Turn]) -> list[str]:
        tree, ids = self.tree, list[str]()
        with tree.memory.transaction():
            place = self._place()
            nodes: list[tuple[Node, str]] = []
            wishes: list[tuple[Node, str]] = []
            turns_of: dict[int, list[Turn]] = {}
            for turn in turns:
                now = moment(turn.at)
                paused = now is not None and place.last is not None and abs(now - place.last) > PAUSE
                if place.ended or paused or place.count >= MOST_TURNS:
                    place = _Place(place.number + 1)
                    nodes.append((self._session_node(place.number, turn), self.id))
                place = replace(place, count=place.count + 1, last=now or place.last)
                inside = f"{self.id}/{place.number}"
                turns_of.setdefault(place.number, []).append(turn)
                ids.append(f"{inside}/{place.count}")
                nodes.append((_turn_node(ids[-1], turn), inside))
                wishes += wish_nodes(ids[-1], turn.text, turn.speaker, turn.at)
            if wishes:
                have_branch(tree)
            tree.add_many([*nodes, *wishes])
            for number, inside_turns in turns_of.items():
                known = place.speakers if len(turns_of) == 1 else ()
                speakers = self._describe(number, known, inside_turns)
                if number == place.number:
                    place = replace(place, speakers=speakers)
            cached = (tree.sequence, place)
        self._cached = cached
        return ids

    def _place(self) -> _Place:
        """Return where the next turn belongs; what was found last time holds as long as nothing was written since."""
        if self._cached is not None and self._cached[0] == self.tree.sequence:
            return self._cached[1]
        self._have_conversation()
        sessions = [node for node in self.tree.children(self.id) if node.kind == "session"]
        last = max(sessions, key=_number, default=None)
        if last is None:
            return _Place(0, ended=True)
        turns = [node for node in self.tree.children(last) if node.kind == "turn"]
        return _Place(
            _number(last),
            # Numbers are never given out twice, whatever was forgotten meanwhile.
            max(map(_number, turns), default=0),
            moment(str(turns[-1].attributes.get("at") or "")) if turns else None,
            bool(last.attributes.get("ended")),
            tuple(last.attributes.get("speakers") or ()),
        )

    def _have_conversation(self) -> None:
        if NOTED_CONVERSATIONS not in self.tree:
            description = "What was said, as it was noted turn by turn"
            self.tree.add(Node(NOTED_CONVERSATIONS, "conversations", description, kind="conversations"), ROOT)
        if self.id not in self.tree:
            description = f"Conversation {self._title}"
            self.tree.add(Node(self.id, self._title, description, kind="conversation"), NOTED_CONVERSATIONS)

    def _session_node(self, number: int, turn: Turn) -> Node:
        title = f"Session {number}, {shown(turn.at)}"
        return Node(
            f"{self.id}/{number}", title, shorten(turn.text, 120), kind="session", attributes={"at": turn.at}
        )

    def _describe(self, number: int, known: tuple[str, ...], turns: list[Turn]) -> tuple[str, ...]:
        """Bring the speakers that a session names up to date, and return them."""
        if set(known) >= {turn.speaker for turn in turns}:
            return known
        session = self.tree.get(f"{self.id}/{number}")
        before = list(session.attributes.get("speakers") or [])
        speakers = list(dict.fromkeys([*before, *(turn.speaker for turn in turns)]))
        begin = session.description.partition(" — ")[2] if before else session.description
        attributes = {**session.attributes, "speakers": speakers}
        if speakers != before:
            description = f"{', '.join(speakers)} — {begin}"
            self.tree.update(replace(session, description=description, attributes=attributes))
        return tuple(speakers)


@dataclass(frozen=True, slots=True)
class _Place:
    """The session that a turn is added to, as far as it has come; number 0 is none."""

    number: int
    count: int = 0
    last: datetime | None = None
    ended: bool = False
    speakers: tuple[str, ...] = ()


def _turn_node(node_id: str, turn: Turn) -> Node:
    return Node(
        node_id,
        turn.speaker,
        shorten(" ".join(turn.text.split()), _DESCRIPTION_CHARS),
        turn_text(turn),
        "turn",
        attributes=turn_attributes(turn),
        provenance={"who": turn.speaker, "at": turn.at, "by": "conversation"},
    )


def _number(node: Node) -> int:
    """Return the number at the end of an id; 0 for an id that somebody else made."""
    return whole_number(node.id.rpartition("/")[2]) or 0
