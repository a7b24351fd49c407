"""The parts of the web page that need no server: sessions, slowing guesses, safe text, the path of a search."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from html.parser import HTMLParser
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.web._browse import above, children_of, find, marked_lines, opened, shown
from metatree_agents.service.web._guard import way_back
from metatree_agents.service.web._markdown import Budget, prose, rendered
from metatree_agents.service.web._questions import headline
from metatree_agents.service.web._search_path import DEEPEST, search_path
from metatree_agents.service.web._thread_pages import modifiers_of, topic_for
from metatree_agents.service.web._throttle import FORGOTTEN_S, FREE, LONGEST_S, Throttle
from metatree_agents.service.web.sessions import CODE_S, SESSION_S, Sessions, hashed

from metatree import Node, Tree
from metatree.errors import UnknownNode, UserError

T = TypeVar("T")


def wait(what: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(what)


# sessions


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database() -> SqliteDatabase:
    made = SqliteDatabase.open(":memory:")
    wait(made.start())
    for name, role in (("Ann", "user"), ("Root", "admin"), ("Machine", "engine")):
        wait(Users(made).add(name, role))
    return made


@pytest.fixture
def sessions(database: SqliteDatabase, clock: Clock) -> Sessions:
    database.clock = clock
    return Sessions(database)


def everything(database: SqliteDatabase) -> str:
    async def read() -> str:
        async with database.transaction() as do:
            return repr([await do.rows(f"SELECT * FROM {t}") for t in ("service_session", "service_login")])

    return wait(read())


def test_a_session_is_found_by_its_cookie_until_it_expires(
    sessions: Sessions, database: SqliteDatabase, clock: Clock
) -> None:
    cookie = wait(sessions.begin("Ann"))
    found = wait(sessions.find(cookie))
    assert found is not None and (found.name, found.role, found.sees_all) == ("Ann", "user", False)
    assert len(cookie) >= 43, "256 bits"
    assert cookie not in everything(database) and hashed(cookie) in everything(database)
    assert wait(sessions.find(cookie[:-1])) is None and wait(sessions.find(found.key)) is None
    clock.at += SESSION_S - 1
    assert wait(sessions.find(cookie)) is not None
    clock.at += 1
    assert wait(sessions.find(cookie)) is None
    wait(sessions.begin("Root"))
    assert found.key not in everything(database), "what has expired is taken out"


def test_logging_out_here_and_everywhere(sessions: Sessions) -> None:
    first, second, other = (wait(sessions.begin(name)) for name in ("Ann", "Ann", "Root"))
    session = wait(sessions.find(first))
    assert session is not None
    wait(sessions.end(session))
    assert wait(sessions.find(first)) is None and wait(sessions.find(second)) is not None
    assert wait(sessions.end_all("Ann")) == 1
    assert wait(sessions.find(second)) is None and wait(sessions.find(other)) is not None


@pytest.mark.parametrize("change", ["secret", "removed", "engine"])
def test_who_is_given_another_secret_or_taken_out_is_logged_out(
    sessions: Sessions, database: SqliteDatabase, change: str
) -> None:
    cookie, code = wait(sessions.begin("Ann")), wait(sessions.make_code("Ann"))
    users = Users(database)
    if change == "removed":
        wait(users.remove("Ann"))
    else:
        wait(users.add("Ann", "engine" if change == "engine" else "user"))
    assert wait(sessions.find(cookie)) is None
    assert wait(sessions.take_code(code)) is None


def test_a_code_works_once_and_for_fifteen_minutes(
    sessions: Sessions, database: SqliteDatabase, clock: Clock
) -> None:
    code = wait(sessions.make_code("Ann"))
    assert code not in everything(database)
    taken = wait(sessions.take_code(code))
    assert taken is not None and (taken.name, taken.role) == ("Ann", "user")
    assert wait(sessions.take_code(code)) is None
    late = wait(sessions.make_code("Ann"))
    clock.at += CODE_S
    assert wait(sessions.take_code(late)) is None
    assert wait(sessions.take_code("")) is None


def test_codes_are_for_people_that_there_are(sessions: Sessions) -> None:
    with pytest.raises(UserError, match="no user 'Bob'"):
        wait(sessions.make_code("Bob"))
    with pytest.raises(UserError, match="'Machine' is an engine"):
        wait(sessions.make_code("Machine"))


# slowing those who guess


def test_after_some_failures_each_attempt_waits_twice_as_long() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    waits = []
    for _ in range(FREE + 8):
        waits.append(throttle.wait_s("address 1", "name Ann"))
        clock.at += waits[-1]
        throttle.failed("address 1", "name Ann")
    assert waits == [0.0] * FREE + [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_S, LONGEST_S]
    assert throttle.wait_s("address 2", "name Ann") == LONGEST_S == throttle.wait_s("address 1", "name Bob")
    assert throttle.wait_s("address 2", "name Bob") == 0.0
    throttle.succeeded("name Ann")
    assert throttle.wait_s("name Ann") == 0.0 and throttle.wait_s("address 1") == LONGEST_S
    clock.at += FORGOTTEN_S + 1
    throttle.failed("address 1")
    assert throttle.wait_s("address 1") == 0.0


def test_what_is_remembered_of_failures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metatree_agents.service.web._throttle.KEPT", 10)
    throttle = Throttle(clock=Clock())
    for number in range(50):
        throttle.failed(f"name {number}")
    assert len(throttle._failures) == 10


# text of others

_TAGS = {
    *("p", "strong", "em", "code", "pre", "a", "ul", "ol", "li", "blockquote", "br", "hr", "span", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class _Reader(HTMLParser):
    """Fails on anything that a browser could run, fetch or be led away by."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attrs:
            assert name in ("class", "href", "rel", "target", "tabindex", "start"), (tag, name)
            if name == "href":
                assert tag == "a" and (value or "").lower().startswith(("http://", "https://")), value
                assert dict(attrs)["rel"] == "noopener noreferrer nofollow"


_PIECES = st.sampled_from(
    [
        *(
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "](javascript:alert(1))",
            "[a",
            "](http://b)",
        ),
        *(
            "![p](http://evil/p.png)",
            "<http://auto>",
            "&lt;b&gt;",
            "`",
            "```\n",
            "**",
            "__",
            "\n\n",
            "\n",
            "> ",
        ),
        *(
            "- ",
            "1. ",
            "# ",
            "|",
            "|-|\n",
            "\n\n| a |\n|:-:|\n| b |\n",
            "\\",
            '"',
            "'",
            "<",
            ">",
            "[x]: javascript:1\n\n[x]",
            " onload=1 ",
            "\0",
        ),
        *("[d](data:text/html,x)", "[e](//evil)", "[f](HTTP://ok)", '[g](http://a"onclick=b)', "\ud800"),
    ]
)


@given(st.lists(_PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_whatever_an_answer_says_it_can_do_nothing(text: str) -> None:
    reader = _Reader()
    reader.feed(str(prose([text])) + str(prose([text], [text])))
    reader.close()


def test_markdown_of_an_answer_is_shown() -> None:
    text = str(rendered("**bold** and `code`\n\n- one\n- two\n\n[site](https://a.example/?a=1&b=2)"))
    assert "<strong>bold</strong>" in text and "<code>code</code>" in text and "<li>one</li>" in text
    assert 'href="https://a.example/?a=1&amp;b=2"' in text and 'rel="noopener' in text
    assert "[no](javascript:x)" in str(rendered("[no](javascript:x)"))
    assert "picture: a cat" in str(rendered("![a cat](https://a.example/cat.png)"))
    assert "https://a.example" not in str(rendered("![a cat](https://a.example/cat.png)"))


def test_markdown_beyond_the_budget_of_a_page_is_shown_as_it_is() -> None:
    assert "<strong>" not in str(rendered("**bold**" + "x" * 20_000))
    budget = Budget(left=21)
    shown = [str(prose(["**bold** words"], budget=budget)) for _ in range(2)]
    assert "<strong>bold</strong>" in shown[0] and "**bold** words" in shown[1]
    assert "<strong>" in str(prose(["**all**"], budget=budget)), "what is left is for shorter ones"


def test_quoted_words_are_shown_exactly() -> None:
    quote = "    def __init__(self):\n        self.a = 1\n\n        self.b = 2\n    # **end**"
    paragraphs = [
        "def __init__(self):\n        self.a = 1",
        "self.b = 2\n    # **end**",
        "But __this__ is bold",
    ]
    text = str(prose(paragraphs, [quote]))
    assert "def __init__(self):\n    self.a = 1\n\n    self.b = 2\n# **end**" in text
    assert text.count("exact") == 1, "parts that follow each other in the quote are one block"
    assert "<strong>this</strong>" in text
    assert "&lt;b&gt;" in str(prose(["<b>"], ["<b>"]))


# the path of a search


def step(event: str, node: str | None, **more: Any) -> dict[str, Any]:
    return {"Event": event, "Node": node, "Title": node, "Frame": 0, **more}


@pytest.mark.parametrize(
    "head", ["| what | limit |\n|---|---|\n", "|---|---|\n", ""], ids=["head", "rule alone", "no head"]
)
def test_a_table_that_is_quoted_is_a_table(head: str) -> None:
    quote = f"Limits are:\n\n{head}| hotel | `a|b` EUR |\n| <i>taxi</i> | **30** EUR |\n\nSend **receipts**."
    shown = str(prose([quote], [quote], numbers=[1]))
    assert "<td>hotel</td>" in shown and "<code>a|b</code>" in shown and "<strong>30</strong>" in shown
    assert ("<th>limit</th>" in shown) is ("limit" in head) and "<th></th>" not in shown
    assert "<p>Limits are:</p>" in shown and "<p>Send receipts.</p>" in shown
    assert "<i>" not in shown and "---" not in shown and "| hotel" not in shown
    assert shown.endswith('<a class="mark" href="#source-1">[1]</a>')


def test_what_people_wrote_is_shown_word_for_word() -> None:
    text = "Use `List<String>` and **two** stars."
    shown = str(prose([text], [text], numbers=[1], verbatim={0}))
    assert "Use `List&lt;String&gt;` and **two** stars." in shown


def test_one_line_with_bars_is_no_table() -> None:
    quote = "| alone |"
    assert "<table" not in str(prose([quote], [quote], numbers=[1]))


def test_the_way_grows_under_the_places_that_it_was_reached_from() -> None:
    steps = [
        step("route", ".", Choice="a", Chosen="A", Offered=3, Reason="best", Trail=["x"],
             RuledOut=[{"Node": "b", "Title": "B", "Reason": "no"}], RuledOutCount=2),
        step("read", "a", Answers=0),
        step("route", "m", Above=[".", "k"], Choice="c", Chosen="C", Offered=1, Reason="next"),
        step("read", "c", Answers=2),
    ]  # fmt: skip
    (top,) = search_path(enumerate(steps, 1))
    assert (top.node, top.offered, top.out_count, [out.reason for out in top.out]) == (".", 3, 2, ["no"])
    first, second = top.below
    assert (first.title, first.why, first.trail, first.read, first.useful) == (
        *("A", "best", "x", "nothing of use", False),
    )
    assert second.node == "m", "a place that was jumped over hangs under the nearest known one"
    (found,) = second.below
    assert (found.read, found.useful, found.number) == ("2 answers", True, 4)


def test_what_is_left_at_a_later_visit_is_not_what_was_offered() -> None:
    gone = [{"Node": each, "Title": each, "Reason": "no"} for each in "bcd"]
    (top,) = search_path(
        enumerate(
            [step("route", ".", Offered=4, RuledOut=gone, RuledOutCount=3), step("route", ".", Offered=1)], 1
        )
    )
    assert (top.offered, top.out_count) == (4, 3)


def test_a_nested_question_hangs_where_it_came_up() -> None:
    steps = [
        step("route", ".", Choice="a", Chosen="A", Offered=1),
        step("ask", "a", Reason="Which key?"),
        step("route", ".", Frame=1, Choice="k", Chosen="K", Offered=1),
        step("read", "k", Frame=1, Answers=1),
        step("read", "a", Answers=1),
    ]
    (top,) = search_path(enumerate(steps, 1))
    (place,) = top.below
    (asked,) = place.below
    assert (asked.kind, asked.title) == ("question", "Which key?")
    assert asked.below[0].below[0].title == "K" and place.useful


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["Event", "Node", "Choice", "Frame", "Above", "RuledOut", "Reason", "Text", "Offered"]
            ),
            st.sampled_from(
                ["route", "read", "ask", "tool", "a", "b", None, 1, True, [], ["a"], [{"Node": "a"}], {}]
            ),
        ),
        max_size=15,
    )
)
def test_steps_of_any_engine_make_some_way(steps: list[dict[str, Any]]) -> None:
    """Each place is in it once: no place hangs under itself."""
    seen: set[int] = set()

    def count(places: list[Any]) -> None:
        for place in places:
            assert id(place) not in seen
            seen.add(id(place))
            count(place.below)

    count(search_path(enumerate(steps, 1)))


def depth_of(places: list[Any]) -> int:
    return max((1 + depth_of(place.below) for place in places), default=0)


def test_a_very_long_way_is_no_deeper_than_a_page_can_show() -> None:
    steps = [step("route", f"n{at}", Choice=f"n{at + 1}", Chosen="x", Offered=1) for at in range(400)]
    assert depth_of(search_path(enumerate(steps, 1))) == DEEPEST


# what is shown of the tree


@given(st.lists(st.text("ab \n", min_size=0, max_size=6), max_size=12), st.data())
def test_the_lines_of_a_quote_are_marked(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    whole = text.splitlines()
    if not whole:
        return
    first = data.draw(st.integers(0, len(whole) - 1))
    last = data.draw(st.integers(first, len(whole) - 1))
    quote = "\n".join(whole[first : last + 1])
    found = marked_lines(text, [quote])
    words = quote.split()
    marked = " ".join(whole[number - 1] for number in sorted(found))
    assert (" ".join(words) in " ".join(marked.split())) if words else not found


def test_a_quote_that_is_not_there_marks_nothing() -> None:
    assert marked_lines("a\nb\n", ["c"]) == set() and marked_lines("", ["c"]) == set()
    assert marked_lines("a b\n\nc d\ne", ["b\n\nc"]) == {1, 2, 3}


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:")
    made.add(Node(id="many", title="Many"))
    made.add_many((Node(id=f"n{number:04}", title=f"Number {number}"), "many") for number in range(1_050))
    made.add(Node(id="deep", title="Deep", content="one\ntwo\nthree"), parent="n0777")
    return made


def test_the_tree_is_opened_down_to_a_node_with_one_page_on_each_level(tree: Tree) -> None:
    top = opened(tree, "deep")
    assert top.page is not None and [child.id for child in top.page.children] == ["many"]
    many = top.page.children[0]
    assert many.page is not None and (many.page.start, len(many.page.children), many.page.total) == (
        700,
        100,
        1050,
    )
    inner = next(child for child in many.page.children if child.id == "n0777")
    assert inner.page is not None and [child.id for child in inner.page.children] == ["deep"]
    assert [child.page for child in many.page.children if child.id != "n0777"] == [None] * 99


def test_of_a_very_deep_tree_the_end_is_shown(tree: Tree) -> None:
    for depth in range(100):
        tree.add(Node(id=f"d{depth}", title=f"Level {depth}"), parent=f"d{depth - 1}" if depth else "deep")
    top = opened(tree, "d99")
    assert top.id == "d70" and above(tree, top) == ("d69", 74)
    assert above(tree, opened(tree, "deep")) is None


def test_pages_of_children_go_on_and_back(tree: Tree) -> None:
    first, last = children_of(tree, "many"), children_of(tree, "many", 1_000)
    assert (first.earlier, first.later) == (None, 100) and (last.earlier, last.later) == (900, None)
    assert len(last.children) == 50
    assert children_of(tree, "many", 10**9).children == []
    with pytest.raises(UnknownNode):
        children_of(tree, "nothing")


def test_a_node_is_shown_with_what_is_quoted_of_it(tree: Tree) -> None:
    page = shown(tree, "deep", quotes=["two"])
    assert [(line.number, line.text, line.marked) for line in page.lines] == [
        *((1, "one", False), (2, "two", True), (3, "three", False)),
    ]
    assert [title for _, title in page.trail] == ["memory", "Many", "Number 777"]
    assert (page.earlier, page.later) == (None, None)


# small things


@pytest.mark.parametrize(
    "wanted",
    ["http://evil", "//evil", "/\\evil", "\\\\evil", "javascript:x", "", "/a\\b", "/a\nb", "/\t/evil"],
)
def test_nobody_is_led_away_after_the_log_in(wanted: str) -> None:
    assert way_back(wanted) == "/"


def test_somebody_goes_on_where_they_wanted() -> None:
    assert way_back("/thread?topic=a%2Fb") == "/thread?topic=a%2Fb"


@given(st.text(min_size=1))
def test_nothing_of_a_question_is_left_out(text: str) -> None:
    head, rest = headline(text)
    assert len(head) <= 242
    kept = re.sub(r"[\s…]", "", head + rest)
    assert kept == re.sub(r"[\s…]", "", text)


@given(st.text())
def test_a_topic_of_its_own_is_a_name_that_fits(text: str) -> None:
    one, other = topic_for(text), topic_for(text)
    assert one != other and 0 < len(one) <= 100


def test_modifiers_come_from_the_fields_of_the_form() -> None:
    assert modifiers_of({"category": "a, b ", "region": " c ", "model": "x"}) == {
        "Category": ["a", "b"],
        "Region": "c",
    }
    assert modifiers_of({"category": " , "}) == {}


def test_quoted_words_are_read_as_words_and_code_among_them_as_code() -> None:
    quote = (
        "With those three things implemented, the new shell support is ready. In case those weren't\n"
        "sufficient, there are more <parts> that can be overridden.\n\n"
        "    class MyshComplete(ShellComplete):\n        ...\n\n    def format(self):\n        return 1\n\n"
        "| a long row of a table, with words in it to be long enough | b |\n| c | d |\n\n"
        "Short lines\nof a poem stay."
    )
    shown = str(prose([quote], [quote]))
    assert "In case those weren&#39;t sufficient, there are more &lt;parts&gt; that" in shown
    assert (
        '<div class="exact code" tabindex="0">class MyshComplete(ShellComplete):\n    ...\n\ndef format'
        in shown
    )
    assert "<td>c</td>" in shown and "Short lines\nof a poem" in shown


def test_what_is_found_is_shown_without_markup_and_not_as_a_directive() -> None:
    with Tree.create(":memory:") as made:
        text = ".. autofunction:: password_option\n\nA :class:`Password` is hidden while it is typed.\n"
        made.add(Node("p", "Prompts", content=text, attributes={"path": "p.rst"}))
        ((_, _, _, line),) = find(made, "password")
    assert line == "A Password is hidden while it is typed."


def test_a_heading_that_a_quote_has_by_chance_is_no_part_of_it() -> None:
    quote = "Sources\n  [1] handbook: holidays.md, line 3\n      http://127.0.0.1:8080/node?id=holidays.md"
    other = "Everybody has 28 days of holiday a year."
    shown = str(prose(["docs:", quote, "handbook:", other], [quote, other], numbers=[1, 2]))
    assert shown.index('source-1">') < shown.index("<p>handbook:</p>") < shown.index("28 days")
