"""Build the site from these documents and from the code: `uv run --group docs python docs/generate/site.py [FOLDER]`.

The pages of `docs/` are copied beside pages that the code writes: every command's help, the keys of scenarios, the
situations, the columns of tables, and the Python API. A link to a file that is no page becomes the file's name. Sphinx
then builds HTML with a search of its own; a warning is an error.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sphinx.cmd.build import build_main
from typer.main import get_command

import capplan
from capplan.answers import objective
from capplan.cli.evidence import evidence_
from capplan.cli.lab import lab_
from capplan.cli.main import main as run_command_line
from capplan.cli.shell.groups import TOPICS
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.row_validation import columns_of
from capplan.layout.situations import Losses
from capplan.models.language.scenario import options_of
from capplan.systems.registry import every_system

ROOT = Path(__file__).resolve().parents[2]
DOCS, SITE = ROOT / "docs", ROOT / "dist" / "site"
LEFT_OUT = shutil.ignore_patterns("generate", "*.schema.json", "__pycache__")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
GROUPS: dict[str, Any] = {"evidence": evidence_, "lab": lab_}
CONF = """
project = "capplan"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "capplan"
html_search_scorer = __file__.replace("conf.py", "scorer.js")
html_show_sphinx = html_show_copyright = html_copy_source = False
html_theme_options = {"source_view_link": "", "top_of_page_buttons": []}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "description"
autodoc_typehints_format = "short"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
"""
SCORER = """
// A page whose title has the words of the query comes first; records of decisions and the Python API come last.
const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/[a-z]{3,}/g) || [];
var Scorer = {
  score: ([page, title, , , score]) =>
    score + 5 * asked.filter((word) => title.toLowerCase().includes(word)).length -
    (/^(decisions|changelog|index|generated.python)/.test(page) ? 12 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 0, 1: 0, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
"""
CONTENTS = {
    "Tutorials": ("readme", "tutorials/*", "examples/README"),
    "How to": ("how-to/*",),
    "Explanation": ("explanation/*",),
    "Reference": ("generated/*", "validation", "live-validation", "backtest", "reference/*", "changelog"),
    "Decisions": ("decisions/*",),
}


def main() -> int:
    """Build the site; 1 if something is wrong with a page."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE
    with TemporaryDirectory() as folder:
        source = Path(folder, "site")
        shutil.copytree(DOCS, source, ignore=LEFT_OUT)
        shutil.copy(ROOT / "README.md", source / "readme.md")
        shutil.copy(ROOT / "CHANGELOG.md", source / "changelog.md")
        for page in source.rglob("*.md"):
            page.write_text(_relinked(page, source), encoding="utf-8")
        (source / "generated").mkdir()
        for name, write in PAGES.items():
            (source / "generated" / f"{name}.md").write_text("\n".join(write()) + "\n", encoding="utf-8")
        (source / "conf.py").write_text(CONF, encoding="utf-8")
        (source / "scorer.js").write_text(SCORER, encoding="utf-8")
        with (source / "index.md").open("a", encoding="utf-8") as index:
            index.writelines(_contents(source))
        return int(build_main(["-q", "-W", "--keep-going", "-j", "2", str(source), str(target)]))


def _contents(source: Path) -> Iterator[str]:
    """Yield the tables of contents, which the sidebar shows."""
    for caption, patterns in CONTENTS.items():
        pages = [page for each in patterns for page in sorted(source.glob(f"{each}.md"))]
        names = "\n".join(page.relative_to(source).with_suffix("").as_posix() for page in pages)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def _relinked(page: Path, source: Path) -> str:
    """Return a page whose links stay on the site: a link to another file becomes its name."""
    here = page.relative_to(source).parent
    original = DOCS / here if page.name not in {"readme.md", "changelog.md"} else ROOT

    def relinked(link: re.Match[str]) -> str:
        path, _, place = link["target"].partition("#")
        if not path or "://" in path:
            return link[0]
        file = (original / path).resolve()
        if file == ROOT / "README.md":
            inside = source / "readme.md"
        elif file.is_relative_to(DOCS):
            inside = source / file.relative_to(DOCS)
        else:
            return link["text"] if file.exists() else link[0]
        if file.exists() and not inside.is_file():  # a schema; where nothing is, Sphinx refuses the link
            return link["text"]
        relative = "../" * len(here.parts) + inside.relative_to(source).as_posix()
        return f"{link['image']}[{link['text']}]({relative}{'#' if place else ''}{place})"

    return LINK.sub(relinked, page.read_text(encoding="utf-8"))


def _commands() -> Iterator[str]:
    yield "# Commands\n\nWhat `--help` prints. The options of a layout are those of the system that you ask about."
    for topic, verbs in TOPICS.items():
        yield f"\n## {topic}"
        for verb in verbs:
            inside = get_command(GROUPS[verb]).commands if verb in GROUPS else ()
            for words in ((verb,), *((verb, each) for each in inside)):
                yield f"\n### capplan {' '.join(words)}\n\n```text\n{_help(words)}\n```"


def _help(words: Iterable[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run_command_line([*words, "--help"])
    return printed.getvalue().strip()


def _objectives() -> Iterator[str]:
    yield "# Objectives: which metrics an objective can have\n"
    yield "What `--slo` and the file of `capplan check` take: `acct.p99<20ms and drop_rate<0.1%`."
    _, _, grammar = str(objective.__doc__).partition("\n\n")
    yield f"\n```text\n{grammar.strip()}\n```\n\nThe classes and resources of a layout are those of its system:"
    rows = ((f"`{each.name}`", ", ".join(f"`{name}`" for name in each.reported)) for each in every_system())
    yield from _table(("system", "classes"), rows)


def _exit_codes() -> Iterator[str]:
    yield "# Exit codes\n\nEvery command ends with one of these."
    rows = (
        ("0", "It answered; a question with a yes or no has a *yes*."),
        ("1", "It answered, and the answer is not *yes*: *no* or *uncertain*, or a check, an audit or a goal failed."),
        (
            "2",
            "The input is wrong. One sentence on stderr says what, by which rule, and what to do; nothing is written.",
        ),
        ("70", "capplan has a defect: one sentence on stderr says where to report it. It is never an answer."),
        ("130, 143", "It was interrupted or terminated. Long work resumes when the command runs again."),
        ("141", "The reader of its output went away, such as `head`."),
    )
    yield from _table(("code", "meaning"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}"
    yield from (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def _scenario_keys() -> Iterator[str]:
    yield "# Scenario keys\n\nThe keys of a scenario file, which are the options of a command, by system."
    for system in every_system():
        options, scenario = options_of(system.scenario), system.scenario
        defaults = {each.name: each.default for each in fields(scenario)}
        yield f"\n## {system.name}"
        rows = ((f"`{name}`", option.help, f"`{defaults[name]}`") for name, option in options.items())
        yield from _table(("key", "meaning", "default"), rows)


def _situations() -> Iterator[str]:
    yield "# Situations\n\nConditions that no load test had: words of `--survive` and `--lose`, beside lost machines."
    for system in every_system():
        if situations := system.component(Losses).situations:
            yield f"\n## {system.name}"
            rows = ((f"`{word}`", each.meaning, each.source) for word, each in situations.items())
            yield from _table(("word", "meaning", "source"), rows)


def _columns() -> Iterator[str]:
    yield "# Columns of load tests\n\nA table has one row for each run and request class. All but a few are optional."
    rows = ((f"`{name}`", ", ".join(each.choices) or each.kind) for name, each in columns_of(LoadTestRow).items())
    yield from _table(("column", "values"), rows)


def _api() -> Iterator[str]:
    yield "# Python\n\nWhat `import capplan` offers, each imported when it is used."
    for name in sorted(capplan.__all__):
        if name.startswith("_"):
            continue
        value = getattr(capplan, name)
        kind = "autoclass" if isinstance(value, type) else "autofunction"
        yield f"\n## {name}\n\n```{{eval-rst}}\n.. {kind}:: {value.__module__}.{value.__qualname__}\n```"


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": _commands,
    "exit-codes": _exit_codes,
    "objectives": _objectives,
    "scenario-keys": _scenario_keys,
    "situations": _situations,
    "columns": _columns,
    "python": _api,
}

if __name__ == "__main__":
    raise SystemExit(main())
