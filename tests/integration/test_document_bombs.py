"""Documents that are small as files and huge as what they say: the process that reads them stays below its limit.

The limit and the bombs have a quarter of their real size, which proves the same in less time; one bomb is read at its
real size, and a build reads two under the real limit.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.documents._extract import Extractor
from metatree_memory_tools.documents._worker import _PDF_BYTES
from metatree_memory_tools.reading.own_process import MEMORY_BYTES

from tests.documents import assembled, make_docx, make_pdf

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        sys.platform != "linux", reason="reads the peak of memory where Linux says it, and limits it there"
    ),
]

SMALL = 0.25
"""Share of the real limit and of the real sizes."""
AROUND_MB = 80
"""What the libraries take besides what is limited."""
TEXT = b"BT /F1 10 Tf 60 700 Td (hello) Tj ET\n"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def stream(data: bytes, extra: bytes = b"", times: int = 1) -> bytes:
    for _ in range(times):
        data = zlib.compress(data, 1)
    filters = b"[" + b"/FlateDecode " * times + b"]"
    return b"<< /Length %d /Filter %s %s >>\nstream\n%s\nendstream" % (len(data), filters, extra, data)


def page(contents: bytes, *more: bytes, resources: bytes = b"", font: bytes = FONT) -> bytes:
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> %s >> >>" % resources,
            contents,
            font,
            *more,
        ]
    )


def forms() -> bytes:
    """Eight forms, each of which shows the next one twenty times."""
    inner = [
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /A %d 0 R >> >>"
        b" /Length 120 >>\nstream\n%s\nendstream" % (number, b"/A Do " * 20)
        for number in range(7, 15)
    ]
    last = (
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 5 0 R >> >>"
        b" /Length %d >>\nstream\n%s\nendstream" % (len(TEXT), TEXT)
    )
    return page(
        b"<< /Length 5 >>\nstream\n/X Do\nendstream", *inner, last, resources=b"/XObject << /X 6 0 R >>"
    )


def deep_tree(depth: int = 20_000) -> bytes:
    tree = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (number + 3) for number in range(depth)]
    return assembled(
        [b"<< /Type /Catalog /Pages 2 0 R >>", *tree, b"<< /Type /Page /MediaBox [0 0 600 800] >>"]
    )


def objects() -> bytes:
    numbers = b" ".join(b"%d %d" % (number + 100, number * 5) for number in range(300_000))
    entry = b"/Type /ObjStm /N 300000 /First %d" % (len(numbers) + 1)
    return page(stream(TEXT), stream(numbers + b" " + b"[[[] " * 300_000, entry))


def times(text: bytes, number: int, share: float) -> bytes:
    """Return a text that is repeated as often as the share of the real size wants."""
    return text * int(number * share)


BOMBS: dict[str, Callable[[float], bytes]] = {
    "a stream of blanks": lambda share: page(stream(times(b" ", 1_000_000_000, share) + TEXT)),
    "a stream packed twice": lambda share: page(stream(times(b" ", 1_500_000_000, share), times=2)),
    "a predictor": lambda share: page(
        stream(times(b"\0", 900_000_000, share), b"/DecodeParms << /Predictor 12 /Columns 100000000 >>")
    ),
    "texts": lambda share: page(stream(times(TEXT, 8_000_000, share))),
    "operators": lambda share: page(stream(times(b"q ", 100_000_000, share))),
    "paths": lambda share: page(stream(times(b"0 0 m 1 1 l S\n", 20_000_000, share))),
    "an array": lambda share: page(
        stream(b"BT /F1 10 Tf [" + times(b"(a) 1 ", 30_000_000, share) + b"] TJ ET")
    ),
    "a string": lambda share: page(stream(b"BT /F1 10 Tf (" + times(b"a", 300_000_000, share) + b") Tj ET")),
    "forms in forms": lambda share: forms(),
    "an image": lambda share: page(
        stream(b"/I Do " + TEXT),
        stream(
            times(b"\0", 1_000_000_000, share),
            b"/Type /XObject /Subtype /Image /Width 100000 /Height 10000 /ColorSpace /DeviceGray /BitsPerComponent 8",
        ),
        resources=b"/XObject << /I 6 0 R >>",
    ),
    "a font": lambda share: page(
        stream(TEXT),
        b"<< /Type /FontDescriptor /FontName /X /FontFile2 7 0 R /Flags 4 >>",
        stream(times(b"\0", 1_000_000_000, share)),
        font=b"<< /Type /Font /Subtype /TrueType /BaseFont /X /FontDescriptor 6 0 R /FirstChar 0 /LastChar 255 >>",
    ),
    "a table of characters": lambda share: page(
        stream(TEXT),
        stream(
            b"begincmap\n" + times(b"100 beginbfrange\n<0000> <ffff> <0000>\nendbfrange\n", 6_000_000, share)
        ),
        font=b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
    ),
    "an object stream": lambda share: objects(),
    "a count of pages": lambda share: assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] >>",
        ]
    ),
    "many pages": lambda share: make_pdf([[(10.0, "x")]] * 25_000),
    "a deep tree of pages": lambda share: deep_tree(),
    "brackets": lambda share: page(stream(TEXT), times(b"[", 5_000_000, share)),
}


def _packed(member: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", member)
    return out.getvalue()


OTHERS: dict[str, Callable[[float], bytes]] = {
    "zeros.docx": lambda share: _packed(times(b"\0", 1_000_000_000, share)),
    "a tag.docx": lambda share: _packed(
        b'<w:document xmlns:w="x" a="' + times(b"a", 40_000_000, share) + b'"/>'
    ),
    "tags.docx": lambda share: _packed(b"<a>" + times(b"<b/>", 8_000_000, share) + b"</a>"),
    "text.docx": lambda share: make_docx(
        "<w:p><w:r><w:t>" + "wörter " * int(6_000_000 * share) + "</w:t></w:r></w:p>"
    ),
    "deep.html": lambda share: times(b"<div>", 3_900_000, share) + b"text",
    "mixed.html": lambda share: times(b"<table><a><b><tr><i>", 900_000, share),
}


def peak_mb(kind: str, data: bytes, place: Path, share: float) -> tuple[int, str]:
    """Read a document in a process whose only child is the one that reads it; return its peak and what it said."""
    place.write_bytes(data)
    code = (
        "import resource, sys\n"
        "from metatree_memory_tools.documents._extract import Extractor\n"
        "reader = Extractor(None, 20.0, 10.0, int(sys.argv[3]))\n"
        "found = reader.extracted(sys.argv[1], '1', open(sys.argv[2], 'rb').read())\n"
        "reader.close()\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
        "print(len(found.lines), found.problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, kind, str(place), str(int(MEMORY_BYTES * share))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    peak, said = done.stdout.strip().split("\n")
    return int(peak), said


def assert_bounded(kind: str, bomb: Callable[[float], bytes], place: Path, share: float) -> None:
    peak, said = peak_mb(kind, bomb(share), place, share)
    assert peak < MEMORY_BYTES * share / 1e6 + AROUND_MB, said


@pytest.mark.parametrize("name", BOMBS)
def test_a_pdf_bomb_stays_below_the_limit(name: str, tmp_path: Path) -> None:
    assert_bounded("pdf", BOMBS[name], tmp_path / "a.pdf", SMALL)


@pytest.mark.parametrize("name", OTHERS)
def test_other_documents_do_too(name: str, tmp_path: Path) -> None:
    assert_bounded(name.rpartition(".")[2], OTHERS[name], tmp_path / name, SMALL)


def test_a_bomb_of_real_size_stays_below_the_real_limit(tmp_path: Path) -> None:
    assert_bounded("pdf", BOMBS["texts"], tmp_path / "a.pdf", 1.0)


def test_a_pdf_takes_less_than_other_documents_may(tmp_path: Path) -> None:
    """It is read beside a server that has answered, too: with that, one of 49 MB took 550 MB."""
    drawn = page(stream(b"0 0 1 1 re f\n" * 2_000_000 + TEXT))
    data = drawn.replace(b"%%EOF", b"%" + b"x" * 40_000_000 + b"\n%%EOF")
    peak, said = peak_mb("pdf", data, tmp_path / "a.pdf", 1.0)
    assert peak < _PDF_BYTES / 1e6 + AROUND_MB, said


def test_a_build_marks_a_bomb_and_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "app"
    source.mkdir()
    for number, (name, share) in enumerate((("a stream of blanks", 0.6), ("an array", 1.0))):
        (source / f"{number}.pdf").write_bytes(BOMBS[name](share))
    (source / "9.pdf").write_bytes(make_pdf([[(10.0, "Green tea is steamed.")]]))
    with build_tree(source, out=tmp_path / "tree") as tree:
        omitted = dict(tree.omissions())
        assert omitted.keys() == {"0.pdf", "1.pdf"}
        assert all("too much" in reason for reason in omitted.values())
        assert "too much" in tree.get("0.pdf").attributes["note"]
        assert "Green tea" in tree.content("9.pdf")


def test_a_large_document_is_read(tmp_path: Path) -> None:
    """The limit leaves room for what is large and honest: 60 MB of file, 2,000 pages."""
    lines = [(10.0, f"line {number} of a page about tea and other things") for number in range(40)]
    data = make_pdf([lines] * 2_000).replace(b"%%EOF", b"%" + b"x" * 60_000_000 + b"\n%%EOF")
    reader = Extractor(None)
    found = reader.extracted("pdf", "1", data)
    reader.close()
    assert len(found.pages) == 2_000 and not found.problem
