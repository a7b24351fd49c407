"""What `robots.txt` allows, by RFC 9309."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.web._robots import Robots

RULES = """
# comment
User-agent: *
Disallow: /private/
Disallow: /*.gif$
Allow: /private/open

User-Agent: Metatree
User-agent: other
Disallow: /all
Allow: /all/but/this
Disallow:
"""


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("somebody", "/", True),
        ("somebody", "/private/x", False),
        ("somebody", "/private/open/x", True),
        ("somebody", "/a/b.gif", False),
        ("somebody", "/a/b.gif?x", True),
        ("metatree", "/private/x", True),
        ("metatree", "/all", False),
        ("metatree", "/all/but/this/one", True),
        ("other", "/all/x", False),
        ("metatree", "/robots.txt", True),
    ],
)
def test_the_most_specific_rule_of_the_own_group_counts(agent: str, path: str, allowed: bool) -> None:
    assert Robots(RULES).allows(agent, path) is allowed


def test_groups_of_the_same_agent_are_one() -> None:
    own = "User-agent: metatree\nDisallow: "
    robots = Robots(f"{own}/a\n\nUser-agent: x\nDisallow: /c\n\n{own}/b")
    assert [robots.allows("metatree", path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_an_empty_group_allows_everything() -> None:
    robots = Robots("User-agent: *\nDisallow: /\n\nUser-agent: metatree\nDisallow:")
    assert robots.allows("metatree", "/x") and not robots.allows("somebody", "/x")


def test_of_equal_rules_the_one_that_allows_counts() -> None:
    assert Robots("User-agent: *\nDisallow: /page\nAllow: /page").allows("x", "/page")


def test_escapes_do_not_matter() -> None:
    robots = Robots("User-agent: *\nDisallow: /caf%C3%A9/~joe")
    assert not robots.allows("x", "/café/%7Ejoe/x")


@given(st.text(), st.text())
def test_any_text_gives_an_answer(text: str, path: str) -> None:
    assert Robots(f"User-agent: *\n{text}").allows("metatree", "/" + path) in (True, False)


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    robots = Robots("User-agent: *\nDisallow: /" + "*a" * 2_000 + "$")
    assert robots.allows("x", "/" + "a" * 1_500 + "b")
