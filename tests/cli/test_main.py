"""The entry point: help is fast, bad input ends in one sentence with exit code 2, a closed pipe is not an error."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from capplan.cli.main import main
from capplan.cli.process import DEFECT, TRACEBACK
from capplan.cli.shell import groups
from capplan.cli.shell.groups import VERBS, Verb

START = [sys.executable, "-c", "from capplan.cli.process import run; run()"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"capplan {version('capplan')}\n"


@pytest.mark.parametrize("name", VERBS)
def test_every_command_helps(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"capplan {name}" in capsys.readouterr().out


def interrupt() -> None:
    """Stop as Ctrl-C does."""
    raise KeyboardInterrupt


def broken() -> None:
    """Fail as only a defect of capplan can."""
    raise ZeroDivisionError


def test_an_interrupt_has_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "interrupt", Verb("Stop."))
    monkeypatch.setattr(groups, "_imported", lambda _: interrupt)

    assert main(["interrupt"]) == 130
    assert capsys.readouterr().err == "capplan: interrupted\n"


def test_a_defect_is_one_sentence_and_never_the_exit_code_of_an_answer() -> None:
    program = """
import capplan.cli.main as command_line
from capplan.cli.process import run
def fails(arguments):
    raise ZeroDivisionError("first line" + chr(10) + "second")
command_line.main = fails
run()
"""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (DEFECT, "", 1)
    assert "ZeroDivisionError: first line second" in found.stderr
    shown = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, TRACEBACK: "1"})
    assert "Traceback" in shown.stderr
    assert shown.returncode == DEFECT


def test_a_signal_in_a_destructor_is_not_lost() -> None:
    program = """
import os, signal
from capplan.cli.process import _take_signals
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        str()
_take_signals()
try:
    Destroyed()
    signal.pause()
except KeyboardInterrupt:
    print("ended")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (found.stdout, found.stderr) == ("ended\n", "")


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "broken", Verb("Fail."))
    monkeypatch.setattr(groups, "_imported", lambda _: broken)

    with pytest.raises(ZeroDivisionError):
        main(["broken"])


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [*START, "systems", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == groups.READER_GONE
    assert [line for line in err.splitlines() if not line.endswith(b" ...")] == []  # a slow machine says so


def test_the_exit_code_is_that_of_the_answer() -> None:
    result = subprocess.run([*START, "evidence", "lst"], capture_output=True, text=True, check=False)

    assert result.returncode == 2
    assert "Traceback" not in result.stderr
