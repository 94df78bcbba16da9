"""`openprovider`: an AAA policy server that keeps its sessions in Cassandra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from capplan.answers.condition import Unmeasured
from capplan.answers.number_words import as_given
from capplan.layout.components import Machine, Machines, MeasuredRange, Pauses, Simulations
from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import RETRY_STORM, Factor, Losses, Situation
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.units import FloatArray, Number
from capplan.systems.components import data_factor
from capplan.systems.components.encrypted_links import EncryptedLinks, unencrypted
from capplan.systems.components.machines import machines_in_words
from capplan.systems.openprovider.losses import offset, outages, round_trips_by_dc, round_trips_s
from capplan.systems.openprovider.network import (
    REPORTED,
    SETTLES_ROUND_TRIPS,
    SETTLES_S,
    burst_ratio,
    network,
    node_pauses,
    paused_network,
    pauses,
)
from capplan.systems.openprovider.notes import NOTES, excess
from capplan.systems.openprovider.observations import OpenproviderObservations
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

_SITUATIONS = {
    "compaction": Situation(
        name="repair or compaction",
        meaning="repair or compaction runs on every node",
        factors={"unseen_work": Factor(1.5, 0.25), "storage_s": Factor(1.3, 0.2)},
    ),
    "gc": Situation(
        name="GC-heavy hour",
        meaning="collections take three times their share, and each twice as long",
        factors={"garbage_bytes": Factor(1.5, 0.4), "pause_s": Factor(2.0, 0.4), "pause_error": Factor(3.0, 0.4)},
    ),
    "cold": Situation(
        name="cold caches",
        meaning="reads go to disk after a restart",
        factors={"replica_read_s": Factor(2.0, 0.35)},
    ),
    "reattach": Situation(
        name="mass re-attach",
        meaning="subscribers come back all at once",
        rate=Factor(2.0, 0.25),
    ),
    "retries": RETRY_STORM,
}


_LOSSES = {
    "node": "a Cassandra node in each DC",
    "front": "a RADIUS server in each DC",
    "dc": "the worst DC to lose",
}
_PRODUCTION_DATA = Unmeasured(  # evidence all.production_factor: the document speaks of times, which grow no faster
    name="work of Cassandra on production data",
    field=data_factor.DATA_FACTOR,
    value=1.0,
    expected=(2.0, 3.0),
    source="the document's expectation, unmeasured",
    as_tested="data are as tested",
    where="on data as tested",
    unit="times their work",
    otherwise="production makes Cassandra's work {} to {} times",
    measurement="CPU per request on aged data",
)


def machines_by_dc(scenario: OpenproviderScenario) -> Sequence[Mapping[str, int]]:
    """Return the numbers of Cassandra nodes and of RADIUS servers of each data centre."""
    counts = zip(scenario.nodes_by_dc(), scenario.fronts_by_dc(), strict=True)
    return tuple({"node": nodes, "front": fronts} for nodes, fronts in counts)


def settling_s(scenario: OpenproviderScenario, values: Values, _rate_per_s: FloatArray) -> FloatArray:
    """Return the settling time from an empty system, seconds."""
    return np.array(max(SETTLES_S, SETTLES_ROUND_TRIPS * round_trips_s(scenario, values)[1]))


def unmeasured(scenario: OpenproviderScenario) -> tuple[Unmeasured, ...]:
    """Return the work of Cassandra on production data, unless the scenario states it."""
    return () if scenario.data_factor is not None else (_PRODUCTION_DATA,)


class Openprovider(EncryptedLinks[OpenproviderScenario]):
    """An AAA (RADIUS) policy server in one or more data centres."""

    name = "openprovider"
    summary = (
        "AAA (RADIUS) policy server on Cassandra 3.11: front nodes with worker pools, sessions of one authorization "
        "and seven accounting requests in any data centre, local coordinators, inter-DC round trips, accounting "
        "proxy, LDAP"
    )
    scenario = OpenproviderScenario
    parameters = PARAMETERS
    reported = REPORTED

    components = (
        NOTES,
        Losses(_LOSSES, outages, _SITUATIONS),
        Machines[OpenproviderScenario](
            {
                "node": Machine("Cassandra node", "node_cores", "node_speed", holds_data=True),
                "front": Machine("RADIUS server", "front_cores", "front_speed"),
            },
            by_dc=machines_by_dc,
            sized={"cass_nodes": (1, 100), "front_nodes": (1, 24)},
            families={"dcs": (1, 4)},
            round_trips_s=round_trips_by_dc,
            workers=lambda scenario: {"front": scenario.front_workers},
        ),
        MeasuredRange[OpenproviderScenario](
            excess=excess, upper_bound=unencrypted, offset=offset, unmeasured=unmeasured
        ),
        Pauses(pauses, node_pauses),
        Simulations(settling_s=settling_s, paused_network=paused_network),
    )

    network = staticmethod(network)
    observations = cached_property(OpenproviderObservations)

    def layout(self, scenario: OpenproviderScenario, values: Values) -> str:
        """Return data centres, nodes, replicas, levels and round trip in a few words."""
        nodes = per_dc_text(scenario.cass_nodes)
        size = f"{scenario.dcs} DCs x {nodes}" if scenario.dcs > 1 else f"1 DC x {nodes}"
        size += " nodes" if nodes != "1" else " node"
        if isinstance(scenario.cass_nodes, tuple):
            size = f"{scenario.dcs} DCs of {nodes} nodes"
        parts = [
            size,
            f"RF {per_dc_text(scenario.rf)}",
            f"reads {scenario.consistency_read}",
            f"writes {scenario.consistency_write}",
        ]
        if scenario.dcs > 1:
            low, high = round_trips_s(scenario, values)
            parts.append(f"RTT {' to '.join(dict.fromkeys(as_given(each * 1e3) for each in (low, high)))} ms")
        extra = {"proxy": "proxy", "ldap": "LDAP"}
        parts += [words for name, words in extra.items() if getattr(scenario, name)]
        if scenario.client_share is not None:
            parts.append(f"clients {per_dc_text(scenario.client_share)}")
        if scenario.mix is not None:
            parts.append(f"mix {scenario.mix}")
        parts += machines_in_words(scenario, node="nodes", front="RADIUS servers")
        if scenario.data_factor is not None:
            parts.append(f"data factor {data_factor.in_words(scenario.data_factor)}")
        if scenario.encryption is not None:
            parts.append(f"{scenario.encryption} links encrypted")
        return ", ".join(parts)

    def values(self, fitted: Fitted, scenario: OpenproviderScenario) -> dict[str, Number]:
        """Return all parameter values of a layout; of a data factor that is a range, one by draw."""
        return {**super().values(fitted, scenario), **data_factor.with_draws(scenario.data_factor, len(fitted.draws))}

    def median_values(self, fitted: Fitted, scenario: OpenproviderScenario) -> dict[str, float]:
        """Return one value of each parameter; of a data factor that is a range, its median."""
        stated = {name: float(value) for name, value in data_factor.with_draws(scenario.data_factor, 1).items()}
        return {**super().median_values(fitted, scenario), **stated}

    def offered_per_s(self, scenario: OpenproviderScenario, values: Values) -> float | None:
        """Return the offered peak rate; if a mean rate is given, the median over draws."""
        if scenario.tps_mean is None:
            return super().offered_per_s(scenario, values)
        return float(np.median(burst_ratio(scenario, values))) * float(np.max(scenario.tps_mean))


SYSTEM = Openprovider()
