"""The names in `capplan`: each one imports, none is missing, and importing `capplan` is cheap."""

from pathlib import Path

import pytest

import capplan

SOURCE = Path(capplan.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", capplan.__all__)
def test_every_name_opens_and_is_documented(name: str) -> None:
    found = getattr(capplan, name)

    assert found.__name__ == name
    assert found.__module__.startswith("capplan.")
    assert (found.__doc__ or "").strip()


def test_the_list_is_complete_and_sorted() -> None:
    assert dir(capplan) == capplan.__all__ == sorted(capplan._HOMES)


def test_type_checkers_see_the_same_names() -> None:
    """The imports that only a type checker reads name the module that the door opens."""
    for name, home in capplan._HOMES.items():
        assert f"    from capplan.{home} import {name} as {name}\n" in SOURCE


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'capplan' has no attribute 'predit'"):
        capplan.predit  # noqa: B018 - the attribute is the point
    with pytest.raises(ImportError):
        from capplan import predit  # noqa: F401 - so is the import
