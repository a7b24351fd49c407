"""Answer a request without a pipeline: productions split it into questions, searches answer them at the same time, a
resolver says when to stop.

usage: python examples/control_shell.py

A small handbook is the tree that is searched, by the embedded router: no key, no model, no network. Set METATREE_MODEL
(and its key or base URL) to have what the handbook does not say asked of a model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from metatree_agents.rules.sources import ModelAnswerer, RequestSplitter, TreeSearcher

from metatree import Node, Tree
from metatree.parts import suite_named
from metatree.rules import ControlShell, Firing, First, KnowledgeSource, ShellReport, StopWhen
from metatree.rules.shell.control import ending_lines, trace_lines

HANDBOOK = {
    "Sessions": "A session ends after 30 minutes without a request. Its token is renewed with every request.",
    "Invoices": "Invoices are sent on the first of each month, and are due within 14 days.",
    "Refunds": "Refunds are paid to the card that was charged, within 5 working days.",
    "Passwords": "A password has at least 12 characters. It never expires.",
    "Backups": "Backups are taken at 3 in the morning and kept for 90 days.",
}

REQUEST = (
    "When does a session end? When are invoices due? How long are backups kept? Who founded the company?"
)

REPORT = """
((<r> request <text>) +{(<q> part-of <r>)} -{(<q> part-of <r>) -{(<q> answer <a>)} -{(<q> unanswered-by <n>)}}
 -{(<r> report <p>)} -> "report")
"""

# What the handbook did not answer goes to the model.
ASK_MODEL = '((<q> unanswered-by search) (<q> question <text>) -{(<q> answer <a>)} -> "ask the model")'


def handbook() -> Tree:
    """Return the tree that is searched."""
    tree = Tree.create(":memory:")
    for title, text in HANDBOOK.items():
        tree.add(Node(id=title, title=title, description=text.split(".")[0], content=text), parent=tree.root)
    return tree


def split(request: str) -> Sequence[str]:
    """Take a request apart at its question marks."""
    return [part.strip() + "?" for part in re.split(r"\?\s*", request) if part.strip()]


def reporter() -> KnowledgeSource:
    """Return the source that writes one report when every question was looked into."""
    source = KnowledgeSource("reporter", REPORT)

    @source.fires("report")
    def report(firing: Firing) -> None:
        token = firing.to_add[0]
        found = firing.facts.query("(<q> question <text>) (<q> answer <a>)")
        lines = [f"{one['text']} {one['a']}" for one in found]
        lines += [
            f"{one['text']} (nothing was found)"
            for one in firing.facts.query("(<q> question <text>) -{(<q> answer <a>)}")
        ]
        firing.commit(token)
        firing.add(token["r"], "report", "\n".join(lines))

    return source


def colleague() -> KnowledgeSource:
    """Return a source that one would rather not bother: the resolver stops before it comes to that."""
    source = KnowledgeSource(
        "colleague",
        '((<q> unanswered-by search) (<q> question <text>) -{(<q> asked -)} -> "ask a colleague")',
    )

    @source.fires("ask a colleague")
    def ask(firing: Firing) -> None:
        token = firing.to_add[0]
        firing.commit(token)
        firing.add(token["q"], "asked", "-")
        firing.note(f"Calling a colleague: {token['text']}")

    return source


def office(tree: Tree) -> ControlShell:
    """Return the control shell: no schedule, so that whatever can be done may be done."""
    sources: list[KnowledgeSource] = [RequestSplitter(split), TreeSearcher(tree)]
    model = os.environ.get("METATREE_MODEL")
    if model:
        sources.append(
            ModelAnswerer(suite_named(model).tool_caller, name="ask the model", production=ASK_MODEL)
        )
    enough = StopWhen(lambda conflict: bool(conflict.memory.query("(<r> report <p>)", limit=1)), First())
    return ControlShell([*sources, reporter(), colleague()], resolver=enough)


def main() -> int:
    """Run the example and print its trace."""

    def tell(entry: dict[str, Any]) -> None:
        print("\n".join(trace_lines(entry)))

    report: ShellReport = office(handbook()).run([("r1", "request", REQUEST)], seed=1, on_entry=tell)
    print("\n".join(ending_lines(report)))
    for found in report.memory.query("(<r> report <text>)"):
        print(f"\n{found['text']}")
    return 0 if report.ended == "accepted" else 1


if __name__ == "__main__":
    raise SystemExit(main())
