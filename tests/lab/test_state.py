"""The state of a lab: what was written is read, one command at a time changes it, `down` finds what a crash left."""

from dataclasses import replace
from pathlib import Path

import pytest

from capplan.errors import InputError
from capplan.lab import cluster, processes, state
from capplan.lab.layout import Layout
from capplan.lab.processes import Process
from capplan.lab.state import State

WHOLE = '{"version": %s, "layout": {}, "rtt_s": 0, "boot": "", "processes": {"dc1-1": {"pid": %s, "started": 1}}}'
"""A state, of a version and of a process."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_what_is_written_is_read() -> None:
    written = State(Layout(dcs=2, cass_nodes=3, rf=2, internode_tls=True), 0.02, state.boot())
    written = written.with_process("dc1-1", Process(1, 2))
    state.write(written)

    assert state.read() == written
    assert written.alive == {}  # the process with number 1 started at another time


def test_without_a_lab_nothing_is_there() -> None:
    assert state.read() is None
    assert cluster.down() == 0
    with pytest.raises(InputError, match="capplan lab up"):
        cluster.status()


@pytest.mark.parametrize("text", ["", "{", "{}", "0", "[]", '{"version": 1}', WHOLE % (2, 1), WHOLE % (1, '"../1"')])
def test_a_damaged_state_is_refused(text: str) -> None:
    state.running().mkdir(parents=True)
    (state.running() / "state.json").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=r"state\.json"):
        state.read()


def test_a_state_is_read_as_it_stands() -> None:
    state.running().mkdir(parents=True)
    (state.running() / "state.json").write_text(WHOLE % (1, 1), encoding="utf-8")

    assert state.read() == State(Layout(), 0.0, "", processes={"dc1-1": Process(1, 1)})


def test_a_lab_that_crashed_is_cleaned() -> None:
    state.write(State(Layout(), 0.0, state.boot()))
    log = state.running() / "log"
    left = processes.start(
        ["tail", "-f", "/dev/null"], log, lambda each: state.write(state.needed().with_process("dc1-1", each))
    )

    with pytest.raises(InputError, match="capplan lab down"):
        cluster.up(Layout(), 0.0, lambda *_: None)
    assert cluster.down() == 1

    assert not left.alive
    assert not state.running().exists()


def test_after_a_restart_of_the_machine_no_process_is_signalled(tmp_path: Path) -> None:
    other = processes.start(["tail", "-f", "/dev/null"], tmp_path / "log", lambda _: None)
    state.write(replace(State(Layout(), 0.0, "another start"), processes={"dc1-1": other}))

    assert cluster.down() == 0

    assert other.alive
    processes.kill(other)


def test_one_command_at_a_time_changes_the_lab() -> None:
    with state.locked(), pytest.raises(InputError, match="another command"):
        cluster.down()
    assert cluster.down() == 0


def test_a_lab_that_needs_more_memory_than_there_is_is_refused() -> None:
    with pytest.raises(InputError, match="--heap"):
        cluster.up(Layout(cass_nodes=200, heap_bytes=2**36), 0.0, lambda *_: None)
    assert not state.running().exists()


def test_a_node_that_ends_while_it_starts_shows_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = state.folder() / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho out of luck\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr("capplan.lab.packages.java", lambda *_: program)
    monkeypatch.setattr("capplan.lab.packages.jars", lambda *_: ())

    with pytest.raises(InputError, match=r"dc1-1 ended(?s:.)*out of luck"):
        cluster.up(Layout(), 0.0, lambda *_: None)

    assert not state.running().exists()
    assert {each.name for each in state.folder().iterdir()} == {"java", "lock"}
    capsys.readouterr()
