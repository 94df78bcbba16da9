"""Small clusters of Cassandra, over data centres that are all as far from each other."""

from capplan.models.cassandra.cluster import Cluster

LAN_S, WAN_S = 0.001, 0.020


def cluster(*nodes: int, rf: int = 3, down: tuple[int, ...] = (), wan_s: float = WAN_S) -> Cluster:
    way = tuple(tuple(0.0 if a == b else wan_s for b in range(len(nodes))) for a in range(len(nodes)))
    return Cluster(nodes, (rf,) * len(nodes), 8, LAN_S, way, down)
