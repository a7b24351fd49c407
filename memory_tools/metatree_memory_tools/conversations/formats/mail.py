"""Letters: mbox files, single letters (eml), and the folders of a maildir, whose files are single letters.

The standard library's `mailbox` makes a list of all places of an mbox first; here the file is read once, as it comes.
"""

from __future__ import annotations

import codecs
import email
import email.policy
import re
from collections.abc import Iterator, Sequence
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.message import Message as Part
from email.utils import parseaddr

from metatree._util.secret_text import shaped_keys, without_keys
from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations.formats.message import (
    NOBODY,
    ChatMessage,
    ExportFile,
    attached,
    begins_key,
    hashed,
    joined,
    text_of,
)
from metatree_memory_tools.conversations.formats.texts import text_of_html
from metatree_memory_tools.text.descriptions import cut_masked

_BEGIN = re.compile(rb"^From \S+.*\d", re.DOTALL)
_HEADER = re.compile(rb"\A(?:[!-9;-~]{1,76}:[^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*)+", re.ASCII)
_NAMES = re.compile(rb"(?mi)^(?:from|date|message-id|received|return-path|subject|to|mime-version):")
_FOLDER = re.compile(r"(?:^|/)(?:cur|new)/[^/]+$")
_QUOTE = re.compile(r"^(?:>.*|On .{10,200} wrote:|-----Original Message-----|_{10,})$")
_SUBJECT = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|sv|vs)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_MOST_BYTES = 20_000_000
"""Of a letter, with all that is attached to it."""
_MOST_BOUNDARIES = 20_000
"""Lines that may begin a part; each takes the library 0.3 ms."""
_SOFT_BREAK = re.compile(r"=\r?\n")
"""Where quoted-printable breaks a line, and with it a key."""
_MOST_UNREAD = 100_000
"""Characters that are shown of a letter that cannot be taken apart."""
_UNREADABLE = "[cannot be read: how it is encoded is out of form]"
_LEAST_CHARS = 40
"""A shorter text beside a page says that there is a page."""
_MOST_OF_HEADER = {
    "from": 1_000,
    "date": 1_000,
    "message-id": 1_000,
    "references": 20_000,
    "in-reply-to": 20_000,
}
_NAMES_FILE = re.compile(r"content-(?:disposition|type)$", re.IGNORECASE)
_MOST_OF_CONTENT = 1_000
_MOST_OF_OTHERS = 4_000
"""Characters of a header: the library takes the square of its length to parse one that is out of form."""
_NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape"})
"""Codecs of Python that no letter is in, and that take the square of a text's length."""


class _BoundedHeaders(email.policy.EmailPolicy):
    """Reads the beginning of each header."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(list(sourcelines))
        most = (
            _MOST_OF_CONTENT
            if name.lower().startswith("content-")
            else _MOST_OF_HEADER.get(name.lower(), _MOST_OF_OTHERS)
        )
        return name, value[:most]


_POLICY = _BoundedHeaders()


class Letters:
    """Mail, by subject."""

    name = "mail"
    ordered = False

    def recognises(self, file: ExportFile) -> bool:
        """Whether it begins as an mbox, or as a letter where its name is that of one or its folder a maildir's."""
        head = file.head
        if _BEGIN.match(head.partition(b"\n")[0]) is not None:
            return _is_letter(head.partition(b"\n")[2])
        named = (
            file.name.lower().endswith((".eml", ".emlx", ".mbox")) or _FOLDER.search(file.path) is not None
        )
        return named and (_is_letter(head) or (not head.strip() and file.name.endswith(".mbox")))

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the letters."""
        many = file.head.startswith(b"From ")
        for raw in _split(file) if many else _alone(file):
            yield letter_of(raw)


def _is_letter(head: bytes) -> bool:
    header = _HEADER.match(head)
    return header is not None and len(set(map(bytes.lower, _NAMES.findall(header[0])))) >= 1


def _alone(file: ExportFile) -> Iterator[bytes]:
    with file.open() as stream:
        yield _whole_lines(stream.read(_MOST_BYTES))


def _split(file: ExportFile) -> Iterator[bytes]:
    """Yield the letters of an mbox; one begins with `From ` behind a blank line. What is too long is cut."""
    lines: list[bytes] = []
    size = 0
    blank = True
    with file.open() as stream:
        while line := stream.readline(1 << 20):
            if blank and line.startswith(b"From ") and _BEGIN.match(line):
                if lines:
                    yield _whole_lines(b"".join(lines))
                lines, size = [], 0
            elif size < _MOST_BYTES:
                lines.append(
                    line[1:] if line.startswith(b">") and line.lstrip(b">").startswith(b"From ") else line
                )
                size += len(line)
            blank = not line.strip()
    if lines:
        yield _whole_lines(b"".join(lines))


def _whole_lines(letter: bytes) -> bytes:
    """Return a letter that may have been cut without the line in which it was: a part of a key is none."""
    return letter if len(letter) < _MOST_BYTES else letter[: letter.rfind(b"\n") + 1]


def _unbroken(text: str) -> str:
    """Join what soft breaks part. Where there are none, a word that ends in `=` then stands before a key."""
    return without_keys(_SOFT_BREAK.sub("", text), shaped_keys(text))[0]


def letter_of(raw: bytes) -> ChatMessage:
    """Return a letter as a message; never raises, whatever it holds."""
    try:
        if raw.count(b"\n--") > _MOST_BOUNDARIES:
            raise ValueError("it has too many parts")
        letter = email.message_from_bytes(raw, policy=_POLICY)
    except Exception:  # it is a bomb, or out of form: for such the parser raises all kinds of errors
        shown = raw if len(raw) <= 2 * _MOST_UNREAD else raw[: raw.rfind(b"\n", 0, 2 * _MOST_UNREAD) + 1]
        said = _unbroken(text_of(shown))
        return ChatMessage("", NOBODY, joined(cut_masked(said, _MOST_UNREAD)), "", "", "", "")
    subject = " ".join(_header(letter, "subject").split())
    who = _writer(letter)
    thread = _SUBJECT.sub("", subject)
    answered = re.findall(r"<[^<>\s]+>", f"{_header(letter, 'references')} {_header(letter, 'in-reply-to')}")
    text = _body(letter)
    if letter.defects:  # where headers end too early, the body is as it was sent
        text = _unbroken(text)
    is_key = begins_key(text)  # of which often no more than the first line is quoted
    lines = [line.rstrip() for line in text.splitlines() if is_key or not _QUOTE.match(line.strip())]
    own = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return ChatMessage(
        _header(letter, "message-id").strip(),
        who,
        joined(subject, own or text, attached(_attachments(letter))),
        iso(_header(letter, "date").strip()),
        answered[-1] if answered else "",
        hashed("subject", thread.casefold()),
        thread or "without a subject",
    )


def _writer(letter: Part) -> str:
    header = _header(letter, "from")
    try:
        name, address = parseaddr(header)
        raw = next((str(value) for key, value in letter.raw_items() if key.lower() == "from"), "")
        if (
            "=?" in raw and header
        ):  # the parser leaves a blank between encoded words, where none is (RFC 2047, 6.2)
            name = str(make_header(decode_header(parseaddr(raw)[0]))) or name
    except Exception:  # brackets in brackets, among others
        name, address = "", header
    return " ".join((name or address).split()) or NOBODY


def _header(letter: Part, name: str) -> str:
    raw = str(next((value for key, value in letter.raw_items() if key.lower() == name), ""))
    try:
        text = str(letter.get(name, "") or "")
    except Exception:  # of a header that is out of form
        text = raw.encode("utf-8", "replace").decode()
    if len(raw) < _MOST_OF_HEADER.get(name, _MOST_OF_OTHERS):
        return text
    # Of a word that is cut nobody knows what it was: the beginning of an address with a password, as well. Encoded
    # ones go on in the next, without a blank.
    return "" if "=?" in raw else text.rpartition(" ")[0]


def _body(letter: EmailMessage | Part) -> str:
    """Return what is read of a letter: the plain text, or the page where there is none that says anything."""
    plain, page = list[str](), list[str]()
    for part in letter.walk():
        if part.is_multipart() or _is_attached(part):
            continue
        kind = part.get_content_type()
        if kind in ("text/plain", "text/html"):
            (plain if kind == "text/plain" else page).append(_decoded(part))
    text = joined(*plain)
    shown = joined(*map(text_of_html, page)) if len(text) < _LEAST_CHARS else ""
    return shown if len(shown) > len(text) else text


def _is_attached(part: Part) -> bool:
    try:
        return part.get_content_disposition() == "attachment"
    except Exception:
        return False


def _decoded(part: Part) -> str:
    try:
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes):
            return str(part.get_payload() or "")
    except Exception:  # of what says how it is encoded
        return _UNREADABLE
    try:
        charset = part.get_content_charset() or "utf-8"
        text = text_of(data) if codecs.lookup(charset).name in _NO_CHARSETS else data.decode(charset)
    except (
        LookupError,
        UnicodeDecodeError,
        ValueError,
    ):  # an encoding that is none, or not the one of the text
        text = text_of(data)
    return text.replace("\r\n", "\n")


def _attachments(letter: Part) -> list[str]:
    names: list[str] = []
    for part in letter.walk():
        if part.is_multipart():
            continue
        try:
            name = part.get_filename()
        except Exception:
            name = None
        if any(
            len(str(value)) >= _MOST_OF_CONTENT for key, value in part.raw_items() if _NAMES_FILE.match(key)
        ):
            name = "a file with a long name"  # which was cut, and with it a key that may be in it
        if name or _is_attached(part):
            names.append(" ".join(str(name or part.get_content_type()).split()))
    return names
