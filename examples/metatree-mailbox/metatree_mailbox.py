"""Mailboxes as memory: threads and their mails as nodes, and a tool that counts who wrote how much."""

from __future__ import annotations

import mailbox
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from itertools import islice
from pathlib import Path

from metatree import Node, Source, Tree, UserError, tool
from metatree.trees.source_types import Progress, SourceRef


@tool(kind="exploratory", kinds=["mailbox", "thread"], reuse="run")
def correspondents(node: Node, tree: Tree) -> str:
    """Count the mails of each correspondent here."""
    found = Counter(str(each.attributes["sender"]) for _, each in tree.walk(node) if each.kind == "mail")
    return "\n".join(f"{who} is a correspondent with {number} mails." for who, number in found.most_common())


class Mailbox:
    """A file of mails as mail programs export it: `mailbox:FILE`."""

    name = "mailbox"
    version = "1"
    tools = (correspondents,)

    def recognises(self, location: str) -> bool:
        return location.startswith("mailbox:")

    def fingerprint(self, source: SourceRef) -> str:
        state = _file(source).stat()
        return f"{state.st_size} {state.st_mtime_ns}"

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        yield Node(".", _file(source).name, "Mails, by thread", kind="mailbox"), None
        threads: set[str] = set()
        with closing(mailbox.mbox(_file(source), create=False)) as box:
            mails = list(enumerate(box))
        for key, mail in mails:
            subject = str(mail["subject"] or "no subject").removeprefix("Re: ")
            if subject not in threads:
                threads.add(subject)
                yield (
                    Node(subject, subject, f"A thread of mails, begun by {mail['from']}", kind="thread"),
                    ".",
                )
            said = f"From {mail['from']} on {mail['date']}"
            place, about = Source(type=self.name, path=str(key)), {"sender": str(mail["from"])}
            made = Node(f"{subject}/{key}", subject, said, kind="mail", source=place, attributes=about)
            yield made, subject

    def content(self, source: SourceRef, ref: Source) -> str:
        with closing(mailbox.mbox(_file(source), create=False)) as box:
            return _text(next(islice(box, int(ref.path), None)))


def _file(source: SourceRef) -> Path:
    file = Path(source.location.removeprefix("mailbox:")).expanduser()
    if not file.is_file():
        raise UserError(f"there is no mailbox {str(file)!r}")
    return file


def _text(mail: Message) -> str:
    parts = [part for part in mail.walk() if part.get_content_type() == "text/plain"]
    texts = (part.get_payload(decode=True) for part in parts)
    return "\n".join(text.decode(errors="replace") for text in texts if isinstance(text, bytes))
