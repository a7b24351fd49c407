"""Words of a question that are in no text, replaced by what is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from metatree_routers.embeddings.static import StaticEmbedder
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_texts import NodeTexts
from metatree_routers.query import spelling
from metatree_routers.query.names import name_parts, squashed
from metatree_routers.query.terms import STOP_WORDS, expand, raw_tokens

_LEAST_OF_NAME = 5
"""Letters of a name that may be misspelt."""
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
_MOST_CORRECTED = 5
_MOST_STEMS = 12
_TEXTS_OF_A_STEM = 4


def corrected(
    question: str,
    snapshot: IndexSnapshot,
    texts: NodeTexts,
    embedder: Callable[[], StaticEmbedder | None] | None,
) -> str:
    """Return a question with the words that are in no text replaced by near ones that are; as it is when none is.

    A question that is a name, and nothing else, is read as the nearest name that something has. In others, what is
    quoted, identifiers, acronyms, short names and words that are in a text stay as they are; so does a word of
    any text (one token of the embeddings), since it is meant: a tree that does not speak of prices says nothing of
    primes.

    Args:
        embedder: gives the embeddings, asked when a word is in no text; None without any.
    """
    if parts := name_parts(question):
        return _name_meant(parts, snapshot, texts) or question
    plain = _QUOTED.sub(" ", question)
    words = list(dict.fromkeys(raw for raw in raw_tokens(plain) if spelling.may_be_misspelt(raw)))
    terms = {raw: expand(raw) for raw in words}
    known = snapshot.postings({term for own in terms.values() for term in own})
    found: dict[str, str] = {}
    first = next(iter(raw_tokens(question)), "")
    for raw in words:
        own = terms[raw]
        named = raw[0].isupper() and raw != first
        if not own or own[-1] in known or len(found) >= _MOST_CORRECTED:
            continue
        if named and len(raw) <= spelling.LEAST_LETTERS:
            continue  # any short name is near to some word
        word = raw.lower()
        static = embedder() if embedder is not None else None
        if static is not None and len(static.tokens(word)) < 2:
            continue
        little = spelling.little_word(word)
        if little is not None:
            found[raw] = little
            continue
        most = spelling.most_edits(word, named=named)
        best = spelling.meant(word, _forms(word, snapshot, texts, most), most)
        if best is not None:
            found[raw] = best
    return spelling.replaced(question, found) if found else question


def unknown_name(question: str, snapshot: IndexSnapshot) -> str:
    """Return the name that a question is, where nothing has it and no text says it; else ''."""
    name = ".".join(name_parts(question))
    if not name:
        return ""
    parts = {part: {f":{squashed(part)}", *expand(part)[-1:]} for part in name.split(".")}
    whole = expand(name)[-1:]
    known = snapshot.postings({*whole, *(term for terms in parts.values() for term in terms)})
    if known.keys() & set(whole) or all(known.keys() & terms for terms in parts.values()):
        return ""
    return name


def _name_meant(parts: Sequence[str], snapshot: IndexSnapshot, texts: NodeTexts) -> str | None:
    """Return a name with each unknown part replaced by the nearest that something has; None without any.

    What a text says is no slip, unless it is another form of the same words: `resolve_redirect`.
    """
    terms = {part: (f":{squashed(part)}", *expand(part)[-1:]) for part in parts}
    known = snapshot.postings({term for own in terms.values() for term in own})
    found: dict[str, str] = {}
    for part, (named, *said) in terms.items():
        if named in known or len(named) <= _LEAST_OF_NAME:
            continue
        near = _near_name(named[1:], snapshot, texts)
        if near is not None and (known.keys().isdisjoint(said) or expand(near)[-1:] == tuple(said)):
            found[part] = near
    return ".".join(found.get(part, part) for part in parts) if found else None


def _near_name(name: str, snapshot: IndexSnapshot, texts: NodeTexts) -> str | None:
    start = f":{name[:2]}"
    most = 2 if len(name) >= spelling.TWO_EDITS else 1
    near = sorted(
        (edits, term)
        for term in snapshot.terms(start, f"{start}\uffff")
        if abs(len(term) - 1 - len(name)) <= most
        and (edits := spelling.distance(name, term[1:], most)) <= most
    )
    postings = snapshot.postings([term for _, term in near])
    for _, term in near:
        nodes = [int(node) for node in postings[term]["node"][:1]] if term in postings else []
        for title in texts.titles(nodes):
            written = (part for part in re.findall(r"\w+", title) if squashed(part) == term[1:])
            return next(written, term[1:])
    return None


def _forms(word: str, snapshot: IndexSnapshot, texts: NodeTexts, most: int) -> dict[str, int]:
    """Return the words of texts that may be meant, with how many texts have each."""
    stems = (
        stem for start in spelling.beginnings(word) for stem in snapshot.terms(start, chr(ord(start) + 1))
    )
    near = spelling.near_stems(word, dict.fromkeys(stems), most)[:_MOST_STEMS]
    postings = snapshot.postings(near)
    forms: dict[str, int] = {}
    for stem in near:
        if stem in postings:
            held = postings[stem]
            nodes = held["node"][held["content"] + held["title"] > 0][:_TEXTS_OF_A_STEM]
            for form in _written(stem, texts.signatures([int(number) for number in nodes])):
                forms[form] = max(forms.get(form, 0), len(postings[stem]))
    return forms


def _written(stem: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts that have a stem: a name as it is written, all else in lower case."""
    raws = dict.fromkeys(raw for text in texts for raw in raw_tokens(text) if raw.isalpha())
    for raw in raws:
        terms = expand(raw)
        if stem in terms[-1:] and raw.lower() not in STOP_WORDS:
            yield raw if len(terms) > 1 else raw.lower()
