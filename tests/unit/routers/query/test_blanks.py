"""Questions of blanks cost what others do."""

import pytest
from metatree_routers.query.parse import sections


@pytest.mark.parametrize(
    "line", [" " * 98 + "x", " " * 60 + "x", " " * 49 + "." + " " * 49 + "x", ". " * 49 + "x", "-" * 99]
)
def test_lines_of_blanks_are_no_versions_and_take_no_seconds(line: str) -> None:
    """200 such lines took 13 s of CPU, which others waited for; these 30 questions would take seven minutes."""
    for number in range(30):
        assert sections(f"The kettle fails {number}\n" + f"{line}\n" * 200).is_long


@pytest.mark.parametrize(
    "line", ["Python 3.11.2", "numpy==1.26", "- pandas:    2.1.0", "OS   Linux", "   numpy     1.26.0"]
)
def test_versions_are_left_out(line: str) -> None:
    text = "The kettle fails\n" + "it boils over and over again\n" * 12
    assert line.split()[-1] not in sections(f"{text}{line}\n").prose
