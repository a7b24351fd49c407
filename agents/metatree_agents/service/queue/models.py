"""What an engine is asked, and what it gives back, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

End = Literal["answered", "closest", "nothing", "stopped"]
NOT_SAID: Final = "The sources do not say, as far as this search can tell."
"""What an asker reads of a question that nothing answers."""
ABOUT_BEFORE: Final = (
    "To have it searched, say again what it is about. First below stands what the answer before it quoted."
)
"""What an asker reads besides of a question that says `it` and found nothing."""
ABOUT_ANOTHER: Final = (
    "What the search took for an answer does not speak of that: it is among the passages below."
)
"""What an asker reads of a follow-up whose run ended as answered."""
REMEMBERED: Final = "remembered"
"""The key of what an asker answered to an earlier search, among what the run of a query asked."""
STOPPED: Final = "The search was stopped before it found an answer."
STOPPED_WITH: Final = "The search was stopped. What it had found so far:"
"""What an asker reads of a question whose search was stopped."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a question ended, beside what is said of it."""

    end: End | None = None
    """`closest` and `nothing`: it stayed open, with passages to show or without. `stopped`: its search was stopped,
    and what was given is what it had found. None: the engine did not say, so what it gave counts as an answer."""
    open: list[str] = field(default_factory=list)
    """The questions that stayed open; one with an answer may have some, too."""
    closest: list[dict[str, Any]] = field(default_factory=list)
    """The passages that come closest to these, the likeliest first, as the wire has them."""
    by: str | None = None
    """Who stopped the search."""
    notes: list[str] = field(default_factory=list)
    """How the question was read, where that is not as it stands, and who corrected what is quoted, in sentences."""

    @property
    def answered(self) -> bool:
        """Whether what was given is an answer."""
        return self.end not in ("closest", "nothing", "stopped")


NARROWED_NOTHING: Final = "narrowed nothing: no one part near the top of the memory has this title."


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """A query as an engine got it."""

    topic: str
    seq: int
    text: str
    modifiers: Mapping[str, Any]
    earlier: Sequence[Mapping[str, Any]] = ()
    """The queries of the topic with their answers, as the wire has them."""
    told: Sequence[Mapping[str, Any]] = ()
    """What its run asked a person, with the answers, as the wire has it."""
    run: str | None = None
    """By what name its run goes, as the service says; None when it does not."""
    trees: Sequence[str] = ()
    """The names of the trees that it searches; none where trees have no names."""


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What an engine gives back."""

    answer: list[str]
    think: list[str]
    sources: list[dict[str, Any]]
    ended: str
    detail: str = ""
    asks: list[dict[str, str]] = field(default_factory=list)
    """What a person is asked before the run goes on, as the wire has it; there is no answer yet then."""
    ending: Ending = field(default_factory=Ending)
