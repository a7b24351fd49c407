"""Names of files: as text, and those of files that are likely to hold secrets."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

_SECRET = re.compile(
    r"""\.envrc | .*\.tfstate(?:\.backup)?
    | \.env(?!\.(?:example|sample|template|dist)$)(?:\..+)?
    | .*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc\.key)
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?
    | \.(?:netrc|pgpass|pypirc|git-credentials|htpasswd|npmrc|dockercfg)
    | _netrc | \.my\.cnf | \.s3cfg | \.boto | \.vault-token | \.terraformrc | (?:.*\.)?kubeconfig
    | (?:.*_)?(?:root|access)keys?\.csv
    | \.\w+_history | fish_history | ConsoleHost_history\.txt | \.(?:histfile|zhistory|history|lesshst|viminfo)
    | (?:secrets?|credentials?)(?:\.(?:ya?ml|json|toml|ini|txt|csv))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_FOLDERS = frozenset([".ssh", ".aws", ".gnupg"])
_SECRET_PLACES = frozenset(
    [("gh", "hosts.yml"), ("gh", "hosts.yaml"), (".kube", "config"), (".docker", "config.json")]
)
_PLACES = frozenset(folder for folder, _ in _SECRET_PLACES)


def is_secret(name: str, folder: str) -> bool:
    """Whether a file of this name, in the folder of this path, is likely to hold keys or passwords."""
    last, holds_secrets = _folder(folder)
    if holds_secrets or (last in _PLACES and (last, name.lower()) in _SECRET_PLACES):
        return True
    return _SECRET.fullmatch(name) is not None


@lru_cache(maxsize=64)  # the files of a folder come one after the other
def _folder(path: str) -> tuple[str, bool]:
    """Return the name of a folder, and whether one on its path is for secrets."""
    parts = path.lower().split("/")  # a disk may tell no case apart
    return parts[-1], not _SECRET_FOLDERS.isdisjoint(parts)


def path_text(raw: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become `\\xe9`."""
    text = raw.decode("utf-8", "backslashreplace")
    return text.replace(os.sep, "/") if os.sep != "/" else text


def name_text(path: Path) -> str:
    """Return the name of a file or folder as text, the whole path where it has none."""
    return path_text(os.fsencode(path.name or str(path)))
