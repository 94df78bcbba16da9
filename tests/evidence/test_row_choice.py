"""Expressions that choose rows of a load-test table."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows

ROWS = [
    LoadTestRow(rf=1, clients=64, version="4.0", consistency_read="ONE", encryption_client=False),
    LoadTestRow(rf=3, clients=256, version="4.0", consistency_read="QUORUM", encryption_client=True),
    LoadTestRow(rf=5, clients=512, version="4.1", consistency_read="QUORUM"),
    LoadTestRow(rf=(3, 3, 2), clients=256, version="4.1"),
    LoadTestRow(clients=128),
]
FRAME = LOAD_TESTS.frame(ROWS)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("rf in (1, 3)", [0, 1]),
        ("rf in (1, 3) and clients <= 64", [0]),
        ("rf not in (1, 3)", [2, 3]),
        ("rf == 3 or version == '4.1'", [1, 2, 3]),
        ("not (clients > 128)", [0, 4]),
        ("64 < clients <= 256", [1, 3, 4]),
        ("256 <= clients", [1, 2, 3]),
        ("rf <= 3", [0, 1, 3]),
        ("rf == '3/3/2'", [3]),
        ("rf != 3", [0, 2, 3]),
        ("version in ('4.0',)", [0, 1]),
        ('version != "4.0"', [2, 3]),
        ("consistency_read == 'QUORUM'", [1, 2]),
        ("encryption_client == 'yes'", [1]),
        ("encryption_client != 'yes'", [0]),
        ("clients == -1", []),
        ("(rf == 1) or ((rf == 5))", [0, 2]),
    ],
)
def test_an_expression_keeps_the_rows_that_meet_it(expression: str, kept: list[int]) -> None:
    assert np.flatnonzero(chosen_rows(FRAME, expression)).tolist() == kept


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("", "empty"),
        ("rff == 3", "'rf'"),
        ("rf = 3", "cannot be read"),
        ("rf == 3; clients == 1", "cannot be read"),
        ("clients", "alone"),
        ("clients <= '256'", "number"),
        ("rf == three", "'three'"),
        ("version == 4.0", "quote"),
        ("version < '4.1'", "order"),
        ("consistency_read == 'QOURUM'", "'QUORUM'"),
        ("encryption_client == 1", "'yes'"),
        ("clients + 1 == 65", "clients + 1"),
        ("__import__('os').system('true')", "not allowed"),
        ("clients == (lambda: 1)()", "compare 'clients'"),
        ("rf in range(3)", "list"),
        ("rf is 3", "=="),
        ("(" * 500 + "rf == 1" + ")" * 500, "cannot be read"),
        ("rf == 1 or " * 1000 + "rf == 1", "characters"),
    ],
)
def test_what_the_grammar_does_not_have_is_refused_in_one_sentence(expression: str, named: str) -> None:
    with pytest.raises(InputError) as refused:
        chosen_rows(FRAME, expression)
    assert named in str(refused.value)


@given(
    low=st.integers(0, 600),
    high=st.integers(0, 600),
    sign=st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    joined=st.sampled_from(["and", "or"]),
)
def test_an_expression_means_what_it_means_in_python(low: int, high: int, sign: str, joined: str) -> None:
    meets = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }[sign]
    clients = FRAME.clients.to_numpy(dtype=float)
    left, right = meets(clients, low), clients < high
    wanted = left & ~right if joined == "and" else left | ~right
    found = chosen_rows(FRAME, f"clients {sign} {low} {joined} not clients < {high}")
    assert found.tolist() == wanted.tolist()


def test_chosen_and_refused_rows_together_are_the_table() -> None:
    chosen = chosen_rows(FRAME, "clients <= 128")
    assert (chosen ^ chosen_rows(FRAME, "not clients <= 128")).all()
