"""Variables by which libraries find files, where they are relative: the files would be those of the current folder.

Imports nothing of ours: OpenSSL reads its settings, which name code to load, as soon as `hashlib` is imported.
"""

from __future__ import annotations

import os
from pathlib import Path

_NAMES_OF_PLACES = (
    *("TMPDIR", "TEMP", "TMP", "TERMINFO", "PYTHONTZPATH", "PROMETHEUS_MULTIPROC_DIR", "NETRC"),
    *("OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR"),
    *("PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL", "PGSSLCRLDIR"),
)


def drop_relative_places() -> list[str]:
    """Take variables by which libraries find files out of the environment where they are relative; return their names.

    In a folder that somebody else made, they would be that folder's: a file of settings of OpenSSL names code to load.
    """
    values = {name: os.environ.get(name, "") for name in _NAMES_OF_PLACES}
    found = [
        name
        for name, value in values.items()
        if value not in ("", "system") and not Path(value).is_absolute()
    ]
    for name in found:
        del os.environ[name]
    return found
