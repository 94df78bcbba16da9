"""The grammar that selects rows of a load-test table, such as `rf in (1, 3) and clients <= 256`.

================================= ===============================================================================
`clients <= 256`, `rf == 3`       a column compared with a number by `== != < <= > >=`, also `64 <= clients <= 256`
`version == '4.1'`                a column of text or of words compared with a quoted word: `==` and `!=` only
`encryption_client == 'yes'`      a column of flags: `'yes'` or `'no'`
`rf in (1, 3)`, `rf not in (5,)`  a column in a list of numbers or words
`and`, `or`, `not`, `( )`         these together
================================= ===============================================================================

Nothing else is accepted. An expression is parsed, never run as Python. A comparison with a missing cell is false.
Counts that differ by data centre, such as `6/6/3`, meet a comparison if every data centre meets it; `!=` and `not in`
are the reverse of `==` and `in`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capplan.errors import InputError, look_up, one_of
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_validation import Column
from capplan.models.language.per_dc import SEPARATOR

Mask: TypeAlias = NDArray[np.bool_]
_LONGEST = 2000  # characters
_ORDERED = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_MIRRORED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_FLAGS = {"yes": True, "no": False}


def chosen_rows(frame: pd.DataFrame, expression: str) -> Mask:
    """Return the rows of a load-test table that an expression selects, as a mask.

    Parameters
    ----------
    frame : pandas.DataFrame
        A load-test table, as `LOAD_TESTS.read` returns it.
    expression : str
        The expression; see the grammar above.

    Returns
    -------
    array of bool (rows,)
        Whether it keeps each row.

    Raises
    ------
    InputError
        If the expression does not follow the grammar, names an unknown column, or compares a column with what its cells
        cannot be.
    """
    if not expression.strip():
        raise InputError("the expression is empty: compare a column with a value, such as 'rf in (1, 3)'")
    if len(expression) > _LONGEST:
        raise InputError(f"the expression has {len(expression):,} characters: write at most {_LONGEST:,}")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _Rows(frame, expression).kept(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{expression!r} cannot be read: compare columns with values, such as 'rf in (1, 3) and clients <= 256'"
        ) from None


class _Rows:
    """The rows of a table, as the parts of an expression see them."""

    def __init__(self, frame: pd.DataFrame, expression: str) -> None:
        self.frame = frame
        self.expression = expression

    def kept(self, node: ast.expr) -> Mask:
        """Return the rows that meet a condition."""
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return np.asarray(np.logical_and.reduce([self.kept(part) for part in parts]))
            case ast.BoolOp(op=ast.Or(), values=parts):
                return np.asarray(np.logical_or.reduce([self.kept(part) for part in parts]))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return ~self.kept(part)
            case ast.Compare(left=left, ops=signs, comparators=rights):
                sides = zip((left, *rights), signs, rights, strict=False)
                return np.asarray(np.logical_and.reduce([self.compared(*each) for each in sides]))
            case ast.Name(id=name):
                column = self.column(name)
                example = "'yes'" if column.kind == "flag" else "3"
                raise InputError(f"{name!r} alone is not a comparison: write one, such as {name} == {example}")
        raise self.refused(node, "it is not a comparison, such as rf == 3")

    def compared(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Mask:
        """Return the rows that meet one comparison."""
        if isinstance(sign, (ast.In, ast.NotIn)):
            if not isinstance(left, ast.Name) or not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
                raise self.refused(left, "'in' needs a column and a list, such as rf in (1, 3)")
            column = self.column(left.id)
            wanted = [self.constant(each, column) for each in right.elts]
            return self._of_cells(column, lambda cell: cell in wanted, isinstance(sign, ast.NotIn))
        if isinstance(sign, (ast.Is, ast.IsNot)):
            raise self.refused(left, "compare with ==, !=, <, <=, >, >= or in")
        kind = type(sign)
        if isinstance(right, ast.Name) and not isinstance(left, ast.Name):
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        if not isinstance(left, ast.Name):
            raise self.refused(left, "one side of a comparison must be a column, such as clients <= 256")
        column = self.column(left.id)
        value = self.constant(right, column)
        if kind in (ast.Eq, ast.NotEq):
            return self._of_cells(column, lambda cell: cell == value, kind is ast.NotEq)
        if isinstance(value, (str, bool)):
            raise InputError(f"{self.text(left)} and {self.text(right)} have no order: compare words with ==, != or in")
        return self._of_cells(column, lambda cell: not isinstance(cell, str) and _ORDERED[kind](cell, value), False)

    def column(self, name: str) -> Column:
        """Return a column by name."""
        return look_up(LOAD_TESTS.columns, name, f"column {name!r} is unknown in a load-test table")

    def constant(self, node: ast.expr, column: Column) -> float | str | bool:
        """Return a value to compare the cells of a column with."""
        value = _value(node)
        if value is None:
            if isinstance(node, ast.Name):
                hint = f"quote {node.id!r} if it is a word" if node.id not in LOAD_TESTS.columns else "give a value"
                raise InputError(f"{self.text(node)} is no value to compare {column.name!r} with: {hint}")
            raise self.refused(node, f"compare {column.name!r} with a number or a quoted word")
        if column.kind == "flag":
            if isinstance(value, bool) or value in _FLAGS:
                return _FLAGS.get(str(value), bool(value)) if isinstance(value, str) else value
            raise InputError(f"{column.name!r} is compared with {value!r}: write 'yes' or 'no'")
        if column.kind in ("text", "choice", "shares"):
            return self._word(value, column)
        if isinstance(value, (str, bool)) and not (column.kind == "per_dc" and SEPARATOR in str(value)):
            raise InputError(f"{column.name!r} is compared with {value!r}: write a number, without quotes or a unit")
        return value

    def _word(self, value: float | str | bool, column: Column) -> str:
        if not isinstance(value, str):
            raise InputError(f"{column.name!r} is text: quote what it is compared with, such as '{value}'")
        if column.choices:
            one_of(column.choices, value, f"{column.name!r} is never {value!r}")
        return value

    def _of_cells(self, column: Column, meets: Callable[[Any], bool], reverse: bool) -> Mask:
        cells = self.frame[column.name]
        known = ~cells.isna().to_numpy(dtype=bool)
        met = np.zeros(len(cells), dtype=bool)
        for place in np.flatnonzero(known):
            met[place] = _every(cells.iloc[place], column, meets)
        return np.asarray((met ^ reverse) & known)

    def text(self, node: ast.expr) -> str:
        """Return a part of the expression as the user wrote it."""
        return ast.get_source_segment(self.expression.strip(), node) or ast.unparse(node)

    def refused(self, node: ast.expr, rule: str) -> InputError:
        """Return the error for a part that is outside the grammar."""
        return InputError(f"{self.text(node)!r} in {self.expression!r} is not allowed: {rule}")


def _value(node: ast.expr) -> float | str | bool | None:
    """Return the value of a constant; None if it is none."""
    match node:
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -float(value)
    return None


def _every(cell: Any, column: Column, meets: Callable[[Any], bool]) -> bool:
    """Whether a cell meets a comparison; counts by data centre must meet it as a whole text or each on their own."""
    if column.kind != "per_dc":
        return meets(cell)
    return all(meets(float(count)) for count in str(cell).split(SEPARATOR)) or meets(str(cell))
