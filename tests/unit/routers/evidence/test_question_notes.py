"""Slips of the keyboard are corrected, and a question in a language that no text is in is said to be so."""

from __future__ import annotations

import pytest
from metatree_routers import TextEvidence
from metatree_routers.query.languages import language_of, languages_of
from metatree_routers.query.spelling import distance, meant, near_stems

from metatree import QuestionNote, SearchResult, Tree, load_run, search
from metatree.testing.parts import tree_of

TEXTS = {
    "parser.md": "The parser has no support for left recursion. A grammar that needs it must be written anew.",
    "server.md": "The server listens on port 4711. To connect to another port, set the variable PORT.",
    "render.md": "A render of the page is written to the disk when it changes. The parser is asked for it.",
    "model.py": "class ActivationEnvironment:\n    fluence = 1e5\n",
    "codes.md": "The codes dlt and rcv stand for deal and receive. There is a table of them in the manual.",
}


@pytest.fixture
def tree() -> Tree:
    return tree_of(TEXTS)


def note(tree: Tree, question: str) -> QuestionNote | None:
    return TextEvidence(tree).note(question)


@pytest.mark.parametrize(
    ("question", "read_as"),
    [
        ("Does the parser suport left recursoin?", "Does the parser support left recursion?"),
        ("how do i conect to a servr", "how do i connect to a server"),
        ("wich port does the server use?", "which port does the server use?"),
        ("What fluence has an ActivationEnviroment?", "What fluence has an ActivationEnvironment?"),
        ("Is there a gramar?", "Is there a grammar?"),
        ("Does the Pasrer need it?", "Does the Parser need it?"),
    ],
)
def test_a_word_that_is_in_no_text_is_read_as_the_one_that_is_meant(
    tree: Tree, question: str, read_as: str
) -> None:
    assert note(tree, question) == QuestionNote(question, read_as)


@pytest.mark.parametrize(
    "question",
    [
        "Does the parser support left recursion?",
        'What does "suport" stand for?',
        "What does `recursoin` stand for?",
        "Where is left_recursoin defined?",
        "What is a PSER?",
        "What sound is played when a reminder fires?",  # a word of its own, two edits from `render`
        "How were the codes dealt with?",  # no slip of `deal`
        "Does it work with Nextcloud?",
        "What is the price?",
        "Is there a bust of Tabe?",  # a name, one edit from `table`
        "Which of the three codes is it?",
        "?",
    ],
)
def test_what_is_meant_as_it_stands_is_left_alone(tree: Tree, question: str) -> None:
    assert note(tree, question) is None


def test_an_identifier_that_exists_is_not_corrected() -> None:
    there = tree_of({"a.py": "def conect(): return support", "b.py": "def connect(): return support"})
    assert note(there, "What does conect return?") is None


def test_a_corrected_question_finds_and_answers_and_the_result_says_so(tree: Tree) -> None:
    asked = "Does the parser suport left recursoin?"
    found = search(asked, tree=tree, sure=0.1, run_id="r")
    shown = [*(source.quote for answer in found.answers for source in answer.sources)]
    shown += [passage.quote for passage in found.closest]
    assert "no support for left recursion" in shown[0]
    assert found.notes == (QuestionNote(asked, "Does the parser support left recursion?"),)
    assert all(answer.question == asked for answer in found.answers)
    assert load_run("r", tree=tree).notes == found.notes
    assert search("Does the parser support left recursion?", tree=tree).notes == ()


def test_words_that_are_new_in_the_tree_are_not_corrected_any_more(tree: Tree) -> None:
    evidence = TextEvidence(tree)
    assert evidence.note("Is there a gramar?") is not None
    tree_of({"new.md": "A gramar is something else."}, tree)
    assert evidence.note("Is there a gramar?") is None


def test_the_nearest_word_is_meant_and_the_more_frequent_of_equally_near_ones() -> None:
    assert meant("databse", {"databases": 9, "database": 1}, 2) == "database"
    assert meant("conect", {"connect": 2, "correct": 50}, 1) == "connect"
    assert meant("kilogram", {"program": 9}, 2) is None
    assert meant("anew", {"agnew": 1}, 1) is None
    assert meant("smal", {"small": 3}, 1) == "small"
    assert near_stems("recursoin", ["record", "recurs", "zebra"], 2)[0] == "recurs"
    assert distance("", "ab", 2) == 2


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wie kann ich dem Server einen anderen Port geben?", "German"),
        ("¿Con qué variable se cambia el puerto del servidor?", "Spanish"),
        ("Comment est-ce que je peux changer le port du serveur ?", "French"),
        ("Come posso cambiare la porta del server?", "Italian"),
        ("Hoe kan ik de poort van de server veranderen?", "Dutch"),
        ("Как изменить порт сервера?", "Russian"),
        ("サーバーのポートを変えるには?", "Japanese"),
    ],
)
def test_a_question_in_a_language_that_no_text_is_in_is_said_to_be_so(
    tree: Tree, question: str, language: str
) -> None:
    assert note(tree, question) == QuestionNote(question, "", language, ("English",))
    found: SearchResult = search(question, tree=tree, sure=0.5)
    assert found.open_questions == (question,)
    assert found.ended == "exhausted"
    assert found.notes == (QuestionNote(question, "", language, ("English",)),)


def test_a_question_in_the_language_of_some_texts_is_not() -> None:
    german = "Der Server hört auf Port 4711. Mit der Variablen PORT wird ein anderer Port gesetzt, auch für den Test."
    there = tree_of({**TEXTS, "server.de.md": german})
    assert note(there, "Wie wird der Port des Servers gesetzt?") is None
    assert languages_of([german, *TEXTS.values()])[0] == "English"
    assert language_of("PORT=4711 serve") is None


@pytest.mark.parametrize(
    "question",
    [
        "What must I do before I return something?",
        "Do I need to do something?",
        "How do I append a record to a file?",
    ],
)
def test_what_i_do_is_not_polish(question: str) -> None:
    assert language_of(question) in ("English", None)
