"""Expressions of a search space: `tp * pp * dp == world`, `"full" if deep else "none"`.

A small language with a parser of its own; nothing is ever given to Python's eval. Names are parameters, constants and
derived values of the space. Size, depth and values are bounded, so an expression from a file cannot take the program
down.

    conditional  = disjunction [ "if" disjunction "else" conditional ]
    disjunction  = conjunction { "or" conjunction }
    conjunction  = negation { "and" negation }              negation    = [ "not" ] comparison
    comparison   = sum { ("==" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in") sum }
    sum          = product { ("+" | "-") product }          product     = unary { ("*" | "/" | "//" | "%") unary }
    unary        = ["-" | "+"] power                        power       = atom [ "**" unary ]
    atom         = number | string | "true" | "false" | name [ "(" arguments ")" ] | "(" conditional ")" | "[" list "]"

`/` of two whole numbers gives a whole number where it divides evenly, otherwise a fraction.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from maya import MayaError

MAX_LENGTH = 2000
MAX_DEPTH = 60
MAX_MAGNITUDE = 2**63  # limit for integers, so that powers cannot exhaust the memory


class ExpressionError(MayaError):
    """An expression that cannot be read or evaluated; the message names the place."""


class Missing(ExpressionError):
    """A name that has no value (a parameter that is absent in this configuration)."""


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|\d[\d_]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<string>\"[^\"\\]*\"|'[^'\\]*')"
    r"|(?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%<>()\[\],]))"
)

_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "min": (1, 20, min),
    "max": (1, 20, max),
    "abs": (1, 1, abs),
    "ceil": (1, 1, math.ceil),
    "floor": (1, 1, math.floor),
    "round": (1, 1, round),
    "log2": (1, 1, math.log2),
    "sqrt": (1, 1, math.sqrt),
    "gcd": (2, 2, math.gcd),
    "divides": (2, 2, lambda divisor, number: number % divisor == 0),
    "power_of_two": (1, 1, lambda n: n == int(n) and n > 0 and int(n) & (int(n) - 1) == 0),
}
_KEYWORDS = {"and", "or", "not", "in", "if", "else", "true", "false", "True", "False"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int  # from 1


def _tokens(text: str) -> list[_Token]:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text)} characters, at most {MAX_LENGTH} are read")
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            raise ExpressionError(_at(text, column, f"unexpected character {text[column - 1]!r}"))
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        position = match.end()
    found.append(_Token("end", "", len(text) + 1))
    return found


def _at(text: str, column: int, problem: str) -> str:
    return f"{problem} at column {column} of the expression `{text}`"


Node = tuple  # (operation, column, operands…)


class _Parser:
    def __init__(self, text: str):
        self.text, self.tokens, self.next, self.depth = text, _tokens(text), 0, 0
        self.names: set[str] = set()

    def fail(self, problem: str, token: _Token | None = None) -> ExpressionError:
        return ExpressionError(_at(self.text, (token or self.tokens[self.next]).column, problem))

    def peek(self, *texts: str) -> bool:
        token = self.tokens[self.next]
        return token.kind in ("sign", "name") and token.text in texts

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += token.kind != "end"
        return token

    def expect(self, text: str) -> None:
        if not self.peek(text):
            found = self.tokens[self.next]
            raise self.fail(f"expected `{text}`, found {'the end' if found.kind == 'end' else '`' + found.text + '`'}")
        self.take()

    def whole(self) -> Node:
        if self.tokens[0].kind == "end":
            raise ExpressionError("the expression is empty")
        node = self.conditional()
        if self.tokens[self.next].kind != "end":
            raise self.fail(f"expected the end, found `{self.tokens[self.next].text}`")
        return node

    def conditional(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"nested deeper than {MAX_DEPTH}")
        value = self.disjunction()
        if self.peek("if"):
            column = self.take().column
            condition = self.disjunction()
            self.expect("else")
            value = ("if", column, condition, value, self.conditional())
        self.depth -= 1
        return value

    def disjunction(self) -> Node:
        return self.chain(self.conjunction, "or")

    def conjunction(self) -> Node:
        return self.chain(self.negation, "and")

    def chain(self, part: Callable[[], Node], word: str) -> Node:
        node = part()
        while self.peek(word):
            column = self.take().column
            node = (word, column, node, part())
        return node

    def negation(self) -> Node:
        count, column = 0, 0
        while self.peek("not"):
            column = self.take().column
            count += 1
        node = self.comparison()
        return ("not", column, node) if count % 2 else node

    def comparison(self) -> Node:
        left = self.sum()
        links = []
        while self.peek("==", "!=", "<", "<=", ">", ">=", "in", "not"):
            token = self.take()
            name = token.text
            if name == "not":
                self.expect("in")
                name = "not in"
            links.append((name, token.column, self.sum()))
        return ("compare", links[0][1], left, tuple(links)) if links else left

    def sum(self) -> Node:
        node = self.product()
        while self.peek("+", "-"):
            token = self.take()
            node = (token.text, token.column, node, self.product())
        return node

    def product(self) -> Node:
        node = self.unary()
        while self.peek("*", "/", "//", "%"):
            token = self.take()
            node = (token.text, token.column, node, self.unary())
        return node

    def unary(self) -> Node:
        negative, column = False, self.tokens[self.next].column
        while self.peek("-", "+"):
            negative ^= self.take().text == "-"
        node = self.power()
        return ("negative", column, node) if negative else node

    def power(self) -> Node:
        node = self.atom()
        if self.peek("**"):
            column = self.take().column
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self.fail(f"nested deeper than {MAX_DEPTH}")
            node = ("**", column, node, self.unary())
            self.depth -= 1
        return node

    def atom(self) -> Node:
        token = self.take()
        if token.kind == "number":
            text = token.text.replace("_", "")
            value = int(text) if text.isdigit() else float(text)
            if abs(value) > MAX_MAGNITUDE and isinstance(value, int):
                raise self.fail("the number is too large", token)
            return ("value", token.column, value)
        if token.kind == "string":
            return ("value", token.column, token.text[1:-1])
        if token.text == "(":
            node = self.conditional()
            self.expect(")")
            return node
        if token.text == "[":
            return ("list", token.column, tuple(self.arguments("]")))
        if token.kind == "name":
            if token.text in ("true", "True", "false", "False"):
                return ("value", token.column, token.text in ("true", "True"))
            if token.text in _KEYWORDS:
                raise self.fail(f"`{token.text}` is not expected here", token)
            if self.peek("("):
                self.take()
                if token.text not in _FUNCTIONS:
                    raise self.fail(
                        f"unknown function `{token.text}` (there are {', '.join(sorted(_FUNCTIONS))})", token
                    )
                arguments = self.arguments(")")
                least, most, _ = _FUNCTIONS[token.text]
                if not least <= len(arguments) <= most:
                    raise self.fail(f"`{token.text}` does not take {len(arguments)} arguments", token)
                return ("call", token.column, token.text, tuple(arguments))
            self.names.add(token.text)
            return ("name", token.column, token.text)
        raise self.fail("the expression ends too early" if token.kind == "end" else f"unexpected `{token.text}`", token)

    def arguments(self, close: str) -> list[Node]:
        found: list[Node] = []
        while not self.peek(close):
            if found:
                self.expect(",")
            found.append(self.conditional())
        self.take()
        return found


def _compare(name: str, a: Any, b: Any) -> bool:
    if name == "==":
        return a == b
    if name == "!=":
        return a != b
    if name == "in":
        return a in b
    if name == "not in":
        return a not in b
    if name == "<":
        return a < b
    if name == "<=":
        return a <= b
    return a > b if name == ">" else a >= b


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a % b == 0:
        return a // b
    return a / b


def _arithmetic(operation: str, a: Any, b: Any) -> Any:
    if operation == "+":
        return a + b
    if operation == "-":
        return a - b
    if operation == "*":
        if isinstance(a, (str, tuple)) or isinstance(b, (str, tuple)):
            raise TypeError("cannot multiply text")
        return a * b
    if operation == "/":
        return _divide(a, b)
    if operation == "//":
        return a // b
    if operation == "%":
        if isinstance(a, str):
            raise TypeError("cannot take the remainder of text")
        return a % b
    if abs(b) > 64 or abs(a) > 1e18:
        raise OverflowError("the power is too large")
    return a**b


class Expression:
    """A parsed expression: `Expression("tp * pp").value({"tp": 2, "pp": 4})` is 8."""

    def __init__(self, text: str):
        if not isinstance(text, str):
            raise ExpressionError(f"expected an expression in quotes, found {text!r}")
        self.text = text.strip()
        parser = _Parser(self.text)
        self._root = parser.whole()
        self.names = frozenset(parser.names)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def value(self, values: Mapping[str, Any]) -> Any:
        return self._evaluate(self._root, values)

    def holds(self, values: Mapping[str, Any]) -> bool:
        return bool(self.value(values))

    def _evaluate(self, node: Node, values: Mapping[str, Any]) -> Any:
        kind, column = node[0], node[1]
        if kind == "value":
            return node[2]
        if kind == "name":
            value = values.get(node[2])
            if value is None:
                raise Missing(_at(self.text, column, f"`{node[2]}` has no value"))
            return value
        if kind == "and":
            return bool(self._evaluate(node[2], values)) and bool(self._evaluate(node[3], values))
        if kind == "or":
            return bool(self._evaluate(node[2], values)) or bool(self._evaluate(node[3], values))
        if kind == "if":
            return self._evaluate(node[3] if self._evaluate(node[2], values) else node[4], values)
        try:
            if kind == "not":
                return not self._evaluate(node[2], values)
            if kind == "negative":
                return -self._evaluate(node[2], values)
            if kind == "list":
                return tuple(self._evaluate(item, values) for item in node[2])
            if kind == "call":
                value = _FUNCTIONS[node[2]][2](*(self._evaluate(item, values) for item in node[3]))
            elif kind == "compare":
                left = self._evaluate(node[2], values)
                for name, _, right_node in node[3]:
                    right = self._evaluate(right_node, values)
                    if not _compare(name, left, right):
                        return False
                    left = right
                return True
            else:
                value = _arithmetic(kind, self._evaluate(node[2], values), self._evaluate(node[3], values))
        except ZeroDivisionError:
            raise ExpressionError(_at(self.text, column, "division by zero")) from None
        except (TypeError, ValueError, OverflowError) as problem:
            raise ExpressionError(_at(self.text, column, f"{problem}")) from None
        if isinstance(value, int) and abs(value) > MAX_MAGNITUDE:
            raise ExpressionError(_at(self.text, column, "the value is too large"))
        if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
            raise ExpressionError(_at(self.text, column, "the value is not a finite real number"))
        return value
