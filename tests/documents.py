"""Small documents, made by hand so that a test says what is in them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

Line = tuple[float, str]
"""Size of the letters in points, text."""


def make_pdf(
    pages: Sequence[Sequence[Line]],
    bookmarks: Sequence[tuple[int, str, int]] = (),
    title: str = "",
) -> bytes:
    """Return a PDF: the lines of each page, and (level, title, page) of its bookmarks, pages and levels from 1."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    numbers = []
    for lines in pages:
        rows, height = [], 760.0
        for size, text in lines:
            escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            height -= size * 1.5
            rows.append(f"BT /F1 {size} Tf 60 {height:.0f} Td ({escaped}) Tj ET")
        stream = "\n".join(rows).encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        numbers.append(len(objects))
    outline = _outline(objects, bookmarks, numbers)
    info = b""
    if title:
        objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
        info = b" /Info %d 0 R" % len(objects)
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R%s >>" % outline
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(numbers))
    return assembled(objects, info)


def _outline(objects: list[bytes], bookmarks: Sequence[tuple[int, str, int]], pages: Sequence[int]) -> bytes:
    if not bookmarks:
        return b""
    top = len(objects) + 1
    first = top + 1
    objects.append(b"")
    parents, children = [top], {top: [0] * 0}
    for offset, (level, _, _) in enumerate(bookmarks):
        del parents[level:]
        children.setdefault(parents[-1], []).append(first + offset)
        parents.append(first + offset)
    place = {number: (parent, siblings) for parent, siblings in children.items() for number in siblings}
    objects[top - 1] = b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (
        children[top][0],
        children[top][-1],
    )
    for offset, (_, text, page) in enumerate(bookmarks):
        number = first + offset
        parent, siblings = place[number]
        at = siblings.index(number)
        entry = b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit]" % (
            text.encode(),
            parent,
            pages[page - 1],
        )
        if at + 1 < len(siblings):
            entry += b" /Next %d 0 R" % siblings[at + 1]
        if at:
            entry += b" /Prev %d 0 R" % siblings[at - 1]
        if children.get(number):
            entry += b" /First %d 0 R /Last %d 0 R" % (children[number][0], children[number][-1])
        objects.append(entry + b" >>")
    return b" /Outlines %d 0 R" % top


def assembled(objects: Sequence[bytes], info: bytes = b"") -> bytes:
    """Return the bytes of a PDF with these objects, the first of which is its catalogue."""
    out = io.BytesIO(b"%PDF-1.7\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(
        b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, info, start)
    )
    return out.getvalue()


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_docx(body: str, *, styles: str = "", **members: str) -> bytes:
    """Return a docx with some XML in its body; `members` are further parts by path, with `__` for `/`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
        )
        if styles:
            archive.writestr("word/styles.xml", f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>')
        for name, text in members.items():
            archive.writestr(name.replace("__", "/") + ".xml", text)
    return out.getvalue()
