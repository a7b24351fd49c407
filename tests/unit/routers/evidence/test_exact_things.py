"""Options, symbols, versions, CVE numbers, error codes and quoted phrases are found as they stand."""

from __future__ import annotations

import pytest
from metatree_routers import TextEvidence

from metatree.testing.parts import tree_of

FILLER = "This part of the manual speaks of other things that the command does when it is started by a user."
TEXTS = {
    "options.md": f"{FILLER}\n\nWith -e the output is echoed.\n\n{FILLER}",
    "merge.md": f"{FILLER}\n\nGive --no-ff to merge with a commit of its own.\n\n{FILLER}",
    "fast.md": f"{FILLER}\n\nGive --ff-only to merge no commit of its own.\n\n{FILLER}",
    "shell.md": f"{FILLER}\n\nAll arguments in one word: $* is what they are called in scripts.\n\n{FILLER}",
    "each.md": f"{FILLER}\n\nAll arguments as words: $@ is what they are called in scripts.\n\n{FILLER}",
    "sets.md": f"{FILLER}\n\nTwo sets in place: |= joins one to the other.\n\n{FILLER}",
    "same.md": f"{FILLER}\n\nTwo sets in place: &= keeps what is in both.\n\n{FILLER}",
    "safe.md": f"{FILLER}\n\nThe crash of CVE-2023-4863 is mended in release 1.3.2.\n\n{FILLER}",
    "safer.md": f"{FILLER}\n\nThe crash of CVE-2023-5217 is mended in release 1.13.1.\n\n{FILLER}",
    "codes.md": f"{FILLER}\n\nThe code E0308 says that types do not fit.\n\n{FILLER}",
    "other.md": f"{FILLER}\n\nThe code E0382 says that a value was moved.\n\n{FILLER}",
    "said.md": f"{FILLER}\n\nIt prints: no space left on device, and goes on.\n\n{FILLER}",
    "space.md": f"{FILLER}\n\nOn each device there is space to the left of the name; no more is printed.\n\n{FILLER}",
}


@pytest.mark.parametrize(
    ("question", "where"),
    [
        ("What does -e do?", "options.md"),
        ("What does --no-ff do?", "merge.md"),
        ("What does `--ff-only` do?", "fast.md"),
        ("What is $* in scripts?", "shell.md"),
        ("What is $@ in scripts?", "each.md"),
        ("What does |= do with two sets?", "sets.md"),
        ("What does &= do with two sets?", "same.md"),
        ("In which release is CVE-2023-4863 mended?", "safe.md"),
        ("In which release is CVE-2023-5217 mended?", "safer.md"),
        ("What was mended in 1.3.2?", "safe.md"),
        ("What does E0308 say?", "codes.md"),
        ("What does E0382 say?", "other.md"),
        ('When is "no space left on device" printed?', "said.md"),
    ],
)
def test_what_must_be_found_as_it_stands_is_in_the_first_passage(question: str, where: str) -> None:
    evidence = TextEvidence(tree_of(TEXTS))
    passages = evidence.passages(question)
    assert passages and passages[0].node_id == where
