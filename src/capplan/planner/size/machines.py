"""Machine prices, and the machine shapes to choose from."""

from __future__ import annotations

import csv
import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.answers.number_words import listed
from capplan.errors import InputError, one_of
from capplan.layout.components import Machine, Machines
from capplan.layout.system import System
from capplan.models.cassandra.storage import GIB
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.document import read, read_toml
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import AtLeastOne, Positive, parse_size_bytes

MACHINES = "machines"
"""The currency where no price list is given."""
PERIODS = {"once": "once", "hour": "an hour", "month": "a month", "year": "a year"}
"""What a price may be for, in words after the currency."""


def price_unit(currency: str, period: str) -> str:
    """Return the unit of prices, such as `EUR a month`; `machines` where each counts as one."""
    return currency if currency == MACHINES else f"{currency} {PERIODS[period]}"


def check_unit(currency: Any, period: Any, where: str = "prices") -> None:
    """Refuse prices without a currency or a period: neither is assumed.

    Raises
    ------
    InputError
        If one of them is missing or unknown.
    """
    if not isinstance(currency, str) or not currency or currency == MACHINES:
        raise InputError(f'{where}: prices have no currency: add one such as currency = "EUR"')
    if not isinstance(period, str) or not period:
        raise InputError(f'{where}: prices have no period: add period = "month", or one of {", ".join(PERIODS)}')
    one_of(PERIODS, period, f"{where}: period = {period!r} is unknown")


@dataclasses.dataclass(frozen=True)
class Prices:
    """Prices of machines.

    Attributes
    ----------
    currency : str
        The currency; `machines` where each counts as one.
    each : mapping of float
        Price by kind of machine, as in `Machines.kinds`; a kind that is missing costs nothing.
    period : str
        What a price is for: `once`, `hour`, `month` or `year`.

    Raises
    ------
    InputError
        If there are prices without a currency or a period.
    """

    currency: str = MACHINES
    each: Mapping[str, float] | None = None
    period: str = ""

    def __post_init__(self) -> None:
        if self.each is not None:
            check_unit(self.currency, self.period)

    def of(self, scenario: Scenario) -> float:
        """Return the cost of a layout's machines."""
        from capplan.systems.registry import system  # reads the systems

        counts, each = system(scenario.system).component(Machines).counts(scenario), self.each
        return float(sum(count * (1.0 if each is None else each.get(kind, 0.0)) for kind, count in counts.items()))


def read_prices(path: Path, system: System[Any]) -> Prices:
    """Read a price list: currency, period, and a table `[machines]` with a price for each kind of machine.

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
        one_of(("currency", "period", "machines"), key, f"{path}: {key!r} is unknown")
    currency, period, each = content.get("currency"), content.get("period"), content.get("machines", {})
    check_unit(currency, period, path)
    if not isinstance(each, dict):
        raise InputError(f'{path}: a price list has currency = "EUR", period = "year" and a table [machines]')
    kinds = system.component(Machines).kinds
    for kind, price in each.items():
        one_of(kinds, kind, f"{path}: {system.name} has no {kind!r}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
            raise InputError(f"{path}: {kind} = {price!r} is not a price: give a number of at least 0")
    if missing := [kind for kind in kinds if kind not in each]:
        raise InputError(f"{path}: no price of {missing[0]} ({kinds[missing[0]].name}): add {missing[0]} = 1000")
    return Prices(str(currency), {kind: float(price) for kind, price in each.items()}, str(period))


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
        Physical cores; if left out, the shape is the machine type of its name, as in `machine_types.csv`.
    price
        What one costs, in the currency and for the period of the file; each counts as one if left out.
    vcpus
        Hardware threads: as many as cores without simultaneous multithreading; twice as many if left out.
    clock_ghz
        Clock with all cores busy, GHz; as fast as the load test's if left out.
    ipc
        Instructions per cycle relative to the load test's processor.
    disk_gib
        Disk for data, GiB; any amount of data fits if left out.
    memory_gib, disk_iops, network_gbit
        Memory, GiB, reads from disk per second, and Gbit/s of its network; what is left out limits nothing, and reads
        from disk are not known without memory.
    """

    cores: AtLeastOne | None = None
    price: Price | None = None
    vcpus: AtLeastOne | None = None
    clock_ghz: Positive | None = None
    ipc: Positive = 1.0
    disk_gib: Positive | None = None
    memory_gib: Positive | None = None
    disk_iops: Positive | None = None
    network_gbit: Positive | None = None

    def __post_init__(self) -> None:
        if self.cores is None or self.vcpus is None:
            return
        if self.vcpus not in (self.cores, _THREADS * self.cores):
            raise InputError(
                f"vcpus = {self.vcpus} of {self.cores} cores: give {self.cores} (one thread a core) or "
                f"{_THREADS * self.cores} (two)"
            )

    @property
    def load_test_cores(self) -> int:
        """Cores in the load tests' unit, with two threads per core; a single-threaded core counts as 1.5 of these."""
        cores = self.cores or 1
        threads = _THREADS * cores if self.vcpus is None else self.vcpus
        return threads if threads > cores else round(cores * _THREADS / SMT_GAIN)


@lru_cache(maxsize=1)
def machine_types() -> dict[str, Shape]:
    """Return the machine types that Cassandra runs on in three clouds, with public facts and no prices, by name."""
    with files(__package__).joinpath("machine_types.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sizes = {"memory_gib": "memory", "disk_gib": "disk"}
    return {
        row["name"]: Shape(
            cores=int(row["cores"]),
            vcpus=int(row["vcpus"]),
            **{field: parse_size_bytes(row[column]) / GIB for field, column in sizes.items() if row[column]},
            **{field: float(row[field]) for field in ("disk_iops", "network_gbit") if row[field]},
        )
        for row in rows
    }


def _completed(name: str, shape: Shape, where: str) -> Shape:
    """Return a shape with the facts of the machine type of its name, if it has no cores of its own."""
    if shape.cores is not None:
        return shape
    if name not in machine_types():
        near = get_close_matches(name, machine_types(), n=3, cutoff=0.0)
        raise InputError(
            f"{where}: {name!r} is no machine type that capplan has facts of, the nearest are {listed(near)}: give its "
            "cores, memory_gib, disk_gib, disk_iops and network_gbit in a file of shapes"
        )
    known, given = vars(machine_types()[name]), vars(shape)
    return Shape(**{field: known[field] if value is None else value for field, value in given.items()})


@dataclass(frozen=True, config=LANGUAGE)
class Shapes(Construct):
    """Shapes to choose from.

    Attributes
    ----------
    shapes
        By kind of machine and by name.
    currency, period
        Of the prices, if there are any: what they are in, and whether they are paid `once`, or by `hour`, `month` or
        `year`.
    load_test
        Processor of the load test by kind of machine, which clocks of shapes are compared with.
    source
        Where the figures come from.
    """

    shapes: dict[Name, dict[Name, Shape]]
    currency: str = ""
    period: str = ""
    load_test: dict[Name, Processor] = field(default_factory=dict)
    source: str = ""

    def prices(self, chosen: Mapping[str, str]) -> Prices:
        """Return the prices of chosen shapes; each machine counts as one if the file has none."""
        each = {kind: price for kind, name in chosen.items() if (price := self.shapes[kind][name].price) is not None}
        return Prices(self.currency, each, self.period) if each else Prices()

    @property
    def priced(self) -> bool:
        """Whether they have prices."""
        return any(shape.price is not None for shapes in self.shapes.values() for shape in shapes.values())

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


def shapes_given(text: str, system: System[Any]) -> Shapes:
    """Return the shapes in a file (.toml), or the machine types in a list of names.

    Raises
    ------
    InputError
        As for `read_shapes`.
    """
    if text.endswith(".toml"):
        return read_shapes(Path(text), system)
    names = {name.strip(): Shape() for name in text.split(",")}
    return checked_shapes(Shapes(dict.fromkeys(system.component(Machines).kinds, names)), system, "--shapes")


def checked_shapes(found: Shapes, system: System[Any], path: str) -> Shapes:
    """Return shapes, with the facts of machine types, if they fit a system's machines; `path` names them in messages.

    Raises
    ------
    InputError
        As for `read_shapes`.
    """
    kinds, completed = system.component(Machines).kinds, {}
    for kind in (*found.shapes, *found.load_test):
        one_of(kinds, kind, f"{path}: {system.name} has no {kind!r}")
    for kind, machine in kinds.items():
        shapes = found.shapes.get(kind)
        if not shapes:
            raise InputError(f"{path}: no shape of {kind} ({machine.name}): add [shapes.{kind}.NAME]")
        if machine.cores is None:
            raise InputError(
                f"{path}: the model of {system.name} does not say what other cores of a {machine.name} do: "
                "use --prices, which prices its machines as they are"
            )
        completed[kind] = {name: _completed(name, shape, path) for name, shape in shapes.items()}
        for name, shape in shapes.items():
            if shape.clock_ghz is not None:
                _check_clock(found, kind, machine, f"{path}: clock_ghz of {name}")
    if found.priced:
        _check_priced(found, path)
    return dataclasses.replace(found, shapes=completed)


def _check_clock(found: Shapes, kind: str, machine: Machine, where: str) -> None:
    """Refuse a clock that nothing follows from."""
    if machine.speed is None:
        raise InputError(f"{where}: the model of a {machine.name} does not say what another clock does: leave it out")
    if kind not in found.load_test:
        raise InputError(
            f"{where} has nothing to be compared with: add [load_test.{kind}] with the clock of the load test's "
            "processor, or leave clock_ghz out"
        )


def _check_priced(found: Shapes, path: str) -> None:
    """Refuse prices without a unit, and prices of some shapes only."""
    check_unit(found.currency, found.period, path)
    for kind, shapes in found.shapes.items():
        if unpriced := [name for name, shape in shapes.items() if shape.price is None]:
            raise InputError(f"{path}: {unpriced[0]} ({kind}) has no price, and others have one: add price = 1000")


def combinations(shapes: Shapes) -> list[dict[str, str]]:
    """Return every choice of one shape for each kind of machine, by name."""
    return [dict(zip(shapes.shapes, names, strict=True)) for names in itertools.product(*shapes.shapes.values())]


def fields_of(shapes: Shapes, chosen: Mapping[str, str], system: System[Any]) -> dict[str, int | float]:
    """Return the scenario fields that chosen shapes determine: cores, their speed, and what else machines have."""
    found: dict[str, int | float] = {}
    for kind, name in chosen.items():
        machine, shape = system.component(Machines).kinds[kind], shapes.shapes[kind][name]
        if machine.cores is not None:
            found[machine.cores] = shape.load_test_cores
        if machine.speed is not None:
            found[machine.speed] = shapes.speed(kind, shape)
        for name in ("memory_gib", "disk_gib", "disk_iops", "network_gbit"):
            field, size = getattr(machine, name), getattr(shape, name)
            if field is not None and size is not None and (name != "disk_iops" or shape.memory_gib is not None):
                found[field] = float(size)
    return found


def disk_gib(shapes: Shapes, chosen: Mapping[str, str], system: System[Any]) -> float | None:
    """Return the disk size of the machine that stores the data, GiB; None if it is not limited."""
    found = [
        shapes.shapes[kind][name].disk_gib
        for kind, name in chosen.items()
        if system.component(Machines).kinds[kind].holds_data
    ]
    return next((float(each) for each in found if each is not None), None)
