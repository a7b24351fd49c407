"""What a tree is told to remember: added at a sensible place, found by the next search, taken back by id.

A memory is a node of kind `memory` in the part of a tree that a rebuild leaves alone. Its provenance says who said it,
when, and where it came from, for each time that it was said. The same text is one memory.

Its id is made of its text's hash, and a small fact names the node for a text, so the same text is found at once and an
update keeps its id. Forgetting keeps nothing, not even for an undo: who forgets a secret means it; the command that
would bring it back is printed once.

Lost: ids made at random (the same text twice on two machines would stay twice after an import), looking all memories
through, and a waste-paper basket.
"""

from __future__ import annotations

import shlex
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, Literal

from metatree._util.normal_form import nfc
from metatree._util.secret_text import masked, secrets_in
from metatree.errors import UnknownNode, UserError
from metatree.node import Node
from metatree.notes.left_out import leave_out, messages_below
from metatree.notes.placement import BRANCH, GROUP_KIND, MEMORY_KIND, Placement, place_of
from metatree.notes.wishes import note_wishes, wishes_of
from metatree.protocols import AnyDescriber, AnyEvidence, DescribeRequest, Evidence
from metatree.trees.layer import Layer
from metatree.trees.text import encodable
from metatree.trees.tree import ROOT, Tree

MAX_CHARS: Final = 200_000
"""Of one memory. What is longer is a document: keep it as a file beside the others."""
MAX_MENTIONS: Final = 100
"""Of a memory that is said again and again, the first and the latest are kept."""
IMPORT: Final = "import"
"""What the provenance of a node has under `by` that came as plain text from somebody else's export."""
IMPORTED_KIND: Final = "imported"
"""Kind of such a node: nothing goes by it."""
_MAX_NAME: Final = 500
_BIDI: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TEXT_FACT: Final = "memory-text:"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a text that was to be remembered."""

    node: Node
    parent: str
    """Id of the node that it lies under."""
    why: str
    """Why there."""
    known: bool = False
    """Whether it was remembered before; then this mention was added to the earlier ones."""
    warnings: tuple[str, ...] = ()
    """What the person should know, such as that the text looks like a secret."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was taken back. Nothing of it is kept, so it can be undone only with what is here."""

    nodes: tuple[Node, ...]
    """The node itself first, with its content; what lay under it after it."""
    parent: str
    undo: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `remember` that bring the text back: `text`, `title`, `source`, `under`, `who`."""

    @property
    def command(self) -> str:
        """The command that brings it back, for a shell; empty for messages of an export, which nothing brings back."""
        if not self.undo:
            return ""
        text = str(self.undo["text"])
        is_plain = not text.startswith(("@", "-"))
        words = ["metatree", "remember", *([text] if is_plain else [])]
        for name, option in (
            ("title", "--title"),
            ("source", "--from"),
            ("under", "--under"),
            ("who", "--who"),
        ):
            if self.undo.get(name):
                value = str(self.undo[name])
                words += [f"{option}={value}"] if value.startswith("-") else [option, value]
        if not is_plain:  # it names neither a file nor standard input, and is no option
            words += ["--", f"@{text}" if text.startswith("@") else f" {text}" if text == "-" else text]
        return shlex.join(words)


def remember(
    tree: Tree,
    text: str,
    title: str | None = None,
    source: str | None = None,
    *,
    who: str = "unknown",
    under: str | Node | None = None,
    update: str | Node | None = None,
    evidence: AnyEvidence | Literal[False] | None = None,
    describer: AnyDescriber | None = None,
    now: Callable[[], float] = time.time,
) -> Remembered:
    """Keep a text as a memory in a tree.

    Without `under` it goes to the file or folder that it names, beside memories on its subject, into the branch that
    holds most of what it is about, or into a branch of memories. It stays when the tree is built again, and goes with
    a file or folder that is renamed. Text is data: nothing in it is executed by a search.

    Args:
        tree: the tree; its folder must be writable.
        text: what to remember.
        title: a few words for menus; taken from the text when None.
        source: where it comes from (a person, a meeting, an address), as a text.
        who: who says it: a person, or an agent.
        under: the node to put it below; one that is known already is moved there.
        update: a memory whose text this one replaces; its id and place stay, the earlier text is kept as history.
        evidence: finds what it is like; None for the text index, False for none.
        describer: writes title and description; None takes them from the text.

    Returns:
        The node, where it lies and why, whether it was known, and warnings.

    Raises:
        UserError: there is no text, it is longer than `MAX_CHARS`, or `update` names no memory.
        UnknownNode: `under` or `update` is not in the tree.

    Example:
        >>> from metatree import Node, Tree
        >>> tree = Tree.create(":memory:")
        >>> made = remember(tree, "Deploys happen on Tuesdays.", who="ann", evidence=False)
        >>> made.node.title, made.parent, made.node.provenance["who"]
        ('Deploys happen on Tuesdays.', 'memories:', 'ann')
        >>> remember(tree, "Deploys  happen on Tuesdays.", who="bob", evidence=False).known
        True
    """
    text, title = _checked(text), None if title is None else one_line(title)
    mention = _mention(who, source, now())
    warnings = _warnings(f"{title or ''}\n{text}")
    key = _key(text)
    if update is not None:
        return _updated(tree, _memory(tree, update), text, title, mention, warnings)
    known = _memory_with_text(tree, key)
    if known is not None and under is None:
        return _add_mention(tree, known, mention, warnings)
    place = place_of(
        tree,
        f"{title}\n{text}" if title else text,
        under=under.id if isinstance(under, Node) else under,
        evidence=_evidence(tree, evidence) if known is None and under is None else None,
    )
    node = Node("", *_labels_of(text, title, describer, tree.find(place.parent)), text, MEMORY_KIND)
    with tree.memory.durable(), tree.memory.transaction():
        known = _memory_with_text(tree, key)  # somebody else may have been faster
        if known is not None:
            if tree.parent(known) != place.parent and under is not None:
                tree.move(known, place.parent)
                return replace(_add_mention(tree, known, mention, warnings), why=place.why)
            return _add_mention(tree, known, mention, warnings)
        place = _ensure_parent(tree, place)
        node = replace(
            node, id=_free_id(tree, key), provenance={**mention, "by": "remember", "said": [mention]}
        )
        added = tree.add(node, parent=place.parent)
        Layer(tree.memory).set_fact(_TEXT_FACT + key, added.id)
        note_wishes(tree, added.id, text, mention["who"], mention["at"])
    return Remembered(added, place.parent, place.why, False, warnings)


def memories(tree: Tree, *, who: str | None = None, under: str | Node | None = None) -> list[Node]:
    """Return what a tree was told to remember, the latest said first, with content and provenance.

    Args:
        who: only what this person or agent has said.
        under: only what lies below this node.
    """
    nodes = [tree.find(node_id) for node_id in tree.ids([MEMORY_KIND])]
    matches = [node for node in nodes if node is not None and node.provenance.get("by") == "remember"]
    if who is not None:
        matches = [node for node in matches if any(mention["who"] == who for mention in mentions(node))]
    if under is not None:
        above = tree.get(under).id
        matches = [node for node in matches if above in tree.ancestors(node)]
    return sorted(matches, key=_last_said, reverse=True)


def _last_said(node: Node) -> tuple[str, str]:
    return str(said[-1]["at"] if (said := mentions(node)) else ""), node.id


def mentions(node: Node) -> list[dict[str, Any]]:
    """Return who said a memory, when, and where from, each time that it was said; empty for any other node."""
    return [_saying(each) for each in _records(node.provenance.get("said"))]


def made_by(node: Node) -> list[dict[str, Any]]:
    """Return who made a node that is no memory, as `mentions`; empty where nobody is named."""
    return [_saying(node.provenance)] if node.provenance.get("who") else []


def earlier_texts(node: Node) -> list[dict[str, str]]:
    """Return the texts that a memory replaced, as `text`, and `until` when each held; the earliest first."""
    return [_texts_of(each, "text", "until") for each in _records(node.provenance.get("earlier"))]


def _records(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; a store or an export that others made may have anything in its place."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list | tuple) else []


def _saying(record: Mapping[str, Any]) -> dict[str, Any]:
    source = record.get("source")
    return {**_texts_of(record, "who", "at"), "source": None if source is None else str(source)}


def _texts_of(record: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: "" if record.get(name) is None else str(record[name]) for name in names}


def claims(node: Node) -> list[dict[str, Any]]:
    """Return who is said to have said a text that came with somebody else's export; empty for any other node."""
    if node.provenance.get("by") != IMPORT:
        return []
    return [_saying(each) for each in _records(node.attributes.get("said"))]


def said_by(node: Node) -> str:
    """Return who made a node and when, in a few words; empty for one that was built from a source.

    Example:
        >>> said_by(Node("m", "m", provenance={"who": "ann", "at": "2026-05-03T10:00:00+00:00", "source": "a call"}))
        'said by ann on 2026-05-03 (a call)'
    """
    provenance = node.provenance
    if provenance.get("by") == IMPORT:
        names = list(dict.fromkeys(_quoted_name(str(each.get("who"))) for each in claims(node)))
        by = f", which names {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}" if names else ""
        return f"imported from {provenance.get('file')} on {provenance.get('imported')}{by}"
    if "who" not in provenance:
        return f"made by {provenance['tool']}" if provenance.get("tool") else ""
    text = f"said by {provenance['who']} on {str(provenance.get('at', ''))[:10]}"
    if provenance.get("source"):
        text += f" ({provenance['source']})"
    more = len(mentions(node)) - 1
    return text + (f", and {more} more time{'s' if more > 1 else ''}" if more > 0 else "")


def _quoted_name(name: str) -> str:
    """Return a name that a stranger wrote, which can end neither its quotes nor the line."""
    return f'"{one_line(name.replace(chr(34), chr(39)), 60)}"'


def forget(tree: Tree, node: str | Node) -> Forgotten:
    """Take back a memory, or another node that somebody or a tool added, with what lies under it.

    Its words are overwritten in the file; what was built from a source and lies under it moves up. What runs
    quoted from it stays in their journal. A message, session or conversation of an export is left out of the tree from
    then on, and the export is read again for that.

    Raises:
        UnknownNode: it is not in the tree.
        UserError: it was built from another source, or is the root.
    """
    node_id = node.id if isinstance(node, Node) else _memory_id(tree, node)
    found = tree.get(node_id)
    if not _was_added(tree, Layer(tree.memory), found) and (said := messages_below(tree, found)):
        texts = tuple(tree.get(each.id) for each in said)
        above = tree.parent(found) or ROOT
        leave_out(tree, said)
        return Forgotten(texts, above)
    with tree.memory.durable(), tree.memory.transaction():
        target = tree.get(node_id)
        layer = Layer(tree.memory)
        if not _was_added(tree, layer, target):
            raise UserError(
                f"{target.id!r} was built from its source: only what was added can be forgotten; edit the source, or"
                " leave it out of the tree with .gitignore"
            )
        parent = tree.parent(target) or ROOT
        for each in [each for _, each in tree.walk(target) if not _was_added(tree, layer, each)]:
            if target.id in tree.ancestors(each):  # somebody moved it here, perhaps who made the target
                tree.move(each, parent)
        removed = tuple(tree.get(each.id) for _, each in tree.walk(target))
        erase(tree, layer, removed)
        _remove_empty_groups(tree, parent)
    provenance = target.provenance
    undo = {
        "text": removed[0].content or removed[0].description or removed[0].title,
        "title": target.title,
        "source": provenance.get("source"),
        "under": parent if parent in tree else None,
        "who": provenance.get("who"),
    }
    return Forgotten(removed, parent, undo)


def _was_added(tree: Tree, layer: Layer, node: Node) -> bool:
    if node.id == ROOT or not layer.has(node.id):
        return False
    # In a tree made by hand every node is in the memory; what was added to it says by whom.
    return tree.index is not tree.memory or bool(node.provenance) or node.kind == GROUP_KIND


def erase(tree: Tree, layer: Layer, nodes: tuple[Node, ...]) -> None:
    """Take a node with what lies under it out of a tree, and overwrite its words in the file.

    Args:
        nodes: the node, then all below it, with their content.
    """
    wishes = [wish for node in nodes for wish in wishes_of(tree, node.id)]
    tree.delete(nodes[0])
    for wish in wishes:
        if wish.id in tree:
            tree.delete(wish)
    for node in nodes:
        if node.content is not None:
            key = _TEXT_FACT + _key(node.content)
            if layer.fact(key) == node.id:
                layer.drop_fact(key)
        if node.provenance.get("call"):  # or the next search would bring it back without a call
            tree.memory.execute("DELETE FROM call WHERE hash = ?", (node.provenance["call"],))
    tree.memory.execute("PRAGMA secure_delete=ON")
    try:
        tree.purge()
    finally:
        tree.memory.execute("PRAGMA secure_delete=OFF")


def _remove_empty_groups(tree: Tree, parent: str) -> None:
    """Take away groups that nothing is left in."""
    while parent in tree and tree.get(parent).kind == GROUP_KIND and not tree.child_count(parent):
        above = tree.parent(parent) or ROOT
        tree.delete(parent)
        tree.purge()
        parent = above


def _ensure_parent(tree: Tree, place: Placement) -> Placement:
    """Make the branch or the group that a memory goes into, where it is not there yet."""
    if place.parent not in tree and place.parent != BRANCH:
        place = Placement(BRANCH, "the place that was meant for it is gone")
    if place.parent != BRANCH:
        return place
    if BRANCH not in tree:
        description = "What people and agents asked to be remembered"
        tree.add(Node(BRANCH, "Memories", description, kind=GROUP_KIND, provenance={"by": "remember"}))
    if place.beside is None or place.beside not in tree or tree.parent(place.beside) != BRANCH:
        return replace(place, beside=None)
    group_id = BRANCH + place.title.casefold().replace(", ", "-")
    if group_id not in tree:
        description = f"Memories on {place.title}"
        tree.add(
            Node(group_id, place.title, description, kind=GROUP_KIND, provenance={"by": "remember"}),
            parent=BRANCH,
        )
    tree.move(place.beside, group_id)
    return replace(place, parent=group_id)


def _add_mention(tree: Tree, node: Node, mention: dict[str, Any], warnings: tuple[str, ...]) -> Remembered:
    with tree.memory.durable(), tree.memory.transaction():
        node = tree.get(node)
        all_mentions = [*mentions(node), mention]
        if len(all_mentions) > MAX_MENTIONS:
            all_mentions = [all_mentions[0], *all_mentions[-MAX_MENTIONS + 1 :]]
        node = tree.update(replace(node, provenance={**node.provenance, "said": all_mentions}))
    return Remembered(node, tree.parent(node) or ROOT, "it was there already", True, warnings)


def known_text(tree: Tree, text: str) -> Node | None:
    """Return the memory that says a text, up to white space; None when there is none."""
    return _memory_with_text(tree, _key(text))


def note_text(tree: Tree, node: Node) -> None:
    """Let a memory that was added in another way than by `remember` be known by its text."""
    Layer(tree.memory).set_fact(_TEXT_FACT + _key(node.content or ""), node.id)


def merge_mentions(tree: Tree, node: Node, other: Node) -> None:
    """Add to a memory the mentions that another one has besides."""
    mine = mentions(node)
    more = [mention for mention in mentions(other) if mention not in mine]
    more = more[len(mine) - MAX_MENTIONS :] if len(mine) < MAX_MENTIONS else []  # what is there already stays
    if more:
        all_mentions = sorted([*mine, *more], key=lambda mention: str(mention.get("at")))
        tree.update(replace(node, provenance={**node.provenance, "said": all_mentions}))


def _updated(
    tree: Tree, node: Node, text: str, title: str | None, mention: dict[str, Any], warnings: tuple[str, ...]
) -> Remembered:
    with tree.memory.durable(), tree.memory.transaction():
        node = tree.get(node)
        layer = Layer(tree.memory)
        other = _memory_with_text(tree, _key(text))
        if other is not None and other.id != node.id:
            raise UserError(f"{other.id!r} says the same already: forget {node.id!r} instead")
        earlier = [*earlier_texts(node), {"text": node.content, "until": mention["at"]}]
        provenance = {**node.provenance, **mention, "said": [*mentions(node), mention]}
        if _key(text) != _key(node.content or ""):
            provenance["earlier"] = earlier
            layer.drop_fact(_TEXT_FACT + _key(node.content or ""))
        labels = _labels_of(text, title, None, None)
        node = tree.update(
            replace(node, title=labels[0], description=labels[1], content=text, provenance=provenance)
        )
        layer.set_fact(_TEXT_FACT + _key(text), node.id)
        for wish in wishes_of(tree, node.id):
            tree.delete(wish)
        note_wishes(tree, node.id, text, mention["who"], mention["at"])
    return Remembered(node, tree.parent(node) or ROOT, "it stays where it was", True, warnings)


def _memory(tree: Tree, node: str | Node) -> Node:
    memory = tree.get(node.id if isinstance(node, Node) else _memory_id(tree, node))
    if memory.kind != MEMORY_KIND or memory.provenance.get("by") != "remember":
        raise UserError(f"{memory.id!r} is no memory: `metatree memories` lists them")
    return memory


def _memory_id(tree: Tree, text: str) -> str:
    """Return the id that a person means, who may leave out `memory:` or the end of what follows it."""
    text = text.strip()
    try:
        return tree.resolve(text)
    except UnknownNode:
        prefix = text if text.startswith("memory:") else f"memory:{text}"
        matches = [node_id for node_id in tree.ids([MEMORY_KIND]) if node_id.startswith(prefix)]
        if len(matches) == 1 and len(prefix) > len("memory:") + 3:
            return matches[0]
        raise


def _memory_with_text(tree: Tree, key: str) -> Node | None:
    node_id = Layer(tree.memory).fact(_TEXT_FACT + key)
    node = None if node_id is None else tree.find(node_id)
    return node if node is not None and node.kind == MEMORY_KIND and _key(node.content or "") == key else None


def _free_id(tree: Tree, key: str) -> str:
    """Return an id made of the text's hash: the same text gets the same id on every machine."""
    for length in (10, 16, 32):
        if f"memory:{key[:length]}" not in tree:
            return f"memory:{key[:length]}"
    return f"memory:{key}~{int(time.time() * 1000):x}"


def _key(text: str) -> str:
    normalized = " ".join(nfc(text).split())
    return blake2b(normalized.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _checked(text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise UserError("there is nothing to remember: give a text")
    if len(text) > MAX_CHARS:
        raise UserError(
            f"the text has {len(text):,} characters, a memory at most {MAX_CHARS:,}: keep it as a file in the source"
        )
    text = _clean(text).strip()
    if not text:
        raise UserError("there is nothing to remember: the text has no characters that can be shown")
    return text


def _clean(text: str) -> str:
    """Return a text without what drives terminals or reorders what is read; joiners, which scripts need, stay."""
    return "".join(
        c for c in encodable(text) if c.isspace() or (unicodedata.category(c) != "Cc" and c not in _BIDI)
    )


def one_line(text: str, most: int = 200) -> str:
    """Return a text as one line that can be printed."""
    text = " ".join(_clean(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _mention(who: str, source: str | None, at: float) -> dict[str, Any]:
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return {
        "who": one_line(who, _MAX_NAME) or "unknown",
        "at": when,
        "source": None if source is None else one_line(source, _MAX_NAME) or None,
    }


def _warnings(text: str) -> tuple[str, ...]:
    kinds = secrets_in(text)
    if not kinds:
        return ()
    return (
        f"it looks like it holds {' and '.join(kinds)}: whoever reads the tree can read it; forget it if so",
    )


def _labels_of(
    text: str, title: str | None, describer: AnyDescriber | None, parent: Node | None
) -> tuple[str, str]:
    """Return title and description; the latter is left empty where it would only repeat the text.

    Without what looks like secrets: of one that the end of a title cuts, nobody would know that it is one.
    """
    text = masked(text)[0]
    if describer is not None:
        from metatree._util.threads import run_apart
        from metatree.parts import as_describer

        part = as_describer(describer)
        reply = run_apart(lambda: part.describe(DescribeRequest(text, None, parent, (), "remember")))
        return title or one_line(reply.title, 80), one_line(reply.description, 1000)
    first, _, rest = text.partition("\n")
    end = next(
        (at + 1 for at, c in enumerate(first) if c in ".!?" and first[at + 1 : at + 2] in ("", " ")), None
    )
    first_line = one_line(first.lstrip("#-* \t")[: end or len(first)] or text, 80)
    whole = one_line(text, 240)
    return title or first_line, "" if whole == (title or first_line) and not rest else whole


def _evidence(tree: Tree, evidence: AnyEvidence | Literal[False] | None) -> Evidence | None:
    from metatree.parts import as_evidence, find_evidence

    if evidence is not None:
        return as_evidence(evidence) if evidence else None
    return find_evidence(tree, required=True)
