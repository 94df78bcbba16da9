"""A collector of maintenance with a small table and a short loss: COLLECTOR FOLDER."""

import sys
from pathlib import Path

from capplan.cli.process import run
from capplan.lab.collectors import maintenance

maintenance._ROWS = dict.fromkeys(maintenance._ROWS, 40_000)
maintenance._DOWN_S = 8.0
name, folder = sys.argv[1:]
table = str(Path(folder, f"{name}.csv"))
short = ["--duration", "2s", "--warm-up", "4s", "--clients", "8", "--rates", "20%"]
sys.argv = ["capplan", "collect", name, "-o", table, *short]
run()
