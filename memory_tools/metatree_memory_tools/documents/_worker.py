"""The process that reads documents: one after the other, within limits.

Each request has the name of the format, the seconds that it may take and whether secrets are shown; each answer is
JSON. Files of strangers are read by code that may loop, crash or take all memory; here it takes nothing else along.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from metatree._util.process import limit_data
from metatree.errors import UserError
from metatree.trees.text import decode
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.documents._written_keys import written_keys
from metatree_memory_tools.reading.own_process import MEMORY_BYTES
from metatree_memory_tools.reading.serving import IDLE_S, serve

_ADDRESS_BYTES = 2_000_000_000
"""How much may be addressed: of use where the other limit is not kept."""

_PDF_BYTES = 270_000_000
"""A manual of a thousand pages takes 80 MB; so a prepared one stays within 500 MB beside other work, too."""
_LEAST_BYTES = 100_000_000


def extract(kind: str, data: bytes, limit_s: float) -> Extracted:
    """Return the text of a document, in this process.

    Args:
        kind: `pdf`, `html`, `docx`, `man`, or one of `CONVERTED`.
        data: the file.
        limit_s: seconds after which what is left is left out, as far as the format can be read in part.
    """
    match kind:
        case "pdf":
            from metatree_memory_tools.documents._pdf import extract_pdf

            return extract_pdf(data, limit_s)
        case "html":
            from metatree_memory_tools.documents._html import extract_html

            return extract_html(data)
        case "docx":
            from metatree_memory_tools.documents._docx import extract_docx

            return extract_docx(data)
        case "man":
            from metatree_memory_tools.documents._man import extract_man

            return extract_man(decode(data)[0])
    from metatree_memory_tools.documents._converted import CONVERTED, extract_converted

    if kind in CONVERTED:
        return extract_converted(kind, data)
    raise ValueError(f"no reader of documents is called {kind!r}")


def _answer(kind: str, data: bytes, limit_s: float, secrets: bool) -> bytes:
    try:
        text = extract(kind, data, limit_s).bounded()
        return _line(text if secrets else text.without_secrets(written_keys(kind, data)))
    except UserError as exc:
        problem = str(exc)
    except MemoryError:
        problem = "not read: it takes too much memory"
    except RecursionError:
        problem = "not read: it is nested too deeply"
    except Exception as exc:  # whatever a file does to a reader, it is one file
        problem = f"damaged: {type(exc).__name__} while it was read"
    return _line(Extracted(problem=problem))


def _line(result: Extracted) -> bytes:
    # As ASCII, what is no letter of the Latin alphabet would take up to twelve bytes.
    return json.dumps(result.as_json(), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _limit_memory(memory_bytes: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, _ADDRESS_BYTES))
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _answered(header: list[Any], data: bytes) -> bytes:
    kind, limit_s, secrets = header
    limit_data(_PDF_BYTES if kind == "pdf" else sys.maxsize, _LEAST_BYTES)
    return _answer(kind, data, limit_s, secrets)


def main(memory_bytes: int = MEMORY_BYTES, idle_s: float = IDLE_S) -> None:
    """Serve on standard input and output."""
    _limit_memory(memory_bytes)
    serve(_answered, idle_s)


if __name__ == "__main__":
    main()
