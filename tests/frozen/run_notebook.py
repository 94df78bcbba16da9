"""Run a notebook as a script, and print what it shows and computes: `python run_notebook.py NOTEBOOK.py [DEFINITIONS]`.

DEFINITIONS is JSON and takes the place of what its controls define. Printed are texts and labels of its cells, and its
tables and figures; not ids, controls and values of capplan's own types.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

SHOWN = {"data-label", "data-value", "data-caption"}
PLAIN = (bool, int, float, str, dict, list, tuple)


class _Shown(HTMLParser):
    """Collects what a reader of a page sees: its text, and labels and values of its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.lines += [f"<{tag} {name}> {value}" for name, value in attrs if name in SHOWN]

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.lines.append(data.strip())


def shown(text: str) -> str:
    """Return what a reader sees of HTML."""
    parser = _Shown()
    parser.feed(text)
    return "\n".join(parser.lines)


def of_figure(figure: Any) -> str:
    """Return data and layout of a plotly figure, without the random ids of its traces."""
    content = json.loads(figure.to_json())
    for trace in content["data"]:
        trace.pop("uid", None)
    content["layout"].pop("template", None)
    return json.dumps(content, sort_keys=True)


def described(value: Any) -> str | None:
    """Return a value as text; None if it is neither a table, a figure nor plain data."""
    if hasattr(value, "to_plotly_json"):
        return of_figure(value)
    if hasattr(value, "to_csv"):
        return str(value.to_csv())
    plain = isinstance(value, PLAIN) and " object at 0x" not in repr(value) and len(repr(value)) < 2_000
    return repr(value) if plain else None


def main() -> None:
    """Print what the named notebook shows and computes."""
    path = Path(sys.argv[1])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, defined = module.app.run(defs=json.loads(sys.argv[2]) if len(sys.argv) > 2 else None)
    for number, output in enumerate(outputs):
        text = getattr(output, "text", None)
        found = shown(text) if isinstance(text, str) else described(output)
        if output is not None and found is not None:
            sys.stdout.write(f"== cell {number}\n{found}\n")
    for name, value in sorted(dict(defined).items()):
        found = described(value)
        if found is not None:
            sys.stdout.write(f"== {name}\n{found}\n")


if __name__ == "__main__":
    main()
