"""Repositories that git itself makes for a test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Repository:
    """A repository whose commits are a minute apart, whatever the clock says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.minute = 0
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        date = f"{1_600_000_000 + 60 * self.minute} +0000"
        environment = os.environ | {
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "Ann",
            "GIT_AUTHOR_EMAIL": "ann@example.org",
            "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.org",
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, text=True, capture_output=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        """Write files, or take them away with None, and commit all that changed."""
        self.minute += 1
        for path, text in files.items():
            if text is None:
                (self.root / path).unlink()
                continue
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
