"""Rules in the language of `.gitignore`: those of git's files, and those of the settings of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from metatree.errors import UserError
from metatree.settings_files import OWN, PROJECT, SettingsFile, ignored_by, read_settings
from metatree.storage.store_files import is_of_another
from metatree_memory_tools.git._gitignore import MOST_RULES, MOST_WILD, Patterns

MOST_RULES_BYTES = 1 << 20
"""Of a longer file of rules, the rest is not followed."""


class IgnoreRules:
    """The `.gitignore` files that are in force in one folder.

    A rule of a deeper folder goes before one of a higher folder, and a later line before an earlier one.
    """

    def __init__(
        self,
        base: str = "",
        text: str = "",
        above: IgnoreRules | None = None,
        most_wild: int = MOST_WILD,
        wanted: Sequence[str] = (),
    ) -> None:
        """Add the rules of one file to those of the folders above.

        Args:
            base: path of the folder of the file, with a `/` at its end unless it is empty.
            text: what the file says.
            above: the rules of the folder above.
            most_wild: so many patterns with wildcards are followed, those of the folders above among them.
            wanted: folders below, by their paths as `base` has them, which no pattern leaves out.
        """
        self.base = base
        self.above = above
        wild, count = (0, 0) if above is None else (above.wild, above.count)
        self._patterns = Patterns(
            text.encode("utf-8", "surrogateescape"),
            max(0, min(most_wild, MOST_WILD) - wild),
            MOST_RULES - count,
            [
                path[len(base) :].encode("utf-8", "surrogateescape")
                for path in wanted
                if len(path) > len(base)
            ],
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
            verdict = rules._patterns.verdict(path[len(rules.base) :], folder=folder)
            if verdict is not None:
                return verdict
            rules = rules.above
        return False


def rules_for(inside: str, files: Sequence[tuple[str, str]]) -> tuple[IgnoreRules | None, bool]:
    """Return the rules of the folders above a folder that is asked for by its name.

    Where they leave the folder out, or one that it lies in, those patterns are passed over that do, and no others:
    whoever names it wants it.

    Args:
        inside: its path, with a `/` at its end unless it is empty.
        files: path of a folder above, written in the same way, and what its rules are; from the top.

    Returns:
        The rules, None without any, and whether there are more than are followed.
    """
    folders = [inside[:at] for at, sign in enumerate(inside) if sign == "/"]
    rules, is_cut = _chain(files)
    return _chain(files, folders) if rules is not None and _leave_out(rules, folders) else (rules, is_cut)


def _chain(files: Sequence[tuple[str, str]], wanted: Sequence[str] = ()) -> tuple[IgnoreRules | None, bool]:
    rules: IgnoreRules | None = None
    is_cut = False
    for base, text in files:
        if text:
            rules = IgnoreRules(base, text, rules, wanted=wanted)
            is_cut = is_cut or rules.is_cut
    return rules, is_cut


def _leave_out(rules: IgnoreRules, folders: Sequence[str]) -> bool:
    """Whether rules leave out one of these folders, each below the one before it; its own rules say nothing of it."""
    above: IgnoreRules | None = rules
    for each in reversed(folders):
        while above is not None and len(above.base) > len(each):
            above = above.above
        if above is not None and above.ignores(each, folder=True):
            return True
    return False


class SettingsRules:
    """What the settings of a folder, and of those above it, leave out, whether git tracks it or not."""

    def __init__(self, rules: IgnoreRules, base: str) -> None:
        """Take the rules of settings, in which the folder itself has the path `base`."""
        self._rules = rules
        self._base = base

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is left out, by its path in the folder."""
        return self._rules.ignores(self._base + path, folder=folder)

    def leaves_out(self, path: str) -> bool:
        """Whether a file is left out, or a folder that it lies in."""
        ends = (at for at, sign in enumerate(path) if sign == "/")
        return self.ignores(path, folder=False) or any(self.ignores(path[:end], folder=True) for end in ends)


def settings_rules(root: Path) -> SettingsRules | None:
    """Return the rules that the settings of a folder, and of those above it, add to those of git.

    As with git, those below go before those above, and rules above that leave out the folder itself, or one that it
    lies in, are passed over: whoever names it wants it. Settings above that are of another user than the folder are
    nobody's wish.

    Raises:
        UserError: settings cannot be read, or have more patterns than are followed. Nothing may be read then.
    """
    folders = [root, *root.parents]
    names = [f"{each.name}/" for each in folders[-2::-1]]
    files = [
        ("".join(names[:depth]), "\n".join(ignored_by(settings)))
        for depth, folder in enumerate(reversed(folders))
        for settings in _settings_of(folder, root)
    ]
    base = "".join(names)
    rules, is_cut = rules_for(base, files)
    if is_cut:
        raise UserError(
            f"the settings of {str(root)!r} ignore by more patterns than are followed ({MOST_WILD:,} with wildcards):"
            " name folders instead"
        )
    return None if rules is None else SettingsRules(rules, base)


def _settings_of(folder: Path, root: Path) -> Iterator[SettingsFile]:
    """Yield the settings of a folder; above `root`, those of this user, or of whom `root` belongs to, alone."""
    for name in (PROJECT, OWN):
        if folder != root:
            with suppress(OSError, ValueError):
                state = (folder / name).lstat()
                if is_of_another(state) and state.st_uid != root.stat().st_uid:
                    continue
        if settings := read_settings(folder / name):
            yield settings
