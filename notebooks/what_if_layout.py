"""What if: move the controls of a layout and see what it carries, how fast it answers and what an outage leaves.

Run it as a web app with `uv run --extra notebooks marimo run notebooks/what_if_layout.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: what if")


@app.cell
def _():
    import marimo as mo
    import pandas as pd

    import capplan

    return capplan, mo, pd


@app.cell
def _(mo):
    mo.md(
        """
        # What if

        An AAA policy server on Cassandra (`openprovider`). Move a control: the curve and the table follow. They come
        from the analytic solver; the button below simulates the same layout.
        """
    )


@app.cell
def _(mo):
    controls = mo.ui.dictionary(
        {
            "dcs": mo.ui.slider(1, 4, value=3, label="data centres", show_value=True),
            "cass_nodes": mo.ui.slider(3, 30, value=6, label="Cassandra nodes in each", show_value=True),
            "front_nodes": mo.ui.slider(1, 8, value=2, label="RADIUS servers in each", show_value=True),
            "rtt_ms": mo.ui.slider(0.5, 80, step=0.5, value=1.5, label="round trip between them, ms", show_value=True),
            "consistency_read": mo.ui.dropdown(
                ["ONE", "LOCAL_QUORUM", "QUORUM"], value="LOCAL_QUORUM", label="reads at"
            ),
            "consistency_write": mo.ui.dropdown(
                ["LOCAL_QUORUM", "QUORUM", "EACH_QUORUM"], value="QUORUM", label="writes at"
            ),
            "encryption": mo.ui.dropdown(
                ["none", "client", "internode", "client+internode"], value="none", label="encrypted links"
            ),
            "tps": mo.ui.slider(1000, 60_000, step=500, value=6_000, label="offered peak rate, per s", show_value=True),
            "data": mo.ui.dropdown(["production", "fresh"], value="production", label="data"),
            "latency": mo.ui.dropdown(
                ["auth.mean", "auth.p99", "acct.mean", "acct.p99", "acct.p999"], value="acct.p99", label="latency"
            ),
            "objective_ms": mo.ui.number(1, 1000, value=100, label="objective, ms"),
        }
    )
    return (controls,)


@app.cell
def _(controls):
    chosen = dict(controls.value)
    return (chosen,)


@app.cell
def _(capplan, chosen):
    scenario = capplan.scenario(
        "openprovider",
        dcs=chosen["dcs"],
        cass_nodes=chosen["cass_nodes"],
        front_nodes=chosen["front_nodes"],
        rtt=f"{chosen['rtt_ms']}ms",
        consistency_read=chosen["consistency_read"],
        consistency_write=chosen["consistency_write"],
        encryption=None if chosen["encryption"] == "none" else chosen["encryption"],
        data_factor=1.0 if chosen["data"] == "fresh" else None,  # that of the load tests
        tps=chosen["tps"],
        slo=(f"{chosen['latency']}<{chosen['objective_ms']}ms",),
    )
    found = capplan.what_if(scenario, chosen["latency"])
    return found, scenario


@app.cell
def _(found, mo):
    def whole(number):
        return f"{number:,.0f}"

    capacity = found.capacity
    latency = found.latency
    summary = mo.hstack(
        [
            mo.stat(
                whole(capacity.value), "capacity, per s", caption=f"{whole(capacity.low)} to {whole(capacity.high)}"
            ),
            mo.stat(
                "default rate" if found.verdict is None else found.verdict.answer,
                f"{whole(found.offered_tps)} per s?",
                caption="80 % of the capacity" if found.verdict is None else found.verdict.in_words(),
            ),
            mo.stat(
                f"{latency.value:.3g} ms", found.metric.name, caption=f"{latency.low:.3g} to {latency.high:.3g} ms"
            ),
            mo.stat(found.bottleneck, "bottleneck"),
        ],
        wrap=True,
        justify="start",
    )
    return (summary,)


@app.cell
def _(capplan, found):
    import plotly.graph_objects as go

    figure = go.FigureWidget(capplan.figure(found))  # the widget brings plotly; mo.ui.plotly would load from a CDN
    return (figure,)


@app.cell
def _(found):
    losses = found.losses.assign(risk=found.losses["risk"].map("{:.1%}".format)).round(0)
    return (losses,)


@app.cell
def _(controls, figure, losses, mo, summary):
    curve = mo.ui.anywidget(figure)
    mo.vstack(
        [
            mo.Html(
                "<div style='display: flex; flex-wrap: wrap; gap: 2rem'>"
                f"<div style='flex: 1 1 300px'>{controls.vstack()}</div>"
                f"<div style='flex: 2 1 330px; min-width: 0'>{mo.vstack([summary, curve])}</div></div>"
            ),
            mo.md("**After a loss**: what is left, and the risk that it does not carry the offered rate."),
            mo.ui.table(losses, selection=None),
        ]
    )


@app.cell
def _(mo):
    simulate = mo.ui.run_button(label="Simulate this layout")
    simulate
    return (simulate,)


@app.cell
def _(simulate):
    simulated = simulate.value
    return (simulated,)


@app.cell
def _(capplan, mo, pd, scenario, simulated):
    mo.stop(not simulated, mo.md("Percentiles of the analytic solver are approximations; a simulation takes seconds."))
    prediction = capplan.predict(scenario, engine="compiled")
    latencies = pd.DataFrame(
        [
            {
                "class": name,
                "statistic": statistic,
                "ms": round(band.value, 2),
                "low": round(band.low, 2),
                "high": round(band.high, 2),
            }
            for name, each in prediction.latency_ms.items()
            for statistic in ("mean", "p50", "p99", "p999")
            if (band := getattr(each, statistic)) is not None
        ]
    )
    mo.ui.table(latencies, selection=None)
    return latencies, prediction


if __name__ == "__main__":
    app.run()
