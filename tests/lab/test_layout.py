"""The nodes of a lab: every address and token differs, ranges are equal, impossible layouts are refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.lab.layout import VERSIONS, Layout, command, settings, write_node

LAYOUTS = st.builds(Layout, dcs=st.integers(1, 9), cass_nodes=st.integers(1, 12))


@examples(max_examples=25)
@given(LAYOUTS)
def test_addresses_tokens_and_names_differ_and_stay_on_the_loopback(layout: Layout) -> None:
    nodes = layout.nodes

    assert len(nodes) == layout.dcs * layout.cass_nodes
    assert len({each.name for each in nodes}) == len({each.token for each in nodes}) == len(nodes)
    addresses = {each.address for each in nodes} | {each.broadcast for each in nodes}
    assert len(addresses) == len(nodes) * (2 if layout.dcs > 1 else 1)
    assert all(each.startswith("127.") for each in addresses)
    assert all(layout.node(each.name) == each for each in nodes)


@examples(max_examples=25)
@given(LAYOUTS)
def test_nodes_of_a_data_centre_own_equal_ranges(layout: Layout) -> None:
    tokens = [each.token for each in layout.nodes if each.dc == 1]
    ranges = {after - before for before, after in pairwise([*tokens, tokens[0] + 2**64])}

    assert max(ranges) - min(ranges) < layout.cass_nodes
    assert all(-(2**63) <= each.token < 2**63 for each in layout.nodes)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"rf": 2}, "--rf 2"),
        ({"dcs": 10}, "--dcs 10"),
        ({"cass_nodes": 1000}, "--cass-nodes 1000"),
        ({"heap_bytes": 1000}, "--heap"),
        ({"version": "5.1"}, "'5.0'"),
    ],
)
def test_impossible_layouts_are_refused(fields: dict[str, int], named: str) -> None:
    with pytest.raises(InputError, match=named):
        Layout(**fields)  # type: ignore[arg-type]  # one of them is text


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(InputError, match="dc1-1"):
        Layout().node("dc1-2")


@pytest.mark.parametrize("version", VERSIONS)
def test_settings_of_every_version_keep_to_its_spelling(version: str, tmp_path: Path) -> None:
    layout = Layout(dcs=2, cass_nodes=2, rf=2, version=version, client_tls=True, internode_tls=True)
    node = layout.node("dc2-1")
    found = settings(layout, node, tmp_path, tmp_path / "tls")

    assert ("commitlog_sync_period_in_ms" in found) == (version == "3.11")
    assert ("commitlog_sync_period" in found) == (version != "3.11")
    assert (found["listen_address"], found["broadcast_address"]) == ("127.0.1.1", "127.0.11.1")
    assert found["seed_provider"][0]["parameters"][0]["seeds"] == "127.0.10.1,127.0.11.1"
    assert found["client_encryption_options"]["optional"]  # so that plain and TLS alternate on one node
    assert layout.internode_port == (7001 if version == "3.11" else 7000)


def test_one_data_centre_has_no_proxy() -> None:
    layout = Layout(cass_nodes=3)
    assert not layout.delayed
    assert "broadcast_address" not in settings(layout, layout.nodes[0], Path("a"), Path("b"))


def test_files_of_a_node_stay_in_its_folder(tmp_path: Path) -> None:
    layout, folder = Layout(), tmp_path / "dc1-1"
    write_node(layout, layout.nodes[0], folder, tmp_path / "tls")
    found = json.loads((folder / "cassandra.yaml").read_text(encoding="utf-8"))

    paths = [value for value in [*found.values(), *found["data_file_directories"]] if str(value).startswith("/")]
    assert len(paths) == 4
    assert all(Path(each).is_relative_to(folder) for each in paths)
    words = command(layout, layout.nodes[0], folder, Path("java"), [Path("a.jar")])
    assert "-Xmx512M" in words
    assert "-XX:+UseG1GC" in words
    assert "-XX:+UseZGC" in command(Layout(collector="zgc"), layout.nodes[0], folder, Path("java"), [Path("a.jar")])
    with pytest.raises(InputError, match="known: g1, serial, zgc"):
        Layout(collector="G2")
