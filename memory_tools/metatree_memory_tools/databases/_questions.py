"""What a question asks of a table: which column, of which rows, and whether one value, how many, or the largest.

Words are told apart by what the table is called, by its columns and by the values in it; what is left over says that
something else is asked, and then nothing is looked up. Lost: making SQL by a model of language alone, which answers
also what the table does not say; and leaving such questions to the sample rows, of which the first is as good as any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_WORD = re.compile(r"[^\s?!,;:()\"“”'‘’`]+(?:['’][a-z]\b)?")
_QUOTED = re.compile(
    r"\"([^\"]{1,200})\"|“([^”]{1,200})”|`([^`]{1,200})`|(?<!\w)['‘]([^'’]{1,200})['’](?!\w)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
MOST_WORDS = 40
MOST_VALUE_WORDS = 8
_LEAST_SHARED = 5
"""Letters that two words begin with to be one word: `maintains`, `maintainer`."""

_LITTLE_WORDS = (
    "a an the of in on at for to from by with and or is are was were be been do does did has have had it its this that"
    " these those there what which who whom whose where when how me i we you my our your tell show give find get list"
    " please can could would will should as many much number count total all any each called named name entry entries"
    " row rows record records table database listed stored value values come comes came go went made make belong"
)
_LITTLE = frozenset(_LITTLE_WORDS.split())
_COUNTS = re.compile(r"\bhow many\b|\b(?:the )?(?:total )?(?:number|count) of\b|^\s*count\b", re.IGNORECASE)
_YES = frozenset(
    {"is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "may", "will"}
)
_DISTINCT = frozenset({"different", "distinct", "unique"})
_HIGHEST = (
    "largest biggest highest greatest most max maximum heaviest longest latest newest last tallest best top"
)
_LOWEST = "smallest lowest least fewest min minimum lightest shortest oldest earliest first cheapest worst"
_EXTREME = dict.fromkeys(_HIGHEST.split(), "max") | dict.fromkeys(_LOWEST.split(), "min")
_MEANS = {"average": "avg", "mean": "avg", "avg": "avg", "sum": "sum"}
_TIMES = "date time year day month released updated created modified timestamp datetime since"
TIMES = frozenset(_TIMES.split())
"""Words of the names of columns that hold dates."""
_TIMELY = "latest newest last recent oldest earliest first"
_NEWEST = frozenset(_TIMELY.split())
_SAID = {
    "largest": "size",
    "biggest": "size",
    "smallest": "size",
    "big": "size",
    "large": "size",
    "longest": "length runtime duration milliseconds seconds minutes",
    "shortest": "length runtime duration milliseconds seconds minutes",
    "long": "length runtime duration milliseconds seconds minutes",
    "heaviest": "weight",
    "lightest": "weight",
    "tallest": "height",
    "cheapest": "price cost",
    "expensive": "price cost",
    "cost": "price",
    "costs": "price",
    "wrote": "writer author",
    "written": "writer author",
    "directed": "director",
    "old": "age",
    "website": "homepage url",
    "url": "homepage",
    "live": "city address country",
    "lives": "city address country",
    "born": "birth birthday birthdate",
}
"""Words of questions, and words of the columns that they ask for."""
_UNITS = frozenset(
    (
        "g",
        "kg",
        "mg",
        "mm",
        "cm",
        "m",
        "km",
        "s",
        "ms",
        "min",
        "h",
        "kb",
        "mb",
        "gb",
        "eur",
        "usd",
        "pct",
        "percent",
    )
)
_WHEN = re.compile(r"^\s*when\b|\b(?:in )?(?:which|what) (?:year|date|day)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question, or what it quotes."""

    text: str
    start: int
    end: int
    quoted: bool = False

    @property
    def key(self) -> str:
        """What it is compared by: without capitals, and without the end of a plural."""
        return singular(self.text.lower())


@dataclass(slots=True)
class Columns:
    """The columns of a table that a question names, each with the words that name it."""

    named: dict[str, set[int]] = field(default_factory=dict)
    words: set[int] = field(default_factory=set)


def singular(word: str) -> str:
    """Return a word in lower case without the end of a plural, roughly; both sides of a comparison pass through it.

    Example:
        >>> [singular(word) for word in ("packages", "categories", "status", "addresses", "version's")]
        ['package', 'category', 'status', 'address', 'version']
    """
    word = re.sub(r"['’]s?$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return (
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
    )


def parts_of(name: str) -> list[str]:
    """Return the words of a name.

    Example:
        >>> parts_of("installed_size"), parts_of("imdbVotes"), parts_of("Maintainers")
        (['installed', 'size'], ['imdb', 'vote'], ['maintainer'])
    """
    return [singular(part.lower()) for part in _CAMEL.split(name) if part]


def words_of(question: str) -> list[Word]:
    """Return the words of a question, each quoted text as one.

    Example:
        >>> [word.text for word in words_of('What is the version of "GNU bash" 5.2?')]
        ['What', 'is', 'the', 'version', 'of', 'GNU bash', '5.2']
    """
    words, at = [], 0
    for quoted in [*_QUOTED.finditer(question), None]:
        end = len(question) if quoted is None else quoted.start()
        for match in _WORD.finditer(question, at, end):
            text = match.group().rstrip(".")
            if text:
                words.append(Word(text, match.start(), match.start() + len(text)))
        if quoted is not None:
            group = next(number for number, text in enumerate(quoted.groups(), start=1) if text)
            words.append(Word(quoted.group(group), quoted.start(group), quoted.end(group), quoted=True))
            at = quoted.end()
    return words[:MOST_WORDS]


def same(word: str, part: str) -> bool:
    """Whether two words are one, in another form perhaps."""
    if word == part:
        return True
    shared = next(
        (n for n, (a, b) in enumerate(zip(word, part, strict=False)) if a != b), min(len(word), len(part))
    )
    return shared >= max(_LEAST_SHARED, 0.6 * max(len(word), len(part)))


def _without_unit(parts: list[str]) -> list[str]:
    """Return the words of a name without the unit that it ends in.

    Example:
        >>> _without_unit(["body", "mass", "g"]), _without_unit(["price"])
        (['body', 'mass'], ['price'])
    """
    return parts[:-1] if len(parts) > 1 and parts[-1] in _UNITS else parts


def columns_named(words: Sequence[Word], columns: Sequence[str]) -> Columns:
    """Return the columns that a question names: all words of the name in a row, or else its last word.

    Example:
        >>> named = columns_named(words_of("Which package has the largest installed size?"), ["name", "installed_size"])
        >>> named.named
        {'installed_size': {5, 6}}
    """
    found = Columns()
    keys = ["" if word.quoted else word.key for word in words]
    whole = ["" if word.quoted else "".join(parts_of(word.text)) for word in words]
    parts = {column: _without_unit(parts_of(column)) for column in columns}
    written = {column: "".join(parts_of(column)) for column in columns}
    for column in sorted(columns, key=lambda column: -len(parts[column])):
        own = parts[column]
        joined = "".join(own)
        for first in range(len(keys)):
            if len(own) > 1 and whole[first] in (joined, written[column]) and first not in found.words:
                found.named.setdefault(column, set()).add(first)  # as the table has it: `body_mass_g`
                found.words.add(first)
                continue
            spans = [(first, first + len(own))] if len(own) > 1 else [(first, first + 1)]
            spans += [(first, first + 2)] if len(own) == 1 else []
            for start, end in spans:
                run = keys[start:end]
                if set(range(start, end)) & found.words or not all(run) or run == ["name"]:
                    continue
                fits = len(run) == len(own) and all(map(same, run, own))
                if fits or (len(run) == end - start and "".join(run) == joined):
                    found.named.setdefault(column, set()).update(range(start, end))
                    found.words.update(range(start, end))
                    break
    for number, key in enumerate(keys):
        if not key or number in found.words or key in _LITTLE:
            continue
        wanted = [key, *map(singular, _SAID.get(words[number].text.lower(), "").split())]
        fitting = [
            column
            for column in columns
            if parts[column]
            and any(same(one, parts[column][-1]) for one in wanted)
            and column not in found.named
        ]
        for column in fitting:
            found.named.setdefault(column, set()).add(number)
        if fitting:
            found.words.add(number)
    return found


def table_words(words: Sequence[Word], *names: str) -> set[int]:
    """Return the numbers of the words that say what a table is called."""
    own = {part for name in names for part in parts_of(name)}
    return {
        number
        for number, word in enumerate(words)
        if not word.quoted and word.key in own and len(word.key) > 2
    }


def is_little(word: Word) -> bool:
    """Whether a word says nothing of what is asked."""
    return not word.quoted and (word.text.lower() in _LITTLE or word.key in _LITTLE)


def values_in(question: str, words: Sequence[Word], barred: set[int]) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield what may be a value in a row: runs of words as they stand, the longest first, none of little words alone.

    Args:
        barred: words that name the table or a column, of which alone no value is made.
    """
    for size in range(min(MOST_VALUE_WORDS, len(words)), 0, -1):
        for first in range(len(words) - size + 1):
            run = words[first : first + size]
            numbers = frozenset(range(first, first + size))
            plain = all(number in barred or is_little(words[number]) for number in numbers)
            # Names of little words are written with a capital inside the question: the film `Her`.
            named = size == 1 and first > 0 and run[0].text[:1].isupper()
            if not plain or named or any(word.quoted for word in run):
                yield question[run[0].start : run[-1].end], numbers


def asks_count(question: str) -> bool:
    """Whether a question asks how many there are."""
    return bool(_COUNTS.search(question))


def asks_yes(words: Sequence[Word]) -> bool:
    """Whether a question wants yes or no."""
    return bool(words) and words[0].text.lower() in _YES


def asks_when(question: str) -> bool:
    """Whether a question asks for a date."""
    return bool(_WHEN.search(question))


def extremes(words: Sequence[Word]) -> dict[int, str]:
    """Return which words ask for the largest or the smallest, each with `max` or `min`."""
    found = {
        number: _EXTREME[word.text.lower()]
        for number, word in enumerate(words)
        if not word.quoted and word.text.lower() in _EXTREME
    }
    for number, word in enumerate(words):
        if word.text.lower() == "recent" and number - 1 in found:
            found[number] = "max"
    return found


def means(words: Sequence[Word]) -> dict[int, str]:
    """Return which words ask for an average or a sum, each with the function."""
    found = {
        number: _MEANS[word.text.lower()]
        for number, word in enumerate(words)
        if not word.quoted and word.text.lower() in _MEANS
    }
    for number, word in enumerate(words):
        if word.text.lower() == "total" and not asks_count(" ".join(each.text for each in words)):
            found[number] = "sum"
    return found


def asks_newest(words: Sequence[Word]) -> bool:
    """Whether the extreme that is asked for is one of time."""
    return any(word.text.lower() in _NEWEST for word in words if not word.quoted)


def distinct_words(words: Sequence[Word]) -> set[int]:
    """Return the words that ask for different values."""
    return {number for number, word in enumerate(words) if word.text.lower() in _DISTINCT}
