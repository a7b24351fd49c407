"""Files that are likely to hold keys or passwords, by their names and folders."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from metatree._util.links import real

_SECRET = re.compile(
    r"""\.envrc | .*\.tfstate(?:\.backup)?
    | \.env\d*(?![._-](?:example|sample|template|dist)$)(?:[._-].+)?
    | .*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc\.key)
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?\d*
    | \.(?:netrc|authinfo|pgpass|pypirc|git-credentials|htpasswd|npmrc|dockercfg)
    | _netrc | \.my\.cnf | \.s3cfg | \.boto | \.vault-token | \.terraformrc | (?:.*\.)?kubeconfig
    | (?:.*_)?(?:root|access)keys?\.csv
    | \.\w+_history(?:\.\d+)? | fish_history | xonsh-[\w-]+\.json
    | ConsoleHost_history\.txt | \.(?:histfile|zhistory|history|lesshst|viminfo)
    | (?:secrets?|credentials?)(?:\.(?:ya?ml|json|toml|ini|txt|csv))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COPY = re.compile(
    r"#(?P<saved>.+)#|\.(?P<swapped>.+)\.sw[a-p]|(?P<kept>.+?)(?:~|-\d+\.tmp|\.(?:bak|backup|copy|old|orig|save|tmp))+",
    re.IGNORECASE,
)
"""How editors, shells and people call a copy of a file."""
_COPY_MARK = re.compile(
    r"^copy of |(?: - | |_|-)copy\b| ?\((?:(?:another |\d+\w\w )?copy(?: \d+)?|\d+)\)| \d+\b", re.IGNORECASE
)
"""What file managers and browsers add to the name of copies, before its ending, too: `.env copy`, `key (1).txt`."""
_SECRET_FOLDERS = frozenset([".ssh", ".aws", ".gnupg", ".bash_sessions", ".zsh_sessions"])
_SECRET_PLACES = frozenset(
    [
        *(("gh", "hosts.yml"), ("gh", "hosts.yaml"), (".kube", "config"), (".docker", "config.json")),
        *(("nushell", "history.txt"), ("nushell", "history.sqlite3")),
    ]
)
_PLACES = frozenset(folder for folder, _ in _SECRET_PLACES)


def is_secret(name: str, folder: str) -> bool:
    """Whether a file of this name, in the folder of this path, is likely to hold keys or passwords."""
    last, holds_secrets = _folder(folder)
    if holds_secrets or (last in _PLACES and (last, name.lower()) in _SECRET_PLACES):
        return True
    name = _COPY_MARK.sub("", name)
    if _SECRET.fullmatch(name) is not None:
        return True
    copy = _COPY.fullmatch(name)
    return copy is not None and _SECRET.fullmatch(next(filter(None, copy.groups()))) is not None


@lru_cache(maxsize=64)  # the files of a folder come one after the other
def _folder(path: str) -> tuple[str, bool]:
    """Return the name of a folder, and whether one on its path is for secrets."""
    parts = path.lower().split("/")  # a disk may tell no case apart
    return parts[-1], not _SECRET_FOLDERS.isdisjoint(parts)


def is_link_to_secret(place: Path) -> bool:
    """Whether a link leads to such a file or folder, or into `.git`, from a name that does not say so."""
    named, leads_to = place.absolute(), real(place)
    if named == leads_to:
        return False
    if ".git" in {*leads_to.parts} - {*named.parts}:
        return True
    if leads_to.is_dir():
        return _is_for_secrets(leads_to) and not _is_for_secrets(named)
    same_folder = _is_for_secrets(named.parent) == _is_for_secrets(leads_to.parent)
    return _is_secret(leads_to) and not (_is_secret(named) and same_folder and not place.is_symlink())


def _is_secret(file: Path) -> bool:
    return is_secret(file.name, file.parent.as_posix())


def _is_for_secrets(folder: Path) -> bool:
    return is_secret("", folder.as_posix())
