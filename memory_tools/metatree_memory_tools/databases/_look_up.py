"""Answer a question from the rows of a table: a value, how many, the largest, the latest, an average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metatree.errors import UserError
from metatree_memory_tools.databases import _questions as questions
from metatree_memory_tools.databases._model import OpenDatabase, Rows, is_secret_name

MOST_ROWS = 20
_MOST_COLUMNS = 60
_MOST_VALUES = 200
_MOST_FOUND = 50
_TITLES = ("name", "title", "label", "id", "key", "code")
_NUMBER_TYPES = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC", "SERIAL", "MONEY")
_TIME_TYPES = ("DATE", "TIME")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and what it is declared as."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether numbers are declared."""
        return any(part in self.type.upper() for part in _NUMBER_TYPES)

    @property
    def is_time(self) -> bool:
        """Whether it says that it holds dates, by its type or its name."""
        return any(part in self.type.upper() for part in _TIME_TYPES) or bool(
            questions.TIMES & {*questions.parts_of(self.name), *map(str.lower, self.name.split("_"))}
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a table without asking the database."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    called: tuple[str, ...] = ()
    """What else it may be called: its database, where that has one table."""

    @property
    def place(self) -> str:
        """Its name in SQL."""
        return f"{_quoted(self.schema)}.{_quoted(self.name)}" if self.schema else _quoted(self.name)


@dataclass(frozen=True, slots=True)
class _Filter:
    """Rows in which a column has a value."""

    column: str
    value: str
    words: frozenset[int]
    contains: bool = False

    @property
    def sql(self) -> str:
        own = _text(self.column)
        return f"{own} LIKE {_literal(f'%{self.value}%')}" if self.contains else _is_one_of(own, [self.value])


def fit(shape: Shape, question: str) -> int:
    """Return how many words of a question a table may be asked about by its own name and its columns; 0 for none."""
    words = questions.words_of(question)
    named = questions.columns_named(words, [column.name for column in shape.columns])
    counted = questions.asks_count(question) or questions.extremes(words)
    own = questions.table_words(words, shape.name, *shape.called)
    if not (named.named or (own and counted) or (questions.asks_when(question) and _times(shape))):
        return 0
    return len(named.words | own) + 1


class Lookup:
    """One question to one table.

    Args:
        database: open for reading.
        shape: the table.
        question: what is asked.
    """

    def __init__(self, database: OpenDatabase, shape: Shape, question: str) -> None:
        self._database, self._shape, self._question = database, shape, question
        self._shown = [column for column in shape.columns if not is_secret_name(column.name)][:_MOST_COLUMNS]
        self._by_name = {column.name: column for column in self._shown}
        self._words = questions.words_of(question)
        named = questions.columns_named(self._words, list(self._by_name))
        self._named = dict(named.named)
        if not self._named and questions.asks_when(question):
            self._named = {column.name: set() for column in _times(shape)}
        self._column_words = named.words
        self._table_words = questions.table_words(self._words, shape.name, *shape.called)
        self._known = {number for number, word in enumerate(self._words) if questions.is_little(word)}
        self._known |= self._column_words | self._table_words

    def answer(self) -> tuple[Rows, str]:
        """Return the rows that answer, and the query that gave them.

        Raises:
            UserError: the question is none about values of this table, or something in it is not understood.
        """
        if questions.asks_yes(self._words):
            raise UserError("whether something is so is not looked up")
        extremes, means = questions.extremes(self._words), questions.means(self._words)
        # `last_updated` and `most` of `the most votes` in one: words of a column are no superlatives.
        extremes = {number: how for number, how in extremes.items() if number not in self._column_words} or {
            number: how for number, how in extremes.items() if not self._exact(number)
        }
        filters = self._filters()
        known = self._known | {number for each in filters for number in each.words}
        if means:
            self._all_known(known | set(means))
            return self._mean(next(iter(means.values())), filters)
        if extremes and not self._is_one_row(filters):
            self._all_known(known | set(extremes))
            return self._extreme(extremes, filters)
        targets = self._targets(filters)
        counts = questions.asks_count(self._question) and not self._is_number_of()
        if counts and not (filters and targets and self._numbers(targets)):
            distinct = questions.distinct_words(self._words)
            self._all_known(known | distinct)
            if not distinct and targets == self._titles():  # `titles` are the rows themselves
                return self._count([], filters, rows=True)
            return self._count(targets, filters)
        self._all_known(known | set(extremes), values=bool(self._column_words))
        return self._values(targets, filters)

    def _is_number_of(self) -> bool:
        """Whether `number` is what a column is called: the version number of a package."""
        return any(
            word.text.lower() == "number" and number - 1 in self._column_words
            for number, word in enumerate(self._words)
        )

    def _exact(self, number: int) -> bool:
        """Whether a word is in the name of a column itself, and no word for it."""
        key = self._words[number].key
        return any(key in questions.parts_of(column) for column in self._named)

    def _all_known(self, known: set[int], *, values: bool = False) -> None:
        """Refuse a question with words that nothing here stands for: it asks for something else, or for a part."""
        unknown = [word for number, word in enumerate(self._words) if number not in known]
        # Beside a row and a column, one word more (`the current version`) is said of them.
        plain = [word for word in unknown if word.text.islower() and word.text.isalpha() and not word.quoted]
        if unknown and not (values and len(unknown) == len(plain) == 1):
            raise UserError(
                f"nothing in {self._shape.name} is called {', '.join(repr(word.text) for word in unknown[:3])}"
            )

    def _filters(self) -> list[_Filter]:
        """Find the values that the question names in the columns, the longest first."""
        values = dict[str, frozenset[int]]()
        for text, numbers in questions.values_in(
            self._question, self._words, self._column_words | self._table_words
        ):
            values.setdefault(text, numbers)
        values = dict(list(values.items())[:_MOST_VALUES])
        found: list[_Filter] = []
        for column in self._shown:
            wanted = [text for text in values if not column.is_number or _is_number(text)]
            for value in self._held(column, wanted):
                for text in wanted:
                    if text.lower() == value.lower():
                        found.append(_Filter(column.name, text, values[text]))
        chosen: list[_Filter] = []
        taken: set[int] = set()
        for one in sorted(found, key=self._order):
            if not one.words & taken:
                chosen.append(one)
                taken |= one.words
        for text, numbers in values.items():  # a person in `Ann Lee <ann@example.org>`
            asked = [name for name, own in self._named.items() if not self._by_name[name].is_number and own]
            is_name = len(numbers) > 1 and all(self._words[number].text[:1].isupper() for number in numbers)
            if not numbers & taken and not numbers & self._known and (is_name or self._is_quoted(numbers)):
                for name in asked:
                    one = _Filter(name, text, numbers, contains=True)
                    if self._query(f"SELECT 1 FROM {self._shape.place} WHERE {one.sql}", 1).rows:
                        chosen.append(one)
                        taken |= numbers
                        break
        return chosen

    def _is_quoted(self, numbers: frozenset[int]) -> bool:
        return any(self._words[number].quoted for number in numbers)

    def _held(self, column: Column, texts: Sequence[str]) -> list[str]:
        if not texts:
            return []
        own = _text(column.name)
        sql = f"SELECT DISTINCT {own} FROM {self._shape.place} WHERE {_is_one_of(own, texts)}"
        return [str(row[0]) for row in self._query(sql, _MOST_FOUND).rows if row[0] is not None]

    def _order(self, one: _Filter) -> tuple[int, int, int, int]:
        """Order values: long ones, then those beside the name of their column, then those of columns that name rows."""
        own = self._named.get(one.column, set())
        beside = any(min(abs(number - other) for other in own) <= 1 for number in one.words) if own else False
        parts = questions.parts_of(one.column)
        title = _TITLES.index(parts[-1]) if parts and parts[-1] in _TITLES else len(_TITLES)
        if parts and set(parts) & {part for name in (self._shape.name,) for part in questions.parts_of(name)}:
            title = min(title, 1)
        place = [column.name for column in self._shown].index(one.column)
        return (-len(one.words), not beside, title, place)

    def _targets(self, filters: Sequence[_Filter]) -> list[str]:
        """Return the columns that are asked for: those that are named and hold none of the values."""
        taken = {each.column for each in filters}
        return [name for name in self._named if name not in taken]

    def _numbers(self, names: Sequence[str]) -> bool:
        return any(self._by_name[name].is_number for name in names)

    def _is_one_row(self, filters: Sequence[_Filter]) -> bool:
        if not filters:
            return False
        return len(self._query(f"SELECT 1 FROM {self._shape.place}{_where(filters)}", 2).rows) == 1

    def _titles(self) -> list[str]:
        """Return the columns that say which row it is."""
        own = set(questions.parts_of(self._shape.name))
        titles = [
            column.name
            for wanted in _TITLES[:3]
            for column in self._shown
            if (parts := questions.parts_of(column.name)) and parts[-1] == wanted and len(parts) < 3
        ] or [column.name for column in self._shown if own & set(questions.parts_of(column.name))]
        return (titles or [column.name for column in self._shown])[:1]

    def _values(self, targets: Sequence[str], filters: Sequence[_Filter]) -> tuple[Rows, str]:
        if not filters:
            raise UserError(f"no row of {self._shape.name} is named")
        shown = list(dict.fromkeys([*self._titles(), *(each.column for each in filters), *targets]))
        if not targets:
            which = self._words[0].text.lower() in ("which", "who", "what", "list", "show")
            if not which or not any(self._named.get(each.column) for each in filters):
                raise UserError(f"no column of {self._shape.name} is asked for")
        columns = ", ".join(map(_quoted, shown))
        sql = f"SELECT DISTINCT {columns} FROM {self._shape.place}{_where(filters)}"
        rows = self._query(sql, MOST_ROWS)
        said = [value for row in rows.rows for value in row[len(shown) - len(targets) if targets else 0 :]]
        if all(value in (None, "") for value in said):
            raise UserError(f"the row of {self._shape.name} does not say")
        return rows, sql

    def _count(
        self, targets: Sequence[str], filters: Sequence[_Filter], *, rows: bool = False
    ) -> tuple[Rows, str]:
        counted = "count(*)"
        if targets:
            if {each.column for each in filters} & set(self._titles()):  # `How many dependencies has git?`
                raise UserError(f"what {targets[0]} of one row holds is not counted")
            if len(targets) > 1:
                raise UserError("more than one column may be counted")
            counted = f"count(DISTINCT {_quoted(targets[0])})"
        elif not self._table_words and not filters and not rows:
            raise UserError(f"what is counted is not called {self._shape.name}")
        what = targets[0] if targets else self._shape.name
        sql = f"SELECT {counted} AS {_quoted(f'number of {what}')} FROM {self._shape.place}{_where(filters)}"
        return self._query(sql, 1), sql

    def _mean(self, how: str, filters: Sequence[_Filter]) -> tuple[Rows, str]:
        column = self._measured(self._targets(filters))
        name = f"{'average' if how == 'avg' else 'sum'} of {column}"
        sql = f"SELECT {how}({_quoted(column)}) AS {_quoted(name)} FROM {self._shape.place}{_where(filters)}"
        rows = self._query(sql, 1)
        if rows.rows[0][0] is None:
            raise UserError(f"{column} has no values")
        return rows, sql

    def _measured(self, names: Sequence[str]) -> str:
        """Return the one column of numbers that is asked about."""
        numbers = [name for name in names if self._by_name[name].is_number]
        if len(numbers) != 1:
            raise UserError(f"which column of numbers of {self._shape.name} is meant cannot be said")
        return numbers[0]

    def _extreme(self, extremes: dict[int, str], filters: Sequence[_Filter]) -> tuple[Rows, str]:
        how = next(iter(extremes.values()))
        targets = self._targets(filters)
        place, where = self._shape.place, _where(filters)
        groups = [
            name for name in targets if not self._by_name[name].is_number and not self._by_name[name].is_time
        ]
        if len(groups) == len(targets) == 1 and self._table_words and min(self._table_words) > min(extremes):
            # `Which section has the most packages?`
            column = _quoted(groups[0])
            order = "DESC" if how == "max" else "ASC"
            sql = (
                f"SELECT {column}, count(*) AS {_quoted(f'number of {self._shape.name}')} FROM {place}{where}"
                f"{' AND' if where else ' WHERE'} {column} IS NOT NULL GROUP BY {column}"
                f" ORDER BY count(*) {order} LIMIT 1"
            )
            return self._query(sql, 1), sql
        if questions.asks_newest(self._words):
            times = [name for name in targets if self._by_name[name].is_time] or [
                column.name for column in _times(self._shape)
            ]
            if len(times) != 1:
                raise UserError(f"which column of {self._shape.name} says when cannot be said")
            measured = times[0]
            self._dated(measured)
        else:
            measured = self._measured(targets)
        column = _quoted(measured)
        others = [name for name in targets if name != measured]
        shown = ", ".join(map(_quoted, dict.fromkeys([*self._titles(), *others, measured])))
        sql = (
            f"SELECT {shown} FROM {place}{where}{' AND' if where else ' WHERE'} {column} ="
            f" (SELECT {how}({column}) FROM {place}{where}) LIMIT {MOST_ROWS}"
        )
        rows = self._query(sql, MOST_ROWS)
        if not rows.rows:
            raise UserError(f"{measured} has no values")
        return rows, sql

    def _dated(self, name: str) -> None:
        """Refuse a column whose texts do not sort by time."""
        column = self._by_name[name]
        if column.is_number or any(part in column.type.upper() for part in _TIME_TYPES):
            return
        texts = self._query(
            f"SELECT {_quoted(name)} FROM {self._shape.place} WHERE {_quoted(name)} IS NOT NULL", 500
        )
        if not all(str(row[0])[:4].isdecimal() and str(row[0])[4:5] in ("-", "") for row in texts.rows):
            raise UserError(f"{name} is no date that sorts")

    def _query(self, sql: str, limit: int) -> Rows:
        return self._database.query(sql, limit)


def _times(shape: Shape) -> list[Column]:
    return [column for column in shape.columns if column.is_time]


def _where(filters: Sequence[_Filter]) -> str:
    return f" WHERE {' AND '.join(each.sql for each in filters)}" if filters else ""


def _is_one_of(own: str, texts: Sequence[str]) -> str:
    # `lower` of SQLite knows ASCII alone, so that a capital beyond it is compared as it stands too.
    forms = dict.fromkeys(form for text in texts for form in (text.lower(), _ascii_lower(text)))
    return f"lower({own}) IN ({', '.join(map(_literal, forms))})"


def _ascii_lower(text: str) -> str:
    return "".join(sign.lower() if sign.isascii() else sign for sign in text)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdecimal()


def _text(column: str) -> str:
    return f"CAST({_quoted(column)} AS TEXT)"


def _literal(text: str) -> str:
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
