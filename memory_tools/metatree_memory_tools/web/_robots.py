"""What `robots.txt` allows (RFC 9309): groups by user agent, the longest pattern wins, `*` and `$` in patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

MAX_BYTES = 512_000
"""What lies beyond is not read, as the standard allows."""
_MOST_RULES = 5_000


@dataclass(frozen=True, slots=True)
class _Rule:
    allows: bool
    pattern: str

    def matches(self, path: str) -> bool:
        """Whether a pattern fits; in time linear in both, since anybody may write patterns."""
        pattern, end = (self.pattern[:-1], True) if self.pattern.endswith("$") else (self.pattern, False)
        first, *rest = pattern.split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        for number, piece in enumerate(rest):
            if end and number == len(rest) - 1:
                return len(path) - len(piece) >= at and path.endswith(piece)
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return not end or at == len(path)


class Robots:
    """The rules of one `robots.txt`.

    Example:
        >>> robots = Robots("User-agent: *\\nDisallow: /private\\nAllow: /private/open$")
        >>> robots.allows("metatree", "/private/x"), robots.allows("metatree", "/private/open")
        (False, True)
    """

    def __init__(self, text: str) -> None:
        self._groups: list[tuple[set[str], list[_Rule]]] = []
        agents: set[str] = set()
        rules: list[_Rule] = []
        reading_agents = False
        count = 0
        for name, value in _lines(text):
            if name == "user-agent":
                if not reading_agents:
                    agents, rules = set(), []
                    self._groups.append((agents, rules))
                reading_agents = True
                agents.add(re.match(r"[a-z_\-]*\*?", value.lower())[0])  # type: ignore[index]
            elif name in ("allow", "disallow"):
                reading_agents = False
                if value and count < _MOST_RULES:
                    count += 1
                    rules.append(_Rule(name == "allow", _normal(value)))

    def allows(self, agent: str, path: str) -> bool:
        """Say whether an agent may fetch a path, which begins with `/` and has the query in it."""
        if path == "/robots.txt":
            return True
        path = _normal(path or "/")
        own = [rule for agents, rules in self._groups if agent.lower() in agents for rule in rules]
        named = any(agent.lower() in agents for agents, _ in self._groups)
        if not named:
            own = [rule for agents, rules in self._groups if "*" in agents for rule in rules]
        matching = [rule for rule in own if rule.matches(path)]
        return max(((len(rule.pattern), rule.allows) for rule in matching), default=(0, True))[1]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.lstrip("\ufeff").splitlines():
        name, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _normal(path: str) -> str:
    """Return a path in one way of writing: what needs no escape is not escaped."""
    return quote(unquote(path), safe="/?&=*$:@!'()+,;~-._%")
