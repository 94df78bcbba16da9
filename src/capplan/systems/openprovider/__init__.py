"""`openprovider`: an AAA policy server that keeps its sessions in Cassandra."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.systems.components.encrypted_links import EncryptedLinks
from capplan.systems.openprovider.network import (
    PARAMETERS,
    REPORTED,
    SETTLES_ROUND_TRIPS,
    SETTLES_S,
    network,
    pauses,
)
from capplan.systems.openprovider.notes import OpenproviderNotes, excess
from capplan.systems.openprovider.observations import OpenproviderObservations
from capplan.systems.openprovider.outages import outages
from capplan.systems.openprovider.round_trips import longest_round_trip_s, offset
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.openprovider.session_visibility import sessions_not_found


class Openprovider(EncryptedLinks[OpenproviderScenario]):
    """AAA (RADIUS) policy server on one or more data centres."""

    name = "openprovider"
    summary = (
        "AAA (RADIUS) policy server on Cassandra 3.11: front nodes with worker pools, sessions of one authorization "
        "and seven accounting requests in any data centre, local coordinators, inter-DC round trips, accounting "
        "proxy, LDAP"
    )
    scenario = OpenproviderScenario
    parameters = PARAMETERS
    reported = REPORTED

    network = staticmethod(network)
    pauses = staticmethod(pauses)
    observations = cached_property(OpenproviderObservations)
    notes = cached_property(lambda self: OpenproviderNotes(self.evidence))
    outages = staticmethod(outages)
    sessions_not_found = staticmethod(sessions_not_found)
    excess = staticmethod(excess)
    offset = staticmethod(offset)

    def settling_s(self, scenario: OpenproviderScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return the settling time from an empty system, seconds."""
        del rate_per_s
        return np.array(max(SETTLES_S, SETTLES_ROUND_TRIPS * longest_round_trip_s(scenario, values)))

    def workers(self, scenario: OpenproviderScenario) -> Mapping[str, Number]:
        """Return the worker threads of a policing node."""
        return {"front": scenario.front_workers}


SYSTEM = Openprovider()
