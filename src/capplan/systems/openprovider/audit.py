"""Checks of the evidence about `openprovider`: operational laws, what its document claims, and what it leaves open.

Rates are peaks where the document says so, which makes Little's law an upper bound on the mean. Arithmetic that the
document does on printed figures is checked on the printed figures; everything else with the intervals that rounding
allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from capplan.evidence.audit.checks import Claim, Figure, Figures, Findings, Law, Reading, figure, total
from capplan.evidence.interval import Interval

CLASSES = {"auth": "authorization", "acct": "accounting"}
LIGHT_M_PER_S = 299792458  # by the definition of the metre


@dataclass(frozen=True)
class Session:
    """The requests of a session: how many, and the shares of authorization and accounting."""

    requests: Figure
    auth_share: Figure
    acct_share: Figure

    @classmethod
    def documented(cls, figures: Figures) -> Session:
        """Return the session of the document."""
        requests, auth = total(figures.like("all.session_*")).printed, figures["all.session_auth"].printed
        return cls(requests, auth / requests, (requests - auth) / requests)

    def total_s(self, run: Run) -> Figure:
        """Return the sum of the mean times of a session's requests."""
        return run.auth * (self.auth_share * self.requests) + run.acct * (self.acct_share * self.requests)


@dataclass(frozen=True)
class Run:
    """A scenario of the document: requests per second, front nodes, their busy workers, and mean times."""

    id: str
    incoming: Figure
    nodes: Figure
    busy: Figure
    auth: Figure
    acct: Figure
    mean_time: Figure

    @property
    def name(self) -> str:
        """How the document calls it."""
        return self.id.upper()

    @property
    def rate(self) -> Figure:
        """Requests per second of each front node."""
        return self.incoming / self.nodes


def run_of(figures: Figures, name: str) -> Run:
    """Return a scenario."""
    incoming, auth, acct = (figures[f"{name}.{column}"] for column in ("incoming", "auth_mean", "acct_mean"))
    nodes, session = incoming.cell("dcs") * incoming.cell("front_nodes"), Session.documented(figures)
    mean_time = auth * session.auth_share + acct * session.acct_share
    return Run(name, incoming, nodes, figures[f"{name}.busy_workers"], auth, acct, mean_time)


def runs(figures: Figures) -> tuple[Run, ...]:
    """Return the scenarios in the order of the document."""
    return tuple(run_of(figures, name) for name in ("ts1", "ts2", "ts3", "ts4", "ts4-ldap"))


def checks(figures: Figures) -> Findings:
    """Yield the checks of the document."""
    for law in (workers, growth, repeated):
        yield from law(figures)
    for claim in (proxying, ldap, scenarios, busy_workers, goals):
        yield from claim(figures)
    for reading in (factors, round_trips, sessions):
        yield from reading(figures)


# ---- Operational laws


def workers(figures: Figures) -> Findings:
    """Yield Little's law, forced flow and the utilisation law."""
    session, pool = Session.documented(figures), figures["all.front_workers"]
    for run in runs(figures):
        yield Law(f"little.{run.id}", "Little's law, per front node").compare(
            expected := run.rate * run.mean_time,
            run.busy,
            f"{run.name}: the peak rate times the mean processing time gives {expected} busy workers per front node; "
            f"the document says {run.busy}. Each request would have to hold its worker "
            f"{run.busy / run.rate - run.mean_time} longer.",
        )
    tables = [(f"ts{number}{proxy}", proxy, "") for number in (1, 2, 3, 4) for proxy in ("", ".proxy")]
    for table, proxy, look_ups in (*tables, ("ts4-ldap", ".proxy", ".ldap")):
        # A request is itself, a forwarded copy if it is accounting, a look-up if it is authorization.
        visits = 1 + session.acct_share * bool(proxy) + session.auth_share * bool(look_ups)
        yield Law(f"forced_flow.{table}", "forced flow, outgoing = incoming x visits").compare(
            expected := figures[f"{table}.incoming"] * visits,
            documented := figures[f"{table}.outgoing"],
            f"{table.removesuffix('.proxy').upper()}{' with proxying' if proxy else ''}: each request makes "
            f"{visits:g} outgoing requests, {expected} in all; the document says {documented}.",
        )
    for run in runs(figures):  # the worker pools, with the mean times as service times, must not be full
        yield Law(f"utilisation.{run.id}", "utilisation law, worker pool of a front node").compare(
            figure(Interval(1, 0, 1)),
            documented := run.rate * run.mean_time / pool,
            f"{run.name}: processing keeps a share of {documented} of the {pool.written} workers busy; the share "
            "cannot exceed 1.",
        )


def growth(figures: Figures) -> Findings:
    """Yield the laws about what load, data centres and added work change."""
    for name, words in CLASSES.items():
        yield Law(f"monotone.ts2.{name}", "response time grows with load").compare(
            expected := figures[f"ts1.{name}_mean"].or_more,
            documented := figures[f"ts2.{name}_mean"],
            f"The mean {words} time in TS2 should be {expected}, as in TS1; the document says {documented}.",
        )
    for less, more in (("ts2", "ts3"), ("ts3", "ts4")):
        yield Law(f"monotone.{more}.incoming_rate", "more data centres sustain no less").compare(
            expected := figures[f"{less}.incoming"].or_more,
            documented := figures[f"{more}.incoming"],
            f"From {less.upper()} to {more.upper()} the incoming rate should not fall: {expected}; the document says "
            f"{documented}.",
        )
    for name, words in CLASSES.items():
        yield Law(f"monotone.ts4-ldap.{name}", "added work does not save time").compare(
            expected := figures[f"ts4.{name}_mean"].or_more,
            documented := figures[f"ts4-ldap.{name}_mean"],
            f"The mean {words} time in TS4-LDAP should be {expected}, as in TS4; the document says {documented}.",
        )


def repeated(figures: Figures) -> Findings:
    """Yield the laws that one experiment has one result, and that replicas own the data."""
    for run in runs(figures)[:4]:
        once, again = (
            [figures[f"{table}.{name}"] for name in ("incoming", "busy_workers", "auth_mean", "acct_mean")]
            for table in (run.id, f"{run.id}.proxy")
        )
        differing = sum(one.value != other.value for one, other in zip(once, again, strict=True))
        yield Law(f"duplicate.{run.id}.proxy", "one experiment has one result").compare(
            figure(0),
            figure(differing, *once, *again),
            f"{run.name} with proxying differs from {run.name} in {differing} of {len(once)} figures.",
        )
    yield Law("ownership", "each node holds replication factor / nodes of the data").compare(
        expected := figures["all.rf"] / figures["all.cass_nodes"],
        documented := figures["all.ownership"],
        f"With that many replicas and nodes each node holds a share of {expected} of the data; the document says "
        f"{documented}.",
    )


# ---- What the document says about its own figures


def proxying(figures: Figures) -> Findings:
    """Yield the claims about forwarding."""
    ratio = figures["all.proxy_outgoing_ratio"]
    yield Claim("claim.proxy_doubles", "accounting proxying doubles the requests").compare(
        expected := 1 + Session.documented(figures).acct_share,
        ratio,
        f"Forwarding accounting alone makes {expected} outgoing requests per incoming request; the tables with "
        f"proxying and without LDAP show {ratio.written}.",
    )
    yield Claim("claim.proxy_free", "proxying costs no incoming rate").compare(
        expected := figures["ts4.proxy.incoming"].printed / figures["ts4.incoming"].printed,
        documented := figures["all.proxy_incoming_ratio"],
        f"The ratio of the incoming rates with and without proxying is {expected}; the document says {documented}. "
        "The tables repeat each other, so they are not a second measurement.",
    )


def ldap(figures: Figures) -> Findings:
    """Yield the claims about LDAP."""
    session, plain, run = Session.documented(figures), run_of(figures, "ts4"), run_of(figures, "ts4-ldap")
    yield Claim("claim.ldap_rate", "LDAP adds 500/s outgoing requests").compare(
        expected := run.incoming * (session.auth_share * figures["ts4-ldap.ldap_visits_auth"].printed),
        documented := figures["ts4-ldap.rate_rise"],
        f"One LDAP look-up per authorization adds {expected} outgoing requests; the document says {documented}.",
    )
    yield Claim("claim.ldap_latency", "LDAP makes authorization almost twice as slow").compare(
        expected := run.auth / plain.auth,
        figures["ts4-ldap.auth_ratio"],
        f"LDAP makes the mean authorization time {expected} times as long; the document says almost twice. With LDAP, "
        f"authorization takes {run.auth / run.acct} times as long as accounting.",
        run.acct,
    )
    yield Claim("claim.ldap_accounting", "LDAP costs accounting nothing").compare(
        plain.acct,
        run.acct,
        f"Accounting uses the profile that authorization has stored, so its mean time should stay at {plain.acct}; "
        f"with LDAP the document says {run.acct}.",
        figures["ts4-ldap.ldap_visits_acct"],
    )
    yield Claim("claim.ldap_workers", "LDAP keeps no more workers busy").compare(
        expected := run.rate * (run.mean_time - plain.mean_time),
        documented := run.busy - plain.busy,
        f"The longer times with LDAP keep {expected} more workers of each RADIUS server busy; the document shows "
        f"{documented} more.",
    )


def scenarios(figures: Figures) -> Findings:
    """Yield the claims about one scenario after another."""
    ts1, ts2, ts3, ts4, _ = (run.incoming for run in runs(figures))
    growth = figures["ts3.rate_growth"]
    yield Claim("claim.growth", "TS3 sustains 1.43 times the rate of the scenario before").compare(
        expected := ts3.printed / ts2.printed,
        growth,
        f"By the printed figures TS3 sustains {expected} times the rate of TS2 ({ts3 / ts2} with rounding); the "
        f"document says {growth.written}. The ratio of TS3 to TS1 is {ts3.printed / ts1.printed}.",
        ts1,
    )
    yield Claim("claim.second_policing_node", "TS2 sustains slightly more than TS1").compare(
        expected := figure(0, unit="1/s"),
        documented := ts2 - ts1,
        f"The second RADIUS server of one DC gains {documented}. Both rates are marked '~', so this cannot be told "
        f"from {expected}.",
    )
    for before, after, law in (
        ("ts2", "ts3", "TS3 is a few milliseconds slower than TS2"),
        ("ts3", "ts4", "TS4 is as fast as TS3"),
    ):
        for name, words in CLASSES.items():
            yield Claim(f"claim.latency_rise.{after}.{name}", law).compare(
                expected := figures[f"{after}.{name}_mean"] - figures[f"{before}.{name}_mean"],
                documented := figures[f"{after}.latency_rise"],
                f"From {before.upper()} to {after.upper()} the mean {words} time rises by {expected}; the document's "
                f"words mean {documented}.",
            )
    yield Claim("claim.rate_rise", "TS4 sustains 500/s more than TS3").compare(
        expected := ts4 - ts3,
        documented := figures["ts4.rate_rise"],
        f"TS4 sustains {expected} more than TS3; the document says {documented}.",
    )


def busy_workers(figures: Figures) -> Findings:
    """Yield the claims about busy workers, and about the time of a session."""
    for run in runs(figures):
        yield Claim(f"claim.half_busy.{run.id}", "RADIUS servers work at half of their maximum").compare(
            expected := run.busy / figures["all.front_workers"],
            documented := figures["all.front_busy"],
            f"In {run.name} a share of {expected} of the workers is busy; the document concludes {documented} of the "
            "maximum, if it means workers.",
        )
    ts1, ts2, ts3, ts4, _ = runs(figures)
    for before, run in ((ts1, ts2), (ts2, ts3), (ts3, ts4)):
        # If workers are fewer because the rate is shared out, they go with the rate per RADIUS server.
        yield Claim(f"claim.shared_out.{run.id}", "workers are fewer because the rate is shared out").compare(
            expected := before.busy * (run.rate / before.rate),
            run.busy,
            f"If the nodes shared the rate, {expected} workers would be busy per RADIUS server in {run.name}; the "
            f"document says {run.busy} ({run.busy * run.nodes:g} over all nodes, {before.busy * before.nodes:g} in "
            f"{before.name}).",
        )
    session, documented = Session.documented(figures), figures["ts4.flow_time"]
    processing = session.total_s(ts4)
    left_ms = (documented.value - processing.value) / session.requests.value * 1e3
    yield Claim("claim.flow_time", "a session takes at least its processing times").compare(
        processing.or_more,
        documented,
        f"The mean times of a session add up to {processing}; the document says {documented} for the whole session. "
        f"That leaves {left_ms:.2g} ms per request besides the processing.",
    )


def goals(figures: Figures) -> Findings:
    """Yield the claims about objectives, growth and production."""
    for name, goal, law in (
        ("ts3", "ts3.rate_same", "one DC lost"),
        ("ts2", "all.outage_two_dcs", "two DCs lost"),
    ):  # clusters that were built small are the only figures that speak to the objectives
        yield Claim(f"objective.{name}", law).compare(
            expected := figures[goal],
            documented := figures[f"{name}.incoming"] / figures["ts4.incoming"],
            f"{name.upper()} sustains {documented} of the rate of TS4; the objective with {law} is {expected}. Its "
            "cluster was built in the remaining DCs, so no replica was missing.",
        )
    incoming, highest = figures["ts4-ldap.incoming"], figures["all.max_rate"]
    yield Claim("claim.headline", "the system processes 21500/s").compare(
        expected := figures["ts4-ldap.outgoing"],
        highest,
        f"The headline figure of {highest} is the outgoing rate with LDAP, {expected}. It counts forwarded and LDAP "
        f"requests and is {highest.printed / incoming.printed} times the incoming rate.",
        incoming,
    )
    yield Claim("claim.linear_scaling", "capacity grows linearly with the nodes per DC").compare(
        expected := figures["all.linear_scaling"],
        None,
        f"The document says that capacity grows as the number of Cassandra nodes to the power {expected}; all tests "
        f"have {figures['ts1.incoming'].cell('cass_nodes').written} nodes per DC.",
        figures["all.cass_nodes"],
    )
    yield Claim("claim.production", "mean times in production are two to three times higher").compare(
        expected := figures["all.production_factor"],
        None,
        f"The document expects production to be {expected} times slower because of its data; no scenario changes the "
        "data volume.",
    )


# ---- Readings that the document leaves open. A refuted one is no contradiction in the document: it tells a modeller
# what the figures cannot mean.


def factors(figures: Figures) -> Findings:
    """Yield the readings of the workers that are busy beyond Little's law."""
    every, law = runs(figures), "one number of extra workers explains the busy workers of every scenario"
    yield Reading("little.one_factor", "one factor explains the busy workers of every scenario").one_constant(
        "One factor for all scenarios",
        {run.name: run.busy / (run.rate * run.mean_time) for run in every},
    )
    yield Reading("little.one_hold", "one extra hold time explains the busy workers of every scenario").one_constant(
        "One extra hold time for all scenarios",
        {run.name: run.busy / run.rate - run.mean_time for run in every},
    )
    yield Reading("little.one_workers", law).one_constant(
        "One number of extra workers for all scenarios",
        {run.name: run.busy - run.rate * run.mean_time for run in every},
    )
    for run in every[1:]:
        share = run.busy.value / (run.incoming.value * run.mean_time.value)
        yield Reading(f"busy_in_total.{run.id}", "busy workers are counted over all front nodes").compare(
            expected := run.incoming * run.mean_time,
            run.busy,
            f"{run.name}: by Little's law {expected} workers are busy over all front nodes. The document says "
            f"{run.busy}, which fits only if the mean rate is {share:.2f} of the peak rate.",
        )


def round_trips(figures: Figures) -> Findings:
    """Yield the readings of which requests wait for the other data centre.

    A round trip takes at least as long as light does, and about 1.47 times as long in fibre.
    """
    distance = figures["all.dc_distance"]
    least = figure(2 * distance.interval.low / LIGHT_M_PER_S, distance, unit="s")
    for name, verb, expected in (("acct", "waits for", least.or_more), ("auth", "does not wait for", least.or_less)):
        yield Reading(f"propagation.{name}", f"{CLASSES[name]} {verb} the other data centre").compare(
            expected,
            documented := figures[f"ts3.{name}_mean"] - figures[f"ts2.{name}_mean"],
            f"If {CLASSES[name]} {verb} a round trip to the other data centre, its mean time rises by {expected} from "
            f"TS2 to TS3; it rises by {documented}.",
        )


def sessions(figures: Figures) -> Findings:
    """Yield the readings of the time of a session."""
    session, pause = Session.documented(figures), figures["all.interim_after_start"]
    documented = figures["ts4.flow_time"]
    for name, words, count in (
        ("once", "after the accounting start", figure(1)),
        ("always", "before every further request", session.requests - 1),
    ):
        yield Reading(f"pause.{name}", f"a session pauses {words}").compare(
            expected := session.total_s(run_of(figures, "ts4")) + pause * count,
            documented,
            f"With a pause of {pause.written} {words} a session takes {expected}; the document says {documented}.",
        )
    yield Reading("flow_time.ldap", "the session time was measured in the test with LDAP").compare(
        expected := session.total_s(run_of(figures, "ts4-ldap")).or_more,
        documented,
        f"If the session time was measured in the test with LDAP, it is {expected}; the document says {documented}.",
    )
