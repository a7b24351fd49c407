"""Whether a tool may be called: by what a person said, by the policy file, by asking.

Every tool is recorded as it was when it was first called. One that says something else since then asks again, also one
that says that it changes nothing.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from metatree._util.secret_text import redacted, without_secrets
from metatree.errors import UserError
from metatree.notes.permissions import Permission, Permissions
from metatree.storage.user_key import config_folder
from metatree_agents.gateway._catalog import Mounted
from metatree_agents.gateway._names import plain_text

Answer = Literal["once", "always", "no"]
Rule = Literal["allow", "ask", "deny"]
_SECTIONS: Final[tuple[Rule, ...]] = ("deny", "ask", "allow")
_SHOWN_CHARS: Final = 600
_COMPARED: Final = 200
"""Lines of a description, before and after."""


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """What a person is asked before a call."""

    text: str
    mark: str
    """Tells the tool, as it is now, and its arguments from all others; an answer is for these."""


Ask = Callable[[PermissionQuestion], Awaitable[Answer | None]]
"""Asks a person; None when nobody can be asked."""


def policy_file() -> Path | None:
    """Return where this user's policy is, None where there is no home."""
    folder = config_folder()
    return None if folder is None else folder / "gateway.json"


class ToolPolicy:
    """Patterns of ids of tools in a file: `{"allow": ["git/*"], "ask": […], "deny": ["*/delete_*"]}`.

    `deny` goes before `ask`, and that before `allow`. It is read again when it has changed.

    Args:
        path: the file; None, or one that is not there, is no policy.

    Raises:
        UserError: it cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._state: tuple[int, int] | None = None
        self._patterns: dict[Rule, list[str]] = {}
        self._problem = ""
        self._read()
        if self._problem:
            raise UserError(self._problem)

    def rule(self, tool_id: str) -> Rule | None:
        """Return what the policy says of a tool, None when it says nothing.

        Raises:
            UserError: the file cannot be read any more: nothing is called then.
        """
        self._read()
        if self._problem:
            raise UserError(self._problem)
        for rule in _SECTIONS:
            if any(fnmatchcase(tool_id, pattern) for pattern in self._patterns.get(rule, ())):
                return rule
        return None

    def _read(self) -> None:
        if self.path is None:
            return
        try:
            found = self.path.stat()
        except OSError as exc:
            if self._state is not None or not isinstance(
                exc, FileNotFoundError
            ):  # its `deny` is not over by that
                self._problem = (
                    f"the policy {str(self.path)!r} cannot be read any more: {exc.strerror}; put it back, or start the"
                    " gateway again"
                )
            return
        if (found.st_mtime_ns, found.st_size) == self._state and not self._problem:
            return
        self._state = (found.st_mtime_ns, found.st_size)
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            self._patterns, self._problem = _checked(data), ""
        except (OSError, ValueError) as exc:
            self._problem = f"the policy {str(self.path)!r} cannot be read: {exc}; correct it"


def _checked(data: object) -> dict[Rule, list[str]]:
    if not isinstance(data, Mapping):
        raise ValueError("it must be an object with `allow`, `ask` and `deny`")
    unknown = sorted(data.keys() - set(_SECTIONS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of `allow`, `ask` and `deny`")
    patterns: dict[Rule, list[str]] = {}
    for rule in _SECTIONS:
        listed = data.get(rule, [])
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise ValueError(f"`{rule}` must be a list of patterns such as 'git/*'")
        patterns[rule] = listed
    return patterns


class Gate:
    """Decides on calls.

    Args:
        permissions: what people said, in the memory.
        policy: what the policy file says.
    """

    def __init__(self, permissions: Permissions, policy: ToolPolicy) -> None:
        self._permissions = permissions
        self._policy = policy

    async def passes(
        self, mounted: Mounted, arguments: Mapping[str, Any], ask: Ask, *, who: str
    ) -> tuple[bool, str]:
        """Return whether a tool may be called now, and who said so, or why not.

        Args:
            who: in whose name a person answers.
        """
        rule = self._policy.rule(mounted.id)
        if rule == "deny":
            return False, f"the policy forbids {mounted.id!r}"
        if rule != "ask" and self._permissions.allows(mounted.tool):
            return True, "permitted before"
        earlier = [each for each in self._permissions.all() if each.tool == mounted.id]
        if not earlier and rule == "allow":
            self._permissions.grant(mounted.tool, who="the policy file")
            return True, "the policy"
        if not earlier and rule is None and mounted.definition.read_only:
            self._permissions.grant(mounted.tool, who="its server, which says that it changes nothing")
            return True, "it changes nothing, its server says"
        question = _question(mounted, arguments, earlier[-1] if earlier and rule != "ask" else None)
        answer = await ask(question)
        if answer == "always":
            self._permissions.grant(mounted.tool, who=who)
            return True, f"{who}, from now on"
        if answer == "once":
            return True, f"{who}, for this call"
        if answer == "no":
            return False, f"{who} said no"
        why = "has changed since it was permitted" if earlier else "may change something"
        return False, (
            f"{mounted.id!r} {why}, and nobody can be asked here. A person may permit it in a terminal:"
            f" `metatree gateway --permit {shlex.quote(mounted.id)}` with the same --servers"
        )

    def forbids(self, mounted: Mounted) -> bool:
        """Whether the policy forbids a tool."""
        return self._policy.rule(mounted.id) == "deny"

    def permit(self, mounted: Mounted, *, who: str) -> Permission:
        """Record that a tool may be called as it is now."""
        return self._permissions.grant(mounted.tool, who=who)


def _question(
    mounted: Mounted, arguments: Mapping[str, Any], earlier: Permission | None
) -> PermissionQuestion:
    from metatree.notes.permissions import fingerprint_of, shown_arguments

    hidden, _ = without_secrets(dict(arguments), _whole_secret)
    lines = [f"May {mounted.id} be called with {plain_text(shown_arguments(hidden))}?"]
    if mounted.twice:
        lines.append("Its server lists several tools of this name; it alone knows which one is called.")
    if earlier is not None:
        who = f"{earlier.who}," if ", " in earlier.who else earlier.who
        lines.append(f"It is not as it was when {who} permitted it on {earlier.at[:10]}:")
        lines.append(_difference(earlier.description, mounted.tool.description))
    else:
        lines.append("It may change something. Its server says of it:")
        lines.append(json.dumps(plain_text(mounted.tool.description)[:_SHOWN_CHARS], ensure_ascii=False))
    about = json.dumps([fingerprint_of(mounted.tool), dict(arguments)], sort_keys=True)
    return PermissionQuestion("\n".join(lines), sha256(about.encode("utf-8", "surrogatepass")).hexdigest())


def _whole_secret(text: str) -> tuple[str, int]:
    """Leave out a text that is a secret as a whole: a piece left out of another could be what the call does."""
    said, _ = redacted(text)
    return (
        (said, 1)
        if said.startswith("[left out: ") and said.endswith("]") and not text.split()[1:]
        else (text, 0)
    )


def _difference(before: str, after: str) -> str:
    # Not `ndiff`, which compares lines letter by letter: 200 of them take it minutes.
    was, is_now = before.splitlines(), after.splitlines()
    lines = unified_diff(was[:_COMPARED], is_now[:_COMPARED], n=0, lineterm="")
    changed = [f"{line[0]} {line[1:]}" for line in islice(lines, 2, None) if line[:1] in "+-"]
    text = plain_text("\n".join(changed))[:_SHOWN_CHARS]
    if was[_COMPARED:] != is_now[_COMPARED:]:
        text += f"\n(behind its first {_COMPARED} lines the description is another, too)"
    return text or "its arguments, or what it says to change, are others; its description is not."
