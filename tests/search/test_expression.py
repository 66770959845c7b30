import pytest
from maya import MayaError
from maya.search.expression import Expression, ExpressionError, Missing


@pytest.mark.parametrize("text, expected", [
    ("tp * pp * dp == world", True),
    ("world / (tp * pp)", 8),
    ("7 / 2", 3.5),
    ("2 ** 3 ** 2", 512),
    ("-2 ** 2", -4),
    ("10 - 3 - 2", 5),
    ("tp > 1 and not pp == 8 or false", True),
    ("1 < tp <= 2", True),
    ("tp in [1, 2, 4]", True),
    ("kind not in ['full', \"none\"]", True),
    ("'full' if tp > 4 else 'none'", "none"),
    ("max(1, ceil(7 / 2), gcd(12, 18))", 6),
    ("1_000 * 1.5e2", 150000.0),
    ("power_of_two(tp * pp)", True),
    ("divides(tp, 7)", False),
])
def test_values(text, expected):
    values = {"tp": 2, "pp": 4, "dp": 8, "world": 64, "kind": "selective"}
    assert Expression(text).value(values) == expected


@pytest.mark.parametrize("text, words", [
    ("tp *", "ends too early"),
    ("tp ** * 2", "unexpected `*` at column 7"),
    ("(tp", "expected `)`"),
    ("tp $ 2", "unexpected character '$' at column 4"),
    ("tp tp", "expected the end, found `tp` at column 4"),
    ("open('x')", "unknown function `open`"),
    ("__import__", "has no value"),
    ("", "empty"),
    ("(" * 100 + "1" + ")" * 100, "nested deeper"),
    ("1 + " * 600 + "1", "characters"),
    ("9 ** 99", "too large"),
    ("1 / 0", "division by zero at column 3"),
    ("'a' + 1", "at column 5"),
    ("x.y", "unexpected character '.'"),
])
def test_errors_name_the_place(text, words):
    with pytest.raises(ExpressionError) as problem:
        Expression(text).value({"tp": 2})
    assert words in str(problem.value)


def test_names_and_absent_values():
    expression = Expression("tp * dp if pp > 1 else min(tp, 2)")
    assert expression.names == {"tp", "dp", "pp"}
    with pytest.raises(Missing):
        expression.value({"tp": 1, "pp": None})
    assert issubclass(ExpressionError, MayaError)
