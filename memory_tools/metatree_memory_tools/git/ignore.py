"""Rules in the language of `.gitignore`: those of git's files, and those of the settings of a folder."""

from __future__ import annotations

from pathlib import Path

from metatree.settings_files import ignored_in
from metatree_memory_tools.git._gitignore import MOST_RULES, MOST_WILD, Patterns

MOST_RULES_BYTES = 1 << 20
"""Of a longer file of rules, the rest is not followed."""


class IgnoreRules:
    """The `.gitignore` files that are in force in one folder.

    A rule of a deeper folder goes before one of a higher folder, and a later line before an earlier one.
    """

    def __init__(
        self, base: str = "", text: str = "", above: IgnoreRules | None = None, most_wild: int = MOST_WILD
    ) -> None:
        """Add the rules of one file to those of the folders above.

        Args:
            base: path of the folder of the file, with a `/` at its end unless it is empty.
            text: what the file says.
            above: the rules of the folder above.
            most_wild: so many patterns with wildcards are followed, those of the folders above among them.
        """
        self._base = base
        self._above = above
        wild, count = (0, 0) if above is None else (above.wild, above.count)
        self._patterns = Patterns(
            text.encode("utf-8", "surrogateescape"),
            max(0, min(most_wild, MOST_WILD) - wild),
            MOST_RULES - count,
        )
        self.count: int = count + self._patterns.count
        """How many patterns are in force."""
        self.wild: int = wild + self._patterns.wild
        """How many patterns with wildcards are in force."""
        self.added = self._patterns.wild
        self.is_cut = self._patterns.is_cut
        """Whether there were more."""

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is left out, by its path as `base` has it."""
        rules: IgnoreRules | None = self
        while rules is not None:
            verdict = rules._patterns.verdict(path[len(rules._base) :], folder=folder)
            if verdict is not None:
                return verdict
            rules = rules._above
        return False

    def leaves_out(self, path: str) -> bool:
        """Whether a file is ignored, or a folder that it lies in."""
        ends = (at for at, sign in enumerate(path) if sign == "/")
        return self.ignores(path, folder=False) or any(self.ignores(path[:end], folder=True) for end in ends)


def settings_rules(root: Path) -> IgnoreRules | None:
    """Return the rules that the settings of a folder add to those of git.

    Raises:
        UserError: the settings cannot be read.
    """
    # In one text, so that a later pattern goes before an earlier one; none of them may bring lines of its own.
    lines = [pattern.replace("\n", " ").replace("\r", " ") for pattern in ignored_in(root)]
    return IgnoreRules("", "\n".join(lines)[:MOST_RULES_BYTES]) if lines else None
