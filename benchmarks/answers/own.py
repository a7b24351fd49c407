"""The project's own set: packages of PyPI, npm and Debian, fetched and unpacked by `verify`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.answers import verify
from benchmarks.answers.dataset import Folder, Question, QuestionSet


def own(name: str, work: Path) -> QuestionSet:
    """Read set `a`, `b`, `c`, `d` or `e`; its archives are fetched into the work folder if they are not there."""
    data = work / "sources"
    folders = {}
    for source in verify.sources(name):
        root = verify.unpack(verify.fetch(source, data), data)
        folders[source["source"]] = Folder(root, source["sha256"])
    questions = [
        Question(
            row["id"],
            row["source"],
            row["kind"],
            row["question"],
            row["answerable"],
            pattern=row["pattern"],
            parts=tuple(row.get("parts", ())),
            answer=row["answer"],
        )
        for row in verify.questions(name)
    ]
    return QuestionSet(f"own-{name}", questions, folders)
