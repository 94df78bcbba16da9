"""Command lines run in this process."""

import pytest

from capplan.cli.main import main


def answered(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Run a command that says nothing on stderr, and return what it prints."""
    assert main([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that is refused, and return the one sentence on stderr."""
    assert main([str(each) for each in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = [line for line in err.splitlines() if not line.endswith("at work ...")]
    assert line.startswith("capplan: ")
    assert not any(word in line for word in ("Traceback", "pydantic", "Input should"))
    return line.removeprefix("capplan: ")
