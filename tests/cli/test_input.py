"""Input as people type it: read the same way by every command and from files, or refused in one sentence."""

from pathlib import Path

import pytest
from tests.cli.commands import refused

from capplan.cli.main import main
from capplan.models.language.scenario import Scenario
from capplan.systems.registry import read_scenario, scenario

QUICK = {
    "predict": ["--engine", "analytic"],
    "simulate": ["--duration", "1s"],
    "sweep": ["--draws", "2", "--processes", "1"],
}
VERBS = list(QUICK)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, text: str, encoding: str = "utf-8") -> str:
    (folder / "mine.toml").write_text(text, encoding=encoding)
    return "mine.toml"


def answered(capsys: pytest.CaptureFixture[str], verb: str, *arguments: str) -> tuple[str, str]:
    assert main([verb, *arguments, *QUICK[verb]]) in (0, 1)  # the rates are beyond some capacities
    out, err = capsys.readouterr()
    return out, err


@pytest.mark.parametrize("verb", VERBS)
def test_a_rate_is_read_alike_by_every_command(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    plain = answered(capsys, verb, "fedora4", "--tps", "1000", "--csv")

    for typed in ("1k", "1,000", "1_000", "1k/s", "60k/min", "0.001M"):
        assert answered(capsys, verb, "fedora4", "--tps", typed, "--csv") == plain


@pytest.mark.parametrize("typed", ["1500", '"1.5k"', '"1,500"', "1_500", '"90k/min"'])
def test_a_rate_is_read_alike_from_a_file(folder: Path, typed: str) -> None:
    assert read_scenario(written(folder, f'system = "fedora4"\ntps = {typed}\n')) == scenario("fedora4", tps=1500.0)


def test_a_size_is_read_from_a_file_as_the_option_takes_it(folder: Path) -> None:
    text = 'system = "cassandra"\nrow_bytes = "2kB"\ndata_gib = "1.5TiB"\nread_fraction = "80%"\n'
    fields = {"row_bytes": 2000.0, "data_gib": 1536.0, "read_fraction": 0.8}
    assert read_scenario(written(folder, text)) == scenario("cassandra", **fields)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('distance = "300km"', {"distance": "300km"}),
        ("distance_km = 300", {"distance": "300km"}),
        ('rtt = "3ms"', {"rtt": "3ms"}),
        ("rtt_ms = 3", {"rtt": "3ms"}),
        ('slo = "acct.p99<20ms"', {"slo": ("acct.p99<20ms",)}),
        ('encryption = "client"\nreconnects = "5%"', {"encryption": "client", "reconnects": 0.05}),
        ('encryption = "none"', {}),
    ],
)
@pytest.mark.slow
def test_files_and_options_have_the_same_keys_and_units(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, fields: dict[str, object]
) -> None:
    """Files alone may have the unit in the key."""
    target = written(folder, f"{text}\n")
    in_value = {"distance_km = 300": 'distance = "300km"', "rtt_ms = 3": 'rtt = "3ms"'}.get(text, text)
    options = [
        word
        for line in in_value.splitlines()
        for key, value in [line.split(" = ")]
        for word in (f"--{key.replace('_', '-')}", value.strip('"'))
    ]

    assert read_scenario(target) == scenario("openprovider", **fields)
    assert answered(capsys, "predict", target, "--csv") == answered(capsys, "predict", *options, "--csv")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rtt = 3", "'3ms'"),
        ('rtt = "3"', "'3ms'"),
        ("dcs = 2\nrtt = [[0, 3], [3, 0]]", "'3ms'"),
        ("distance = 150", "'150km'"),
        ('distance_km = "far"', "distance_km"),
        ('rtt = "3ms"\ndistance_km = 300', "exclude"),
        ('data_factor = "much"', "such as 1.3"),
        ("encryption = [1]", "a text in quotes"),
        ("cass-nodes = 6", "'cass_nodes'"),
        ("dcs = 3\ncass_node = 6", "'cass_nodes'"),
        ("dcs = 0", "dcs"),
        ('dcs = "three"', "dcs"),
        ('tps = "nan"', "nan"),
        ('tps = "5 kilo"', "tps: '5 kilo' is not a rate"),
        ("tps = nan", "nan"),
        ('rtt = "3parsecs"', "'parsecs'"),
        ('dcs = 3\nrtt = [["0ms", "2ms"], ["2ms", "0ms"]]', "needs 3 rows"),
        ('system = "openprovidr"', "'openprovider'"),
        ("system = 3", "system = 3 must be a text in quotes"),
        ('system = "fedora4"\nnodes = 99', "of fedora4: nodes = 99 is more than the 64"),
        ("dcs = = 3", "TOML"),
    ],
)
def test_a_refused_file_says_what_it_was_taken_for(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, wanted: str
) -> None:
    sentence = refused(capsys, "predict", written(folder, f"{text}\n"))

    assert "mine.toml, read as a scenario of openprovider" in sentence or (
        wanted.startswith(("TOML", "'openprovider'", "system = 3", "of fedora4"))
    )
    assert "mine.toml" in sentence
    assert wanted in sentence


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
@pytest.mark.parametrize("verb", [*VERBS, "validate", "calibrate"])
def test_an_empty_file_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], verb: str, text: str) -> None:
    assert 'system = "openprovider"' in refused(capsys, verb, written(folder, text))


def test_a_byte_order_mark_is_read_over(folder: Path) -> None:
    assert read_scenario(written(folder, "dcs = 2\n", "utf-8-sig")) == scenario("openprovider", dcs=2)


def test_a_dangling_link_names_what_it_leads_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.toml").symlink_to("gone.toml")
    sentence = refused(capsys, "predict", "link.toml")

    assert "gone.toml" in sentence
    assert "did you mean" not in sentence


@pytest.mark.parametrize("verb", VERBS)
def test_what_has_no_effect_is_said_once(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    layout = ["--dcs", "1", "--tps", "500"]
    plain, silent = answered(capsys, verb, *layout)
    same, said = answered(capsys, verb, *layout, "--rtt", "3ms")

    assert silent == ""
    assert said.count("rtt has no effect") == said.count("\n") == 1
    assert verb == "predict" or same == plain  # predict shows what was asked


@pytest.mark.slow
@pytest.mark.parametrize("words", [("check", "one.toml"), ("compare", "one.toml", "one.toml", "--engine", "analytic")])
def test_files_with_a_field_without_effect_are_answered_with_a_line_about_it(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """The line is in each answer once, although a comparison has two layouts."""
    layout = 'system = "openprovider"\ndcs = 1\ntps = 500\n'
    check = '[check]\nconfidence = "90%"\n' if words[0] == "check" else ""
    (folder / "one.toml").write_text(f'{layout}slo = ["acct.p99<1s"]\n{check}')
    assert main(words) == 0
    silent = capsys.readouterr().err
    (folder / "one.toml").write_text(f'{layout}slo = ["acct.p99<1s"]\nrtt = "3ms"\n{check}')
    assert main(words) == 0
    said = capsys.readouterr().err
    assert silent == ""
    assert said.count("rtt has no effect") == said.count("\n") == 1


def test_a_sweep_over_data_centres_does_not_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(capsys, "sweep", "--dcs", "1,2", "--rtt", "3ms")[1] == ""


def test_encryption_is_swept_with_none(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answered(capsys, "sweep", "--encryption", "client,none", "--csv")[0].splitlines()
    plain = answered(capsys, "sweep", "--csv")[0].splitlines()

    assert len(rows) == 3
    assert rows[2] == plain[1]
    assert rows[1] != rows[2]


def test_a_trace_is_csv_by_its_ending(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    run = ["fedora4", "--tps", "100", "--warmup", "0"]
    answered(capsys, "simulate", *run, "--trace", "out.csv")
    answered(capsys, "simulate", *run, "--trace", "out.parquet")
    text, table = pd.read_csv(folder / "out.csv"), pd.read_parquet(folder / "out.parquet")

    assert list(text) == list(table)
    assert (text["start_ns"] == table["start_ns"]).all()
    assert list(text["class"]) == list(table["class"])


def test_the_kinds_of_scenarios_agree_on_a_rate(folder: Path) -> None:
    for name in ("openprovider", "rhino-shcm", "arion", "fedora4"):
        made: Scenario = read_scenario(written(folder, f'system = "{name}"\ntps = "10k"\n'))
        assert made.tps == 10_000.0


def test_a_prediction_is_plotted_to_the_same_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = answered(capsys, "predict", "fedora4", "--csv")

    assert answered(capsys, "predict", "fedora4", "--csv", "--plot", "one.html") == plain
    assert answered(capsys, "predict", "fedora4", "--csv", "--plot", "two.HTML") == plain
    assert (folder / "one.html").read_bytes() == (folder / "two.HTML").read_bytes()


@pytest.mark.parametrize("verb", VERBS)
def test_a_picture_without_a_browser_is_refused_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("choreographer.browsers.chromium.Chromium.find_browser", lambda **_: None)

    assert "write .html" in refused(capsys, verb, "--plot", "out.svg")
    assert list(folder.iterdir()) == []
