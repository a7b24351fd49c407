"""HTML as text and nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.documents._html import extract_html
from metatree_memory_tools.documents._outline import outline_of


def test_what_a_reader_sees_is_the_text() -> None:
    page = b"""<!doctype html><html><head><title> A  page
      </title><meta name=description content="On tea."><style>p {}</style></head><body>
      <script>alert("x")</script><noscript>turn it on</noscript>
      <h1>Tea &amp; milk</h1><p>One <b>two</b>
      three.<br>Four.</p><p hidden>secret</p><div style="color:red; display: none">gone</div>
      <ul><li>green</li><li><p>black</p></li></ul>
      <pre>  a = 1
    b</pre><img alt="A cup"><!-- no --></body></html>"""
    document = extract_html(page)
    assert document.title == "A page"
    assert document.facts["description"] == "On tea."
    assert [line for line in document.lines if line] == [
        "Tea & milk", "One two three.", "Four.", "- green", "- black", "  a = 1", "    b", "A cup",
    ]  # fmt: skip


def test_headings_make_sections_and_rows_of_tables_lines() -> None:
    page = """<h1>All</h1><p>Intro.<h2>Prices</h2><table><tr><th>Tea</th><th>Price</th></tr>
      <tr><td>green</td><td><p>3</p><p>EUR</p></td></tr></table><h2>Where</h2>In town.<h3>Map</h3>Here."""
    outline = outline_of(extract_html(page.encode()), "a.html", "A web page")
    assert outline.attributes["title"] == "All"
    assert [part.title for part in outline.parts] == ["All (introduction)", "Prices", "Where"]
    assert [part.title for part in outline.parts[2].parts] == ["Where (introduction)", "Map"]
    assert "Tea | Price" in extract_html(page.encode()).lines
    assert "green | 3 EUR" in extract_html(page.encode()).lines


def test_navigation_comes_behind_the_text() -> None:
    page = (
        b"<nav><a href=/>home</a></nav><main><h1>T</h1><h2>A</h2>a<h2>B</h2>b</main><footer>c 2020</footer>"
    )
    document = extract_html(page)
    assert [line for line in document.lines if line] == ["T", "A", "a", "B", "b", "home", "c 2020"]
    outline = outline_of(document, "a.html", "A web page")
    assert [part.title for part in outline.parts] == ["A", "B", "Around the text (navigation)"]


def test_links_are_kept_without_those_inside_of_the_page_and_scripts() -> None:
    page = (
        b"<a href='b.html#x'>b</a><a href='#top'>t</a><a href='javascript:x()'>x</a><a href='b.html#x'>b</a>"
    )
    assert extract_html(page).links == ["b.html#x"]


def test_a_page_says_its_encoding() -> None:
    page = "<meta charset='iso-8859-2'><p>żółw".encode("iso-8859-2")
    assert extract_html(page).lines == ["żółw"]


def test_what_is_nested_too_deeply_is_read_without_its_structure() -> None:
    document = extract_html(b"<p>begin</p>\n" + b"<div>" * 20_000 + b"deep<script>x()</script>")
    assert document.lines == ["begin", "deep"]
    assert "nested" in document.problem


_TAGS = (
    "<h1> </h1> <h2> </h2> <p> </p> <nav> </nav> <main> </main> <table> <tr> <td> </td> </table> <ul><li> </ul> <pre>"
    " </pre> <script> </script> <a_href=x> </a> <!-- --> < > & one two three"
)
_PIECES = st.lists(st.sampled_from([tag.replace("_", " ") for tag in _TAGS.split(" ")]), max_size=40)


@given(_PIECES)
def test_every_line_lies_in_one_leaf_whatever_the_markup(pieces: list[str]) -> None:
    document = extract_html(" ".join(pieces).encode())
    outline = outline_of(document, "a.html", "A web page")
    owned: list[int] = []
    pending = list(outline.parts)
    while pending:
        part = pending.pop()
        pending += part.parts
        if not part.parts and part.start_line:
            owned += range(part.start_line, part.end_line + 1)
    assert len(owned) == len(set(owned))
    titles = {
        line for heading in document.headings for line in range(heading.line, heading.line + heading.span)
    }
    needed = {number for number, line in enumerate(document.lines, start=1) if line} - titles
    assert not outline.parts or needed <= set(owned)


def test_lines_of_a_table_of_contents_are_text_and_no_sections() -> None:
    lines = ["Install ........ 3", "Use . . . . . . . 12", "Index…… xiv", "Wait...", "Release 1.2.3.4"]
    page = "".join(f"<h2>{line}</h2>" for line in lines) + "<h2>Install</h2><p>Unpack it.</p>"
    document = extract_html(page.encode())
    outline = outline_of(document, "a.html", "A web page")
    assert [part.title for part in outline.parts] == [
        "a.html (introduction)",
        "Wait...",
        "Release 1.2.3.4",
        "Install",
    ]
    introduction = outline.parts[0]
    kept = document.lines[introduction.start_line - 1 : introduction.end_line]
    assert [line for line in kept if line] == lines[:3]
