"""The table in docs/blackboard.md names every setting with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from metatree import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "blackboard.md").read_text(encoding="utf-8")


def test_every_setting_is_in_the_table() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`)?", PAGE, re.M))
    assert list(rows) == [field.name for field in fields(Settings)]
    defaults = Settings()
    for name in ("qa_pair_num", "context_tokens", "image_max_bytes", "thumbnail_px", "similar_images"):
        assert rows[name] == str(getattr(defaults, name))
    assert rows["history_keys"] == ", ".join(defaults.history_keys)
