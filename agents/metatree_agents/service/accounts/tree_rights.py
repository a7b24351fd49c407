"""The trees of a service, and who may ask them.

Each tree has a number, and a set of trees is one whole number with a bit for each: those that a topic searches, those
that an engine has, those that somebody may ask. So whether one set is within another is one comparison in the
statement that claims or lists, whatever the database: `trees & missing = 0`, where `missing` are all bits but those.
Lost: a table of a topic's trees, which every claim and every list would have to join.

The tree without a name is bit 0: that of a service that was given one folder and no names. Everybody may ask it. A tree
that has a name is for administrators alone until somebody is let in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from metatree.errors import UserError
from metatree_agents.service.database.database import ServiceDatabase

UNNAMED: Final = 1
"""The set of the tree without a name alone."""
MOST: Final = 62
"""How many trees may have names: a database's whole number has 63 bits beside its sign."""
ALL: Final = (1 << (MOST + 1)) - 1
EVERYBODY: Final = "everybody"
_LOOK_S: Final = 1.0
"""How long it is believed that no tree has a name."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_GROUP: Final = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_USER, _OF_GROUP = "user:", "group:"


@dataclass(frozen=True, slots=True)
class NamedTree:
    """A tree of the service, by its name."""

    number: int
    name: str
    title: str

    @property
    def bit(self) -> int:
        """The set of it alone."""
        return 1 << self.number


def missing(trees: int) -> int:
    """Return all trees but those of a set."""
    return ALL & ~trees


def require_name(name: str) -> str:
    """Return the name of a tree, or raise `UserError` when it is none."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name of a tree: use 1 to 40 small letters, digits and `_ . -`, a letter or digit first"
        )
    return name


def who_named(who: str) -> str:
    """Return whom a right is for as it is kept: `everybody`, `user:NAME` or `group:NAME`.

    Raises:
        UserError: it names nobody.

    Example:
        >>> who_named("Ann"), who_named("group:cooks"), who_named("everybody")
        ('user:Ann', 'group:cooks', 'everybody')
    """
    if who == EVERYBODY:
        return who
    kind, name = (_OF_GROUP, who[6:]) if who.startswith(_OF_GROUP) else (_USER, who.removeprefix(_USER))
    if not _GROUP.fullmatch(name):
        raise UserError(f"{who!r} names nobody: say a user's name, group:NAME, or everybody")
    return kind + name


def said_who(who: str) -> str:
    """Return whom a right is for as people write it."""
    plain = who.removeprefix(_USER)
    return who if plain == EVERYBODY and who != plain else plain


class TreeRights:
    """The table of trees, the rights to them, and the groups that have rights."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self._named = False
        self._looked_at = -_LOOK_S

    async def named(self) -> bool:
        """Say whether any tree of the service has a name; none is given up, so a yes stays one."""
        now = self._database.clock()
        if not self._named and abs(now - self._looked_at) >= _LOOK_S:
            self._looked_at = now
            self._named = await self._database.row("SELECT 1 FROM service_tree LIMIT 1") is not None
        return self._named

    async def all(self) -> list[NamedTree]:
        """Return the trees that have names, in the order of their names."""
        if not await self.named():
            return []
        rows = await self._database.rows("SELECT number, name, title FROM service_tree ORDER BY name")
        return [NamedTree(int(number), name, title) for number, name, title in rows]

    async def add(self, name: str, *, title: str | None = None) -> NamedTree:
        """Add a tree, for administrators alone; one that is there stays as it is, but for its title.

        Raises:
            UserError: the name is none, or there are too many trees.
        """
        require_name(name)
        async with self._database.transaction() as do:
            await do.alone("service trees")
            rows = await do.rows("SELECT number, name FROM service_tree")
            numbers = {known: int(number) for number, known in rows}
            if name not in numbers and len(numbers) >= MOST:
                raise UserError(f"a service has at most {MOST} trees: serve {name!r} by another one")
            number = numbers.get(name, max(numbers.values(), default=0) + 1)
            row = await do.row(
                "INSERT INTO service_tree(number, name, title) VALUES (?, ?, ?) ON CONFLICT(number)"
                " DO UPDATE SET title = coalesce(CAST(? AS TEXT), service_tree.title) RETURNING title",
                *(number, name, " ".join((title or name).split()), title),
            )
        self._named = True
        assert row is not None
        return NamedTree(number, name, row[0])

    async def of(self, user: str) -> int:
        """Return the trees that a user may ask, of whatever role but an administrator's."""
        if not await self.named():
            return UNNAMED
        rows = await self._database.rows(
            "SELECT DISTINCT tree FROM service_tree_right WHERE who IN (?, ?) OR who IN"
            " (SELECT ? || name FROM service_group WHERE member = ?)",
            *(EVERYBODY, _USER + user, _OF_GROUP, user),
        )
        return UNNAMED | sum(1 << int(number) for (number,) in rows)

    async def names_in(self, trees: int) -> list[str]:
        """Return the names of the trees of a set; none for the tree without a name."""
        if not trees & ~UNNAMED:
            return []
        return [tree.name for tree in await self.all() if tree.bit & trees]

    async def set_of(self, names: Iterable[str]) -> int:
        """Return the set of some trees.

        Raises:
            UserError: there is no tree of one of the names.
        """
        known, found = {tree.name: tree.bit for tree in await self.all()}, 0
        for name in names:
            if name not in known:
                listed = f"there are {', '.join(known)}" if known else "none has a name here"
                raise UserError(f"there is no tree {name!r}: {listed}; `metatree service trees add` adds one")
            found |= known[name]
        return found

    async def rights(self) -> dict[str, list[str]]:
        """Return who may ask each tree, as people write it."""
        rows = await self._database.rows(
            "SELECT service_tree.name, who FROM service_tree"
            " LEFT JOIN service_tree_right ON tree = number ORDER BY service_tree.name, who"
        )
        may: dict[str, list[str]] = {}
        for name, who in rows:
            may.setdefault(name, []).extend([] if who is None else [said_who(who)])
        return may

    async def change(self, name: str, who: str, *, may: bool) -> None:
        """Let somebody ask a tree, or not any more.

        Raises:
            UserError: there is no such tree, or nobody is named so.
        """
        trees, kept = await self.set_of([name]), who_named(who)
        values = (trees.bit_length() - 1, kept)
        if may:
            sql = "INSERT INTO service_tree_right(tree, who) VALUES (?, ?) ON CONFLICT DO NOTHING"
        else:
            sql = "DELETE FROM service_tree_right WHERE tree = ? AND who = ?"
        await self._database.execute(sql, *values)

    async def groups(self) -> dict[str, list[str]]:
        """Return the members of each group."""
        rows = await self._database.rows("SELECT name, member FROM service_group ORDER BY name, member")
        groups: dict[str, list[str]] = {}
        for name, member in rows:
            groups.setdefault(name, []).append(member)
        return groups

    async def set_members(self, group: str, members: Sequence[str], *, joined: bool) -> None:
        """Take users into a group, or out of it; a group is there while it has a member or a right.

        Raises:
            UserError: the name of the group or of a user is none.
        """
        for name in (group, *members):
            if not _GROUP.fullmatch(name):
                raise UserError(f"{name!r} is no name: use 1 to 64 letters, digits and `_ . @ -`")
        if joined:
            sql = "INSERT INTO service_group(name, member) VALUES (?, ?) ON CONFLICT DO NOTHING"
        else:
            sql = "DELETE FROM service_group WHERE name = ? AND member = ?"
        async with self._database.transaction() as do:
            for member in members:
                await do.execute(sql, group, member)
