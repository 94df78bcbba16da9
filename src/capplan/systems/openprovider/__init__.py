"""`openprovider`: an AAA policy server that keeps its sessions in Cassandra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import RETRY_STORM, Factor, Machine, Situation
from capplan.models.condition import Unmeasured
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.units import FloatArray, Number
from capplan.models.number_words import as_given
from capplan.systems.components.encrypted_links import EncryptedLinks
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
from capplan.systems.openprovider.notes import OpenproviderNotes, excess
from capplan.systems.openprovider.observations import OpenproviderObservations
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import DATA_FACTOR, OpenproviderScenario, data_factors
from capplan.systems.openprovider.session_visibility import sessions_not_found

_RESOURCES = {
    "cassandra-storage": "Cassandra storage path",
    "cassandra": "node CPU",
    "front": "RADIUS server CPU",
    "workers": "RADIUS worker threads",
    "native-transport": "Cassandra native-transport threads",
}

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

    losses = MappingProxyType(
        {"node": "a Cassandra node in each DC", "front": "a RADIUS server in each DC", "dc": "the worst DC to lose"}
    )
    assumed = ("cassandra-storage",)
    tails_not_modelled = ("compaction", "speculative retry", "hints")
    situations = MappingProxyType(_SITUATIONS)
    machines = MappingProxyType(
        {
            "node": Machine("Cassandra node", "node_cores", "node_speed", holds_data=True),
            "front": Machine("RADIUS server", "front_cores", "front_speed"),
        }
    )
    sized = MappingProxyType({"cass_nodes": (1, 100), "front_nodes": (1, 24)})
    families = MappingProxyType({"dcs": (1, 4)})

    network = staticmethod(network)
    pauses = staticmethod(pauses)
    node_pauses = staticmethod(node_pauses)
    paused_network = staticmethod(paused_network)
    observations = cached_property(OpenproviderObservations)
    notes = cached_property(lambda self: OpenproviderNotes(self.evidence))
    outages = staticmethod(outages)
    sessions_not_found = staticmethod(sessions_not_found)
    excess = staticmethod(excess)
    offset = staticmethod(offset)
    round_trips_by_dc = staticmethod(round_trips_by_dc)

    def other_assignment(self, scenario: OpenproviderScenario, values: Values) -> Network:
        """Return the network with round-robin assignment to cores, the most extreme form that the load tests allow."""
        return self.network(scenario, values, 1.0).with_assignment("round_robin")

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
            parts.append(f"data factor {_factor_in_words(scenario)}")
        if scenario.encryption is not None:
            parts.append(f"{scenario.encryption} links encrypted")
        return ", ".join(parts)

    def values(self, fitted: Fitted, scenario: OpenproviderScenario) -> dict[str, Number]:
        """Return all parameter values of a layout; of a data factor that is a range, one by draw."""
        own, (low, high) = super().values(fitted, scenario), scenario.data_factors()
        return own if low == high else {**own, DATA_FACTOR: data_factors(scenario, len(fitted.draws))}

    def median_values(self, fitted: Fitted, scenario: OpenproviderScenario) -> dict[str, float]:
        """Return one value of each parameter; of a data factor that is a range, its median."""
        own, (low, high) = super().median_values(fitted, scenario), scenario.data_factors()
        return own if low == high else {**own, DATA_FACTOR: float(data_factors(scenario, 1)[0])}

    def unmeasured(self, scenario: OpenproviderScenario) -> tuple[Unmeasured, ...]:
        """Return the work of Cassandra on production data, unless the scenario states it."""
        return () if scenario.data_factor is not None else (_PRODUCTION_DATA,)

    def resource_name(self, scenario: OpenproviderScenario, resource: str) -> str:
        """Return what a resource is called in a sentence."""
        del scenario
        return _RESOURCES.get(resource, resource)

    def machine_counts(self, scenario: OpenproviderScenario) -> Mapping[str, int]:
        """Return the numbers of Cassandra nodes and of RADIUS servers over all data centres."""
        return {"node": sum(scenario.nodes_by_dc()), "front": sum(scenario.fronts_by_dc())}

    def machines_by_dc(self, scenario: OpenproviderScenario) -> Sequence[Mapping[str, int]]:
        """Return the numbers of Cassandra nodes and of RADIUS servers of each data centre."""
        counts = zip(scenario.nodes_by_dc(), scenario.fronts_by_dc(), strict=True)
        return tuple({"node": nodes, "front": fronts} for nodes, fronts in counts)

    def offered_per_s(self, scenario: OpenproviderScenario, values: Values) -> float | None:
        """Return the offered peak rate; if a mean rate is given, the median over draws."""
        if scenario.tps_mean is None:
            return super().offered_per_s(scenario, values)
        return float(np.median(burst_ratio(scenario, values))) * float(np.max(scenario.tps_mean))

    def settling_s(self, scenario: OpenproviderScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return the settling time from an empty system, seconds."""
        del rate_per_s
        return np.array(max(SETTLES_S, SETTLES_ROUND_TRIPS * round_trips_s(scenario, values)[1]))

    def workers(self, scenario: OpenproviderScenario) -> Mapping[str, Number]:
        """Return the worker threads of a RADIUS server."""
        return {"front": scenario.front_workers}


def _factor_in_words(scenario: OpenproviderScenario) -> str:
    low, high = scenario.data_factors()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


_PRODUCTION_DATA = Unmeasured(  # evidence all.production_factor: the document speaks of times, which grow no faster
    name="work of Cassandra on production data",
    field=DATA_FACTOR,
    value=1.0,
    expected=(2.0, 3.0),
    source="the document's expectation, unmeasured",
    as_tested="data are as tested",
    where="on data as tested",
    unit="times their work",
    otherwise="production makes Cassandra's work {} to {} times",
    measurement="CPU per request on aged data",
)
SYSTEM = Openprovider()
