"""The cache folder: as given, or where the platform keeps caches."""

import sys
from pathlib import Path

import pytest

from capplan.files import user_cache

HOME = Path("someone")


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAPPLAN_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: HOME)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_given_folder_is_taken_everywhere(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("LOCALAPPDATA", "/elsewhere")
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", "/given")

    assert user_cache() == Path("/given")


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", HOME / ".cache" / "capplan"),
        ("freebsd14", HOME / ".cache" / "capplan"),
        ("darwin", HOME / "Library" / "Caches" / "capplan"),
        ("win32", HOME / "AppData" / "Local" / "capplan"),
    ],
)
@pytest.mark.parametrize("given", [None, ""])
def test_each_platform_has_its_place(
    platform: str, folder: Path, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("CAPPLAN_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if given is not None:
            monkeypatch.setenv(name, given)  # empty is as good as not set (XDG base directories)

    assert user_cache() == folder


@pytest.mark.parametrize(
    ("platform", "name"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")], ids=["linux", "win32"]
)
def test_the_platforms_own_setting_is_heeded(platform: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(name, "/elsewhere")

    assert user_cache() == Path("/elsewhere/capplan")
