"""Write metatree into the settings of agent hosts, and take it out again: a server, and a skill that tells its use.

A change is planned first, as the bytes of a file before and after, so that it can be shown; what is made of it is what
was shown. Every planned text is parsed again: apart from the entry, it must say what it said before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from metatree._util.open_folder import HAS_OPEN_FOLDERS, OpenFolder
from metatree._util.private import private_folder, write_whole
from metatree._util.process import program
from metatree._util.secret_files import is_link_to_secret
from metatree._util.secret_text import masked, shapes_masked
from metatree.errors import UserError
from metatree_agents.hosts import _json_edits, _toml_edits
from metatree_agents.hosts._files import folder_of, link_on_the_way, read, read_in, remove_empty
from metatree_agents.hosts._fronted import fronted_file, kept_servers, to_front, written
from metatree_agents.hosts._records import Record, Records, checksum
from metatree_agents.hosts.servers import GATEWAY
from metatree_agents.hosts.table import HOSTS, Host, Level
from metatree_agents.tools.instructions import skill

NAME = "metatree"
Done = Literal["created", "changed", "unchanged", "restored", "removed", "kept", "absent", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file of a host."""

    host: str
    level: Level
    what: Literal["server", "skill", "gateway", "servers"]
    path: Path
    before: bytes | None
    """None where there is no file."""
    after: bytes | None
    done: Done
    detail: str = ""
    """Why nothing is done to it."""
    private: bool = False
    """Whether its owner alone may read it."""
    project: Path | None = None
    """The folder below which no link is followed to it; None for a file of the user."""

    @property
    def changes(self) -> bool:
        return self.done not in ("unchanged", "kept", "absent", "refused")


def detected() -> list[str]:
    """Return the names of the hosts that seem to be installed."""
    return [name for name, host in HOSTS.items() if host.is_there()]


def chosen(names: Sequence[str]) -> list[Host]:
    """Return the hosts of these names.

    Raises:
        UserError: there is no such host.
    """
    for name in names:
        if name not in HOSTS:
            raise UserError(f"no host {name!r} is known: choose from {', '.join(HOSTS)}")
    return [HOSTS[name] for name in dict.fromkeys(names)]


def planned(
    names: Sequence[str], level: Level, root: Path, *, source: Path | None = None, gateway: bool = False
) -> Iterator[Change]:
    """Yield what has to change so that these hosts have metatree; each change is up to date when it is yielded.

    Args:
        names: of the hosts.
        level: whether for all projects of the user, or for one project, in files that lie in it.
        root: the folder of that project, by a path without links, or the one that a host without a word for it gets.
        source: what the server serves; None for the folder that is open in the host.
        gateway: whether one gateway comes in the place of the other servers that a host has for this user.

    Raises:
        UserError: there is no such host, or a gateway is wanted for a project.
    """
    if gateway and level == "project":
        raise UserError(
            "--gateway is for the servers of the user: what lies in a project is not started for it"
        )
    for host in chosen(names):
        server = _placed(_server(host, level, root, source), root)
        skill_ = _placed(_skill(host, level, root), root)
        fronting = list(_fronting(host, root)) if gateway else []
        refused = [change for change in (server, *fronting, skill_) if change.done == "refused"]
        if refused:  # then nothing of it is installed
            yield from refused
            continue
        yield server
        if gateway:
            yield from _fronting(host, root)  # in the file as it is with the server
        yield skill_


def takes_back(names: Sequence[str], level: Level, root: Path) -> Iterator[Change]:
    """Yield what has to change so that these hosts have metatree no more.

    Raises:
        UserError: there is no such host.
    """
    records = Records()
    for host in chosen(names):
        # It may lie in a folder that the other file made.
        yield _placed(_without_skill(host, level, root, records), root)
        change = _placed(_without_server(host, level, root, records), root)
        yield change
        if level == "user" and change.done != "refused":
            yield from _without_fronted(host)


def other_servers(host: Host, root: Path) -> int:
    """Return how many servers of a host a gateway could stand for; 0 where its file cannot be read."""
    try:
        text = read(host.file("user", root), None)
        return len(to_front(_servers_in(_edits(host).parsed(text or ""), host)))
    except ValueError:
        return 0


def state(host: Host, root: Path) -> dict[Level, bool]:
    """Return at which levels a host has an entry for the server, and whether `install` writes such a one.

    That of the user counts as such, and so does a file that is as this user had it written; a project brings what its
    authors chose.

    Raises:
        ValueError: its file cannot be read.
    """
    levels: dict[Level, bool] = {}
    for level in ("user", "project"):
        if level == "project" and host.project_file is None:
            continue
        place, text = _read(host.file(level, root), level, root)
        if text is not None and (entry := _entry(_edits(host).parsed(text), host)) is not None:
            record = Records().get(place)
            is_written = record is not None and record.written == checksum(text.encode())
            levels[level] = level == "user" or is_written or _is_plain(host, entry)
    return levels


def _is_plain(host: Host, entry: dict[str, Any]) -> bool:
    """Tell whether an entry is as `install --project` writes one without a source."""
    arguments = entry.get("command" if host.one_command else "args")
    if not isinstance(arguments, list):
        return False
    words = arguments[1:] if host.one_command else arguments
    ours = [host.entry(command, words) for command in ("metatree", _command("project"))]
    return words == ["mcp"] and entry in ours


def diff(change: Change) -> list[str]:
    """Return a change as the lines of a unified diff, in which keys of other servers are masked."""

    def lines(data: bytes | None) -> list[str]:
        return [] if data is None else masked(data.decode("utf-8", "replace"))[0].splitlines()

    before = "/dev/null" if change.before is None else str(change.path)
    after = "/dev/null" if change.after is None else str(change.path)
    return list(unified_diff(lines(change.before), lines(change.after), before, after, lineterm=""))


def apply(change: Change) -> Path | None:
    """Make a change; return the copy of what the file held before, if one was made.

    Raises:
        UserError: the file, or the copy of it, cannot be written; or one of a project was replaced meanwhile, or is
            reached by a link.
    """
    records = Records()
    try:
        if change.done in ("restored", "removed", "kept", "absent"):
            _apply_removal(change, records)
            return None
        if change.done != "refused":
            return _apply_write(change, records)
    except OSError as exc:
        if why := link_on_the_way(change.path, change.project):
            raise UserError(f"{why}; the {change.what} of {change.host} was left as it is") from exc
        # Of a file in a folder that is open, the error has the name alone.
        where = change.path.parent / exc.filename if isinstance(exc.filename, str | Path) else change.path
        raise UserError(
            f"cannot write {str(where)!r}: {exc.strerror or exc}; nothing was changed for {change.host}: make it "
            "writable, or use --project (XDG_STATE_HOME names where copies are kept)"
        ) from exc
    return None


def _apply_write(change: Change, records: Records) -> Path | None:
    record = records.get(change.path)
    if not change.changes:
        if record is not None and change.host not in record.hosts:
            records.put(change.path, record.model_copy(update={"hosts": [*record.hosts, change.host]}))
        return None
    assert change.after is not None
    missing = list(_missing_folders(change.path))
    if change.private:
        private_folder(change.path.parent)
    try:
        with folder_of(change.path, change.project, make=True) as folder:
            _refuse_changed(change, folder)
            kept = _recorded(change, record, missing, records)
            mode = 0o600 if change.private else None
            write_whole(folder.name(change.path.name), change.after, mode=mode, dir_fd=folder.descriptor)
            return kept
    except BaseException:
        remove_empty(reversed(missing), change.project)
        raise


def _recorded(change: Change, record: Record | None, missing: list[Path], records: Records) -> Path | None:
    """Record that a file is written; return the copy of what it held, if one was made."""
    assert change.after is not None
    kept = None
    if record is None or change.before is None:
        record = Record(hosts=[], written="", folders=list(map(str, missing)))
        if change.before is not None:
            record.copy_name = records.keep(change.path, change.before)
            kept = records.folder / record.copy_name
    elif record.written != checksum(change.before):
        # Changed between: what it held before the first write is no longer what it would be without the entry.
        name = records.keep(change.path, change.before)
        record = record.model_copy(update={"restorable": False, "copy_name": name})
        kept = records.folder / name
    hosts = list(dict.fromkeys([*record.hosts, change.host]))
    records.put(change.path, record.model_copy(update={"hosts": hosts, "written": checksum(change.after)}))
    return kept


def _apply_removal(change: Change, records: Records) -> None:
    record = records.get(change.path)
    others = [host for host in record.hosts if host != change.host] if record is not None else []
    if change.changes:
        with folder_of(change.path, change.project) as folder:
            _refuse_changed(change, folder)
            name = folder.name(change.path.name)
            if change.after is not None:
                write_whole(name, change.after, dir_fd=folder.descriptor)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder.descriptor)
        if change.after is None:
            made = record.folders if record is not None else [str(change.path.parent)]
            remove_empty(map(Path, reversed(made)), change.project)
    if record is not None:
        records.put(change.path, record.model_copy(update={"hosts": others}) if others else None)


def _refuse_changed(change: Change, folder: OpenFolder) -> None:
    """Refuse a file of a project that is no longer what it was when the change was planned.

    Raises:
        UserError: it, or a folder of it, was replaced by another.
        OSError: it cannot be read, or is a link.
    """
    if change.project is None:
        return
    try:
        same = _bytes(read_in(folder, change.path.name)) == change.before
    except ValueError:
        same = False
    if not same:
        raise UserError(
            f"{str(change.path)!r} was changed by another program just now, and left as it is: look at it, and give "
            "the command again"
        )


# the server


def _edits(host: Host) -> ModuleType:
    return _toml_edits if host.format == "toml" else _json_edits


def _server(host: Host, level: Level, root: Path, source: Path | None) -> Change:
    path = host.file(level, root)
    keys = (*host.keys, NAME)
    try:
        path, text = _read(path, level, root)
        edits = _edits(host)
        known = edits.parsed(text or "", alike=level == "project")
        old = _entry(known, host) or {}
        ours = host.entry(_command(level), _arguments(host, root, source))
        if level == "project":
            _refuse_joined(host, host.file(level, root), root, old, ours)
        entry = {**old, **ours}
        if entry == old:
            return Change(host.name, level, "server", path, _bytes(text), _bytes(text), "unchanged")
        after = edits.with_entry(text or "", keys, entry)
        _check(edits, after, host, known, {NAME: entry})
    except ValueError as exc:
        return _refused(host, level, path, exc)
    done: Done = "created" if text is None else "changed"
    return Change(host.name, level, "server", path, _bytes(text), _bytes(after), done)


def _refuse_joined(host: Host, path: Path, root: Path, old: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse to write an entry where the host would join it with what the project's authors chose.

    Variables, a folder or a file of variables would have our program run what they chose.

    Raises:
        ValueError: it would, or another file that it takes cannot be read.
    """
    if more := sorted(old.keys() - ours.keys()):
        raise ValueError(f"the entry {NAME!r} that came with the project has {', '.join(more)}, too")
    for beside, folder in host.files_besides(path, root):
        entry = _entry(_edits(host).parsed(_read(beside, "project", folder)[1] or "", alike=True), host)
        if entry is not None and (folder == root or entry.keys() - ours.keys()):
            where = beside.relative_to(root) if folder == root else beside
            raise ValueError(f"{where} has an entry {NAME!r}, too, which {host.title} takes besides")


def _fronting(host: Host, root: Path) -> Iterator[Change]:
    """Yield what puts a gateway in the place of a host's servers; they are kept before they are taken out."""
    path, kept_file = host.file("user", root), fronted_file(host)
    edits = _edits(host)
    try:
        path, text = _read(path, "user", root)
        kept_text = read(kept_file, None)
        known = edits.parsed(text or "")
        moved = to_front(_servers_in(known, host))
        kept = kept_servers(kept_text)
        gateway = host.entry(_command("user"), ["gateway", "--servers", str(kept_file)])
        if not moved and not kept:
            yield Change(
                host.name,
                "user",
                "gateway",
                path,
                _bytes(text),
                _bytes(text),
                "unchanged",
                "it has no other servers",
            )
            return
        after = text or ""
        for name in moved:
            after = edits.without_entry(after, (*host.keys, name))
        after = edits.with_entry(after, (*host.keys, GATEWAY), gateway)
        _check(edits, after, host, known, {**dict.fromkeys(moved), GATEWAY: gateway})
    except ValueError as exc:
        yield replace(_refused(host, "user", path, exc), what="gateway")
        return
    servers = written({**kept, **moved})
    done: Done = "created" if kept_text is None else "unchanged" if servers == kept_text else "changed"
    yield Change(
        host.name, "user", "servers", kept_file, _bytes(kept_text), _bytes(servers), done, private=True
    )
    same = edits.parsed(after) == edits.parsed(text or "")
    after = (text or "") if same else after
    yield Change(
        host.name, "user", "gateway", path, _bytes(text), _bytes(after), "unchanged" if same else "changed"
    )


def _without_fronted(host: Host) -> Iterator[Change]:
    """Yield what deletes the file of a host's servers, once they are back."""
    path = fronted_file(host)
    try:
        data = _bytes(read(path, None))
    except ValueError:
        return
    if data is not None:
        yield Change(host.name, "user", "servers", path, data, None, "removed")


def _without_server(host: Host, level: Level, root: Path, records: Records) -> Change:
    path = host.file(level, root)
    try:
        path, text = _read(path, level, root)
        data = _bytes(text)
        record = records.get(path)
        edits = _edits(host)
        known = edits.parsed(text or "")
        servers = _servers_in(known, host)
        gone: dict[str, Any] = {name: None for name in (NAME, GATEWAY) if name in servers}
        if level == "user" and GATEWAY in gone:
            kept = kept_servers(read(fronted_file(host), None))
            gone |= {name: entry for name, entry in kept.items() if name not in servers}
        if text is None or not gone:
            return Change(host.name, level, "server", path, data, data, "absent")
        if _is_restorable(record, data, host.name):
            assert record is not None
            with suppress(OSError):
                return Change(host.name, level, "server", path, data, records.copy(record), "restored")
        after = text
        for name, entry in gone.items():
            keys = (*host.keys, name)
            after = (
                edits.without_entry(after, keys) if entry is None else edits.with_entry(after, keys, entry)
            )
        _check(edits, after, host, known, gone)
    except ValueError as exc:
        return _refused(host, level, path, exc)
    return Change(host.name, level, "server", path, data, _bytes(after), "removed")


def _refused(host: Host, level: Level, path: Path, why: ValueError) -> Change:
    detail = f"{_left_alone(why)}; put the server in by hand (docs/coding-agents.md), or correct the file"
    return Change(host.name, level, "server", path, None, None, "refused", detail)


def _left_alone(why: ValueError) -> str:
    return f"left alone: {shapes_masked(str(why))}"


def _check(edits: ModuleType, after: str, host: Host, before: Any, entries: dict[str, Any]) -> None:
    """Refuse a text that says anything else than the one before, apart from some entries; None for one that goes.

    Raises:
        ValueError: it does.
    """
    said = edits.parsed(after)
    wanted, there = before, said
    for key in host.keys:  # a table that is empty may be gone
        wanted, there = wanted.setdefault(key, {}), there.setdefault(key, {})
    for name, entry in entries.items():
        if entry is None:
            wanted.pop(name, None)
        else:
            wanted[name] = entry
    if said != before:
        raise ValueError("its form is one that cannot be changed safely")


def _servers_in(known: Any, host: Host) -> dict[str, Any]:
    for key in host.keys:
        known = known.get(key) if isinstance(known, dict) else None
    return known if isinstance(known, dict) else {}


def _entry(known: Any, host: Host) -> dict[str, Any] | None:
    for key in (*host.keys, NAME):
        if not isinstance(known, dict):
            return None
        known = known.get(key)
    return known if isinstance(known, dict) else None


def _command(level: Level) -> str:
    """Return the program: with its whole path, since hosts have a PATH of their own; by its name in a project.

    What lies in a project goes to others, whose programs lie elsewhere.
    """
    own = Path(sys.executable).with_name("metatree.exe" if sys.platform == "win32" else "metatree")
    try:
        named = program("metatree")
    except FileNotFoundError:
        named = ""
    if level == "project" and named:
        return "metatree"
    return str(own) if own.is_file() else named or "metatree"


def _arguments(host: Host, root: Path, source: Path | None) -> list[str]:
    if source is not None:
        return ["mcp", "--source", str(source.resolve())]
    if host.starts_elsewhere:
        return ["mcp", "--source", str(root.resolve())]
    return ["mcp", "--source", host.workspace] if host.workspace else ["mcp"]


# the skill


def _skill(host: Host, level: Level, root: Path) -> Change:
    path = host.skill(level, root)
    try:
        followed, text = _read(path, level, root)
        if level == "project" and followed.parts[-2:] != path.parts[-2:]:
            raise ValueError(f"a link of the project leads to {str(followed)!r}, which is another file")
        path, data = followed, _bytes(text)
    except ValueError as exc:
        return Change(host.name, level, "skill", path, None, None, "refused", _left_alone(exc))
    after = skill().encode()
    done: Done = "created" if data is None else "unchanged" if data == after else "changed"
    return Change(host.name, level, "skill", path, data, after, done)


def _without_skill(host: Host, level: Level, root: Path, records: Records) -> Change:
    path = host.skill(level, root)
    try:
        path, text = _read(path, level, root)
        data = _bytes(text)
    except ValueError as exc:
        return Change(host.name, level, "skill", path, None, None, "refused", _left_alone(exc))
    record = records.get(path)
    others = [name for name in record.hosts if name != host.name] if record is not None else []
    if data is None:
        return Change(host.name, level, "skill", path, None, None, "absent")
    if others and record is not None and host.name in record.hosts:
        return Change(host.name, level, "skill", path, data, data, "kept", f"{', '.join(others)} has it too")
    if _is_restorable(record, data, host.name):
        assert record is not None
        with suppress(OSError):
            return Change(host.name, level, "skill", path, data, records.copy(record), "restored")
    if record is None and data == skill().encode():
        return Change(host.name, level, "skill", path, data, None, "removed")
    detail = "it was changed since it was written; delete it by hand"
    return Change(host.name, level, "skill", path, data, data, "kept", detail)


def _is_restorable(record: Record | None, data: bytes | None, host: str) -> bool:
    return (
        record is not None
        and record.restorable
        and record.hosts == [host]
        and data is not None
        and record.written == checksum(data)
    )


# files


def _project_of(path: Path, level: Level, root: Path) -> Path | None:
    """Return the folder below which a file is reached by no link; None for one of the user, or on Windows."""
    return root if HAS_OPEN_FOLDERS and level == "project" and path.is_relative_to(root) else None


def _placed(change: Change, root: Path) -> Change:
    return replace(change, project=_project_of(change.path, change.level, root))


def _read(path: Path, level: Level, root: Path) -> tuple[Path, str | None]:
    """Return the file that is written, and what it holds; None where there is none.

    Raises:
        ValueError: it cannot be read, is no text, or is reached by a link of the project.
    """
    within = root if level == "project" and path.is_relative_to(root) else None
    path = _followed(path, within)
    return path, read(path, _project_of(path, level, root))


def _followed(path: Path, project: Path | None) -> Path:
    """Return the file that a link leads to, which is reached by no link any more.

    Raises:
        ValueError: a link of a project leads out of it, to what git keeps, or to a file or folder for secrets: the
            project's authors chose where.
    """
    followed = path.resolve()
    if project is None:
        return followed
    is_out = not followed.is_relative_to(project) or ".git" in followed.relative_to(project).parts
    if is_out or is_link_to_secret(path):
        raise ValueError(link_on_the_way(path, project))
    return followed


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _missing_folders(path: Path) -> Iterable[Path]:
    return reversed([folder for folder in path.parents if not folder.exists()])
