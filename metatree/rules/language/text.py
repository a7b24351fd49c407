"""The text form of facts and productions.

    production  ( condition… -> "name" )   or   ( condition… -> action… "name" salience number )
    action      (! expression expression expression )   a fact, justified by the token
                (!! expression expression expression )  a fact, to stay
                (- <f> ) or (- expression expression expression )   takes a fact back
                (:= expression expression expression )  a fact to stay, instead of those with other values
    condition   ( term term term )   ( term term term ) as <f>
                ( expression op expression )          op: = <> < > <= >=
                #name( expression… )                  in brackets: a function that returns true
                -{ condition… }   +{ condition… }   |{ condition… | condition… }
                ( <v> <- #function( expression ) ) from { condition… }
    term        symbol, "text", number, <variable>, ( term term term ) without variables
    expression  term, #name( expression… ), ( expression + expression ), also with - * /

A `#` begins a comment, except right before a name and a bracket, and so does `;`. A symbol is any run of characters but
white space and `( ) < > { } " #`.

Source: the grammar of rete-next (Sfouflis), whose sample blackboard this reads as it stands; groups may nest, any
order of conditions is allowed, and an error says where it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, cast, get_args

from metatree.errors import UserError
from metatree.rules.language.conditions import (
    Action,
    Aggregate,
    Assertion,
    Binary,
    Comparator,
    Comparison,
    Condition,
    Either,
    Existence,
    Expression,
    Function,
    FunctionCall,
    Negation,
    Operator,
    Pattern,
    Production,
    Replacement,
    Retraction,
    Term,
    Var,
    is_operand,
)
from metatree.rules.language.functions import Functions
from metatree.rules.language.lexemes import Lexeme, LexemeReader, RuleError, cut
from metatree.rules.language.values import MAX_DIGITS, Fact, Value, foreign, is_numeral, number_of
from metatree.rules.matcher.scopes import compile_production

COMPARISONS: Final = frozenset(get_args(Comparator))
OPERATORS: Final = frozenset(get_args(Operator))
FUNCTIONS: Final = get_args(Function)
_TOKEN = re.compile(
    r"""(?P<space>[\s]+|;[^\n]*)
    |(?P<function>\#(?:sum|count|min|max|avg|collect)(?=\s*\()|\#[^\W\d][\w-]*(?=\())
    |(?P<comment>\#[^\n]*)
    |(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<variable><[^\s()<>{}"\#=;]+>)
    |(?P<sign>[-+|]\{|[(){}]|<-|->|<>|<=|>=|<|>|=(?=[\s()<]))
    |(?P<word>(?:[^\s()<>{}"\#;-]++|-(?!>))++)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADVICE: Final = "divide this into several productions or facts"
_MOST_SALIENT: Final = 1_000_000
_ACTIONS: Final = frozenset({"!", "!!", "-", ":="})
_FOREIGN_CONDITIONS: Final = {
    "not": "-{ conditions } for what must not be",
    "exists": "+{ conditions } for what must be, once or several times",
    "or": "|{ conditions | conditions }",
    "and": "the conditions one after the other",
    "test": "the test alone, such as (<x> > 3)",
    "forall": "-{ conditions -{ conditions } }: there is none for which the others do not hold",
    "eval": "the test alone, such as (<x> > 3), or (#name(<x>)) with a function of your own",
    "declare": 'salience and a number after the name, such as "name" salience 10',
}
_FOREIGN_COMPARISONS: Final = {"eq": "=", "neq": "<>"}
_FOREIGN_PLACES: Final = {
    "<<": "<x> and |{ (<x> = red) | (<x> = blue) }",
    "{": "<x> and a test, (<x> > 3)",
    "<>": "<x> and a test, (<x> <> 1)",
}
_FOREIGN_CONSTRUCTS: Final = {
    **dict.fromkeys(("defrule", "rule", "sp"), '( conditions -> actions "name" )'),
    "deffacts": "the facts one after the other, (id attribute value)",
    "deftemplate": "nothing: a fact is (id attribute value), one for each slot",
    "deffunction": "a function in Python, called as #name(<x>)",
}
_FOREIGN_ACTIONS: Final = {
    "assert": "(!! id attribute value) for a fact to stay, (! id attribute value) for one that the token justifies",
    "insert": "(!! id attribute value)",
    "insertLogical": "(! id attribute value)",
    "retract": "(- <f>), with `as <f>` after the pattern of the fact",
    "delete": "(- <f>), with `as <f>` after the pattern of the fact",
    "modify": "(:= id attribute value)",
    "update": "(:= id attribute value)",
    "bind": "the expression where its value is used",
    "printout": "nothing: the trace shows what was asserted",
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def lexemes(source: str, *, column: int = 1) -> list[Lexeme]:
    """Cut a text into words; its first character is in this column."""
    if not isinstance(source, str):
        raise UserError(f"{source!r} is no text of rules: give a str")
    return cut(source, _TOKEN, "a word, a number, or a bracket", column=column)


def parse_facts(source: str) -> list[Fact]:
    """Read facts such as `(a1 species rabbit) (rabbit weight 2)`.

    Example:
        >>> parse_facts('(rabbit weight 1.5) (a1 says "3 apples")  # a comment')
        [('rabbit', 'weight', Decimal('1.5')), ('a1', 'says', '3 apples')]
    """
    parser = Parser(lexemes(source))
    facts = []
    while parser.peek().kind != "end":
        parser.refuse_foreign_construct()
        facts.append(parser.fact())
    return facts


def parse_productions(source: str, functions: Functions | None = None) -> list[Production]:
    """Read productions such as `((<x> on <y>) (<y> weighs <w>) (<w> > 2) -> "heavy below")`.

    Args:
        functions: those that they may call; None does not look whether there are such.

    Raises:
        RuleSyntaxError: with line, column, what was found and what was expected.
    """
    parser = Parser(lexemes(source), functions)
    productions: list[Production] = []
    while parser.peek().kind != "end":
        parser.refuse_foreign_construct()
        productions.append(parser.production(default=f"rule {len(productions) + 1}"))
    return productions


def parse_conditions(source: str, functions: Functions | None = None) -> tuple[Condition, ...]:
    """Read conditions alone, as a query has them; raises RuleError."""
    parser = Parser(lexemes(source), functions)
    first = parser.peek()
    conditions = parser.conditions({"end"})
    checked_variables(Production("query", conditions), first)
    return conditions


def checked_variables(production: Production, at: Lexeme) -> Production:
    """Return a production; raises RuleError when one of its variables has no value."""
    try:
        compile_production(production)
    except UserError as exc:
        raise RuleError(at.line, at.column, str(exc)) from exc
    return production


class Parser(LexemeReader):
    """Reads facts, productions and conditions; also used for programs, which have sections of their own."""

    def __init__(self, words: list[Lexeme], functions: Functions | None = None) -> None:
        super().__init__(words)
        self._functions = functions

    def begins_production(self) -> bool:
        """Say whether the bracket that comes next holds a production, which has an arrow, or a fact."""
        depth, ahead = 0, 0
        while (word := self.peek(ahead)).kind != "end":
            if word.kind in ("(", "{", "-{", "+{", "|{"):
                depth += 1
            elif word.kind in (")", "}"):
                depth -= 1
                if depth == 0:
                    return False
            elif depth == 1 and (word.kind == "->" or self._is_foreign_arrow(ahead)):
                return True
            ahead += 1
        return self.peek(1).kind in ("(", "-{", "+{", "|{")

    def _is_foreign_arrow(self, ahead: int = 0) -> bool:
        """Say whether `=>` or `-->` comes; both are cut in two."""
        pair = self.peek(ahead).text, self.peek(ahead + 1).kind
        return pair in (("=", ">"), ("-", "->"))

    def refuse_foreign_construct(self) -> None:
        """Raise RuleError where a construct of CLIPS, Drools or Soar begins."""
        opening = self.peek()
        word = self.peek(1) if opening.kind == "(" else opening
        if opening.kind == "(" and (not word.text.startswith("def") or self.peek(4).kind == ")"):
            return
        if word.kind == "word" and (instead := _FOREIGN_CONSTRUCTS.get(word.text)) is not None:
            self.wrong(word, f"found {word}: write {instead}")

    def fact(self) -> Fact:
        """Read one fact."""
        self.take("(", "'(' and a fact")
        with self.deeper(_ADVICE):
            parts = (self.value(), self.value(), self.value())
        self.take(")", "')' after the three values of a fact")
        return parts

    def value(self) -> Value:
        """Read one value without variables."""
        word = self.peek()
        if word.kind == "(":
            return self.fact()
        if word.kind == "text":
            self.take()
            inner = word.text[1:-1]
            return _ESCAPE.sub(lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), inner)
        self.take("word", "a symbol, a number, or a text in quotes")
        if (instead := foreign(word.text)) is not None:
            self.wrong(word, f"found {word}: write {instead}, or {_quoted(word.text)} for the text itself")
        if len(word.text) > MAX_DIGITS and is_numeral(word.text):
            self.fail(f"a number of at most {MAX_DIGITS:,} digits", word)
        number = number_of(word.text)
        return word.text if number is None else number

    def production(self, *, default: str) -> Production:
        """Read one production; one without a name gets the default."""
        first = self.take("(", "'(' and a production")
        conditions = self.conditions({"->"})
        self.take("->")
        actions: list[Action] = []
        while self.peek().kind == "(":
            actions.append(self._action())
        name = default
        if self.peek().kind == "text" or not actions:
            if self.peek().kind != "text":
                self.fail(
                    'the name of the production in quotes, or an action: "(! …)", "(!! …)", "(- …)", "(:= …)"'
                )
            name = str(self.value())
        salience = 0
        if self.peek().text == "salience":
            self.take()
            word = self.peek()
            number = self.value()
            if type(number) is not int or abs(number) > _MOST_SALIENT:
                self.fail(f"a whole number from {-_MOST_SALIENT:,} to {_MOST_SALIENT:,}", word)
            salience = number
        self.take(")", "')' after the name of the production, or salience and a number")
        return checked_variables(Production(name, conditions, tuple(actions), salience), first)

    def conditions(self, ends: Collection[str]) -> tuple[Condition, ...]:
        """Read conditions up to a word of one of these kinds."""
        conditions: list[Condition] = []
        while not self._ends(ends):
            conditions.append(self.condition())
        if not conditions:
            self.fail("a condition: '(', '-{', '+{' or '|{'")
        return tuple(conditions)

    def _ends(self, ends: Collection[str]) -> bool:
        word = self.peek()
        return word.kind in ends or (word.kind == "word" and word.text in ends)

    def condition(self) -> Condition:
        """Read one condition."""
        word = self.peek()
        if word.kind == "|{":
            return self._either()
        if word.kind in ("-{", "+{"):
            self.take()
            with self.deeper(_ADVICE):
                inner = self.conditions({"}"})
            self.take("}")
            return Negation(inner) if word.kind == "-{" else Existence(inner)
        if word.kind != "(":
            if self._is_foreign_arrow():
                self.wrong(
                    word, "found an arrow of another language: write -> between conditions and actions"
                )
            if self.peek(1).kind == "<-":
                self.wrong(
                    word, f"found {word} and '<-': write the variable last, such as (<x> on <y>) as <f>"
                )
            if word.kind == "word" and word.text in _FOREIGN_CONDITIONS:
                self.wrong(word, f"found {word}: write {_FOREIGN_CONDITIONS[word.text]}")
            if word.kind == "word" and (instead := foreign(word.text)) is not None:
                self.wrong(word, f"found {word}: write {instead}")
            self.fail("a condition: '(', '-{', '+{' or '|{', or '->' after the conditions")
        if self.peek(1).kind == "variable" and self.peek(2).kind == "<-":
            return self._aggregate()
        self.take()
        begins = self.peek()
        if begins.text in _FOREIGN_CONDITIONS and self.peek(1).kind == "(":
            self.wrong(begins, f"found {begins}: write {_FOREIGN_CONDITIONS[begins.text]}")
        if begins.kind in COMPARISONS:
            self.wrong(
                begins, f"found {begins}: write it between its two sides, such as (<x> {begins.text} 3)"
            )
        if (instead := _FOREIGN_COMPARISONS.get(begins.text)) and self.peek(1).kind == "variable":
            self.wrong(
                begins, f"found {begins}: write {instead} between its two sides, such as (<x> {instead} 3)"
            )
        left = self._expression()
        if isinstance(left, FunctionCall) and self.peek().kind == ")":
            self.take()
            return Comparison(left, "=", "true")
        if self.peek().kind in COMPARISONS:
            comparison = cast(Comparator, self.take().text)
            right = self._expression()
            self.take(")", "')' after the test")
            return Comparison(left, comparison, right)
        if isinstance(left, Binary | FunctionCall):
            self._foreign_word()
            self.fail("a comparison (= <> < > <= >=) after an expression")
        attribute, value = self._term(), self._term()
        self.take(")", "')' after the three places of a pattern")
        fact = None
        if self.peek().kind == "word" and self.peek().text == "as":
            self.take()
            fact = self._variable("a variable for the fact, such as <f>")
        return Pattern(left, attribute, value, fact)

    def _aggregate(self) -> Aggregate:
        self.take()
        variable = self._variable("a variable")
        self.take("<-")
        expected = f"a function: {' '.join('#' + f for f in FUNCTIONS)}"
        if self.peek().text[1:] not in FUNCTIONS:
            self.fail(expected)
        function = self.take("function", expected).text[1:]
        self.take("(")
        expression = None
        if self.peek().kind == ")" and function != "count":
            self.fail(f"what #{function} is over, such as <w>")
        if self.peek().kind != ")":
            first = self.peek()
            expression = self._expression()
            if self.peek().text in OPERATORS:  # #sum(<a> * <b>) needs no second pair of brackets
                expression = self._binary(expression, first)
        self.take(")")
        self.take(")")
        word = self.peek()
        if word.text != "from":
            self.fail("'from' and the conditions in braces")
        self.take()
        self.take("{")
        with self.deeper(_ADVICE):
            inner = self.conditions({"}"})
        self.take("}")
        return Aggregate(variable, cast(Function, function), expression, inner)

    def _either(self) -> Either:
        opening = self.take("|{")
        branches: list[tuple[Condition, ...]] = []
        with self.deeper(_ADVICE):
            while True:
                branches.append(self.conditions({"|", "}"}))
                if self.peek().kind == "}":
                    break
                self.take()
        self.take("}")
        if len(branches) == 1:
            self.wrong(
                opening, "one alternative only: put '|' between several, such as |{ (<x> is a) | (<x> is b) }"
            )
        return Either(tuple(branches))

    def _action(self) -> Action:
        """Read what a production asserts, takes back or changes."""
        self.take("(")
        word = self.peek()
        if word.text not in _ACTIONS or word.kind != "word":
            if word.kind == "word" and word.text in _FOREIGN_ACTIONS:
                self.wrong(word, f"found {word}: write {_FOREIGN_ACTIONS[word.text]}")
            self.fail(
                "'!' or '!!' and the fact to assert, '-' and the fact to take back, or ':=' and the fact to set"
            )
        self.take()
        first = self._expression()
        if word.text == "-" and isinstance(first, Var) and self.peek().kind == ")":
            self.take()
            return Retraction((first,))
        parts = first, self._expression(), self._expression()
        self.take(")", "')' after the three places of the fact")
        match word.text:
            case "-":
                return Retraction(parts)
            case ":=":
                return Replacement(*parts)
            case sign:
                return Assertion(*parts, sign == "!!")

    def _call(self) -> FunctionCall:
        """Read a function and what it is called with."""
        word = self.take("function")
        name = word.text[1:]
        if name in FUNCTIONS:
            self.wrong(
                word,
                f"#{name} is computed over facts: write (<v> <- #{name}(…)) from {{ conditions }}, and use <v> here",
            )
        if self._functions is not None and name not in self._functions:
            self.wrong(
                word,
                f"there is no function #{name}: there are {self._functions.named()}; a comment needs a space after #",
            )
        self.take("(")
        arguments: list[Expression] = []
        with self.deeper(_ADVICE):
            while self.peek().kind != ")":
                arguments.append(self._expression())
                if self.peek().text == ",":
                    self.wrong(
                        self.peek(), f"found ',': write #{name}(<x> <y>), with spaces between the arguments"
                    )
        self.take(")")
        return FunctionCall(name, tuple(arguments))

    def _foreign_word(self) -> None:
        word = self.peek()
        if word.kind == "word" and (instead := foreign(word.text)) is not None:
            self.wrong(word, f"found {word}: write {instead}")

    def _expression(self) -> Expression:
        """Read a term, a call or arithmetic in brackets; a bracket in the first place may also be a fact."""
        if self.peek().kind == "function":
            return self._call()
        if self.peek().kind != "(":
            return self._term()
        opening = self._at
        self.take("(")
        first = self.peek()
        with self.deeper(_ADVICE):
            left = self._expression()
            if self.peek().text in OPERATORS:
                expression = self._binary(left, first)
                self.take(")", "')' after the expression")
                return expression
        if isinstance(left, Binary | FunctionCall):
            self.fail("an operator: + - * /")
        self._at = opening
        return self.fact()

    def _binary(self, left: Expression, first: Lexeme) -> Binary:
        """Read an operator and what stands behind it."""
        operator = cast(Operator, self.take().text)
        second = self.peek()
        right = self._expression()
        for operand, word in ((left, first), (right, second)):
            if not is_operand(operand):
                self.fail(f"a number or a variable, since there is {operator!r} beside it", word)
        return Binary(left, operator, right)

    def _term(self) -> Term:
        if self.peek().kind == "variable":
            return Var(self._variable("a variable"))
        if self.peek().kind not in ("(", "text", "word"):
            pair = self.peek().text + (self.peek(1).text if self.peek().kind == "<" else "")
            if pair in _FOREIGN_PLACES:
                self.wrong(self.peek(), f"found {pair!r}: write {_FOREIGN_PLACES[pair]}")
            self.fail("a variable, a symbol, a number, or a text in quotes")
        return self.value()

    def _variable(self, expected: str) -> str:
        return self.take("variable", expected).text[1:-1]


def _quoted(text: str) -> str:
    return f'"{text}"'
