"""How answers that clients send back are compared: the same as by a regular expression, in one pass."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from metatree_agents.service.openai.conversations import shown

_THOUGHT = re.compile(r"<(think|thinking|details)\b.*?</\1>", re.DOTALL)
_PARTS = st.sampled_from(
    [
        "<think",
        "<thinking",
        "<details",
        ">",
        "</think>",
        "</thinking>",
        "</details>",
        " ",
        "\n",
        "a",
        "x=1",
        "<",
    ]
)


@given(st.lists(_PARTS, max_size=25).map("".join))
@example("<think><think></think></think>")
@example("<details <think></details></think> a")
def test_thinking_is_left_out_as_its_regular_expression_says(text: str) -> None:
    assert shown(text) == " ".join(_THOUGHT.sub(" ", text).split())


class _Counted(str):
    """A text that counts how many of its characters are searched."""

    searched = 0

    def find(self, *given: object) -> int:
        found = super().find(*given)  # type: ignore[arg-type]
        start = given[1] if len(given) > 1 else 0
        assert isinstance(start, int)
        _Counted.searched += (len(self) if found < 0 else found) - start
        return found


def test_marks_that_nothing_closes_are_looked_for_once() -> None:
    text = _Counted("<think <details " * 6_000 + "<thinking></thinking>" * 1_000)
    _Counted.searched = 0
    shown(text)
    assert 0 < _Counted.searched <= 3 * len(text)
