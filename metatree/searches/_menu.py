"""Menus: the options of a node with the evidence below each, and the leaves that evidence points to.

Evidence is asked once for a set of questions; each menu then takes from that ranking what lies below its options.

Lost, to leaves beside the branches: a stage before the search that retrieves, which would answer without the tree, its
marks and its trace; and best-first over a queue of all nodes, which a model cannot steer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from metatree.errors import MetatreeError, UnknownNode
from metatree.node import Node, place_of
from metatree.protocols import ABSTAINED, Evidence, Option, Passage, Scored
from metatree.trees.tree import ROOT, Tree

_log = logging.getLogger("metatree")
DEEP = 200
"""Nodes taken from a ranking; options without any of them below count as without evidence."""
FEW = 40
"""Nodes taken where so many will do."""
HINTED = 5
"""Options that show hints: those with the most evidence. More would make prompts long and choices no better."""
MAX_HINTS = 2
MOST_REMEMBERED = 50_000
MAX_HINT_CHARS = 120
LEAST_LIKELY = 0.05
"""A passage that is less likely to answer is not worth a read."""
_MOST_PASSAGES = 40
_FOR_TOOLS = 5
JUMP_SHARE = 0.5
"""A leaf is offered beside the branches when its score is at least this share of the best one's."""


@dataclass(slots=True)
class Menu:
    """What is offered at one node."""

    options: list[Option]
    nodes: dict[str, Node]
    """The nodes offered, by id."""


@dataclass(slots=True)
class _Subtree:
    """What a ranking has in or below one option."""

    score: float = 0.0
    best: list[Scored] = field(default_factory=list)

    def add(self, scored: Scored) -> None:
        self.score = max(self.score, scored.score)
        if len(self.best) < MAX_HINTS:
            self.best.append(scored)


class MenuMaker:
    """Makes menus for one run.

    Args:
        evidence: None for menus without scores and hints.
        accepts: which nodes `returns="nodes"` collects; None when answers are wanted.
        candidates: ids of all nodes that are accepted, when known; the ranking is then of these alone.
        jumps: how many leaves may be offered beside the branches.
        by_passages: whether nodes are scored by how likely their best passage answers, where the evidence can tell.
        has_tools: says of a node whether there are tools for it; the few that most speaks for are then offered after
            the passages. None when there are no tools.
        answers_outside_tree: says of a node whether a tool on it may answer what no text of the tree says; the evidence
            is then asked for what speaks for such nodes, whatever words are missing elsewhere: `What will the weather
            in Oslo be?` has a word that is nowhere in a tree of tools.
    """

    def __init__(
        self,
        tree: Tree,
        evidence: Evidence | None,
        *,
        accepts: Callable[[Node], bool] | None,
        candidates: Collection[str] | None = None,
        jumps: int = 3,
        by_passages: bool = False,
        has_tools: Callable[[Node], bool] | None = None,
        answers_outside_tree: Callable[[Node], bool] | None = None,
    ) -> None:
        self._tree = tree
        self._evidence = evidence
        self._accepts = accepts
        self._candidates = candidates
        self._jumps = jumps
        self._may_go_by_passages = accepts is None and bool(evidence and evidence.traits.gives_passages)
        self._by_passages = by_passages and self._may_go_by_passages
        self._has_tools = has_tools
        abstains = evidence is not None and evidence.traits.may_abstain
        self._answers_outside_tree = answers_outside_tree if accepts is None and abstains else None
        self.start = ROOT
        self.has_evidence = evidence is not None
        """Where the search begins: accepted nodes below it are ranked among each other, as long as it is there."""
        self._rankings: dict[tuple[int, tuple[str, ...], str, int, bool], list[Scored]] = {}
        self._paths: dict[str, list[str]] = {}
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, list[Node]] = {}
        self._sequence = -1

    def listing(self, node: str) -> tuple[Node, list[Node]] | None:
        """Return a node and its children as the tree is now, without kept content; None when the node is gone."""
        self._look_for_edits()
        parent = self.find(node)
        if parent is None:
            return None
        children = self._children.get(node)
        if children is None:
            try:
                children = self._tree.children(node)
            except UnknownNode:  # another process has just deleted it
                return None
            if len(self._nodes) > MOST_REMEMBERED:
                self._nodes.clear()
                self._children.clear()
            self._children[node] = children
            self._nodes.update((child.id, child) for child in children)
        return parent, children

    def find(self, node: str) -> Node | None:
        """Return a node as it was when edits were last looked for, without kept content, or None."""
        result = self._nodes.get(node)
        if result is None:
            self._look_up([node])
            result = self._nodes.get(node)
        return result

    def _look_up(self, ids: Collection[str]) -> None:
        """Read nodes that will be asked for, all at once."""
        for node in self._tree.nodes([id_ for id_ in ids if id_ not in self._nodes]):
            kept = node.content is not None
            self._nodes[node.id] = replace(node, content=None, content_kept=True) if kept else node

    def _look_for_edits(self) -> None:
        sequence = self._tree.sequence
        if sequence != self._sequence:
            self._sequence = sequence
            self._rankings.clear()
            self._paths.clear()
            self._nodes.clear()
            self._children.clear()

    def make(
        self,
        node: str,
        options: Sequence[str],
        questions: tuple[str, ...],
        marked: Mapping[str, object],
        *,
        jumps: bool = True,
        collected: Collection[str] = (),
        by_passages: bool = False,
    ) -> Menu:
        """Return the options of a node that still exist, in tree order, then the leaves offered beside them.

        Args:
            jumps: whether leaves may be offered beside the options.
            collected: nodes of which only what is below them is still wanted.
            by_passages: from here on, whatever the reader was that the run began with.
        """
        if by_passages and self._may_go_by_passages and not self._by_passages:
            self._by_passages = True
            self._rankings.clear()
        self._look_for_edits()
        nodes: dict[str, Node] = {}
        for option in options:
            child = self.find(option)
            if child is not None:
                nodes[option] = child
        if self._evidence is None:
            bare = [Option(n.id, n.title, n.description, place=place_of(n)) for n in nodes.values()]
            return Menu(bare, nodes)
        ranking = self._with_tools(node, questions, DEEP + len(marked) + len(collected))
        below = {option: _Subtree() for option in nodes}
        leaves: dict[str, Scored] = {}
        for scored in ranking:
            path = self._path(scored.node_id)
            if scored.node_id in collected or any(step in marked for step in path):
                continue
            at = next((step for step in path if step in below), None)
            if at is not None:
                below[at].add(scored)
            if scored.node_id not in nodes and scored.node_id != node and node in path:
                leaves[scored.node_id] = scored
        hinted = sorted(below, key=lambda option: -below[option].score)[:HINTED]
        menu = [
            Option(
                n.id,
                n.title,
                n.description,
                None,
                min(1.0, below[n.id].score),
                self._hints(n.id, below[n.id].best) if n.id in hinted else (),
                place_of(n),
            )
            for n in nodes.values()
        ]
        for leaf, scored in self._best_leaves(leaves) if jumps else ():
            nodes[leaf.id] = leaf
            above = self._tree.parent(leaf.id)
            parent = self.find(above) if above is not None else None
            hint = _clip(scored.line)
            menu.append(
                Option(
                    leaf.id,
                    leaf.title,
                    leaf.description,
                    parent.title if parent else None,
                    min(1.0, scored.score),
                    (hint,) if hint else (),
                    place_of(leaf),
                )
            )
        return Menu(menu, nodes)

    def following(
        self,
        node: str,
        questions: tuple[str, ...],
        marked: Mapping[str, object],
        done: Collection[str],
        count: int,
    ) -> list[tuple[Node, Scored]]:
        """Return at most `count` nodes below one that are accepted and not done, in the order of the evidence."""
        if self._evidence is None or self._accepts is None:
            return []
        found: list[tuple[Node, Scored]] = []
        for k in (min(2 * count + len(marked), DEEP), DEEP + len(marked) + count):
            found.clear()
            ranking = self._with_tools(node, questions, k)
            self._look_up([scored.node_id for scored in ranking[:count]])
            for scored in ranking:
                if len(found) >= count or scored.score <= 0:
                    return found
                if scored.node_id in done or not self._lies_below(scored.node_id, node, marked):
                    continue
                match = self.find(scored.node_id)
                if match is not None and self._accepts(match):
                    found.append((match, scored))
            if len(found) >= count or len(ranking) < k:
                break
        return found

    def _lies_below(self, match: str, node: str, marked: Mapping[str, object]) -> bool:
        """Whether a node lies at or below another one, with nothing on the way that is marked."""
        if node == ROOT and not marked:
            return True
        path = self._path(match)
        return node in path and not any(step in marked for step in path)

    def hint(self, scored: Scored) -> str:
        """Return the line of a node that matched best, cut to the length of a hint."""
        return _clip(scored.line)

    def deepen(self, menu: Menu, marked: Mapping[str, object], *, most: int) -> Menu | None:
        """Return the menu with the children of all its options beside them, each naming its parent.

        None when no option has children, or there would be more than `most` options: a menu that shows some
        branches deeper than others would draw the eye to them. An option with children stays, since the router
        may want all of it.
        """
        total = self._tree.child_total([option.id for option in menu.options if option.parent is None])
        if not total or len(menu.options) + total > most:
            return None
        options: list[Option] = []
        nodes = dict(menu.nodes)
        for option in menu.options:
            options.append(option)
            for child in self._tree.children(option.id) if option.parent is None else ():
                if child.id not in marked and child.id not in menu.nodes:
                    nodes[child.id] = child
                    options.append(
                        Option(child.id, child.title, child.description, option.title, place=place_of(child))
                    )
        return Menu(options, nodes)

    def best(self, menu: Menu) -> Option:
        """Return the option with the most evidence, the first of equals: the order of last resort."""
        return max(menu.options, key=lambda option: option.score or 0.0)

    def why(self, node: str, match: str, questions: tuple[str, ...]) -> str:
        """Return what the evidence says of why a node was found from another one; '' when it cannot tell."""
        return self.reasons(node, [match], questions).get(match, "")

    def reasons(self, node: str, matches: Sequence[str], questions: tuple[str, ...]) -> dict[str, str]:
        """Return what `why` returns for each of several nodes, asked for at once."""
        if self._evidence is None:
            return {}
        under = self._scope(node) if self._candidates is not None else ROOT
        try:
            reasons = self._evidence.reasons(questions, matches, under=None if under == ROOT else under)
            return {match: str(reason) for match, reason in reasons.items()}
        except MetatreeError:
            raise
        except Exception:
            _log.warning("the evidence could not explain itself", exc_info=True)
            return {}

    def closest(self, question: str, *, k: int) -> list[Passage]:
        """Return at most `k` passages that come closest to a question; none without evidence that knows any."""
        if self._evidence is None:
            return []
        try:
            return list(self._evidence.passages(question, k=k))
        except MetatreeError:
            raise
        except Exception:
            _log.warning("the evidence could not give passages", exc_info=True)
            return []

    def _scope(self, node: str) -> str:
        return self.start if self.start in self._path(node) else ROOT

    def _best_leaves(self, leaves: Mapping[str, Scored]) -> list[tuple[Node, Scored]]:
        chosen: list[tuple[Node, Scored]] = []
        floor = max((s.score for s in leaves.values()), default=0.0) * JUMP_SHARE
        for scored in leaves.values():
            if len(chosen) >= self._jumps or scored.score < floor:
                break
            leaf = self.find(scored.node_id)
            if leaf is not None and (self._accepts(leaf) if self._accepts else leaf.has_content):
                chosen.append((leaf, scored))
        return chosen

    def _with_tools(self, node: str, questions: tuple[str, ...], k: int) -> list[Scored]:
        """Return the ranking, in which nodes with tools that reach beyond the tree have what speaks for them."""
        ranking = self._ranking(node, questions, k)
        if self._answers_outside_tree is None:
            return ranking
        sure = {}
        for scored in self._ranking(node, questions, k, doubts=False):
            match = self.find(scored.node_id)
            if match is not None and self._answers_outside_tree(match):
                sure[scored.node_id] = scored
        if not sure:
            return ranking
        merged = [*sure.values(), *(scored for scored in ranking if scored.node_id not in sure)]
        return sorted(merged, key=lambda scored: -scored.score)

    def _ranking(self, node: str, questions: tuple[str, ...], k: int, *, doubts: bool = True) -> list[Scored]:
        assert self._evidence is not None
        block = DEEP if k > FEW else FEW
        k = -(-k // block) * block  # in blocks, so that one more mark does not ask anew
        under = node
        if self._candidates is not None:
            under = self._scope(node)
        key = (self._sequence, questions, under, k, doubts)
        ranking = self._rankings.get(key)
        if ranking is None:
            where: dict[str, Any] = {}
            if self._candidates is not None:
                where["among"] = self._candidates
            if self._candidates is None or under != ROOT:
                where["under"] = under
            # Who collects nodes wants the best there are; who asks wants to know when nothing can answer.
            best = self._accepts is not None or not doubts
            score = self._evidence.rank if best else self._evidence.score
            try:
                if self._by_passages and not best:
                    ranking = self._likeliest_first(questions, under)
                else:
                    ranking = list(score(questions, **where, k=k))
            except MetatreeError:
                raise
            except Exception:
                _log.warning("the evidence raised; menus come without it", exc_info=True)
                ranking = []
            if len(self._rankings) > 64:
                self._rankings.clear()
            self._rankings[key] = ranking
        return ranking

    def _likeliest_first(self, questions: tuple[str, ...], under: str) -> list[Scored]:
        """Score nodes by how likely their best passage answers a question, and no others.

        So a router that follows evidence reads the few that could change the outcome, and nothing else. After them come
        those on which a tool may answer.
        """
        assert self._evidence is not None
        likeliest: dict[str, Passage] = {}
        for question in questions:
            for passage in self._evidence.passages(question, k=_MOST_PASSAGES):
                known = likeliest.get(passage.node_id)
                if passage.score < LEAST_LIKELY or (known is not None and known.score >= passage.score):
                    continue
                if under == ROOT or under in self._path(passage.node_id):
                    likeliest[passage.node_id] = passage
        first = [Scored(p.node_id, p.score, p.text.strip().partition("\n")[0]) for p in likeliest.values()]
        # Lost: the others with next to nothing each: their places and lines took longer to read than all else.
        return sorted(first, key=lambda scored: -scored.score) + self._for_tools(questions, under, likeliest)

    def _for_tools(self, questions: tuple[str, ...], under: str, besides: Collection[str]) -> list[Scored]:
        """Return the few nodes with tools that most speaks for, each less likely than any passage."""
        if self._has_tools is None or self._evidence is None:
            return []
        best = [
            Scored(scored.node_id, ABSTAINED + (LEAST_LIKELY - ABSTAINED) * scored.score, scored.line)
            for scored in islice(self._evidence.score(questions, under=under, k=_FOR_TOOLS), _FOR_TOOLS)
            if scored.score > ABSTAINED and scored.node_id not in besides
        ]
        return [scored for scored in best if (node := self.find(scored.node_id)) and self._has_tools(node)]

    def _path(self, node: str) -> list[str]:
        """Return the ids from the root down to the node itself; empty when it is gone."""
        path = self._paths.get(node)
        if path is None:
            try:
                path = [*self._tree.ancestors(node), node]
            except UnknownNode:
                path = []
            self._paths[node] = path
        return path

    def _hints(self, option: str, best: Sequence[Scored]) -> tuple[str, ...]:
        hints = []
        for scored in best:
            title = self._title(scored.node_id) if scored.node_id != option else ""
            hints.append(_clip(": ".join(part for part in (title, scored.line) if part)))
        return tuple(hint for hint in dict.fromkeys(hints) if hint)

    def _title(self, node: str) -> str:
        match = self.find(node)
        return match.title if match else ""


def _clip(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_HINT_CHARS else text[: MAX_HINT_CHARS - 1] + "…"
