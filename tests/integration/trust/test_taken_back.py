"""`metatree trust --revoke` takes back all that was accepted at a place."""

from __future__ import annotations

import shutil

import pytest
from metatree_agents.cli._main import run

from metatree.errors import UntrustedStore
from metatree.storage import acceptance
from metatree.storage import store as store_module
from metatree.storage.acceptance import accept
from metatree.storage.store import Store
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("meanwhile", ["other settings", "none", "no folder", "a link"])
def test_settings_are_taken_back_whatever_they_say_at_that_moment(
    clone: Clone, capfd: pytest.CaptureFixture[str], meanwhile: str
) -> None:
    """git may exchange them, and bring back what was accepted once."""
    settings = clone.folder / "sub" / "metatree.toml"
    settings.parent.mkdir()
    for text in ('router = "decisions/x@http://127.0.0.1:9"\n', 'web = "http://127.0.0.1:9"\n'):
        settings.write_text(text)
        assert run(["trust", "--yes", "sub"]) == 0
    if meanwhile == "none":
        settings.unlink()
    elif meanwhile == "a link":
        settings.unlink()
        settings.symlink_to("../a.md")
    elif meanwhile == "no folder":
        shutil.rmtree(settings.parent)
    else:
        settings.write_text('tree = "elsewhere"\n')
    assert run(["trust", "--revoke", "sub"]) == 0
    settings.parent.mkdir(exist_ok=True)
    settings.unlink(missing_ok=True)
    for text in ('router = "decisions/x@http://127.0.0.1:9"\n', 'web = "http://127.0.0.1:9"\n'):
        settings.write_text(text)
        capfd.readouterr()
        run(["trust", "--show", "sub"])
        assert "metatree.toml: not accepted" in capfd.readouterr().out


def test_a_tree_is_taken_back_whatever_lies_beside_it(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    memory = clone.metatree / "memory.db"
    (clone.folder / "metatree.toml").write_text("no-refresh = true\n")
    assert run(["trust", "--yes"]) == 0
    Store.open(memory).close()
    (clone.metatree / "zzz.db").symlink_to("index.db")
    shutil.copy(clone.metatree / "index.db", clone.folder / "index.db")
    capfd.readouterr()
    assert run(["trust", "--revoke", "."]) == 0
    said = capfd.readouterr()
    assert "zzz.db is a link, and passed over" in said.err and "stores not trusted any more" in said.out
    (clone.folder / "index.db").unlink()
    with pytest.raises(UntrustedStore):
        Store.open(memory)


@pytest.mark.parametrize("meanwhile", ["an empty folder", "a link"])
@pytest.mark.parametrize("name", ["memory.db", "board.db", "../kb.db"])
def test_what_was_accepted_at_a_place_is_taken_back_where_nothing_is(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, name: str, meanwhile: str
) -> None:
    (clone.metatree / "memory.db").rename(clone.metatree / name)
    file = (clone.metatree / name).resolve()
    monkeypatch.setattr(store_module, "writable", lambda file: False)
    monkeypatch.setattr(acceptance, "writable", lambda file: False)
    accept(file)
    clone.metatree.rename(clone.folder / "away")
    if meanwhile == "a link":
        clone.metatree.symlink_to("away")
    else:
        clone.metatree.mkdir()
    kept = file.read_bytes() if file.exists() else b""
    if kept:
        file.unlink()
    assert run(["trust", "--revoke", str(file if kept else clone.folder)]) == 0
    if meanwhile == "a link":
        clone.metatree.unlink()
    else:
        clone.metatree.rmdir()
    (clone.folder / "away").rename(clone.metatree)
    if kept:
        file.write_bytes(kept)
    with pytest.raises(UntrustedStore):
        Store.open(file)


def test_a_link_beside_the_stores_keeps_none_of_them_from_view(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone.metatree / "zzz.db").symlink_to("index.db")
    assert run(["trust", "--show", "."]) == 0
    shown = capfd.readouterr().out
    assert "index.db: not yours" in shown and "zzz.db: not yours, and cannot be accepted" in shown
    assert run(["trust", "--yes", "."]) == 2
    assert "zzz.db' cannot be accepted" in capfd.readouterr().err
    assert run(["trust", "--yes", str(clone.metatree / "index.db")]) == 0
    capfd.readouterr()
    assert run(["trust", "--show", "."]) == 0 and "index.db: yours" in capfd.readouterr().out
