"""Documents: what is written is read back, and each error in a file is one sentence."""

import copy
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from tests.strategies import networks

from capplan.errors import InputError
from capplan.models.language.distribution import Exponential, Lognormal
from capplan.models.language.document import (
    dump,
    load,
    network_schema,
    read_network,
    read_toml,
    schema,
    write,
    write_network,
)
from capplan.models.language.network import Network
from capplan.models.language.station import Pauses, Pool, Station
from capplan.models.language.step import Acquire, CountdownLatch, Delay, ForkJoin, Group, Sequence, Signal, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass

READ = Acquire(
    "workers",
    CountdownLatch(
        (Group("dc 1", 1),),
        ForkJoin((Sequence((Visit("cassandra", Exponential(0.0012)), Signal("dc 1"))), Delay(Lognormal(0.001, 1))), 0),
    ),
)
NETWORK = Network(
    "lookup",
    (Station("cassandra", 24, pauses=(Pauses(Exponential(8), Lognormal(0.06, 1)),)),),
    (RequestClass("read", READ),),
    Open(7000, {"read": 1}),
    (Pool("workers", 64, 0),),
)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_a_network_is_read_back_as_it_was(network: Network) -> None:
    text = tomli_w.dumps(dump(network))
    assert load(Network, tomllib.loads(text), "text") == network


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
@pytest.mark.slow
def test_documents_satisfy_the_schema(network: Network) -> None:
    jsonschema.Draft202012Validator(network_schema()).validate(json.loads(json.dumps(dump(network))))


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(network_schema())
    jsonschema.Draft202012Validator.check_schema(network_schema())
    good = json.loads(json.dumps(dump(NETWORK)))
    assert validator.is_valid(good)
    damages: list[Callable[[Any], object]] = [
        lambda tables: tables.update(extra=1),
        lambda tables: tables["classes"][0]["flow"].pop("kind"),
        lambda tables: tables["stations"][0].update(servers=0),
        lambda tables: tables["traffic"].update(rate_per_s=-1),
    ]
    for damage in damages:
        bad = copy.deepcopy(good)
        damage(bad)
        assert not validator.is_valid(bad)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "lookup.toml"
    write_network(NETWORK, path)
    write_network(NETWORK, path)
    assert read_network(path) == NETWORK
    assert names(tmp_path) == ["lookup.toml"]


def test_defaults_are_left_out_and_kinds_stay() -> None:
    tables = dump(NETWORK)
    assert tables["stations"][0].keys() == {"name", "servers", "pauses"}
    assert tables["pools"] == [{"name": "workers", "size": 64, "queue_limit": 0}]
    assert next(iter(tables["traffic"].items())) == ("kind", "open")
    assert "timeline" not in tables


def test_draws_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    network = Network(
        "draws",
        (Station("disk", 1),),
        (RequestClass("read", Sequence((Visit("disk", Exponential(np.array([1.0, 2.0]))),))),),
        Open(1, {"read": 1}),
    )
    with pytest.raises(InputError) as caught:
        write_network(network, tmp_path / "network.toml")
    assert "Network.classes[0].flow.steps[0].demand.mean_s holds 2 parameter draws" in str(caught.value)
    assert names(tmp_path) == []


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lookup\.toml"):
        write(NETWORK, tmp_path / "missing" / "lookup.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match=r"folder\.toml"):
        write(NETWORK, tmp_path / "folder.toml")
    assert names(tmp_path) == ["folder.toml"]


def files(folder: Path) -> None:
    (folder / "lookup.toml").write_text('name = "a"\nname = "b"\n', encoding="utf-8")
    (folder / "syntax.toml").write_text('name = "a"\nstations = [\n', encoding="utf-8")
    (folder / "latin.toml").write_bytes(b'name = "caf\xe9"')
    (folder / "deep.toml").write_text("a = " + "[" * 100_000, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lokup.toml", "'lookup.toml'"),
        ("no/where.toml", "no/where.toml"),
        (".", "directory"),
        ("lookup.toml", "line 2"),
        ("syntax.toml", "syntax.toml"),
        ("latin.toml", "UTF-8"),
        ("deep.toml", "deep.toml"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    files(tmp_path)
    with pytest.raises(InputError) as caught:
        read_toml(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def constructs(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every table of a document whose keys are fields (the mix has names of its own)."""
    if isinstance(value, dict):
        yield value
    for key, inside in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    ):
        if key != "mix":
            yield from constructs(inside)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.data())
def test_a_misspelt_key_at_any_depth_is_named_with_the_nearest(network: Network, data: st.DataObject) -> None:
    tables = dump(network)
    table = data.draw(st.sampled_from([each for each in constructs(tables) if each.keys() - {"kind"}]))
    key = data.draw(st.sampled_from(sorted(table.keys() - {"kind"})))
    table[f"{key}x"] = table.pop(key)
    with pytest.raises(InputError) as caught:
        load(Network, tables, "file")
    assert f"'{key}x'" in str(caught.value)
    assert f"'{key}'" in str(caught.value)


JUNK = st.sampled_from(
    [None, "x", "", -1, 0, 2.5, True, float("nan"), float("inf"), [], {}, [1], {"kind": "x"}, 10**400]
)


def slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every table or list of a document with each of its keys or indices."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from slots(value[key])


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.data())
def test_junk_anywhere_is_read_or_refused_in_one_sentence(network: Network, data: st.DataObject) -> None:
    tables = dump(network)
    table, key = data.draw(st.sampled_from(list(slots(tables))))
    table[key] = data.draw(JUNK)
    try:
        load(Network, tables, "file")
    except InputError as error:
        sentence = str(error)
        assert sentence.startswith("file: ")
        assert "\n" not in sentence
        assert not any(word in sentence for word in ("pydantic", "Input should", "validation error", "tuple"))


HERE = "classes['read'].flow.step.step.branches[0].steps[0]"


def visit(tables: dict[str, Any]) -> Any:
    return tables["classes"][0]["flow"]["step"]["step"]["branches"][0]["steps"][0]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda tables: visit(tables)["demand"].update(mean=1), ("unknown key 'mean'", f"{HERE}.demand", "'mean_s'")),
        (lambda tables: visit(tables).update(kind="vist"), (HERE, "'vist'", "'visit'")),
        (lambda tables: tables["traffic"].pop("kind"), ("'kind' is missing", "traffic", "closed, open, throttled")),
        (lambda tables: visit(tables).pop("station"), ("'station' is missing", HERE)),
        (lambda tables: tables.update(name=3), ("name = 3",)),
        (lambda tables: tables.update(stations={}), ("stations = {}", "list")),
        (lambda tables: tables.update(stations=[3]), ("stations[0] = 3", "table")),
        (lambda tables: tables["stations"][0].update(servers=2.5), ("stations['cassandra'].servers", "2.5")),
        (
            lambda tables: tables["stations"][0].update(discipline="FCFS"),
            ("stations['cassandra'].discipline = 'FCFS'", "did you mean 'fcfs'"),
        ),
        (lambda tables: tables["traffic"].update(rate_per_s="7000/d"), ("traffic.rate_per_s", "'/d'", "'/s'")),
        (lambda tables: tables["traffic"]["mix"].update(read="1"), ("traffic.mix.read", "'1'")),
        (
            lambda tables: tables["stations"][0]["pauses"][0]["every"].update(mean_s="8 sec"),
            ("stations['cassandra'].pauses[0].every.mean_s", "'sec'"),
        ),
        (lambda tables: visit(tables).update(station="cassandr"), ("'cassandr'", "'cassandra'")),
        (lambda tables: tables.update(timeline="x" * 80), (f"timeline = '{'x' * 56}...",)),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_valid_word(
    damage: Callable[[dict[str, Any]], object], words: tuple[str, ...]
) -> None:
    tables = dump(NETWORK)
    damage(tables)
    with pytest.raises(InputError) as caught:
        load(Network, tables, "lookup.toml")
    sentence = str(caught.value)
    assert sentence.startswith("lookup.toml: ")
    assert [word for word in words if word not in sentence] == []


def test_a_flow_beyond_any_sensible_depth_is_refused() -> None:
    flow: dict[str, Any] = {"kind": "signal", "group": "a"}
    for _ in range(2000):
        flow = {"kind": "sequence", "steps": [flow]}
    with pytest.raises(InputError) as caught:
        load(Network, {**dump(NETWORK), "classes": [{"name": "read", "flow": flow}]}, "file")
    assert "classes['read'].flow.steps[0].steps[0]" in str(caught.value)
    assert len(str(caught.value)) < 120


class Layout(BaseModel):
    """A scenario-like model.

    Attributes
    ----------
    dcs
        Data centres.
    """

    model_config = ConfigDict(extra="forbid")

    dcs: int = 1
    name: str | None = None
    level: Literal["ONE", "QUORUM"] = "ONE"
    traffic: Closed | None = None


def test_models_are_read_and_written_too(tmp_path: Path) -> None:
    layout = Layout(dcs=3, traffic=Closed(2, Exponential(1), {"read": 1}))
    write(layout, tmp_path / "layout.toml")
    assert load(Layout, read_toml(tmp_path / "layout.toml"), "layout.toml") == layout
    assert dump(Layout()) == {}
    assert schema(Layout)["properties"]["dcs"]["description"] == "Data centres."
