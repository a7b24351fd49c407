"""The risk-coverage plot: how many claims are wrong when so many questions are answered rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from benchmarks.answers.asking import BASELINE, OURS
from benchmarks.answers.scoring import Row, curve

Point = tuple[float, float]
_COLOURS = {OURS: (31, 90, 170), BASELINE: (200, 110, 30)}
_GREY, _INK = (205, 205, 205), (40, 40, 40)
_FINE = 3
"""Drawn so many times larger and scaled down, for smooth lines."""
_SIDE, _LEFT, _TOP, _RIGHT, _BOTTOM = 260, 58, 52, 22, 52
_ACROSS = 3


def draw(groups: Mapping[str, Sequence[Row]], file: Path) -> None:
    """Draw a panel for each group of rows, with a line for each system; a point where it has no confidences."""
    width, height = _LEFT + _SIDE + _RIGHT, _TOP + _SIDE + _BOTTOM
    across = min(_ACROSS, len(groups))
    down = -(-len(groups) // across)
    image = Image.new("RGB", (across * width * _FINE, down * height * _FINE), "white")
    pen = ImageDraw.Draw(image)
    for number, (name, rows) in enumerate(groups.items()):
        panel = _Panel(pen, number % across * width + _LEFT, number // across * height + _TOP)
        panel.frame(name)
        for place, system in enumerate((BASELINE, OURS)):
            points = curve([row for row in rows if row.system == system and not row.wrong_collection])
            if points:
                panel.line(points, system, place)
    image.resize((across * width, down * height), Image.Resampling.LANCZOS).save(file)


class _Panel:
    """A square with both axes from 0 to 1; places are given in pixels of the finished picture."""

    def __init__(self, pen: ImageDraw.ImageDraw, left: int, top: int) -> None:
        self._pen, self._left, self._top = pen, left, top

    def frame(self, title: str) -> None:
        """Draw the grid, the numbers and the names of the axes."""
        for tick in range(6):
            share = tick / 5
            self._pen.line([self._at((share, 0)), self._at((share, 1))], _GREY, _FINE)
            self._pen.line([self._at((0, share)), self._at((1, share))], _GREY, _FINE)
            self._text(self._left + share * _SIDE, self._top + _SIDE + 5, f"{share:.1f}", "mt", 11)
            self._text(self._left - 6, self._top + (1 - share) * _SIDE, f"{share:.1f}", "rm", 11)
        self._text(self._left + _SIDE / 2, self._top - 34, title, "mm", 14)
        self._text(
            self._left + _SIDE / 2,
            self._top + _SIDE + 30,
            "coverage: right claims of the answerable",
            "mm",
            11,
        )
        self._text(self._left, self._top - 6, "risk: wrong claims of all claims", "lb", 11)

    def line(self, points: Sequence[Point], name: str, place: int) -> None:
        """Draw the points of a system, joined, with its name in the corner."""
        colour = _COLOURS[name]
        if len(points) > 1:
            self._pen.line([self._at(point) for point in points], colour, 2 * _FINE, joint="curve")
        x, y = self._at(points[-1])
        reach = 4 * _FINE
        self._pen.ellipse((x - reach, y - reach, x + reach, y + reach), colour)
        x, y = self._left + _SIDE - 6, self._top + _SIDE - 10 - 16 * (1 - place)
        self._text(x, y, name, "rm", 12, colour)

    def _at(self, point: Point) -> Point:
        return _FINE * (self._left + point[0] * _SIDE), _FINE * (self._top + (1 - point[1]) * _SIDE)

    def _text(
        self, x: float, y: float, text: str, anchor: str, size: int, colour: tuple[int, int, int] = _INK
    ) -> None:
        self._pen.text((x * _FINE, y * _FINE), text, colour, ImageFont.load_default(size * _FINE), anchor)
