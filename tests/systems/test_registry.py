"""The registry: scenarios made and read by the name of their system."""

from pathlib import Path
from typing import Any

import pytest

from capplan.layout.components import Ratios
from capplan.layout.system import System
from capplan.models.language.document import write
from capplan.models.language.scenario import changed
from capplan.systems.registry import every_system, names, read_scenario, scenario


@pytest.mark.parametrize("its", every_system(), ids=names())
def test_a_scenario_file_is_read_back(its: System[Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    asked = (
        scenario(its.name, rf=1)
        if its.component(Ratios).of is not None
        else changed(its.scenario(), slo=("capacity>1",))
    )
    write(asked, path)
    if its.name != "openprovider":  # the default system need not be named, so its name is not written
        path.write_text(f'system = "{its.name}"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")

    assert read_scenario(path) == asked
