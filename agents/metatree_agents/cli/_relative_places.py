"""Variables by which libraries find files, where they are relative: the files would be those of the current folder.

Imports nothing of ours: OpenSSL reads its settings, which name code to load, as soon as `hashlib` is imported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAMES_OF_PLACES = (
    *(
        "TMPDIR",
        "TEMP",
        "TMP",
        "TERMINFO",
        "PYTHONTZPATH",
        "PROMETHEUS_MULTIPROC_DIR",
        "NETRC",
        "SQLITE_TMPDIR",
    ),
    *("OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR"),
    *("PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL", "PGSSLCRLDIR", "LDAPCONF", "LDAPRC"),
    *("SASL_CONF_PATH", "KRB5_CONFIG", "GSS_MECH_CONFIG", "GSS_MECH_CONFIG_DIR"),
    *("HOSTALIASES", "LOCPATH", "TZDIR", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "XML_CATALOG_FILES"),
)


def drop_relative_places() -> list[str]:
    """Take variables by which libraries find files out of the environment where they are relative; return their names.

    In a folder that somebody else made, they would be that folder's: a file of settings of OpenSSL names code to load.
    """
    values = {name: os.environ.get(name, "") for name in _NAMES_OF_PLACES}
    if values["PGSSLROOTCERT"] == "system":
        del values["PGSSLROOTCERT"]
    parts = {name: filter(None, value.split(os.pathsep)) for name, value in values.items()}
    found = [name for name, each in parts.items() if not all(Path(part).is_absolute() for part in each)]
    for name in found:
        del os.environ[name]
    if sys.pycache_prefix and not Path(sys.pycache_prefix).is_absolute():
        sys.pycache_prefix = None
    return found
