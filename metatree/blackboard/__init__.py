"""The blackboard: what agents share. Questions, requests, trajectories and screenshots, durable, with their sources."""

from metatree.blackboard._board import Blackboard
from metatree.blackboard._find import Triple
from metatree.blackboard._fork import Merge
from metatree.blackboard._item import SECTIONS, Item, MemoryItem, estimate
from metatree.blackboard._prompt import LeftOut, Rendering
from metatree.blackboard._section import Section
from metatree.blackboard.items import About, Round, Which

__all__ = [
    "SECTIONS",
    "About",
    "Blackboard",
    "Item",
    "LeftOut",
    "MemoryItem",
    "Merge",
    "Rendering",
    "Round",
    "Section",
    "Triple",
    "Which",
    "estimate",
]
