"""Debian's slapd and FreeRADIUS: started, predicted, measured for a second, and gone."""

import subprocess
import sys
from pathlib import Path

import pytest

from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS

pytestmark = pytest.mark.system

CAPPLAN = Path(sys.executable).with_name("capplan")
SHORT = ("--duration", "200ms", "--warm-up", "1s", "--clients", "1,4", "--rates", "30%")


@pytest.mark.parametrize(
    ("name", "kinds", "ends"),
    [
        ("ldap", {"search", "bind"}, {"server", "load generator"}),
        ("radius", {"request", "proxied request"}, {"server", "front", "home server", "load generator"}),
    ],
)
def test_a_server_of_debian_is_measured(name: str, kinds: set[str], ends: set[str], tmp_path: Path) -> None:
    table = tmp_path / f"{name}.csv"
    # In a process of its own: a browser of another test has an event loop running in this one.
    subprocess.run([CAPPLAN, "collect", name, "-o", str(table), *SHORT], check=True)

    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(table)))
    assert {row.request_class for row in rows} == kinds
    assert all((row.throughput_tps or 0) > 10 and not row.errors for row in rows)
    assert (tmp_path / f"{name}.hlog").exists()
    verdicts = audit_load_tests(LOAD_TESTS.read(table)).rows
    for row, verdict in zip(rows, verdicts, strict=True):
        assert verdict.believed or "do not fit" in (row.note or "")  # other tests may starve the generator
    found = MICROBENCHMARKS.read(tmp_path / f"{name}.microbench.csv")
    costs = found[found["component"].isin(ends)]
    assert set(costs["component"]) == ends
    assert ((costs["value"] >= 0) & (costs["value"] < 0.05)).all()
    predicted, measured = (set(found[found["component"] == each]["operation"]) for each in ("predicted", "measured"))
    assert predicted == measured
    assert len(predicted) >= 2 * len(kinds)
