"""The digest of the code: it depends on what the code does, not on comments and docstrings."""

import io
import tokenize
from pathlib import Path

import pytest

from capplan import code_digest as module
from capplan.code_digest import code_digest, uncommented

OWN = Path(module.__file__).parents[1]
PLAIN = """
def capacity(nodes: int) -> float:
    return 700.0 * nodes
"""
EXPLAINED = '''
"""A module.

With a paragraph.
"""

# Why it is so.


def capacity(nodes: int) -> float:  # requests a second
    """Return the capacity."""

    # Measured.
    return 700.0 * nodes  # a guess

    "a remark"
'''


def test_comments_docstrings_and_empty_lines_do_not_count() -> None:
    assert uncommented(EXPLAINED) == uncommented(PLAIN) == PLAIN.strip()


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace("700.0", "701.0"),
        PLAIN.replace("nodes", "node"),
        PLAIN.replace("* nodes", "+ nodes"),
        PLAIN.replace("    return", "     return"),
        PLAIN + "x = 1\n",
    ],
)
def test_code_counts(other: str) -> None:
    assert uncommented(other) != uncommented(PLAIN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('x = "a"', 'x = "b"'),
        ('x = "# a"', 'x = "# b"'),
        ("x = f'{y} # a'", "x = f'{y} # b'"),
        ('x = """a\n\nb"""', 'x = """a\nb"""'),
        ('x = """a \nb"""', 'x = """a\nb"""'),
        ('x = f"""{y}\n\nb"""', 'x = f"""{y}\nb"""'),
        ('f("""a\n# b""")', 'f("""a\n# c""")'),
        ('def f(): "doc"; return 1', 'def f(): "doc"; return 2'),
        ('x = 1; "remark"', 'x = 2; "remark"'),
        ('"remark"; x = 1', '"remark"; x = 2'),
        ('if y: "é"; x = 1', 'if y: "é"; x = 2'),
    ],
)
def test_texts_that_are_used_and_code_beside_a_docstring_count(one: str, other: str) -> None:
    assert uncommented(one) != uncommented(other)


def test_a_comment_behind_a_docstring_or_within_a_text_of_several_lines() -> None:
    assert uncommented('"""A module."""  # noqa\nx = 1') == "x = 1"
    assert uncommented('x = ("a"\n     # why\n\n     "b")') == uncommented('x = ("a"\n\n     "b")')


@pytest.mark.parametrize("character", ["\f", "\x1c", "\u2028", "\x85"], ids=ascii)
def test_only_line_feeds_end_lines(character: str) -> None:
    assert uncommented(f'x = "{character}"\ny = 1  # why\n"""doc"""\nz = 2') == f'x = "{character}"\ny = 1\nz = 2'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two folders, digested in place of capplan."""
    for name, text in {"models/a.py": PLAIN, "models/deep/b.py": "b = 1\n", "planner/c.py": "c = 1\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "models" / "figures.csv").write_text("1\n", encoding="utf-8")
    monkeypatch.setattr(module, "version", lambda name: f"1 of {name}")
    return tmp_path


def digested(package: Path, folder: str = ".", suffixes: tuple[str, ...] = (".py",), *, plain: bool = False) -> str:
    """Return the digest of the files as they are now."""
    code_digest.cache_clear()
    found = code_digest((folder,), suffixes, plain=plain, package=package)
    code_digest.cache_clear()
    return found


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("file", ["models/a.py", "models/deep/b.py"])
def test_a_changed_file_changes_the_digest_of_its_folder(file: str, plain: bool, package: Path) -> None:
    before = [digested(package, folder, plain=plain) for folder in (".", "models", "planner")]
    with (package / file).open("a", encoding="utf-8") as appended:
        appended.write("x = 1\n")
    after = [digested(package, folder, plain=plain) for folder in (".", "models", "planner")]

    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


def test_a_comment_changes_the_digest_of_every_byte_only(package: Path) -> None:
    plain, whole = digested(package, plain=True), digested(package)
    (package / "models" / "a.py").write_text(EXPLAINED, encoding="utf-8")

    assert digested(package, plain=True) == plain
    assert digested(package) != whole


def test_libraries_count_with_every_byte_only(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, whole = digested(package, plain=True), digested(package)
    monkeypatch.setattr(module, "version", lambda name: f"2 of {name}")

    assert digested(package, plain=True) == plain
    assert digested(package) != whole


@pytest.mark.parametrize("plain", [False, True])
def test_where_a_file_stands_counts(plain: bool, package: Path) -> None:
    before = digested(package, plain=plain)
    (package / "models" / "deep" / "b.py").rename(package / "models" / "b.py")

    assert digested(package, plain=plain) != before


def test_only_files_of_the_kinds_asked_for_count(package: Path) -> None:
    code, data = digested(package), digested(package, ".", (".py", ".csv"))
    (package / "models" / "figures.csv").write_text("2\n", encoding="utf-8")

    assert digested(package) == code
    assert digested(package, ".", (".py", ".csv")) != data


def test_names_numbers_and_operators_of_capplans_own_files_are_left() -> None:
    for file in (OWN / "planner").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        assert code_of(uncommented(source)) == code_of(source), file


def code_of(source: str) -> list[str]:
    """Return the tokens of Python source that are neither texts nor layout."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP)]


def test_folders_may_be_left_out(tmp_path: Path) -> None:
    for name in ("kept/a.py", "kept/apart/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before = code_digest(("kept",), plain=True, without=("kept/apart",), package=tmp_path)
    code_digest.cache_clear()
    (tmp_path / "kept/apart/b.py").write_text("x = 2\n")

    assert code_digest(("kept",), plain=True, without=("kept/apart",), package=tmp_path) == before
