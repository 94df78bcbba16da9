"""Write the tree of modules into docs/explanation/architecture.md: one line a file, from its docstring.

uv run python docs/generate/architecture.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "capplan"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
HEADING = "## The tree\n"
LAYERS = ("models", "simulator", "evidence", "lab", "layout", "calibration", "systems", "planner", "reports", "cli")


def tree() -> str:
    """Return the modules of each layer with the first sentence of their docstrings, as Markdown."""
    parts = []
    for layer in LAYERS:
        rows = [f"    {path.relative_to(PACKAGE).as_posix():<46} {said}" for path, said in _modules(PACKAGE / layer)]
        parts.append("\n".join([f"### {layer}\n", *rows]))
    return "\n\n".join(parts) + "\n"


def _modules(folder: Path) -> list[tuple[Path, str]]:
    files = sorted(folder.rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path.name))
    return [(path, sentence) for path in files if (sentence := _first_sentence(path))]


def _first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.split("\n\n")[0].split("\n")[0]


def page() -> str:
    """Return the page with today's tree."""
    written = PAGE.read_text("utf-8")
    return written.split(HEADING)[0] + f"{HEADING}\n{tree()}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
