"""Files are there as a whole, as they were, or not at all: two writers, full disks, special files, interrupts."""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from capplan.calibration.fit.stages import Stages
from capplan.cli.main import main
from capplan.errors import InputError, Notice
from capplan.files import only_run, replace_file, replacing, writable_cache
from capplan.simulator.experiment import open_store

QUICK = ["simulate", "fedora4", "--tps", "20", "--duration", "1s", "--warmup", "0s"]


def full(*_: object) -> None:
    """Write nothing, as on a full disk."""
    raise OSError(errno.ENOSPC, "No space left")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with replacing(path) as one, replacing(path) as other:
        one.write_text("one", encoding="utf-8")
        other.write_text("other", encoding="utf-8")
        assert one != other

    assert path.read_text(encoding="utf-8") == "one"  # the outer one is the last to finish
    assert names(tmp_path) == ["result"]


@pytest.mark.parametrize("ends", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left"), ZeroDivisionError()])
def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path, ends: BaseException) -> None:
    path = tmp_path / "result"
    path.write_text("before", encoding="utf-8")

    def write(beside: Path) -> None:
        beside.write_text("half", encoding="utf-8")
        raise ends

    with pytest.raises((KeyboardInterrupt, InputError, ZeroDivisionError)):
        replace_file(path, write)

    assert path.read_text(encoding="utf-8") == "before"
    assert names(tmp_path) == ["result"]


def test_what_a_killed_writer_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    (tmp_path / ".capplan-0123456789ab.new").write_text("half", encoding="utf-8")
    with replacing(tmp_path / "one") as beside:
        replace_file(tmp_path / "other", "whole")
        beside.write_text("whole", encoding="utf-8")

    assert names(tmp_path) == ["one", "other"]


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before", encoding="utf-8")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    replace_file(tmp_path / "link", "after")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "after"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["pipe", "folder", "dangling link", "link to a device"])
def test_a_special_file_is_not_replaced(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.parquet"
    make: dict[str, Callable[[], object]] = {
        "pipe": partial(os.mkfifo, path),
        "folder": path.mkdir,
        "dangling link": partial(path.symlink_to, "gone"),
        "link to a device": partial(path.symlink_to, os.devnull),
    }
    make[kind]()
    mode = path.lstat().st_mode

    assert main([*QUICK, "--trace", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert path.lstat().st_mode == mode


def test_a_full_disk_under_a_trace_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    assert main([*QUICK, "--trace", str(tmp_path / "trace.parquet")]) == 2
    assert "No space left" in capsys.readouterr().err
    assert names(tmp_path) == []


def test_a_full_disk_under_stdout_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "write", full)

    assert main(["systems", "--json"]) == 2
    assert "No space left" in capsys.readouterr().err


def test_one_run_at_a_time_resumes(tmp_path: Path) -> None:
    stages = Stages("a-key", output=tmp_path / "mine.json")
    with stages.owned(), pytest.raises(InputError, match="another run"), stages.owned():
        pass
    with stages.owned():
        pass

    assert names(tmp_path) == []


def test_a_lock_ends_with_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with only_run(tmp_path / "mine.json"):
            assert names(tmp_path) == [".capplan-mine.json.lock"]
    assert names(tmp_path) == []


@pytest.mark.parametrize("change", ["cut", "flip"])
def test_damaged_stages_are_computed_again(tmp_path: Path, change: str) -> None:
    output = tmp_path / "mine.json"
    stages = Stages("a-key", output=output)
    stages.of("one", lambda: 1.25)
    assert stages.path is not None
    text = stages.path.read_text(encoding="utf-8")
    stages.path.write_text(text[:-9] if change == "cut" else text.replace("1.25", "1.75"), encoding="utf-8")

    assert Stages("a-key", output=output).of("one", lambda: 2.5) == 2.5


def test_a_damaged_store_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with open_store(path) as store:
        for number in range(2000):
            store.save("key", number, [{"figure": 1.0}])
    content = bytearray(path.read_bytes())
    content[8192:24576] = bytes(24576 - 8192)
    path.write_bytes(bytes(content))

    with ExitStack() as stack:
        with pytest.warns(Notice, match="computed again"):
            store = stack.enter_context(open_store(path))
        assert len(store) == 0
        store.save("key", 0, [{"figure": 2.0}])
        assert store.rows("key", 0) == [{"figure": 2.0}]


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "file" / "cache"))

    with pytest.warns(Notice, match="CAPPLAN_CACHE_DIR"):
        assert writable_cache() is None


def test_a_calibration_keeps_its_stages_out_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from capplan.cli import calibrate as module

    kept: list[Path] = []

    def calibrate(*_: object, output: Path, **__: object) -> None:
        kept.append(output)
        raise InputError("enough")

    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "calibrate", calibrate)

    assert main(["calibrate", "arion"]) == 2
    assert kept[0].parent == tmp_path
