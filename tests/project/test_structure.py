"""Rules of the project that a machine can check: links, layers, import cycles, light imports, portable files."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
LAYERS = ("calibration", "cli", "evidence", "lab", "layout", "models", "planner", "reports", "simulator", "systems")
LINK_MODE = "120000"

ONE_MACHINE = re.compile(r"(?<![\w.~])(?:/(?:home|root|Users|work|mnt)/\w|[A-Z]:\\+Users\\)")
AN_INDEX = re.compile(
    r"https?://[^\s\"'/]+(?:/[^\s\"']*)?/simple\b|python[h]osted\.org|(?:extra-)?index-[u]rl|tool\.uv\.[i]ndex|find-[l]inks"
)


def tracked() -> dict[str, str]:
    """Map the path of every file that git tracks to its mode."""
    # A checkout that belongs to another user is as good as our own: we only list it.
    command = ["git", "-c", "safe.directory=*", "ls-files", "--stage", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"not a git checkout: {listed.stderr.strip()}")
    rows = (row.partition("\t") for row in listed.stdout.split("\0") if row)
    return {path: entry.split()[0] for entry, _, path in rows}


def tracked_text() -> dict[str, str]:
    """Map the path of every tracked text file that exists to its text."""
    texts = {}
    for path, mode in tracked().items():
        if mode != LINK_MODE and (ROOT / path).is_file():
            content = (ROOT / path).read_bytes()
            if b"\0" not in content:
                texts[path] = content.decode("utf-8")
    return texts


def offences(pattern: re.Pattern[str], texts: dict[str, str]) -> list[str]:
    """List `path:line: text` of every line that the pattern finds."""
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_top_level_links_lead_into_the_package() -> None:
    links = {path: (ROOT / path).readlink() for path, mode in tracked().items() if mode == LINK_MODE}

    assert links == {name: Path("src", "capplan", name) for name in LAYERS}


def test_no_code_imports_through_the_links() -> None:
    through_a_link = re.compile(rf"^\s*(?:from|import)\s+(?:{'|'.join(LAYERS)})\b")
    code = {path: text for path, text in tracked_text().items() if path.endswith((".py", ".ipynb"))}

    assert offences(through_a_link, code) == []


@pytest.mark.parametrize("pattern", [ONE_MACHINE, AN_INDEX], ids=["machine", "index"])
def test_nothing_of_one_machine_is_tracked(pattern: re.Pattern[str]) -> None:
    assert offences(pattern, tracked_text()) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (ONE_MACHINE, "see " + "/home" + "/ada/notes"),
        (ONE_MACHINE, "C:" + "\\Users\\ada"),
        (AN_INDEX, "url = https://packages.example" + "/pypi" + "/simple"),
        (AN_INDEX, "--extra-" + "index-" + "url x"),
    ],
)
def test_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_lock_file_is_not_tracked() -> None:
    assert "uv.lock" not in tracked()


def test_layers_hold() -> None:
    """Run import-linter on its own, uncached: two runs at once must not share a cache."""
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    result = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr


def cycles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other."""
    names = sorted(imports)
    edges = np.array([[other in imports[name] for other in names] for name in names])
    count, group = connected_components(edges, directed=True, connection="strong")
    groups = [{name for name, its in zip(names, group, strict=True) if its == each} for each in range(count)]
    return [each for each in groups if len(each) > 1]


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("capplan", exclude_type_checking_imports=True, cache_dir=None)

    assert cycles({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}) == []


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [{"b", "c"}]


@pytest.mark.parametrize(
    "statement",
    [
        "import capplan",
        "import capplan.errors",
        "import capplan.models.language.document",
        "from capplan.simulator import experiment, replications, workers",
        "import capplan.cli.simulate",
        "import capplan.cli.predict",
        "from capplan.cli.main import main; main(['--help'])",
        "from capplan.cli.main import main; main(['simulate', '--help'])",
        "from capplan.cli.main import main; main(['lab', '--help'])",
        "from capplan.cli.main import main; main(['collect', '--help'])",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement: str) -> None:
    command = f"import sys; {statement}; print(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    imported = set(result.stderr.split())

    heavy = {
        "cassandra",
        "dask",
        "distributed",
        "emcee",
        "jgo",
        "multiprocessing",
        "pandas",
        "plotly",
        "pyarrow",
        "scipy.optimize",
        "scipy.stats",
        "simpy",
    }
    assert heavy & imported == set()
    if statement.endswith("(['--help'])") or statement == "import capplan":
        assert {"numpy", "pydantic", "capplan.systems"} & imported == set()


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")

    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [project["version"]]
