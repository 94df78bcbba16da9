"""Print how the house is built, from its syntax trees: contract, constructors, circles, names (`just house`).

- *Points* of a system's contract: public attributes and methods of `System` and `Observations`, what `TableSystem`
  adds, and the fields of all components.
- *Constructors of a prediction*: calls of `Prediction` in src.
- *Circles*: groups of modules that import one another; imports in functions and under `TYPE_CHECKING` count.
- *Private helpers with one call*: functions whose name begins with an underscore and stands once beside its definition.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

SRC = Path(__file__).parents[2] / "src"
CONTRACT = "System", "Observations"
TABLES, COMPONENT, ANSWER = "TableSystem", "Component", "Prediction"
VAGUE = frozenset({"each", "found", "own", "its", "known", "asked", "left"})


def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of src by the name of the module."""
    return {
        ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(SRC.rglob("*.py"))
    }


def points(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the points of the contract by class."""
    every = [n for tree in modules.values() for n in tree.body if isinstance(n, ast.ClassDef)]
    found = {n.name: _public(n) for n in every if n.name in (*CONTRACT, TABLES)}
    found[TABLES] = [name for name in found[TABLES] if name not in found["System"]]
    for node in every:
        if COMPONENT in map(_base, node.bases):
            fields = (n.target for n in node.body if isinstance(n, ast.AnnAssign))
            found[node.name] = [each.id for each in fields if isinstance(each, ast.Name)]
    return found


def _base(node: ast.expr) -> str:
    return ast.unparse(node.value if isinstance(node, ast.Subscript) else node)


def _public(node: ast.ClassDef) -> list[str]:
    names = [
        n.name if isinstance(n, ast.FunctionDef) else ast.unparse(n.target)
        for n in node.body
        if isinstance(n, ast.FunctionDef | ast.AnnAssign)
    ]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def circles(modules: Mapping[str, ast.Module]) -> list[list[str]]:
    """Return the groups of modules that import one another."""
    names = sorted(modules)
    edges = [(names.index(name), names.index(other)) for name in names for other in _imported(name, modules)]
    ends = tuple(zip(*edges, strict=True))
    graph = csr_array((np.ones(len(edges)), ends), shape=(len(names), len(names)))
    _, group = connected_components(graph, connection="strong")
    members = defaultdict(list)
    for name, number in zip(names, group, strict=True):
        members[number].append(name)
    return [each for each in members.values() if len(each) > 1]


def _imported(name: str, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(modules[name]):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                target = whole if whole in modules else node.module
                if target in modules and target != name:
                    yield target


def used_once(modules: Mapping[str, ast.Module]) -> tuple[int, int]:
    """Return how many private functions have one call in their module, and the number of all functions."""
    once = every = 0
    for tree in modules.values():
        nodes = list(ast.walk(tree))
        uses = Counter(n.id for n in nodes if isinstance(n, ast.Name)) + Counter(
            n.attr for n in nodes if isinstance(n, ast.Attribute)
        )
        names = [n.name for n in nodes if isinstance(n, ast.FunctionDef)]
        every += len(names)
        once += sum(uses[name] == 1 for name in names if name.startswith("_") and not name.endswith("__"))
    return once, every


def calls(modules: Mapping[str, ast.Module], name: str) -> list[str]:
    """Return where a class is called, with the line."""
    return [
        f"{module}:{node.lineno}"
        for module, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def same_names(modules: Iterable[str]) -> list[str]:
    """Return file names that stand in several folders."""
    return [name for name, count in Counter(each.rpartition(".")[2] for each in modules).items() if count > 1]


def vague(modules: Mapping[str, ast.Module]) -> tuple[int, int]:
    """Return how many assigned names would fit any function, and the number of all."""
    names = [
        node.id
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return sum(name in VAGUE for name in names), len(names)


def main() -> None:
    """Print the figures."""
    modules = trees()
    contract = points(modules)
    print(f"contract               {sum(map(len, contract.values()))} points")
    for name, own in contract.items():
        print(f"  {name:<20} {len(own):>3}  {', '.join(own)}")
    where = calls(modules, ANSWER)
    print(f"makers of {ANSWER:<12} {len(where)}  {', '.join(where)}")
    around = circles(modules)
    print(f"circles                {len(around)}  {'; '.join(', '.join(each) for each in around)}")
    once, every = used_once(modules)
    print(f"private, one call      {once} of {every} functions ({100 * once / every:.0f} %)")
    few, names = vague(modules)
    print(f"names that fit any     {few} of {names} ({100 * few / names:.0f} %)")
    any_lines = sum(
        "Any" in line for path in SRC.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()
    )
    print(f"lines with Any         {any_lines}")
    print(f"files of one name      {', '.join(same_names(modules))}")
    print(f"modules                {len(modules)}")


if __name__ == "__main__":
    main()
