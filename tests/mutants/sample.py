"""The mutants that the campaign tries: drawn at random from the code that decides answers, folder by folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src", "capplan")
STRATA = {  # what decides answers
    "solver": ("models/solver",),
    "distributions and quorum": ("models/language/distribution.py", "models/cassandra"),
    "output analysis": ("simulator/output.py", "simulator/replications.py", "simulator/results", "simulator/sample.py"),
    "engine lowering": ("simulator/compiled",),
    "fit and bands": ("calibration/fit", "layout"),
    "size": ("planner/size",),
    "verdicts": (
        "answers/verdict.py",
        "answers/objective.py",
        "planner/sustained.py",
        "planner/check.py",
        "planner/predict",
    ),
    "importers": ("evidence/importers",),
    "audit": ("evidence/audit",),
}
# Changes that could be somebody's slip. Those that nearly always raise an error, such as `+` to `<<`, flatter tests.
_ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Mul_Add", "Sub_Mul", "FloorDiv_Div", "Mod_Mul", "Pow_Mul")
_LOGIC = ("BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitOr", "LShift_RShift", "RShift_LShift")
_COMPARED = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt", "Eq_NotEq", "NotEq_Eq")
_NEGATED = ("Is_IsNot", "IsNot_Is")
OPERATORS = (
    *(f"core/ReplaceBinaryOperator_{each}" for each in (*_ARITHMETIC, *_LOGIC)),
    *(f"core/ReplaceComparisonOperator_{each}" for each in (*_COMPARED, *_NEGATED)),
    *(f"core/ReplaceUnaryOperator_{each}" for each in ("Delete_Not", "Delete_USub", "Delete_Invert")),
    *(f"core/{each}" for each in ("AddNot", "NumberReplacer", "ReplaceAndWithOr", "ReplaceOrWithAnd")),
    *(f"core/{each}" for each in ("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ZeroIterationForLoop")),
    *(f"core/{each}" for each in ("ReplaceBreakWithContinue", "ReplaceContinueWithBreak")),
)


@dataclass(frozen=True)
class Mutant:
    """One change of the code: the file below `src/capplan`, cosmic-ray's operator, and which of its places.

    The operator has `occurrence` changes before it in the file, and `which` at its place. The key, which the text of
    the line and the column are part of, stays the same while other lines change.
    """

    stratum: str
    file: str
    operator: str
    occurrence: int
    line: int
    column: int
    text: str
    which: int

    @property
    def place(self) -> str:
        """Return what is changed."""
        return f"{self.file} {self.text} {self.column}"

    @property
    def key(self) -> str:
        """Return what is changed, and how."""
        return f"{self.place} {self.operator} {self.which}"

    @property
    def name(self) -> str:
        """Return a name that says where and what."""
        return f"{self.file}:{self.line} {self.operator.removeprefix('core/')} {self.occurrence}"

    def code(self, root: Path) -> str:
        """Return the changed code of the file."""
        source = (root / PACKAGE / self.file).read_text("utf-8")
        return str(mutate_code(source, get_operator(self.operator)(), self.occurrence))


def mutants(count: int, seed: int) -> list[Mutant]:
    """Draw so many mutants from each stratum, the strata in turns; more of them begin with the same ones."""
    return [
        mutant for turn in zip(*(_drawn(stratum, seed)[:count] for stratum in STRATA), strict=True) for mutant in turn
    ]


def _drawn(stratum: str, seed: int) -> list[Mutant]:
    """Return a change at each place of the code of a stratum, the places in random order.

    Lots are drawn by hashes, so a change of the code moves no more places into the sample or out of it.
    """

    def lot(key: str) -> bytes:
        return sha256(f"{seed} {key}".encode()).digest()

    every = [mutant for file in files(stratum) for mutant in _all(stratum, file)]
    by_place = groupby(sorted(every, key=lambda each: (lot(each.place), each.line)), key=lambda each: each.place)
    return [min(those, key=lambda each: lot(each.key)) for _, those in by_place]


def files(stratum: str) -> list[str]:
    """Return the files of a stratum, below `src/capplan`."""
    package = ROOT / PACKAGE
    found = [
        path
        for each in STRATA[stratum]
        for path in ([package / each] if each.endswith(".py") else sorted((package / each).rglob("*.py")))
    ]
    return [path.relative_to(package).as_posix() for path in found]


def _all(stratum: str, file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    source = (ROOT / PACKAGE / file).read_text("utf-8")
    silent, lines = _silent(source), source.splitlines()
    tree = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator, occurrence = get_operator(name)(), 0
        for node in tree:
            for which, ((line, column), _) in enumerate(operator.mutation_positions(node)):
                if not _unpacks(node) and not any(start <= (line, column) < end for start, end in silent):
                    yield Mutant(stratum, file, name, occurrence, line, column, lines[line - 1].strip(), which)
                occurrence += 1


def _unpacks(node: Any) -> bool:
    """Return whether a node is the star of `f(*values)` or `f(**options)`, where no other operator can stand."""
    before = node.get_previous_leaf() if getattr(node, "value", None) in {"*", "**"} else None
    return before is not None and before.type == "operator" and before.value not in {")", "]", "}"}


def _silent(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations and decorators are: nobody evaluates `int | None`, or changes a value that is frozen."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign | ast.arg):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found += node.decorator_list
    return [
        ((each.lineno, each.col_offset), (each.end_lineno or each.lineno, each.end_col_offset or 0))
        for each in found
        if each is not None
    ]
