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
from metatree_agents.service.database.database import ServiceDatabase, Transaction
from metatree_agents.service.database.servers import servers_of
from metatree_agents.service.queue.statuses import LISTED
from metatree_agents.service.queue.turns import leave, open_again

UNNAMED: Final = 1
"""The set of the tree without a name alone."""
MOST: Final = 62
"""How many trees may have names: a database's whole number has 63 bits beside its sign."""
ALL: Final = (1 << (MOST + 1)) - 1
EVERYBODY: Final = "everybody"
MAX_TITLE: Final = 200
"""Characters."""
HEARD_S: Final = 130.0
"""For how long an engine counts as connected that was heard of: it asks once a minute, which is noted as often."""
_LOOK_S: Final = 1.0
"""How long it is believed that trees have names, or that none has."""
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


class UnnamedServed(UserError):
    """A service whose one tree has no name was to get one with a name."""

    def __init__(self, name: str, topics: int, servers: Sequence[str]) -> None:
        why = (
            f"{topics:,} {'topic' if topics == 1 else 'topics'} searched it" if topics else "it is served now"
        )
        stop = f"stop the server at {servers[0]}" if servers else "stop its server"
        super().__init__(
            f"this service has one tree, without a name, for everybody who can log in ({why}): with {name!r} nobody but"
            f" administrators could ask any more. To serve by names {stop}, and start `metatree serve {name}=FOLDER …`"
        )


class TreeInUse(UserError):
    """A tree that something was asked of, or that an engine has, was to be taken out."""

    def __init__(self, name: str, topics: int, engines: Sequence[str]) -> None:
        counted = "1 topic searches" if topics == 1 else f"{topics:,} topics search"
        asked = [f"{counted} it, for administrators alone from then on"] if topics else []
        had = [f"{', '.join(engines)} had it in the last two minutes"] if engines else []
        super().__init__(
            f"{name} is in use: {'; '.join(asked + had)}. Stop what serves it; `metatree service trees remove {name}"
            " --force` then takes it out nevertheless"
        )


async def _free_number(do: Transaction, taken: set[int]) -> int:
    """Return the number for a new tree, 0 when there is none; never one that something still has of a former tree."""
    used = [f"SELECT DISTINCT trees FROM {table}" for table in ("topic", "recommendation", "lookup")]
    former = 0
    for (trees,) in await do.rows(" UNION ".join(used)):
        former |= int(trees)
    free = [number for number in range(1, MOST + 1) if number not in taken and not former >> number & 1]
    # The next one while there is one: sets of engines that were stopped may have the numbers of former trees.
    return min((number for number in free if number > max(taken, default=0)), default=min(free, default=0))


async def _users_of(do: Transaction, bit: int, since: float) -> tuple[int, list[str]]:
    """Return how many topics search a tree, and which engines had it since."""
    row = await do.row("SELECT count(*) FROM topic WHERE (trees & ?) <> 0", bit)
    engines = await do.rows(
        "SELECT DISTINCT name FROM service_engine WHERE (trees & ?) <> 0 AND at > ? ORDER BY name", bit, since
    )
    return (int(row[0]) if row else 0), [name for (name,) in engines]


async def _fail(do: Transaction, topic: str, asker: str) -> None:
    """Let what nobody has answered in a topic fail, since no engine can have its trees any more."""
    await do.execute(
        "UPDATE query SET status = 'Failed' WHERE topic = ? AND status IN ('Open', 'Pending', 'Waiting')",
        topic,
    )
    await open_again(do, topic)
    await leave(do, asker)


class TreeRights:
    """The table of trees, the rights to them, and the groups that have rights."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self._named = False
        self._looked_at = -_LOOK_S

    async def named(self) -> bool:
        """Say whether any tree of the service has a name."""
        now = self._database.clock()
        if abs(now - self._looked_at) >= _LOOK_S:
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
            UserError: the name is none, the title too long, or there are too many trees.
        """
        require_name(name)
        title = title and " ".join(title.split())
        if title and len(title) > MAX_TITLE:
            raise UserError(f"the title of a tree has at most {MAX_TITLE} characters: choose a shorter one")
        async with self._database.transaction() as do:
            await do.alone("service trees")
            rows = await do.rows("SELECT number, name FROM service_tree")
            numbers = {known: int(number) for number, known in rows}
            number = numbers.get(name) or await _free_number(do, set(numbers.values()))
            if not number:
                raise UserError(f"a service has at most {MOST} trees: serve {name!r} by another one")
            row = await do.row(
                "INSERT INTO service_tree(number, name, title) VALUES (?, ?, ?) ON CONFLICT(number)"
                " DO UPDATE SET title = coalesce(CAST(? AS TEXT), service_tree.title) RETURNING title",
                *(number, name, title or name, title),
            )
        self._named, self._looked_at = True, self._database.clock()
        assert row is not None
        return NamedTree(number, name, row[0])

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Take a tree out, with the rights to it; when it was the last, the service has one tree without a name again.

        Args:
            force: whether it is taken out though something was asked of it, or an engine has it: its topics are for
                administrators alone then, and what nobody has answered has failed.

        Raises:
            TreeInUse: something was asked of it, or an engine has it, and it is not forced.
            UserError: there is no such tree.
        """
        bit = await self.set_of([name])
        async with self._database.transaction() as do:
            await do.alone("service trees")
            topics, engines = await _users_of(do, bit, self._database.clock() - HEARD_S)
            if (topics or engines) and not force:
                raise TreeInUse(name, topics, engines)
            unsettled = await do.rows(
                "SELECT DISTINCT topic.id, topic.asker FROM topic JOIN query ON query.topic = topic.id"
                f" WHERE (topic.trees & ?) <> 0 AND {LISTED} AND query.status <> 'Failed' ORDER BY topic.id",
                bit,
            )
            for topic, asker in unsettled:
                await _fail(do, topic, asker)
            await do.execute("DELETE FROM service_tree_right WHERE tree = ?", bit.bit_length() - 1)
            await do.execute("DELETE FROM service_tree WHERE number = ?", bit.bit_length() - 1)
            await do.execute("DELETE FROM service_engine WHERE (trees & ?) <> 0", bit)
        self._looked_at = -_LOOK_S

    async def require_no_unnamed(self, name: str, *, topics: bool = True) -> None:
        """Refuse to give a service its first named tree while its one tree has no name.

        Everybody may ask that one, and from the first name on only administrators and those who are let in may ask.

        Args:
            topics: whether topics that were asked of such a tree count, too, besides servers that are at work.

        Raises:
            UnnamedServed: there is one.
        """
        self._looked_at = -_LOOK_S
        if await self.named():
            return
        at_work = [address for address, _ in await servers_of(self._database)]
        asked = await self.unnamed_topics()
        if at_work or (topics and asked):
            raise UnnamedServed(name, asked, at_work)

    async def unnamed_topics(self) -> int:
        """Return how many topics searched a tree without a name."""
        row = await self._database.row("SELECT count(*) FROM topic WHERE trees = ?", UNNAMED)
        return int(row[0]) if row else 0

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
            if name not in known and not known:
                self._looked_at = -_LOOK_S  # another process may have added it
                known = {tree.name: tree.bit for tree in await self.all()}
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

    async def change(self, name: str, who: str, *, may: bool, anyway: bool = False) -> bool:
        """Let somebody ask a tree, or not any more; say whether that changed anything.

        Args:
            anyway: whether a name is taken that nobody has here: of somebody for whom a frontend will ask.

        Raises:
            UserError: there is no such tree, or nobody is named so.
        """
        trees, kept = await self.set_of([name]), who_named(who)
        values = (trees.bit_length() - 1, kept)
        if may:
            if not anyway:
                await self._require_known(kept)
            sql = "INSERT INTO service_tree_right(tree, who) VALUES (?, ?) ON CONFLICT DO NOTHING"
        else:
            sql = "DELETE FROM service_tree_right WHERE tree = ? AND who = ?"
        return bool(await self._database.execute(sql, *values))

    async def _require_known(self, kept: str) -> None:
        """Refuse a name that nobody has: whoever gets it later would have the right with it."""
        kind, _, name = kept.partition(":")
        if kind == "group":
            if await self._database.row("SELECT 1 FROM service_group WHERE name = ? LIMIT 1", name) is None:
                raise UserError(
                    f"nobody is in a group {name!r}: `metatree service trees join {name} USER` begins it"
                )
        elif kind == "user":
            # Somebody for whom a frontend asks is known by that alone.
            sql = "SELECT 1 WHERE EXISTS (SELECT 1 FROM service_user WHERE name = ?)"
            sql += " OR EXISTS (SELECT 1 FROM topic WHERE owner = ?)"
            if await self._database.row(sql, name, name) is None:
                raise UserError(f"no user {name!r}: `metatree service users list` lists them")

    async def other_ways(self, name: str, who: str) -> list[str]:
        """Return by what a user may ask a tree besides a right of their own: `everybody`, and groups."""
        kept = who_named(who)
        if not kept.startswith(_USER):
            return []
        rows = await self._database.rows(
            "SELECT who FROM service_tree_right WHERE tree = ? AND (who = ? OR who IN"
            " (SELECT ? || name FROM service_group WHERE member = ?)) ORDER BY who",
            *((await self.set_of([name])).bit_length() - 1, EVERYBODY, _OF_GROUP, kept.removeprefix(_USER)),
        )
        return [said_who(each) for (each,) in rows]

    async def groups(self) -> dict[str, list[str]]:
        """Return the members of each group; nobody where a right is left of one: who joins it has that."""
        rows = await self._database.rows("SELECT name, member FROM service_group ORDER BY name, member")
        kept = await self._database.rows(
            "SELECT DISTINCT who FROM service_tree_right WHERE who LIKE ?", f"{_OF_GROUP}%"
        )
        names = {name for name, _ in rows} | {who.removeprefix(_OF_GROUP) for (who,) in kept}
        return {name: [member for group, member in rows if group == name] for name in sorted(names)}

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
