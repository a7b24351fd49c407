"""The text form of facts and productions.

    production  ( condition… -> "name" )   or   ( condition… -> assertion… "name" )
    assertion   (! expression expression expression )   justified by the token
                (!! expression expression expression )  to stay
    condition   ( term term term )   ( term term term ) as <f>
                ( expression op expression )          op: = <> < > <= >=
                -{ condition… }   +{ condition… }
                ( <v> <- #function( expression ) ) from { condition… }
    term        symbol, "text", number, <variable>, ( term term term ) without variables
    expression  term, ( expression + expression ), also with - * /

A `#` begins a comment, except in the name of a function, and so does `;`. A symbol is any run of characters but white
space and `( ) < > { } " #`.

Source: the grammar of rete-next (Sfouflis), whose sample blackboard this reads as it stands; groups may nest, any
order of conditions is allowed, and an error says where it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, cast, get_args

from metatree.errors import UserError
from metatree.rules.language.conditions import (
    Aggregate,
    Assertion,
    Binary,
    Comparator,
    Comparison,
    Condition,
    Existence,
    Expression,
    Function,
    Negation,
    Operator,
    Pattern,
    Production,
    Term,
    Var,
    is_operand,
)
from metatree.rules.language.lexemes import MAX_DIGITS, Lexeme, LexemeReader, RuleError, cut
from metatree.rules.language.values import Fact, Value, number_of
from metatree.rules.matcher.scopes import compile_production

COMPARISONS: Final = frozenset(get_args(Comparator))
OPERATORS: Final = frozenset(get_args(Operator))
FUNCTIONS: Final = get_args(Function)
_TOKEN = re.compile(
    r"""(?P<space>[\s]+|;[^\n]*)
    |(?P<function>\#(?:sum|count|min|max|avg|collect)(?=\s*\())
    |(?P<comment>\#[^\n]*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<variable><[^\s()<>{}"\#=;]+>)
    |(?P<sign>[-+]\{|[(){}]|<-|->|<>|<=|>=|<|>|=(?=[\s()<]))
    |(?P<word>(?:(?!->)[^\s()<>{}"\#;])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADVICE: Final = "divide this into several productions or facts"
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def lexemes(source: str) -> list[Lexeme]:
    """Cut a text into words."""
    return cut(source, _TOKEN, "a word, a number, or a bracket")


def parse_facts(source: str) -> list[Fact]:
    """Read facts such as `(a1 species rabbit) (rabbit weight 2)`.

    Example:
        >>> parse_facts('(rabbit weight 1.5) (a1 says "3 apples")  # a comment')
        [('rabbit', 'weight', Decimal('1.5')), ('a1', 'says', '3 apples')]
    """
    parser = Parser(lexemes(source))
    facts = []
    while parser.peek().kind != "end":
        facts.append(parser.fact())
    return facts


def parse_productions(source: str) -> list[Production]:
    """Read productions such as `((<x> on <y>) (<y> weighs <w>) (<w> > 2) -> "heavy below")`.

    Raises:
        RuleSyntaxError: with line, column, what was found and what was expected.
    """
    parser = Parser(lexemes(source))
    productions: list[Production] = []
    while parser.peek().kind != "end":
        productions.append(parser.production(default=f"rule {len(productions) + 1}"))
    return productions


def parse_conditions(source: str) -> tuple[Condition, ...]:
    """Read conditions alone, as a query has them; raises RuleError."""
    parser = Parser(lexemes(source))
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

    def begins_production(self) -> bool:
        """Say whether the bracket that comes next holds a production, which has an arrow, or a fact."""
        depth, ahead = 0, 0
        while (word := self.peek(ahead)).kind != "end":
            if word.kind in ("(", "{", "-{", "+{"):
                depth += 1
            elif word.kind in (")", "}"):
                depth -= 1
                if depth == 0:
                    return False
            elif word.kind == "->" and depth == 1:
                return True
            ahead += 1
        return self.peek(1).kind in ("(", "-{", "+{")

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
        if len(word.text) > MAX_DIGITS and word.text.lstrip("+-").isdecimal():
            self.fail(f"a number of at most {MAX_DIGITS:,} digits", word)
        number = number_of(word.text)
        return word.text if number is None else number

    def production(self, *, default: str) -> Production:
        """Read one production; one without a name gets the default."""
        first = self.take("(", "'(' and a production")
        conditions = self.conditions({"->"})
        self.take("->")
        asserts = []
        while self.peek().kind == "(":
            asserts.append(self._assertion())
        name = default
        if self.peek().kind == "text" or not asserts:
            if self.peek().kind != "text":
                self.fail('the name of the production in quotes, or "(! …)"')
            name = str(self.value())
        self.take(")", "')' after the name of the production")
        return checked_variables(Production(name, conditions, tuple(asserts)), first)

    def conditions(self, ends: Collection[str]) -> tuple[Condition, ...]:
        """Read conditions up to a word of one of these kinds."""
        conditions: list[Condition] = []
        while self.peek().kind not in ends:
            conditions.append(self.condition())
        if not conditions:
            self.fail("a condition: '(', '-{' or '+{'")
        return tuple(conditions)

    def condition(self) -> Condition:
        """Read one condition."""
        word = self.peek()
        if word.kind in ("-{", "+{"):
            self.take()
            with self.deeper(_ADVICE):
                inner = self.conditions({"}"})
            self.take("}")
            return Negation(inner) if word.kind == "-{" else Existence(inner)
        if word.kind != "(":
            self.fail("a condition: '(', '-{' or '+{', or '->' after the conditions")
        if self.peek(1).kind == "variable" and self.peek(2).kind == "<-":
            return self._aggregate()
        self.take()
        left = self._expression()
        if self.peek().kind in COMPARISONS:
            comparison = cast(Comparator, self.take().text)
            right = self._expression()
            self.take(")", "')' after the test")
            return Comparison(left, comparison, right)
        if isinstance(left, Binary):
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
        function = self.take("function", f"a function: {' '.join('#' + f for f in FUNCTIONS)}").text[1:]
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

    def _assertion(self) -> Assertion:
        self.take("(")
        if self.peek().text not in ("!", "!!"):
            self.fail("'!' or '!!', and the fact to assert")
        lasting = self.take().text == "!!"
        parts = (self._expression(), self._expression(), self._expression())
        self.take(")", "')' after the three places of the fact")
        return Assertion(*parts, lasting)

    def _expression(self) -> Expression:
        """Read a term or arithmetic in brackets; a bracket in the first place of a pattern may also be a fact."""
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
        if isinstance(left, Binary):
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
            self.fail("a variable, a symbol, a number, or a text in quotes")
        return self.value()

    def _variable(self, expected: str) -> str:
        return self.take("variable", expected).text[1:-1]
