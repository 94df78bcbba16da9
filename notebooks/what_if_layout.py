# /// script
# [tool.marimo.display]
# theme = "system"
# ///
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
            "data_factor": mo.ui.dropdown(
                {
                    "as in the load tests": None,
                    "1.3 times (measured)": 1.3,
                    "2 times (measured)": 2.0,
                    "3 times (measured)": 3.0,
                },
                value="as in the load tests",
                label="work of Cassandra on the data",
            ),
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
def _(capplan, chosen, mo):
    scenario = capplan.scenario(
        "openprovider",
        dcs=chosen["dcs"],
        cass_nodes=chosen["cass_nodes"],
        front_nodes=chosen["front_nodes"],
        rtt=f"{chosen['rtt_ms']}ms",
        consistency_read=chosen["consistency_read"],
        consistency_write=chosen["consistency_write"],
        encryption=None if chosen["encryption"] == "none" else chosen["encryption"],
        data_factor=chosen["data_factor"],
        tps=chosen["tps"],
        slo=(f"{chosen['latency']}<{chosen['objective_ms']}ms",),
    )
    with mo.status.spinner("Solving the layout"):
        found = capplan.what_if(scenario, chosen["latency"])
        sentences = capplan.sentences(found)
    return found, scenario, sentences


@app.cell
def _(found, mo, sentences):
    def whole(number):
        return f"{float(f'{number:.3g}'):,.0f}"

    capacity = found.capacity
    latency = found.latency
    summary = mo.hstack(
        [
            mo.stat(
                whole(capacity.value), "capacity, per s", caption=f"{whole(capacity.low)} to {whole(capacity.high)}"
            ),
            mo.stat(
                found.verdict.answer,
                f"{whole(found.offered_tps)} per s?",
                caption=f"{found.verdict.risk:.1%} risk",
            ),
            mo.stat(
                f"{latency.value:.3g} ms", found.metric.name, caption=f"{latency.low:.3g} to {latency.high:.3g} ms"
            ),
            mo.stat(found.bottleneck, "bottleneck"),
        ],
        wrap=True,
        justify="start",
    )
    kind = {"yes": "success", "no": "danger"}.get(found.verdict and found.verdict.answer, "warn")
    doubts = mo.callout(mo.md("\n\n".join([f"**{sentences[0]}**", *sentences[1:]])), kind=kind)
    return doubts, summary, whole


@app.cell
def _(capplan, found):
    import plotly.graph_objects as go

    figure = go.FigureWidget(capplan.figure(found))  # the widget brings plotly; mo.ui.plotly would load from a CDN
    return (figure,)


@app.cell
def _(found, pd, whole):
    losses = pd.DataFrame(
        {
            "lost": each.lost,
            "consistency": each.levels,
            "peak left, per s": f"{whole(each.capacity_tps)} ({whole(each.low_tps)} to {whole(each.high_tps)})"
            if each.high_tps
            else "none",
            f"risk at {whole(found.offered_tps)} per s": f"{each.risk:.1%}",
        }
        for each in found.losses.itertuples()
    )
    return (losses,)


@app.cell
def _(controls, doubts, figure, losses, mo, summary):
    curve = mo.ui.anywidget(figure)
    mo.vstack(
        [
            mo.Html(
                "<div style='display: flex; flex-wrap: wrap; gap: 2rem'>"
                f"<div style='flex: 1 1 300px'>{controls.vstack()}</div>"
                f"<div style='flex: 2 1 330px; min-width: 0'>{mo.vstack([doubts, summary, curve])}</div></div>"
            ),
            mo.md(
                "**After a loss**: what is left, and the risk that it does not carry the offered rate. These figures "
                "come from 16 draws of the parameters; `capplan predict` takes all 512."
            ),
            mo.ui.table(
                losses, selection=None, show_data_types=False, show_column_summaries=False, wrapped_columns=list(losses)
            ),
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
    with mo.status.spinner("Simulating the layout"):
        prediction = capplan.predict(scenario, engine="compiled")
    latencies = pd.DataFrame(
        [
            {
                "class": name,
                "statistic": statistic,
                "ms": f"{band.value:.3g}",
                "90 % band": f"{band.low:.3g} to {band.high:.3g}",
                "basis": band.basis,
            }
            for name, each in prediction.latency_ms.items()
            for statistic in ("mean", "p50", "p99", "p999")
            if (band := getattr(each, statistic)) is not None
        ]
    )
    _verdict = prediction.verdict.in_words()
    mo.vstack(
        [
            mo.md(f"**Simulated: {_verdict}.** The basis says whether such a figure was measured."),
            mo.ui.table(latencies, selection=None, show_data_types=False, show_column_summaries=False),
        ]
    )
    return latencies, prediction


if __name__ == "__main__":
    app.run()
