"""Run `capplan validate --live` with a made-up cluster: `python -m tests.faults.fake_live validate --live`."""

from types import ModuleType
from typing import Any

from tests.planner.made_up_cluster import SHORT, MadeUp, Measuring

from capplan.files import user_cache
from capplan.lab import packages
from capplan.planner.live import clusters, protocol, run


def main() -> None:
    """Run the command line of this process."""
    from capplan.cli.process import run as run_process

    replaced: dict[tuple[ModuleType, str], Any] = {
        (packages, "check_installed"): lambda: None,
        (protocol, "protocol"): lambda *_, **__: SHORT,
        (clusters, "Labs"): lambda _: MadeUp(),
        (run, "measure"): Measuring(user_cache() / "live" / SHORT.name),
    }
    for (module, name), value in replaced.items():
        setattr(module, name, value)
    run_process()


if __name__ == "__main__":
    main()
