# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Why tails: what quorums, pauses and retries do to the slowest requests of a small cluster.

Run it as a web app with `uv run --extra notebooks marimo run notebooks/tail_latency.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: tail latency")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import plotly.graph_objects as go

    import capplan
    from capplan.reports import figure as look

    return capplan, go, look, mo, np


@app.cell
def _(mo):
    mo.md(
        """
        # Why tails

        Requests of a small cluster ask some replicas and wait for a part of the answers. A replica serves one request
        at a time, for a millisecond on average. Three things make the slowest requests slow:

        - **Waiting for more answers.** The slowest of the needed answers decides.
        - **Pauses.** A replica that collects garbage answers nobody, and a queue builds up behind it.
        - **Retries.** A client that gives up asks again, while its first request still occupies the replica.
        """
    )


@app.cell
def _(mo):
    controls = mo.ui.dictionary(
        {
            "replicas": mo.ui.slider(1, 5, value=3, label="replicas", show_value=True),
            "needed": mo.ui.slider(1, 5, value=2, label="answers needed", show_value=True),
            "load": mo.ui.slider(0.1, 0.9, step=0.05, value=0.5, label="load of each replica", show_value=True),
            "pause_ms": mo.ui.slider(0, 100, step=5, value=0, label="pause of a replica, ms", show_value=True),
            "pauses_per_s": mo.ui.slider(0.1, 2, step=0.1, value=0.5, label="pauses per second", show_value=True),
            "timeout_ms": mo.ui.slider(5, 100, step=5, value=50, label="timeout of clients, ms", show_value=True),
            "attempts": mo.ui.slider(1, 4, value=1, label="attempts of a client", show_value=True),
        }
    )
    return (controls,)


@app.cell
def _(controls):
    chosen = dict(controls.value)
    return (chosen,)


@app.cell
def _(capplan):
    service_s = 0.001

    def cluster(chosen):
        """Return the network of the cluster."""
        needed = min(chosen["needed"], chosen["replicas"])
        node = {"name": "node", "servers": 1, "count": chosen["replicas"]}
        if chosen["pause_ms"]:
            every = {"kind": "exponential", "mean_s": 1 / chosen["pauses_per_s"]}
            length = {"kind": "exponential", "mean_s": chosen["pause_ms"] * 1e-3}
            node["pauses"] = [{"every": every, "length": length}]
        serve = {
            "kind": "visit",
            "station": "node",
            "demand": {"kind": "exponential", "mean_s": service_s},
            "member": "replica",
            "name": "serve",
        }
        ask = {"kind": "fan_out", "over": "all", "member": "replica", "step": serve, "needed": needed}
        flow = {"kind": "replica_set", "members": "all", "among": "node", "size": chosen["replicas"], "step": ask}
        read = {"name": "read", "flow": flow}
        if chosen["attempts"] > 1:
            read["timeout_s"] = chosen["timeout_ms"] * 1e-3
            read["retry"] = {"attempts": chosen["attempts"], "backoff_s": 0.0}
        traffic = {"kind": "open", "rate_per_s": chosen["load"] / service_s, "mix": {"read": 1.0}}
        return capplan.Network(name="cluster", stations=(node,), classes=(read,), traffic=traffic)

    return (cluster,)


@app.cell
def _(capplan, chosen, cluster, mo):
    plain = {**chosen, "pause_ms": 0, "attempts": 1, "needed": 1}
    with mo.status.spinner("Simulating a minute"):
        run = capplan.simulate(cluster(chosen), 60.0, seed=1, warmup_s=5.0, max_requests=200_000)
        least = capplan.simulate(cluster(plain), 60.0, seed=1, warmup_s=5.0, max_requests=200_000)
    return least, run


@app.cell
def _(go, least, look, np, run):
    levels = 1 - np.geomspace(0.9, 1e-4, 60)
    figure = go.FigureWidget(layout={"template": look.either()})
    for name, each, colour in (
        ("as chosen", run, look.COLOURS[0]),
        ("one answer, no pauses, no retries", least, look.NEUTRAL),
    ):
        times_ms = [1e3 * each.latency_quantile_s(float(level)) for level in levels]
        figure.add_scatter(x=1 / (1 - levels), y=times_ms, name=name, mode="lines", line={"color": colour})
    figure.update_xaxes(
        title_text="one request in ... is slower", type="log", tickvals=[2, 10, 100, 1000, 10_000], tickformat=",d"
    )
    figure.update_yaxes(title_text="latency [ms]", type="log", tickformat="~g")
    _ = figure.update_layout(height=400, margin={"t": 30, "r": 16}, legend={"orientation": "h", "y": 1.12})
    return (figure,)


@app.cell
def _(controls, figure, mo, run):
    stats = mo.hstack(
        [
            mo.stat(f"{1e3 * run.latency_quantile_s(0.5):.2f} ms", "median"),
            mo.stat(f"{1e3 * run.latency_quantile_s(0.99):.2f} ms", "p99"),
            mo.stat(f"{1e3 * run.latency_quantile_s(0.999):.2f} ms", "p99.9"),
            mo.stat(f"{run.throughput_per_s():,.0f}/s", "completed"),
        ],
        wrap=True,
        justify="start",
    )
    caution = mo.md(
        "Model only: nobody measured this cluster, and one simulated minute with one seed gives these figures. p99.9 "
        "and beyond rest on few requests."
    )
    mo.Html(
        "<div style='display: flex; flex-wrap: wrap; gap: 2rem'>"
        f"<div style='flex: 1 1 300px'>{controls.vstack()}</div>"
        f"<div style='flex: 2 1 330px; min-width: 0'>{mo.vstack([stats, mo.ui.anywidget(figure), caution])}</div></div>"
    )
    return (stats,)


if __name__ == "__main__":
    app.run()
