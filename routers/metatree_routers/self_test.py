"""Ten menus and three passages of which the right answer is known: is a model worth its calls?

Each is a search in a tree of a few nodes, as users make it, with the words of the model alone: no evidence is weighed
with them. What the embedded parts make of the same menus stands beside.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from metatree import Limits, Node, SearchResult, Tree, search
from metatree.errors import BadModelAnswer
from metatree.protocols import Router, Suite

MENUS = (
    ("Where is the password of a user checked?", "login: Check who signs in", "draw: Draw circles and squares",
     "mail: Send letters to customers", "prices: Work out what an order costs", "logs: Write down what happened"),
    ("How long may a request take before it is given up?", "timeouts: Limits of time for calls",
     "colours: The palette of the pages", "users: Who may do what", "reports: Tables for the end of the month",
     "icons: Small pictures"),
    ("Why is the invoice in the wrong currency?", "billing: Invoices, taxes and payments",
     "search: Find documents by words", "queue: Jobs that wait for a worker", "maps: Where things are",
     "avatars: Pictures of people"),
    ("Which file is read first when the program starts?", "startup: The entry point and its settings",
     "shutdown: What is closed at the end", "fonts: Letters for the screen", "charts: Bars and lines",
     "export: Write spreadsheets"),
    ("How are old backups removed?", "retention: Delete copies after some days", "themes: Dark and light",
     "signup: Open an account", "payments: Cards and refunds", "chat: Talk with support"),
    ("Where are two versions of a document merged?", "sync: Bring copies together and solve conflicts",
     "print: Send pages to a printer", "alarms: Wake somebody up", "quotas: How much space is left",
     "login: Passwords and sessions"),
    ("What happens when the disk is full?", "storage: Write files and see to free space",
     "menus: What a user can click", "translations: Texts in other languages", "orders: Baskets and checkouts",
     "calendar: Days and meetings"),
    ("How does a customer get the money back?", "refunds: Return a payment", "crawler: Fetch pages of the web",
     "cache: Keep answers for a while", "cameras: Take pictures", "roles: Groups of people"),
    ("Who is told when a server goes down?", "alerts: Call the person on duty", "layout: Columns and rows",
     "import: Read spreadsheets", "stock: What is in the warehouse", "passwords: Rules for secrets"),
    ("Can a picture be made smaller?", "images: Resize and crop", "audit: Who changed what",
     "taxes: Rates by country", "webhooks: Tell other programs", "search: Find documents by words"),
)  # fmt: skip
"""A question, the right option, and the others; each is a title and a description."""

PASSAGES = (
    ("How long does a session last?", "A session ends after 45 minutes of rest.\nThen the user signs in again.", "45"),
    ("How many retries are made?", "A request that fails is sent again.\nAfter four retries it is given up.", "four"),
    ("Which port does it use?", "The server writes a log of each request.\nLogs are kept for a week.", ""),
)  # fmt: skip
"""A question, a text, and a word that the answer holds; '' where the text does not answer."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How a model did."""

    menus: int
    """How many of the ten menus it chose rightly in."""
    without: int
    """How many the embedded router chose rightly in."""
    passages: int
    """How many of the three passages it read rightly."""
    of_menus: int
    """How many menus there was time for."""
    of_passages: int
    requests: int
    failed: int
    """Requests without a usable answer."""
    tokens: int
    milliseconds: float
    """Of one request, on average."""

    @property
    def recommendation(self) -> str:
        """What to do with the model."""
        if not self.requests or self.failed >= self.requests / 2:
            return "it gives no usable answers: take another, or `--router embedded`"
        if self.menus < self.without:
            return "this model chooses worse than no model: take another, or `--router embedded`"
        if self.passages < self.of_passages:
            return "it chooses well enough, and misreads: see to its answers' sources"
        return "it can be used"

    def line(self) -> str:
        """Return all of it in a line."""
        each = self.tokens / max(1, self.requests)
        return (
            f"right in {self.menus} of {self.of_menus} menus ({self.without} without a model) and {self.passages} of"
            f" {self.of_passages} passages, {each:.0f} tokens and {self.milliseconds:.0f} ms a request"
            + (f", {self.failed} of {self.requests} without a usable answer" if self.failed else "")
            + f"; {self.recommendation}"
        )


LEAST_S = 10.0
"""A menu or a passage has at least so many seconds, whatever is left of the time for all."""


def self_test(suite: Suite, limit_s: float = 60.0) -> SelfTest:
    """Ask a model about the ten menus and the three passages, or the first of them that there is time for; wait for it.

    Args:
        suite: the model's parts.
        limit_s: after how many seconds nothing more is asked; two menus and a passage always are.

    Raises:
        BadModelAnswer: it gave no usable answer in the first two menus; the message says why.
    """
    spent = 0.0
    results = list[SearchResult]()
    menus = passages = without = of_menus = of_passages = 0
    for number, menu in enumerate(MENUS):
        if number >= 2 and spent > limit_s * 2 / 3:
            break
        of_menus += 1
        began = time.monotonic()
        found = _choose(menu, number, suite.router, max(LEAST_S, limit_s - spent))
        spent += time.monotonic() - began
        results.append(found)
        menus += any(
            entry.data.get("choice") == "right" and entry.data["by"] == "router" for entry in found.trace
        )
        if number == 1 and not any(map(_answered, results)):
            if all(each.ended == "limit" and not each.usage.failed_attempts for each in results):
                raise BadModelAnswer(f"it is too slow: it answered no menu in {spent:.0f} s")
            raise BadModelAnswer(f"it gives no usable answers: {found.detail}")
        without += [node.id for node in _choose(menu, number, None, limit_s).nodes] == ["right"]
    for question, text, holds in PASSAGES:
        if of_passages and spent > limit_s:
            break
        of_passages += 1
        began = time.monotonic()
        with Tree.create(":memory:") as tree:
            tree.add(Node("text", "notes", content=text))
            parts: dict[str, Any] = {"router": suite.router, "reader": suite.reader}
            limits = Limits(model_calls=4, seconds=max(LEAST_S, limit_s - spent))
            found = search(question, tree=tree, evidence=False, limits=limits, second_look=False, **parts)
        results.append(found)
        said = found.answers[0].answer if found.answers else ""
        passages += holds in said.casefold() if holds else not found.answers
        spent += time.monotonic() - began
    requests = sum(found.usage.model_calls for found in results)
    return SelfTest(
        menus,
        without,
        passages,
        of_menus,
        of_passages,
        requests,
        sum(found.usage.failed_attempts for found in results),
        sum(found.usage.tokens_in + found.usage.tokens_out for found in results),
        1_000 * spent / max(1, requests),
    )


def _answered(found: SearchResult) -> bool:
    if found.ended == "failed" or (found.ended == "limit" and not found.nodes):
        return False
    return found.usage.failed_attempts < max(1, found.usage.model_calls) or not found.detail


def _choose(menu: tuple[str, ...], number: int, router: Router | None, seconds: float) -> SearchResult:
    question, *options = menu
    with Tree.create(":memory:") as tree:
        shift = number % len(options)  # so that the right one has no place of its own
        for place, option in enumerate(options[shift:] + options[:shift]):
            title, _, description = option.partition(": ")
            tree.add(
                Node(
                    "right" if option == options[0] else f"other {place}",
                    title,
                    description,
                    content=description,
                )
            )
        limits = Limits(model_calls=6, seconds=seconds or None)
        return search(
            question,
            tree=tree,
            router=router,
            evidence=False,
            returns="nodes",
            k=1,
            limits=limits,
            second_look=False,
            accept=lambda node: True,
        )
