"""Whether a passage holds the kind of thing that is asked for: a person, a day, a number, a version."""

from __future__ import annotations

import pytest
from metatree_routers.passages._wanted import lacks_kind
from metatree_routers.passages.asked import read_question
from metatree_routers.passages.candidates import weigh
from metatree_routers.passages.features import FEATURES, PassageCandidate, features


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who packages it for the Arch user repository?", "Arch Linux users can take the AUR package."),
        ("Who found the missing check?", "* Added a missing security check during handshake"),
        ("Who cast the bells of St Wilfrid?", 'St Wilfrid,"12 Bells, Tenor 6cwt in C"'),
        ("Who sent the switch?", "what was written.  This feature has a switch"),
        ("When did the list get its last message?", "There is a mailing list at mail.example.org."),
        ("In what year did 2021 end?", "It ended, as 2021 does."),
        ("How many states may be on the stack?", "The stack is changed by `pop: 1`."),
        ("Since which pubs release are the tests gone?", "The tests are not run any more."),
    ],
)
def test_a_text_without_a_thing_of_the_kind_that_is_asked_for_lacks_it(question: str, text: str) -> None:
    assert lacks_kind(read_question(question, embeddings=False), text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who contributed the lexer?", "- Lexer for Pygments, courtesy of Raksac"),
        ("Who maintains it?", "Maintainer: bobintetley <bob@example.org>"),
        ("Who signs large refunds?", "Refunds above 100 euros need the signature of Marta Kral."),
        ("Who approves trips?", "Ann approves trips."),
        ("When was the leak found?", "1.2 (2021-03-05): fix a leak"),
        ("When is the hook run?", "The hook is run before the data is read."),
        ("How many states may be on the stack?", "It keeps 20 states."),
        ("Since which pubs release are the tests gone?", "0.9: the tests are gone."),
        ("Which hook says who is told?", "The hook `notes` does."),
        (
            "How many redirects are allowed?",
            "#: It is models.REDIRECT_LIMIT, which is\n                #: 30.",
        ),
    ],
)
def test_a_text_with_one_has_it(question: str, text: str) -> None:
    assert not lacks_kind(read_question(question, embeddings=False), text)


def test_the_heading_of_a_release_tells_its_day_and_its_version() -> None:
    when, which = (
        read_question(text, embeddings=False)
        for text in ("When was the leak mended?", "In which version was the leak mended?")
    )
    assert lacks_kind(when, "Mend a leak") and not lacks_kind(when, "Mend a leak", "1.2 (2021-03-05)")
    assert lacks_kind(which, "Mend a leak") and not lacks_kind(which, "Mend a leak", "1.2 (2021-03-05)")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("author of the manual page", "who"),
        ("What happens when an editor whose address is not known submits something?", "what"),
        ("Which trigger puts down who has to be told?", "code"),
        ("since which pubs release are the tests gone?", "version"),
        ("port number used by systat", "amount"),
        ("What does the release say?", "what"),
    ],
)
def test_what_a_question_asks_for(question: str, kind: str) -> None:
    assert read_question(question, embeddings=False).kind == kind


@pytest.mark.parametrize(
    ("question", "exact"),
    [
        ("What does HTTPAdapter do?", ("HTTPAdapter",)),
        ("Is HTTP/3 supported?", ("HTTP/3",)),
        ("Are URLs kept?", ()),
        ("Is and/or allowed?", ()),
    ],
)
def test_names_and_protocols_are_found_as_they_stand(question: str, exact: tuple[str, ...]) -> None:
    assert read_question(question, embeddings=False).exact == exact


def test_the_entry_that_says_most_of_a_question_has_to_hold_what_is_asked_for() -> None:
    asked = read_question("Who wrote the support for memo fields?", embeddings=False)
    texts = (
        "* Added support for memo fields.\n* Fixed a typing error. (Thanks to Roman Kharin.)",
        "* Added support for memo fields. (Thanks to Roman Kharin.)\n* Fixed a typing error.",
    )
    candidates = [
        PassageCandidate(str(n), "changes", "changes", 0, 0, 1, (), text, False, 1.0)
        for n, text in enumerate(texts)
    ]
    rows = features(asked, candidates, weigh(asked, {}, 2), None)
    assert rows[:, FEATURES.index("kind_missing")].tolist() == [1.0, 0.0]
    assert rows[0, FEATURES.index("entry_cover")] == rows[1, FEATURES.index("entry_cover")] > 0.5


def test_the_word_after_how_is_no_word_of_an_answer() -> None:
    weights = read_question("How many redirects are allowed?", embeddings=False).weights
    assert weights["mani"] < 0.2 * weights["redirect"]
    assert set(read_question("How long?", embeddings=False).weights.values()) == {3.0}
