"""The campaign of valid questions counts what was answered, and fails where little is."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.journal import append
from tests.planner.questions_campaign import lines_by, main, seldom_answered


def test_lines_are_counted_by_verb_and_by_format() -> None:
    rows = [
        {"lines": [["predict", ["json"], "answered"], ["sweep", ["screen", "csv"], "refused"]]},
        {"lines": [["predict", ["json"], "refused"]]},
        {},
    ]
    verbs, formats = lines_by(rows)

    assert verbs == {"predict": Counter(answered=1, refused=1), "sweep": Counter(refused=1)}
    assert formats == {"json": Counter(answered=1, refused=1), "screen": Counter(refused=1), "csv": Counter(refused=1)}
    assert seldom_answered(verbs) == ["predict", "sweep"]
    assert not seldom_answered({"size": Counter(answered=7, refused=3)})


@pytest.mark.parametrize(("outcome", "code"), [("answered", 0), ("refused", 1)])
def test_a_campaign_of_refusals_fails(outcome: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, out = tmp_path / "results.jsonl", tmp_path / "counts.json"
    append(results, {"number": 0, "kind": "size", "broken": [], "lines": [["size", ["json"], outcome]]})
    monkeypatch.setattr("sys.argv", ["campaign", str(results), str(out), "--count", "1"])

    assert main() == code
    assert json.loads(out.read_text(encoding="utf-8"))["verbs"] == {"size": {outcome: 1}}
