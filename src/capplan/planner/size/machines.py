"""Machine prices, and the machine shapes to choose from."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError, nearest, one_of
from capplan.layout.components import Machines
from capplan.layout.system import System
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.document import read, read_toml
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import AtLeastOne, Positive

MACHINES = "machines"
"""The currency where no price list is given."""


@dataclasses.dataclass(frozen=True)
class Prices:
    """Prices of machines.

    Attributes
    ----------
    currency : str
        The currency; `machines` where each counts as one.
    each : mapping of float
        Price by kind of machine, as in `Machines.kinds`; a kind that is missing costs nothing.
    """

    currency: str = MACHINES
    each: Mapping[str, float] | None = None

    def of(self, scenario: Scenario) -> float:
        """Return the cost of a layout's machines."""
        from capplan.systems.registry import system  # reads the systems

        counts, each = system(scenario.system).component(Machines).counts(scenario), self.each
        return float(sum(count * (1.0 if each is None else each.get(kind, 0.0)) for kind, count in counts.items()))


def read_prices(path: Path, system: System[Any]) -> Prices:
    """Read a price list: `currency = "EUR"` and a table `[machines]` with a price for each kind of machine.

    Raises
    ------
    InputError
        If it cannot be read, a kind is unknown or missing, or a price is not a number of at least 0.
    """
    return prices_of(read_toml(path), system, str(path))


def prices_of(content: Mapping[str, Any], system: System[Any], path: str) -> Prices:
    """Return the price list from parsed tables; `path` is its name in messages.

    Raises
    ------
    InputError
        As for `read_prices`.
    """
    for key in content:
        if key not in ("currency", "machines"):
            raise InputError(f"{path}: {key!r} is unknown{nearest(key, ('currency', 'machines'))}")
    currency, listed = content.get("currency", ""), content.get("machines", {})
    if not isinstance(currency, str) or not isinstance(listed, dict):
        raise InputError(f'{path}: a price list has currency = "EUR" and a table [machines]')
    kinds = system.component(Machines).kinds
    for kind, price in listed.items():
        one_of(kinds, kind, f"{path}: {system.name} has no {kind!r}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
            raise InputError(f"{path}: {kind} = {price!r} is not a price: give a number of at least 0")
    if missing := [kind for kind in kinds if kind not in listed]:
        raise InputError(f"{path}: no price of {missing[0]} ({kinds[missing[0]].name}): add {missing[0]} = 1000")
    return Prices(currency, {kind: float(price) for kind, price in listed.items()})


_THREADS = 2  # hardware threads (vCPU) of a core
SMT_GAIN = 1.3
"""Throughput of a core with two hardware threads over that of a single one, at most.

References
----------
D. Marr et al., "Hyper-Threading Technology Architecture and Microarchitecture", Intel Technology Journal 6(1), 2002:
up to 30 % on server applications.
"""

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=LANGUAGE)
class Processor(Construct):
    """The speed of a core.

    Attributes
    ----------
    clock_ghz
        Clock with all cores busy, GHz.
    ipc
        Instructions per cycle relative to the other processors in the file.
    """

    clock_ghz: Positive
    ipc: Positive = 1.0

    @property
    def speed(self) -> float:
        """Clock times instructions per cycle."""
        return float(self.clock_ghz * self.ipc)


@dataclass(frozen=True, config=LANGUAGE)
class Shape(Construct):
    """A machine for sale.

    Attributes
    ----------
    cores
        Physical cores.
    price
        What one costs, in the currency of the file.
    vcpus
        Hardware threads: as many as cores without simultaneous multithreading; twice as many if left out.
    clock_ghz
        Clock with all cores busy, GHz; as fast as the load test's if left out.
    ipc
        Instructions per cycle relative to the load test's processor.
    disk_gib
        Disk for data, GiB; any amount of data fits if left out.
    """

    cores: AtLeastOne
    price: Price
    vcpus: AtLeastOne | None = None
    clock_ghz: Positive | None = None
    ipc: Positive = 1.0
    disk_gib: Positive | None = None

    def __post_init__(self) -> None:
        if self.vcpus is not None and self.vcpus not in (self.cores, _THREADS * self.cores):
            raise InputError(
                f"vcpus = {self.vcpus} of {self.cores} cores: give {self.cores} (one thread a core) or "
                f"{_THREADS * self.cores} (two)"
            )

    @property
    def load_test_cores(self) -> int:
        """Cores in the load tests' unit, with two threads per core; a single-threaded core counts as 1.5 of these."""
        threads = _THREADS * self.cores if self.vcpus is None else self.vcpus
        return threads if threads > self.cores else round(self.cores * _THREADS / SMT_GAIN)


@dataclass(frozen=True, config=LANGUAGE)
class Shapes(Construct):
    """Shapes to choose from.

    Attributes
    ----------
    currency
        Of the prices.
    shapes
        By kind of machine and by name.
    load_test
        Processor of the load test by kind of machine, which clocks of shapes are compared with.
    source
        Where the figures come from.
    """

    currency: str
    shapes: dict[Name, dict[Name, Shape]]
    load_test: dict[Name, Processor] = field(default_factory=dict)
    source: str = ""

    def speed(self, kind: str, shape: Shape) -> float:
        """Return the speed of a core of a shape relative to the load test's."""
        if shape.clock_ghz is None:
            return 1.0
        return float(shape.clock_ghz * shape.ipc / self.load_test[kind].speed)


def read_shapes(path: Path, system: System[Any]) -> Shapes:
    """Read shapes from a TOML file; docs/examples/shapes.toml shows its form.

    Parameters
    ----------
    path : Path
        The file.
    system : System
        The system whose machines they are.

    Raises
    ------
    InputError
        If it cannot be read, a kind of machine is unknown, missing or not modelled with other cores, or a clock has
        nothing to be compared with.
    """
    return checked_shapes(read(Shapes, path), system, str(path))


def checked_shapes(found: Shapes, system: System[Any], path: str) -> Shapes:
    """Return shapes if they fit a system's machines; `path` is their name in messages.

    Raises
    ------
    InputError
        As for `read_shapes`.
    """
    for kind in (*found.shapes, *found.load_test):
        one_of(system.component(Machines).kinds, kind, f"{path}: {system.name} has no {kind!r}")
    for kind, machine in system.component(Machines).kinds.items():
        listed = found.shapes.get(kind)
        if not listed:
            raise InputError(f"{path}: no shape of {kind} ({machine.name}): add [shapes.{kind}.NAME]")
        if machine.cores is None or machine.speed is None:
            raise InputError(
                f"{path}: the model of {system.name} does not say what other cores of a {machine.name} do: "
                "use --prices, which prices its machines as they are"
            )
        for name, shape in listed.items():
            if shape.clock_ghz is not None and kind not in found.load_test:
                raise InputError(
                    f"{path}: clock_ghz of {name} has nothing to be compared with: add [load_test.{kind}] with the "
                    "clock of the load test's processor, or leave clock_ghz out"
                )
    return found


def combinations(shapes: Shapes) -> list[dict[str, str]]:
    """Return every choice of one shape for each kind of machine, by name."""
    return [dict(zip(shapes.shapes, names, strict=True)) for names in itertools.product(*shapes.shapes.values())]


def fields_of(shapes: Shapes, chosen: Mapping[str, str], system: System[Any]) -> dict[str, int | float]:
    """Return the scenario fields that chosen shapes determine: cores and their speed."""
    found: dict[str, int | float] = {}
    for kind, name in chosen.items():
        machine, shape = system.component(Machines).kinds[kind], shapes.shapes[kind][name]
        if machine.cores is not None and machine.speed is not None:
            found |= {machine.cores: shape.load_test_cores, machine.speed: shapes.speed(kind, shape)}
    return found


def disk_gib(shapes: Shapes, chosen: Mapping[str, str], system: System[Any]) -> float | None:
    """Return the disk size of the machine that stores the data, GiB; None if it is not limited."""
    found = [
        shapes.shapes[kind][name].disk_gib
        for kind, name in chosen.items()
        if system.component(Machines).kinds[kind].holds_data
    ]
    return next((float(each) for each in found if each is not None), None)
