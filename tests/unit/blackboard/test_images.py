"""Screenshots: refused at the call when they are none, kept once, shown once."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from metatree import Blackboard, Settings
from metatree.blackboard._image_header import image_tokens, read_header
from metatree.blackboard._thumbnails import perceptual_hash
from metatree.errors import BadItem, MissingExtra

pytestmark = pytest.mark.integration


def test_image_without_metadata_is_added(shot: Callable[..., Path]) -> None:
    board = Blackboard()
    item = board.add_image(str(shot()))
    assert item is not None
    (screenshot,) = board.screenshots.list_content
    assert screenshot["metadata"] == {}
    assert screenshot["image_path"].endswith("shot.png")
    assert screenshot["image_str"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    "metadata", [{"reason": "it shows the total"}, {"metadata": {"reason": "it shows the total"}}]
)
def test_reason_for_keeping_is_kept(shot: Callable[..., Path], metadata: dict[str, str]) -> None:
    board = Blackboard()
    board.add_image(shot(), metadata)
    assert json.loads(board.screenshots_to_json())[0]["metadata"] == {"reason": "it shows the total"}
    assert board.screenshots_to_prompt()[0] == {"type": "text", "text": '{"reason": "it shows the total"}'}


def test_missing_or_wrong_file_is_an_error_and_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.png").write_text("no image")
    (tmp_path / "empty.png").touch()
    board = Blackboard(settings=Settings(image_max_bytes=100))
    (tmp_path / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    for path, words in (
        ("", "no image: give"),
        (tmp_path / "gone.png", "there is no image"),
        (tmp_path, "image"),
        (tmp_path / "notes.png", "PNG, JPEG, GIF or WebP"),
        (tmp_path / "empty.png", "PNG, JPEG, GIF or WebP"),
        (tmp_path / "large.png", "image_max_bytes"),
    ):
        with pytest.raises(BadItem, match=words):
            board.add_image(path)
    assert board.is_empty()


def test_metadata_that_json_cannot_hold_adds_nothing(shot: Callable[..., Path]) -> None:
    board = Blackboard()
    with pytest.raises(BadItem):
        board.add_image(shot(), {"when": {1, 2}})
    assert board.is_empty()
    assert not board._share.images.folder.exists() or not list(board._share.images.folder.iterdir())


def test_switch_turns_images_off(shot: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METATREE_SCREENSHOT_TO_MEMORY", "false")
    board = Blackboard()
    assert board.add_image(shot()) is None
    assert board.screenshots.is_empty()


def test_identical_screenshots_are_one_image_on_disk_and_in_the_prompt(
    shot: Callable[..., Path], tmp_path: Path, make_png: Callable[..., bytes]
) -> None:
    board = Blackboard(tmp_path / "b.db")
    for n in range(50):
        board.add_image(shot(f"{n}.png", padding=10_000), {"n": n % 2})
    board.add_image(content=make_png(64, 64, padding=10_000))
    assert board.screenshots.length == 51
    assert len({item.image for item in board.screenshots}) == 1
    assert len([f for f in (tmp_path / "b.db.images").iterdir() if "thumbnail" not in f.name]) == 1
    parts = board.screenshots_to_prompt()
    assert [part["type"] for part in parts] == ["text", "text", "text", "image_url"]
    assert [part["text"] for part in parts[:3]] == ['{"n": 0}', '{"n": 1}', "{}"]
    assert len([p for p in board.render(4_000).parts if p["type"] == "image_url"]) == 1
    board.close()


def test_original_file_may_be_deleted(shot: Callable[..., Path], tmp_path: Path) -> None:
    path = shot()
    content = path.read_bytes()
    with Blackboard(tmp_path / "b.db") as board:
        board.add_image(path)
    path.unlink()
    with Blackboard(tmp_path / "b.db") as again:
        (item,) = again.screenshots.content
        stored_path = again.image_path(item)
        assert stored_path is not None
        assert stored_path.read_bytes() == content


def test_images_that_nobody_shows_are_swept_after_an_hour(shot: Callable[..., Path], tmp_path: Path) -> None:
    import os

    with Blackboard(tmp_path / "b.db") as board:
        first, second = board.add_image(shot(shade=1)), board.add_image(shot(shade=2))
        assert first is not None
        assert second is not None
        folder = tmp_path / "b.db.images"
        board.remove(first.id)
        board.forget_removed()
        assert (folder / first.image).exists()
        for file in folder.iterdir():
            os.utime(file, (0, 0))
        board.forget_removed()
        assert [f.name for f in folder.iterdir()] == [second.image]


def test_images_of_a_board_in_memory_go_with_it(shot: Callable[..., Path]) -> None:
    board = Blackboard()
    item = board.add_image(shot())
    assert item is not None
    path = board.image_path(item)
    assert path is not None
    assert path.exists()
    board.close()
    assert not path.parent.exists()


def test_sizes_are_read_from_headers(make_png: Callable[..., bytes]) -> None:
    jpeg = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(9) + b"\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03"
    gif = b"GIF89a\x0a\x00\x14\x00"
    webp = b"RIFF\x00\x00\x00\x00WEBPVP8X" + bytes(8) + b"\x1f\x03\x00\x57\x02\x00"
    lossy = b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(10) + b"\x20\x03\x58\x02"
    lossless = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + (799 | 599 << 14).to_bytes(4, "little")
    headers = [read_header(head) for head in (make_png(7, 9), jpeg, gif, webp, lossy, lossless)]
    assert [(f.type, f.width, f.height) for f in headers if f is not None] == [
        ("png", 7, 9),
        ("jpeg", 800, 600),
        ("gif", 10, 20),
        ("webp", 800, 600),
        ("webp", 800, 600),
        ("webp", 800, 600),
    ]
    assert read_header(b"BM") is None
    assert read_header(b"\xff\xd8\xff") is not None


def test_cost_of_an_image_follows_its_tiles() -> None:
    assert image_tokens(1024, 1024) == 765
    assert image_tokens(2048, 4096) == 1105
    assert image_tokens(512, 512) == 255
    assert image_tokens(None, None) == 1105


def test_images_that_look_alike_are_stored_once(shot: Callable[..., Path]) -> None:
    image = pytest.importorskip("PIL.Image")
    board = Blackboard(settings=Settings(similar_images=4))
    paths = []
    for n, size in enumerate([(400, 300), (200, 150)]):
        picture = image.linear_gradient("L").resize(size)
        paths.append(shot(f"{n}.png"))
        picture.save(paths[-1])
    other = shot("other.png")
    image.linear_gradient("L").rotate(90).resize((400, 300)).save(other)
    for path in (*paths, other):
        board.add_image(path)
    names = [item.image for item in board.screenshots]
    assert names[0] == names[1] != names[2]


def test_thumbnails_are_shown_in_prompts_with_a_limit(shot: Callable[..., Path]) -> None:
    image = pytest.importorskip("PIL.Image")
    board = Blackboard()
    path = shot()
    image.effect_noise((1600, 1200), 50).save(path)
    board.add_image(path)
    full = board.screenshots_to_prompt()[-1]["image_url"]["url"]
    small = board.render(4_000).parts[-1]["image_url"]["url"]
    assert small.startswith("data:image/webp;base64,")
    assert len(small) < len(full) / 4


def test_an_image_of_too_many_pixels_is_not_decoded(
    shot: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PNG of 700 kB had 180 million, and took 1.4 GB."""
    pytest.importorskip("PIL.Image")
    monkeypatch.setattr("metatree.blackboard._thumbnails._MOST_PIXELS", 900 * 900 - 1)
    path = shot(width=900, height=900)
    board = Blackboard()
    item = board.add_image(path)
    assert item is not None and not board._share.images.known([item.image])[item.image].thumbnail
    with pytest.raises(BadItem, match="million pixels"):
        perceptual_hash(path)
    monkeypatch.setattr("metatree.blackboard._thumbnails._MOST_PIXELS", 900 * 900)
    perceptual_hash(path)


def test_missing_package_is_named_where_it_is_needed(
    shot: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree.blackboard._thumbnails._pillow", lambda: None)
    Blackboard().add_image(shot(width=900, height=900))  # no thumbnail, no error
    board = Blackboard(settings=Settings(similar_images=4))
    with pytest.raises(MissingExtra, match=r"metatree-memory\[images\]"):
        board.add_image(shot())
    assert board.is_empty()
    with pytest.raises(MissingExtra):
        perceptual_hash(shot())


def test_what_is_kept_of_an_image_is_for_its_user_alone(shot: Callable[..., Path], tmp_path: Path) -> None:
    """Also in a folder that was there, as one of a clone is."""
    (tmp_path / "b.db.images").mkdir()
    with Blackboard(tmp_path / "b.db") as board:
        board.add_image(shot(width=1_200, height=900))
    files = list((tmp_path / "b.db.images").iterdir())
    assert len(files) == 2
    assert [file.stat().st_mode & 0o077 for file in files] == [0, 0]


def test_a_picture_that_is_a_program_of_postscript_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow starts Ghostscript for such a file, whatever it is called."""
    pytest.importorskip("PIL")
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 3000 3000\n%%EndComments\nshowpage\n%%EOF\n"
    url = f"data:image/png;base64,{base64.b64encode(eps).decode()}"
    board = Blackboard(tmp_path / "board.db")
    board.blackboard_from_dict({"screenshots": [{"image_str": url, "metadata": {}}]})
    assert not (tmp_path / "ran").exists()
    file = tmp_path / "drawing.png"
    file.write_bytes(eps)
    with pytest.raises(BadItem, match="cannot be decoded"):
        perceptual_hash(file)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../../diary.png", "/etc/hostname", ".."])
def test_the_path_of_an_image_is_one_beside_the_board(
    shot: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    """A board that was accepted may name any file."""
    with Blackboard(tmp_path / "board.db") as board:
        item = board.add_image(shot())
        assert item is not None
        path = board.image_path(item)
        assert path is not None and path.is_file()
        assert board.image_path(replace(item, image=name)) is None
        path.unlink()
        path.symlink_to("/etc/hostname")
        assert board.image_path(item) is None
