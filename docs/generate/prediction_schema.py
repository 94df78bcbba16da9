"""Write the JSON schema of a prediction, `docs/reference/prediction.schema.json`.

Run from anywhere: `uv run python docs/generate/prediction_schema.py`. With `--check` nothing is written, and the exit
code is 1 when the file is out of date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from capplan.planner.predict.prediction import prediction_schema

DOCS = Path(__file__).resolve().parents[1]


def generated() -> dict[Path, str]:
    """Return the text of every file that this script writes."""
    text = json.dumps(prediction_schema(), indent=1, ensure_ascii=False) + "\n"
    return {DOCS / "reference" / "prediction.schema.json": text}


def main() -> int:
    """Write the file, or check it."""
    stale = [path for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if "--check" not in sys.argv[1:]:
            path.write_text(generated()[path], encoding="utf-8", newline="\n")
        sys.stderr.write(f"{path.relative_to(DOCS.parent)} was out of date\n")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
