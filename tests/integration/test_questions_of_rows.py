"""Questions about rows of a database: values, counts, the largest, the latest; answered by a query or not at all."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_routers.embedded.reader import ROWS_SURE

from metatree import SearchResult, Tree, search

pytestmark = pytest.mark.integration

STATUS = Path("/var/lib/dpkg/status")
FIELDS = ["Package", "Version", "Architecture", "Maintainer", "Installed-Size", "Section", "Homepage"]
PACKAGES = """\
Package: bash
Version: 5.2.15-2
Architecture: amd64
Maintainer: Matthias Klose <doko@debian.org>
Installed-Size: 7164
Section: shells
Homepage: http://tiswww.case.edu/php/chet/bash/bashtop.html

Package: adduser
Version: 3.134
Architecture: all
Maintainer: Debian Adduser Developers <adduser@packages.debian.org>
Installed-Size: 686
Section: admin

Package: libc6
Version: 2.36-9
Architecture: amd64
Maintainer: GNU Libc Maintainers <debian-glibc@lists.debian.org>
Installed-Size: 13001
Section: libs
Homepage: https://www.gnu.org/software/libc/libc.html

Package: gcc-12-base
Version: 12.2.0-14
Architecture: amd64
Maintainer: Matthias Klose <doko@debian.org>
Installed-Size: 100
Section: libs

Package: dash
Version: 0.5.12-2
Architecture: amd64
Maintainer: Andrej Shadura <andrewsh@debian.org>
Installed-Size: 191
Section: shells
Homepage: http://gondor.apana.org.au/~herbert/dash/
"""
FILMS = [
    ("Casablanca", 1942, 102.0, "Michael Curtiz", "1942-11-26", 3),
    ("Amélie", 2001, 122.0, "Jean-Pierre Jeunet", "2001-02-28", 0),
    ("Her", 2013, 126.0, "Spike Jonze", "2013-10-12", 1),
    ("Titanic", 1997, 194.0, "James Cameron", "1997-11-01", 11),
    ("Titanic", 1943, 85.0, "Herbert Selpin", "1943-01-01", 0),
    ("Aliens", 1986, 137.0, "James Cameron", "1986-07-18", 2),
]


def packages_of(text: str) -> list[list[str | None]]:
    """Return the fields of the packages in a status file of dpkg."""
    rows = []
    for block in text.split("\n\n"):
        known = dict(re.findall(r"^([\w-]+): (.*)$", block, re.MULTILINE))
        if "Package" in known:
            rows.append([known.get(name) for name in FIELDS])
    return rows


def write_database(path: Path, packages: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE packages(name TEXT, version TEXT, architecture TEXT, maintainer TEXT, installed_size INTEGER,"
            " section TEXT, homepage TEXT)"
        )
        connection.executemany("INSERT INTO packages VALUES (?, ?, ?, ?, ?, ?, ?)", packages_of(packages))
        connection.execute(
            "CREATE TABLE film(title TEXT, year INTEGER, runtime REAL, director TEXT, released TEXT, oscars INTEGER)"
        )
        connection.executemany("INSERT INTO film VALUES (?, ?, ?, ?, ?, ?)", FILMS)
        connection.commit()


def write_files(folder: Path, packages: str, ending: str) -> None:
    """Write the same tables as two files of rows."""
    sign = "\t" if ending == "tsv" else ","
    names = ["name", "version", "architecture", "maintainer", "installed_size", "section", "homepage"]
    film_names = ["title", "year", "runtime", "director", "released", "oscars"]
    tables: dict[str, list[Any]] = {"packages": [names, *packages_of(packages)], "film": [film_names, *FILMS]}
    for name, rows in tables.items():
        with (folder / f"{name}.{ending}").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=sign).writerows(rows)


@pytest.fixture(scope="module", params=["db", "csv", "tsv"])
def tree(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Tree]:
    folder = tmp_path_factory.mktemp("rows")
    if request.param == "db":
        write_database(folder / "system.db", PACKAGES)
    else:
        write_files(folder, PACKAGES, request.param)
    (folder / "README.md").write_text(
        "# The system\n\nThe package bash is the login shell of all users. Its version is that of the release.\n\n"
        "Films are shown on Fridays. The largest package is said to be emacs.\n"
    )
    with build_tree(folder) as built:
        yield built


def ask(tree: Tree, question: str) -> SearchResult:
    return search(question, tree=tree, journal=":memory:")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ('What is the version of the package "bash"?', "bash | 5.2.15-2"),
        ("What is the version of the package bash?", "bash | 5.2.15-2"),
        ("what is the version number of bash?", "bash | 5.2.15-2"),
        ("version of bash", "bash | 5.2.15-2"),
        ("what version is libc6", "libc6 | 2.36-9"),
        ("who maintains dash?", "dash | Andrej Shadura <andrewsh@debian.org>"),
        ('Who is the maintainer of "libc6"?', "libc6 | GNU Libc Maintainers"),
        ("What section does bash belong to?", "bash | shells"),
        ("homepage of dash", "dash | http://gondor.apana.org.au/~herbert/dash/"),
        ("how big is adduser", "adduser | 686"),
        ("What is the installed size of libc6?", "libc6 | 13001"),
        ("which architecture is adduser?", "adduser | all"),
        ("Which packages are in section shells?", "dash | shells"),
        ("How many packages are there?", "number of packages\n5"),
        ("number of packages in section libs", "number of packages\n2"),
        ('How many packages are in the section "libs"?', "number of packages\n2"),
        ("How many different sections are there?", "number of section\n3"),
        ("How many packages does Matthias Klose maintain?", "number of packages\n2"),
        ("Which package has the largest installed size?", "libc6 | 13001"),
        ("which package is the biggest", "libc6 | 13001"),
        ("smallest package in section libs", "gcc-12-base | 100"),
        ("What is the average installed size of the packages?", "average of installed_size\n4228.4"),
        ("What is the total installed size of packages in section shells?", "sum of installed_size\n7355"),
        ("Who directed Casablanca?", "Casablanca | Michael Curtiz"),
        ('who directed "Amélie"', "Amélie | Jean-Pierre Jeunet"),
        ("When was Her released?", "Her | 2013-10-12"),
        ("what year did Casablanca come out?", "Casablanca | 1942"),
        ("how long is Aliens", "Aliens | 137.0"),
        ("how many oscars has Casablanca", "Casablanca | 3"),
        ("Which film has the most oscars?", "Titanic | 11"),
        ("How many films did James Cameron direct?", "number of film\n2"),
        ("which film was released last?", "Her | 2013-10-12"),
        ("What is the oldest film by release?", "Casablanca | 1942-11-26"),
        ("What is the runtime of Titanic?", "Titanic | 194.0\nTitanic | 85.0"),
    ],
)
def test_a_question_about_rows_is_looked_up(tree: Tree, question: str, answer: str) -> None:
    found = ask(tree, question)
    assert answer in found.answer
    assert found.nodes[0].id.partition("#")[0] in (
        *("system.db", "packages.csv", "film.csv", "packages.tsv", "film.tsv"),
    )


@pytest.mark.parametrize(
    "question",
    [
        "How many packages are broken?",
        "How many packages were removed last week?",
        "What is the latest package?",
        "Which film earned the most?",
        "How many dependencies does bash have?",
        "What is the version of the package nosuchthing?",
        "What is the budget of Casablanca?",
        "When did Titanic sink?",
        "On which day did version 4.6.0 of todoman come out?",
        "Who played the lead in Casablanca?",
        "How many awards did James Cameron win?",
    ],
)
def test_what_no_row_says_is_not_answered_by_a_row(tree: Tree, question: str) -> None:
    found = ask(tree, question)
    assert " | " not in found.answer
    assert "number of" not in found.answer
    assert not any(".csv#" in node.id or ".tsv#" in node.id for node in found.nodes)


def test_what_rows_say_is_as_sure_as_was_measured(tree: Tree) -> None:
    question = "What is the version of the package bash?"
    assert [answer.confidence for answer in ask(tree, question).answers] == [ROWS_SURE]
    found = search(question, tree=tree, journal=":memory:", sure=ROWS_SURE + 0.01)
    assert not any("5.2.15" in answer.answer for answer in found.answers)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which fish has the largest body_mass_g?", "pike | 900"),
        ("Which fish has the largest body mass?", "pike | 900"),
        ("What is the smallest finLength?", "carp | 3"),
        ("Which fish was caught last?", "carp | 2024-11-03"),
        ("What is the total price of the fish?", "sum of price\n1212.5"),
    ],
)
def test_columns_are_named_as_they_are_written_and_without_their_unit(
    tmp_path: Path, question: str, answer: str
) -> None:
    (tmp_path / "fish.csv").write_text(
        'name,body_mass_g,finLength,caught,price\npike,900,7,2/28/2024,"$1,200.50"\ncarp,85,3,11/3/2024,$12.00\n'
    )
    with build_tree(tmp_path) as tree:
        assert answer in ask(tree, question).answer


def test_rows_are_asked_before_a_passage_closes_the_question(tree: Tree) -> None:
    found = ask(tree, "Which is the largest package?")
    assert "libc6 | 13001" in found.answer
    assert "emacs" not in found.answer
    assert "Friday" in search("When are films shown?", tree=tree, journal=":memory:").answer


def test_columns_that_may_hold_secrets_are_not_looked_up(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE customer(name TEXT, password TEXT, city TEXT)")
        connection.execute(
            "INSERT INTO customer VALUES ('Ann', 's3cret', 'Bern'), ('x''); DROP', 'p', 'Basel')"
        )
        connection.commit()
    with build_tree(tmp_path / "a.db", out=tmp_path / "tree") as tree:
        assert "Bern" in ask(tree, "In which city is the customer Ann?").answer
        assert "s3cret" not in ask(tree, "What is the password of Ann?").answer
        assert not ask(tree, "Which customer has the password s3cret?").answer
        assert "Basel" in ask(tree, 'What is the city of "x\'); DROP"?').answer


@pytest.mark.skipif(not STATUS.is_file(), reason="no packages of Debian here")
def test_the_packages_of_this_system(tmp_path: Path) -> None:
    text = STATUS.read_text(encoding="utf-8")
    write_database(tmp_path / "system.db", text)
    rows = packages_of(text)
    with build_tree(tmp_path / "system.db", out=tmp_path / "tree") as tree:
        assert f"number of packages\n{len(rows)}" in ask(tree, "How many packages are there?").answer
        for row in rows[:: max(1, len(rows) // 8)]:
            assert f"{row[0]} | {row[1]}" in ask(tree, f"What is the version of {row[0]}?").answer
