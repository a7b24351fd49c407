"""The stub model: it knows the way, errs at a set rate, and is metered.

Each system's adapter takes that system's own prompt apart, asks the stub to pick among what the prompt offers, and
answers in the form that the prompt asks for. What the stub spends is taken off the system's time.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.made_tree import Code

_FACT = re.compile(r"The limit for (?P<phrase>[\w ]+?) is (?P<fact>\d{7}) units")
UNKNOWN = "The given text does not say."


@dataclass(frozen=True)
class Condition:
    """How the model errs."""

    error_rate: float = 0.0
    """Chance that one decision picks another of the offered options, at random."""
    wrong_marks: float = 0.0
    """Chance that an erring decision also rules the right option out, where the prompt asks what to rule out."""
    notices: bool = True
    """Whether it sees that nothing offered leads to the answer, where the prompt lets it say so."""


@dataclass
class Meter:
    """What one search has used."""

    calls: int = 0
    tokens: int = 0
    largest: int = 0
    """Tokens of the largest prompt."""
    stub_cpu_s: float = 0.0


@dataclass
class Stub:
    """The model that all systems share.

    Args:
        rng: decides where it errs.
        count: counts the tokens of a text.
    """

    rng: random.Random
    condition: Condition = field(default_factory=Condition)
    question: str = ""
    target: Code = ()
    meter: Meter = field(default_factory=Meter)
    count: Callable[[str], int] = field(default_factory=lambda: _o200k)

    def ask(self, question: str, target: Code) -> None:
        """Begin a search for a leaf."""
        self.question, self.target, self.meter = question, target, Meter()

    @contextmanager
    def call(self, *prompt: str) -> Iterator[None]:
        """Count one model call with the texts of its prompt; what runs inside is the model's time, not the system's.

        Raises:
            ValueError: the prompt does not hold the question, so the adapter has misread it.
        """
        start = time.process_time()
        try:
            if not any(self.question in text for text in prompt):
                raise ValueError(f"no prompt text holds the question {self.question!r}")
            tokens = sum(map(self.count, prompt))
            self.meter.calls += 1
            self.meter.tokens += tokens
            self.meter.largest = max(self.meter.largest, tokens)
            yield
        finally:
            self.meter.stub_cpu_s += time.process_time() - start

    def errs(self) -> bool:
        return self.rng.random() < self.condition.error_rate

    def pick(self, offered: Sequence[Code]) -> tuple[int | None, int | None]:
        """Choose among headings: (position of the choice, position of the right one), None where there is none.

        The right one is the target or what it lies under, the nearest when several are offered. None is chosen when
        the right one is not there and the model notices.
        """
        leading = [i for i, code in enumerate(offered) if self.target[: len(code)] == code]
        right = max(leading, key=lambda i: len(offered[i]), default=None)
        others = [i for i in range(len(offered)) if i not in leading]
        if others and (self.errs() or (right is None and not self.condition.notices)):
            return self.rng.choice(others), right
        return right, right

    def rules_out_right(self) -> bool:
        """Say whether an erring decision rules out the right option too."""
        return self.rng.random() < self.condition.wrong_marks

    def code(self, title: str) -> Code | None:
        """Return where what has this title lies."""
        return heading(title)

    def quote(self, fact: str) -> str:
        """Return the words around a fact, as its text has them."""
        return f"is {fact} units an hour"

    def read(self, text: str) -> str | None:
        """Return the answer to the question when a text holds it."""
        for found in _FACT.finditer(text):
            if f"for {found['phrase']}?" in self.question:
                return found["fact"]
        return None


def heading(text: str) -> Code | None:
    """Return the number that a heading begins with.

    Example:
        >>> heading("3.10.7 Throttling in the queue")
        (3, 10, 7)
    """
    found = re.match(r"(\d+(?:\.\d+)*) ", text)
    return tuple(map(int, found[1].split("."))) if found else None


def _o200k(text: str) -> int:
    return count_tokens(text)


@lru_cache(maxsize=200_000)
def count_tokens(text: str) -> int:
    """Return the tokens of a text with o200k_base, from the copy of it that llama-index-core ships (no download)."""
    return len(_encoding().encode(text, disallowed_special=()))


@lru_cache(maxsize=1)
def _encoding() -> Any:
    import os

    spec = find_spec("llama_index.core")
    if spec is None or spec.origin is None:
        raise SystemExit("llama-index-core is not installed here: run `make bench-peers`")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(spec.origin).parent / "_static" / "tiktoken_cache")
    import tiktoken

    return tiktoken.get_encoding("o200k_base")
