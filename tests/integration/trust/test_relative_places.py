"""A variable that names a file relative to the current folder names one of whoever made that folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._relative_places import drop_relative_places

pytestmark = pytest.mark.integration


def test_relative_places_are_dropped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {
        "SSLKEYLOGFILE": "system",
        "TMPDIR": "tmp",
        "OPENSSL_CONF": "./openssl.cnf",
        "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
    }
    more = {
        "PGSSLROOTCERT": "system",
        "TERMINFO": "",
        "KRB5_CONFIG": "/etc/krb5.conf:krb5.conf",
        "LOCPATH": "/a:/b",
    }
    monkeypatch.setenv("KRB5CCNAME", "KEYRING:persistent:0")
    for name, value in {**given, **more}.items():
        monkeypatch.setenv(name, value)
    assert sorted(drop_relative_places()) == ["KRB5_CONFIG", "OPENSSL_CONF", "SSLKEYLOGFILE", "TMPDIR"]
    assert "TMPDIR" not in os.environ and os.environ["SSL_CERT_FILE"] == given["SSL_CERT_FILE"]
    assert os.environ["PGSSLROOTCERT"] == "system" and os.environ["KRB5CCNAME"] == "KEYRING:persistent:0"


def test_they_are_dropped_before_openssl_reads_its_settings() -> None:
    code = "import sys, metatree_agents.cli; print(sorted({'_hashlib', '_ssl'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_temporary_file_is_made_where_a_link_leads(tmp_path: Path) -> None:
    clone, private = tmp_path / "clone", tmp_path / "private"
    for folder in (clone, private):
        folder.mkdir()
    (clone / "a.md").write_text("# The door is green\n")
    (clone / "tmp").symlink_to(private)
    before = private.stat().st_mtime_ns
    program = Path(sys.executable).with_name("metatree")
    environment = {**os.environ, "TMPDIR": "tmp", "OPENSSL_CONF": "openssl.cnf"}
    subprocess.run(["git", "init", "-q", "."], cwd=clone, check=True)
    done = subprocess.run(
        [str(program), "ask", "Which colour is the door?"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1) and private.stat().st_mtime_ns == before
    assert "not used, since it is relative: TMPDIR, OPENSSL_CONF" in done.stderr
