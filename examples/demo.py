"""See the main job run on real input: build a tree of `requests`, ask it, list the files to edit for an issue.

usage: make demo  (or: python examples/demo.py [FOLDER])

The source comes from PyPI once and is kept in ./.demo, so the second run needs no network.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "requests==2.32.3"
HERE = Path(__file__).parent
QUESTION = "What is the default number of redirects before TooManyRedirects is raised?"
METATREE = Path(sys.executable).with_name("metatree")


def main() -> int:
    """Run the commands that a first user would type, one after the other; return the first bad exit code."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".demo")
    source = fetch(folder)
    issue = os.path.relpath(HERE / "issue-6730.txt")
    commands = (
        ("A tree of its code and its documents:", ("build", str(source))),
        ("A question, answered without any model, with sources and the path:", ("ask", QUESTION, "-v")),
        ("The files to edit for a real issue (psf/requests#6730):", ("files", f"@{issue}", "-k", "3")),
    )
    for title, (command, *rest) in commands:
        where = () if command == "build" else ("--source", str(source))
        print(f"\n# {title}\n$ metatree {shlex.join((command, *rest, *where))}", flush=True)
        done = subprocess.run([METATREE, command, *rest, *where], check=False)
        if done.returncode:
            return done.returncode
    print(f"\nThe tree is in {source / '.metatree'}. Next: metatree show --source {source}")
    return 0


def fetch(folder: Path) -> Path:
    """Return the unpacked source of the package, got from the package index if it is not there."""
    source = folder / PACKAGE.replace("==", "-")
    if source.is_dir():
        print(f"# {PACKAGE} is in {source}")
        return source
    print(f"# Getting the source of {PACKAGE} from the package index", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        name = PACKAGE.partition("==")[0]
        pip = (sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps")
        done = subprocess.run([*pip, "--no-binary", name, "--dest", inside, PACKAGE], check=False)
        if done.returncode:
            sys.exit(f"pip could not get {PACKAGE}: is there a network? The demo needs it once.")
        (archive,) = Path(inside).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            # Python before 3.11.4 has no filters and extracts without one.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            tar.extractall(inside)
        # Renamed at the end, so that a folder that is there is whole.
        shutil.move(Path(inside) / source.name, source)
    return source


if __name__ == "__main__":
    sys.exit(main())
