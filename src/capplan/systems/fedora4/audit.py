"""Checks of the evidence about `fedora4`: times, capacities, what its document claims, and what it leaves open."""

from __future__ import annotations

from capplan.evidence.audit.checks import Claim, Figure, Figures, Findings, Law, Reading, figure
from capplan.evidence.interval import Interval

SIZES = {1: "1 node", 2: "2 nodes", 3: "3 nodes", 4: "4 nodes"}
THROTTLED = {nodes: SIZES[nodes] for nodes in (1, 3, 4)}  # with times at several rates
REQUESTS = (1000, 3000, 6000, 10000)
REGIONS = {"us-east": "US-East", "us-west": "US-West", "asia": "Asia", "eu": "the EU"}
RATES = (100, 300, 600, 1000)


def checks(figures: Figures) -> Findings:
    """Yield the checks of the documents."""
    for law in (laws_of_times, laws_of_capacities, added_work):
        yield from law(figures)
    for claim in (claims_of_capacities, claims_of_times, claims_of_clusters):
        yield from claim(figures)
    for reading in (run_costs, straight_lines, costs_of_writes):
        yield from reading(figures)


def mean_time(figures: Figures, nodes: int, requests: int) -> Figure:
    """Return the mean time of objective 3: so many requests in 60 s."""
    return figures[f"throttled.n{nodes}.r{requests}.mean"]


def in_flight(figures: Figures, run: Figure) -> Figure:
    """Return the requests in flight by Little's law, at the mean time of a run of objective 3."""
    return run.cell("requests") / figures["throttled.duration"] * run


# ---- Operational laws


def laws_of_times(figures: Figures) -> Findings:
    """Yield the laws about times and requests in flight."""
    duration, users = figures["throttled.duration"], figures["throttled.users"]
    for requests in REQUESTS:
        for nodes in THROTTLED:  # no more requests are in flight than there are users
            run = mean_time(figures, nodes, requests)
            yield Law(f"little.throttled.n{nodes}.r{requests}", "Little's law, requests in flight").compare(
                expected := users.or_less,
                documented := in_flight(figures, run),
                f"{requests} requests in {duration.written} that take {run.written} each keep {documented} of "
                f"{users.written} users waiting; {expected} are possible.",
            )
    for nodes, words in THROTTLED.items():
        yield Law(f"monotone.throttled.n{nodes}", "response time grows with load").never_falls(
            f"in 60 s the mean time on {words}",
            {f"{requests} requests": mean_time(figures, nodes, requests) for requests in REQUESTS},
        )
    for region, words in REGIONS.items():
        yield Law(f"monotone.region.{region}", "response time grows with load").never_falls(
            f"the mean time in {words}",
            {f"{rate}/s": figures[f"region.{region}.r{rate}.mean"] for rate in RATES},
        )


def laws_of_capacities(figures: Figures) -> Findings:
    """Yield the laws about capacities."""
    for kind, words in (("read", "reads"), ("mixed", "reads and 5 % writes")):
        for nodes in (2, 3, 4):
            yield Law(f"monotone.capacity.n{nodes}.{kind}", "more nodes sustain no less").compare(
                expected := figures[f"capacity.n{nodes - 1}.{kind}"].or_more,
                documented := figures[f"capacity.n{nodes}.{kind}"],
                f"From {nodes - 1} to {nodes} nodes the capacity for {words} should not fall: it should be "
                f"{expected}; the document says {documented}.",
            )
    for nodes, words in SIZES.items():
        yield Law(f"monotone.writes.n{nodes}", "added work does not raise the capacity").compare(
            expected := figures[f"capacity.n{nodes}.read"].or_less,
            documented := figures[f"capacity.n{nodes}.mixed"],
            f"With 5 % writes the capacity of {words} should be {expected}, as for reads alone; the document says "
            f"{documented}.",
        )
    for rate in RATES:  # the regions table does not say how many nodes it had
        yield Law(f"capacity.region.r{rate}", "no cluster answers more than its capacity").compare(
            expected := figures["capacity.n4.read"].or_less,
            documented := figures[f"region.r{rate}.offered"],
            f"The regions table gives times at {documented}; the largest documented cluster, 4 nodes, can answer "
            f"{expected}.",
            *(figures[f"region.{region}.r{rate}.mean"] for region in REGIONS),
        )


def added_work(figures: Figures) -> Findings:
    """Yield the laws about requests in a mix, as if the rates had been the same in the mix and alone."""
    for nodes, where in ((4, "4 nodes"), (3, "3 nodes"), (1, "1 node")):
        for mixed, alone, words, beside in (
            ("read_create", "read", "reads", "creates"),
            ("create", "create", "creates", "reads"),
            ("read_delete", "read", "reads", "deletes"),
            ("delete", "delete", "deletes", "reads"),
        ):
            yield Law(f"added_work.n{nodes}.{mixed}", "added work does not save time").compare(
                expected := figures[f"alone.n{nodes}.{alone}"].or_more,
                documented := figures[f"mixed.n{nodes}.{mixed}"],
                f"On {where} {words} mixed with {beside} should take {expected}, as alone; they take {documented}.",
            )
    yield Law("shares", "shares add up to one").compare(
        expected := figure(1),
        documented := figures["mixed.read_share"] + figures["mixed.write_share"],
        f"The shares of reads and writes in the mix add up to {documented}; they should add up to {expected}.",
    )


# ---- What the documents say about their own figures, or one of their tests about another


def claims_of_capacities(figures: Figures) -> Findings:
    """Yield the claims about growth with nodes and about the cost of writes."""
    linear = figures["capacity.linear"]
    for kind, words in (("read", "for reads"), ("mixed", "with 5 % writes")):
        single = figures[f"capacity.n1.{kind}"]
        for nodes in (2, 3, 4):  # n times a single server, which objective 5 asks for by name
            yield Claim(f"claim.linear.{kind}.n{nodes}", "capacity grows linearly with the number of nodes").compare(
                expected := figure(nodes**linear.value, linear),
                documented := figures[f"capacity.n{nodes}.{kind}"] / single,
                f"With linear growth {nodes} nodes have {expected} times the capacity of a single server {words}; the "
                f"tables show {documented} times.",
            )
    for nodes, words in SIZES.items():
        alone, mixed = figures[f"capacity.n{nodes}.read"], figures[f"capacity.n{nodes}.mixed"]
        yield Claim(f"claim.writes_free.n{nodes}", "writes are no bottleneck").compare(
            expected := figures["capacity.writes_free"],
            documented := mixed / alone,
            f"The document says that writes are no bottleneck. 5 % writes reduce the capacity of {words} by "
            f"{(alone - mixed).printed}, a ratio of {documented}; the words allow {expected}.",
        )
    for nodes, words in SIZES.items():
        alone, mixed = figures[f"capacity.n{nodes}.read"], figures[f"capacity.n{nodes}.mixed"]
        yield Claim(f"claim.reduced_a_little.n{nodes}", "writes reduce the reads a little").compare(
            expected := figures["capacity.reduced_a_little"],
            documented := 1 - mixed * figures["mixed.read_share"] / alone,
            f"5 % writes cost {words} a share of {documented} of the reads; 'a little' is read as {expected}.",
        )
    least, most = (figures[f"capacity.n{nodes}.mixed"] * figures["mixed.write_share"] for nodes in (1, 4))
    yield Claim("claim.writes_same", "the sustained rate of writes stays the same").compare(
        expected := figures["capacity.writes_same"],
        documented := most / least,
        f"The document says that the sustained rate of writes stays the same. 5 % of the capacity is {least} on a "
        f"single server and {most} on 4 nodes: a ratio of {documented}, not {expected}.",
    )


def claims_of_times(figures: Figures) -> Findings:
    """Yield the claims that one request takes one time."""
    law = "reads take the same time on a single server and a cluster"
    for nodes in (3, 4):
        for requests in REQUESTS:
            yield Claim(f"claim.same.n{nodes}.r{requests}", law).compare(
                expected := figures["throttled.same"] * mean_time(figures, 1, requests),
                documented := mean_time(figures, nodes, requests),
                f"At {requests} requests in 60 s a read takes {documented} on {SIZES[nodes]}; the same as on a single "
                f"server is {expected}.",
            )
    users = figures["throttled.users_at_once"]
    waiting = [in_flight(figures, mean_time(figures, nodes, requests)) for nodes in THROTTLED for requests in REQUESTS]
    least, most = (pick(waiting, key=lambda each: each.value) for pick in (min, max))
    yield Claim("claim.users_at_once", "100 users make requests at the same time").compare(
        users,
        most,
        f"The document says that {users.written} users make requests at the same time. By Little's law between "
        f"{least.value:.2g} and {most} requests are in flight, so the load is throttled.",
    )
    for nodes, words in THROTTLED.items():  # a read at light load takes one time, whichever table has it
        yield Claim(f"objectives.read_time.n{nodes}", "a read takes the same time in every test at light load").compare(
            expected := figures[f"alone.n{nodes}.read"],
            documented := mean_time(figures, nodes, 10000),
            f"On {words} a read takes {expected} in objective 7 and {documented} in objective 3, at 10000 requests in "
            "60 s. The document does not say where the clients were.",
        )
    yield Claim("objectives.read_time.us-east", "a read takes the same time in every test at light load").compare(
        expected := figures["alone.n4.read"],
        documented := figures["region.us-east.r100.mean"],
        f"A read from US-East takes {documented} in objective 6 and {expected} in objective 7 on 4 nodes.",
    )


def claims_of_clusters(figures: Figures) -> Findings:
    """Yield the claims about times by the number of nodes, and about the clusters."""
    law = "read times do not change significantly with the number of nodes"
    for name, words, row in (
        ("alone", "Alone", "alone.n{}.read"),
        ("beside_creates", "Beside creates", "mixed.n{}.read_create"),
        ("beside_deletes", "Beside deletes", "mixed.n{}.read_delete"),
    ):
        for nodes in (3, 4):
            yield Claim(f"claim.read_time.{name}.n{nodes}", law).compare(
                expected := figures["all.read_time_by_nodes"] * figures[row.format(1)],
                documented := figures[row.format(nodes)],
                f"{words}, reads on {SIZES[nodes]} take {documented}; no significant change from a single server "
                f"means {expected}.",
            )
    law = "write times grow with the number of nodes"
    for table, where in (("alone", "alone"), ("mixed", "in the mix")):
        for write, words in (("create", "Creates"), ("delete", "Deletes")):
            for few, many in ((1, 3), (3, 4)):
                less = figures[f"{table}.n{few}.{write}"]
                yield Claim(f"claim.write_time.{table}.{write}.n{many}", law).compare(
                    expected := figures["all.write_time_by_nodes"] * less,
                    documented := figures[f"{table}.n{many}.{write}"],
                    f"{words} {where} take {less.written} on {SIZES[few]} and {documented} on {many} nodes; growth "
                    f"means {expected}.",
                )
    yield Claim("claim.three_nodes", "the mix was measured on three nodes").compare(
        expected := figures["mixed.nodes"],
        documented := figures["mixed.n4.create"].cell("nodes"),
        f"The text of objective 7 says {expected} nodes; its tables go up to {documented}.",
    )
    first, last = figures["capacity.n1.limit_from"], figures["capacity.n1.limit_to"]
    yield Claim("duplicate.single", "one experiment has one result").compare(
        expected := figure(Interval(first.value, first.value, last.value), first, last, unit="1/s"),
        documented := figures["capacity.n1.read"].printed,
        f"Objective 5 says {documented} for a single server; objective 4 says that its limit is {expected}.",
    )
    capacity = figures["capacity.n4.read"]
    yield Claim("claim.balance", "the load balancer spreads the traffic evenly").compare(
        expected := capacity / capacity.cell("nodes"),
        None,
        f"The document says that traffic is spread evenly, at most {expected} per node; it gives no figures per node.",
        figures["all.load_balance"],
    )


# ---- Readings that the documents leave open


def run_costs(figures: Figures) -> Findings:
    """Yield the readings of what the first requests of a run cost, and of times that are one constant."""
    # A client outside the data centre would make reads of objective 3 slower by one constant.
    yield Reading("client.round_trip", "clients of objective 3 are one round trip away").one_constant(
        "One round trip to an off-site client, as the difference between objectives 3 and 7",
        {
            words: mean_time(figures, nodes, 10000) - figures[f"alone.n{nodes}.read"]
            for nodes, words in THROTTLED.items()
        },
    )
    users, extra_s = figures["throttled.users"], {}
    for nodes, words in THROTTLED.items():
        # Such as the first request of each of its users. The first and the last run give the cost and the time
        # without it, and predict the two between.
        first_run, last_run = mean_time(figures, nodes, 1000), mean_time(figures, nodes, 10000)
        span = 1 / first_run.cell("requests") - 1 / last_run.cell("requests")
        extra_s[words] = (first_run - last_run) / span / users
        for requests in (3000, 6000):
            run = mean_time(figures, nodes, requests)
            weight = (1 / run.cell("requests") - 1 / last_run.cell("requests")) / span
            yield Reading(f"run_cost.n{nodes}.r{requests}", "each run has one fixed cost").compare(
                expected := first_run * weight + last_run * (1 - weight),
                run,
                f"If each user's first request took {extra_s[words].printed} longer, a read on {words} would take "
                f"{expected} at {requests} requests; the document says {run}.",
            )
    yield Reading("run_cost.clusters", "runs on both clusters have one fixed cost").one_constant(
        "One extra time for each user's first request",
        {words: extra_s[words] for words in ("3 nodes", "4 nodes")},
    )
    for region, words in REGIONS.items():
        yield Reading(f"region.flat.{region}", "one time serves each region at every rate").one_constant(
            f"One time for {words} at every rate",
            {f"{rate}/s": figures[f"region.{region}.r{rate}.mean"] for rate in RATES},
        )


def straight_lines(figures: Figures) -> Findings:
    """Yield the readings that clusters lie on a straight line over their number of nodes."""
    law = "clusters lie on a straight line over their number of nodes"
    kinds = {"read": "reads", "mixed": "reads with 5 % writes"}
    for kind, words in kinds.items():
        two, three, four = (figures[f"capacity.n{nodes}.{kind}"] for nodes in (2, 3, 4))
        yield Reading(f"straight_line.capacity.{kind}", law).compare(
            expected := (two + four) * 0.5,
            three,
            f"If the capacities for {words} lie on a straight line over 2, 3 and 4 nodes, 3 nodes have {expected}; "
            f"the document says {three}.",
        )
    for kind, words in kinds.items():
        two, three, four = (figures[f"capacity.n{nodes}.{kind}"] for nodes in (2, 3, 4))
        yield Reading(f"straight_line.node_time.{kind}", law).compare(
            expected := (2 / two + 4 / four) * 0.5,
            documented := 3 / three,
            f"If the node times of a request for {words} lie on a straight line over 2, 3 and 4 nodes, a request "
            f"takes {expected} on 3 nodes; the document gives {documented}.",
        )


def costs_of_writes(figures: Figures) -> Findings:
    """Yield the readings of the node time that writes take, and of the cores of a single server."""
    cost = {
        words: nodes / figures[f"capacity.n{nodes}.mixed"] - nodes / figures[f"capacity.n{nodes}.read"]
        for nodes, words in SIZES.items()
    }
    yield Reading("write_cost.same", "5 % writes take the same node time at any number of nodes").one_constant(
        "One node time for 5 % writes",
        cost,
    )
    yield Reading("write_cost.replicas", "5 % writes take the same node time at every replica").one_constant(
        "One node time for 5 % writes at every replica",
        {words: cost[words] / nodes for nodes, words in SIZES.items()},
    )
    rate, time = figures["capacity.n1.read"], figures["alone.n1.read"]
    # Two cores are a guess: the document gives no instance type.
    yield Reading("cores.single", "a single server is two cores that reads keep busy").compare(
        expected := figure(2),
        documented := rate * time,
        f"If a read is processor time alone, {rate.written} reads of {time.written} keep {documented} cores of a "
        f"single server busy; {expected} cores is a guess.",
    )
