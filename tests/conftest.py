"""What every test run shares: the same examples each time, and one compilation of the kernel."""

import pytest
from hypothesis import settings

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.simulator.compiled.kernel.compiling import is_compiled
from capplan.simulator.engine import simulate

# A property test that fails here fails everywhere.
settings.register_profile("deterministic", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("deterministic")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernel before the workers start: each of them would compile its own."""
    if not hasattr(session.config, "workerinput") and not is_compiled():
        visit = RequestClass("request", Visit("server", Exponential(0.1)))
        simulate(
            Network("warm-up", (Station("server", 1),), classes=(visit,), traffic=Open(1.0, {"request": 1.0})),
            1.0,
            seed=1,
        )
