"""Which trees somebody may ask, and so which topics they may read: asked by every route and page, in one place.

An administrator may ask all trees. A user asks by their own rights; a frontend by those of the user for whom it acts,
and where it names none, by those of the topic's owner. Engines are trusted with every topic, as ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from metatree.errors import UserError
from metatree_agents.service.accounts.tree_rights import ALL, UNNAMED, NamedTree
from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http.calls import refused
from metatree_agents.service.queue.queue import Query, TopicPlace
from metatree_agents.service.settings import Service


async def trees_of(service: Service, who: Caller, user: str | None = None) -> int:
    """Return the set of trees that a caller may ask, for a user where it acts for one."""
    return ALL if who.role == "admin" else await service.tree_rights.of(user or who.name)


async def named_trees(service: Service, who: Caller, user: str | None = None) -> list[NamedTree]:
    """Return the trees that have names and that a caller may ask."""
    trees = await service.tree_rights.all()
    may = await trees_of(service, who, user) if trees else 0
    return [tree for tree in trees if tree.bit & may]


async def may_read(service: Service, who: Caller, place: TopicPlace, user: str | None = None) -> bool:
    """Say whether a caller may ask all trees that a topic searches, whoever's it is."""
    if place.trees == UNNAMED or who.role == "engine":
        return True
    acts_for = (user or place.owner) if who.role == "frontend" else who.name
    return not place.trees & ~await trees_of(service, who, acts_for)


async def trees_to_ask(
    service: Service, who: Caller, user: str, topic: str | None, wanted: Sequence[str] | None
) -> int:
    """Return the set of trees that a question searches.

    Args:
        user: who asks.
        topic: in which topic, None for a new one; one that is there goes on searching what it does.
        wanted: the names of the trees; None for those of the topic, and in a new one for all that they may ask.

    Raises:
        HTTPException: 403 for a tree that is not theirs to ask, or not there, which look alike; 409 for another one
            than the topic searches; 422 for a name where no tree has one.
    """
    known = await service.tree_rights.all()
    if not known:
        if wanted:
            raise refused(422, "Trees: the tree of this service has no name, so leave this out")
        return UNNAMED
    may = await trees_of(service, who, user)
    allowed = [tree for tree in known if tree.bit & may]
    asked = 0
    for name in wanted or ():
        tree = next((each for each in allowed if each.name == name), None)
        if tree is None:
            raise refused(403, f"there is no tree {name[:80]!r} that {user} may ask{_listed(allowed)}")
        asked |= tree.bit
    place = await service.queue.place(topic) if topic else None
    if place is not None and (place.owner == user or service.queue.shared):
        if place.trees & ~may:
            raise refused(403, f"this topic searches a tree that {user} may not ask: ask in another topic")
        if place.trees == UNNAMED:
            raise refused(409, "this topic is of before trees had names here: ask in another topic")
        if asked and asked != place.trees:
            named = ", ".join(await service.tree_rights.names_in(place.trees))
            raise refused(409, f"this topic searches {named}, and goes on so: ask in another topic")
        return place.trees
    found = asked or sum(tree.bit for tree in allowed)
    if not found:
        raise refused(403, f"there is no tree that {user} may ask: an administrator lets people in")
    return found


def _listed(allowed: Sequence[NamedTree]) -> str:
    return f"; there are {', '.join(tree.name for tree in allowed)}" if allowed else ""


async def tree_to_remember(
    service: Service, who: Caller, user: str, query: Query | None, place: TopicPlace | None, named: str | None
) -> int:
    """Return the set of the one tree that remembers what a person says of an answer.

    What is remembered is read by all who may ask its tree. So what is said in a topic that searches several goes to
    the one that the answer is from, and nowhere when it is from several.

    Args:
        query: the question that it is about; None when it is not known.
        place: the topic; None when it is not there.
        named: the tree that the caller names.

    Raises:
        HTTPException: 403 for a tree that is not theirs to ask; 422 when it is not clear which.
    """
    if named or (place is None and await service.tree_rights.named()):
        if not named:
            raise refused(422, "Tree: there is no such topic, so say which tree is to remember this")
        return await trees_to_ask(service, who, user, None, [named])
    if place is None or not place.trees & (place.trees - 1):
        return UNNAMED if place is None else place.trees
    sources = (query.sources or []) if query is not None else []
    names = {str(source.get("Tree") or "") for source in sources}
    if len(names) == 1 and (name := names.pop()):
        try:
            found = await service.tree_rights.set_of([name])
        except UserError:
            found = 0
        if found & place.trees:
            return found
    listed = ", ".join(await service.tree_rights.names_in(place.trees))
    raise refused(422, f"Tree: say which of {listed} is to remember this; all who may ask that tree read it")


async def set_served(service: Service, given: dict[str, str]) -> int:
    """Return the set of trees that an engine says it has, the one without a name when it says none.

    Raises:
        HTTPException: 422, one of them is not there.
    """
    names = [name.strip() for name in given.get("Trees", "").split(",") if name.strip()]
    if not names:
        return UNNAMED
    try:
        return await service.tree_rights.set_of(names)
    except UserError as exc:
        raise refused(422, f"Trees: {exc}") from None
