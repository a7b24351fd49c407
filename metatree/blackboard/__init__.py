"""The blackboard: what agents share. Questions, requests, trajectories and screenshots, durable, with their sources."""

from metatree.blackboard.board import Blackboard
from metatree.blackboard.finding import Triple
from metatree.blackboard.fork import Merge
from metatree.blackboard.item import SECTIONS, Item, MemoryItem, estimate
from metatree.blackboard.items import About, Round, Which
from metatree.blackboard.render import LeftOut, Rendering
from metatree.blackboard.section import Section

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
