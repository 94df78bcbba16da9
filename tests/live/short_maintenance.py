"""A study of maintenance with a small table and a short loss: NAME FOLDER."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path

study = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate" / "maintenance_runs.py"))
names = study["measured"].__globals__
names["_ROWS"] = dict.fromkeys(study["_ROWS"], 40_000)
names["_DOWN_S"] = 8.0
name, folder = sys.argv[1:]
asked = study["STUDIES"][name]
short = replace(asked.settings, duration_s=2.0, warm_up_s=4.0, clients=(8,), shares=(0.2,), repeats=1)
study["measured"](replace(asked, settings=short), Path(folder, f"{name}.csv"))
