"""What hands that know CLIPS, Drools or Soar type is refused with what to write instead, never read as a pattern."""

from __future__ import annotations

import pytest

from metatree.rules import Program, WorkingMemory, parse_facts
from metatree.rules.language.lexemes import RuleError
from metatree.rules.language.values import value_text


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ('((<x> == 2) -> "n")', 7, "found '==': write = for equal values"),
        ('((<x> w <y>) (<y> != 2) -> "n")', 19, "write <> for different values"),
        ('((?x on <y>) -> "n")', 3, "write <x> for a variable"),
        ('(($?rest on <y>) -> "n")', 3, "write <rest> for a variable"),
        ('(($p on <y>) -> "n")', 3, "write <p> for a variable"),
        ('((<x> on ?y&~table) -> "n")', 10, "write <y> for a variable, and a test such as (<y> <> 1)"),
        ('((<x> color << red blue >>) -> "n")', 13, "found '<<': write <x> and |{ (<x> = red)"),
        ('((<x> w { <w> > 3 }) -> "n")', 9, "found '{': write <x> and a test, (<x> > 3)"),
        ('((<x> w <> 3) -> "n")', 9, "found '<>': write <x> and a test, (<x> <> 1)"),
        ('((<x> w ~3) -> "n")', 9, "found '~3': write <x> and a test, (<x> <> 3)"),
        ('((<x> w ~?y) -> "n")', 9, "write <y> for a variable"),
        ('((<x> color red|blue) -> "n")', 13, "write <x> and |{ (<x> = red) | (<x> = blue) }, or"),
        (
            '((<x> w <y>) (eq <y> 3) -> "n")',
            15,
            "found 'eq': write = between its two sides, such as (<x> = 3)",
        ),
        ('((<x> w <y>) (neq <y> 3) -> "n")', 15, "write <> between its two sides"),
        ('((<s> ^on <y>) -> "n")', 7, "write (id on value), one pattern for each attribute"),
        ("((<x> on <y>) => (!! a b c))", 15, "write -> between conditions and actions"),
        ("((<x> on <y>) --> (!! a b c))", 15, "write -> between conditions and actions"),
        ('((<x> on <y>) && (<y> on <z>) -> "n")', 15, "write one condition after the other"),
        ('((<x> on <y>) || (<y> on <z>) -> "n")', 15, "write |{ conditions | conditions }"),
        ('((not (<x> on <y>)) -> "n")', 3, "write -{ conditions }"),
        ('((exists (<x> on <y>)) -> "n")', 3, "write +{ conditions }"),
        ('((or (a on b) (c on d)) -> "n")', 3, "write |{ conditions | conditions }"),
        ('((and (a on b) (c on d)) -> "n")', 3, "the conditions one after the other"),
        ('((<x> w <y>) (test (> <y> 3)) -> "n")', 15, "write the test alone, such as (<x> > 3)"),
        ('((<x> w <y>) (> <y> 3) -> "n")', 15, "write it between its two sides, such as (<x> > 3)"),
        ('((declare (salience 10)) (<x> w <y>) -> "n")', 3, 'such as "name" salience 10'),
        ('(?f <- (<x> on <y>) -> "n")', 2, "write the variable last, such as (<x> on <y>) as <f>"),
        (
            "((<x> on <y>) -> (assert (<y> under <x>)))",
            19,
            "write (!! id attribute value) for a fact to stay",
        ),
        ("((<x> on <y>) as <f> -> (retract <f>))", 26, "write (- <f>), with `as <f>`"),
        ("((<x> on <y>) -> (modify <x> (on <z>)))", 19, "write (:= id attribute value)"),
        ("(defrule move (a on b) => (assert (c on d)))", 2, 'write ( conditions -> actions "name" )'),
        ("(deffacts start (a on b))", 2, "write the facts one after the other"),
        ('rule "move" when then end', 1, 'write ( conditions -> actions "name" )'),
        ("sp {move (state <s> ^on <x>) --> }", 1, 'write ( conditions -> actions "name" )'),
        ("(?x on y)", 2, "write <x> for a variable"),
        ('((<x> w <y>) (#like(<x>, "a") = true) -> "n")', 24, "write #like(<x> <y>), with spaces"),
    ],
)
def test_it_is_refused_with_what_to_write(text: str, column: int, says: str) -> None:
    with pytest.raises(RuleError, match=f"^line 2, column {column}: ") as caught:
        Program.parse("\n" + text)
    assert says in str(caught.value)


def test_queries_refuse_it_too() -> None:
    with pytest.raises(RuleError, match="column 23: found '==': write ="):
        WorkingMemory().query("(<x> weighs <y>) (<y> == 2)")


@pytest.mark.parametrize(
    "text", ["==", "!=", "?x", "$x", "^w", "=>", "-->", "?x&y", "not", "|", "or", ":=", "~3", "a|b", "eq"]
)
def test_as_texts_they_can_be_in_facts(text: str) -> None:
    assert parse_facts(f"({value_text(text)} {value_text(text)} {value_text(text)})") == [(text,) * 3]
    memory = WorkingMemory()
    memory.add(text, text, ("a", "on", "b"))
    again = WorkingMemory()
    again.state(memory.text())
    assert list(again) == list(memory)


def test_words_of_other_languages_are_still_words() -> None:
    memory = WorkingMemory()
    memory.state(
        "(test result 3) (? is unknown) ($5 is price) (not a rule) (rule is short) (~/src is ~ann/src)"
    )
    assert memory.query("(test result <v>) (<x> is price) (not <a> <b>) (~/src is <home>)") == [
        {"v": 3, "x": "$5", "a": "a", "b": "rule", "home": "~ann/src"}
    ]
