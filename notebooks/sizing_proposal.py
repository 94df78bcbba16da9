# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""From subscribers to a proposal: what they ask, which layout carries it, and the document for the customer.

Run it as a web app with `uv run --extra notebooks --extra proposal marimo run notebooks/sizing_proposal.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: sizing proposal")


@app.cell
def _():
    from dataclasses import replace

    import marimo as mo
    import plotly.graph_objects as go

    import capplan

    return capplan, go, mo, replace


@app.cell
def _(mo):
    mo.md(
        """
        # From subscribers to a proposal

        An AAA policy server on Cassandra (`openprovider`). Say what subscribers do and what the layout must survive:
        the cheapest layout follows after some seconds, by the analytic solver. The proposal at the end confirms it by
        simulation.
        """
    )


@app.cell
def _(capplan):
    from capplan.layout.situations import Losses

    system = next(each for each in capplan.every_system() if each.name == "openprovider")
    losses = system.component(Losses)
    situations = {words: name for name, words in losses.kinds.items()}
    situations |= {each.name: name for name, each in losses.situations.items()}
    return situations, system


@app.cell
def _(mo):
    demand_controls = mo.ui.dictionary(
        {
            "subscribers": mo.ui.slider(
                0.5, 20, step=0.5, value=5, label="subscribers, millions", show_value=True, debounce=True
            ),
            "sessions": mo.ui.slider(
                0.1, 4, step=0.1, value=0.6, label="sessions of each in the busy hour", show_value=True, debounce=True
            ),
            "length_min": mo.ui.number(1, 600, value=50, label="mean length of a session, minutes"),
            "interim_min": mo.ui.number(1, 120, value=10, label="time between accounting updates, minutes"),
            "storm": mo.ui.slider(
                5,
                100,
                step=5,
                value=100,
                label="sessions that a mass re-attach ends, %",
                show_value=True,
                debounce=True,
            ),
            "growth_low": mo.ui.number(0, 100, value=15, label="growth a year, %, at least"),
            "growth_high": mo.ui.number(0, 100, value=30, label="growth a year, %, at most"),
            "years": mo.ui.slider(1, 5, value=2, label="years to plan for", show_value=True, debounce=True),
            "row_bytes": mo.ui.number(50, 20_000, value=700, label="bytes of a session's row"),
            "retention_days": mo.ui.number(1, 400, value=30, label="days that rows are kept"),
            "disk_gib": mo.ui.number(50, 20_000, value=1000, label="disk of a Cassandra node, GiB"),
        }
    )
    return (demand_controls,)


@app.cell
def _(mo, situations):
    sizing_controls = mo.ui.dictionary(
        {
            "dcs": mo.ui.slider(1, 4, value=3, label="data centres", show_value=True, debounce=True),
            "latency": mo.ui.dropdown(
                ["acct.p99", "acct.mean", "auth.p99", "auth.mean"], value="acct.mean", label="latency"
            ),
            "objective_ms": mo.ui.number(1, 1000, value=20, label="its limit, ms"),
            "survive": mo.ui.multiselect(
                list(situations),
                value=[next(word for word, name in situations.items() if name == "node")],
                label="it survives",
            ),
            "confidence": mo.ui.slider(
                50, 99, value=90, label="with a confidence of, %", show_value=True, debounce=True
            ),
            "currency": mo.ui.text("EUR", label="currency"),
            "period": mo.ui.dropdown(["once", "hour", "month", "year"], value="year", label="prices are for"),
            "node": mo.ui.number(0, 1_000_000, value=9000, label="price of a Cassandra node"),
            "front": mo.ui.number(0, 1_000_000, value=6500, label="price of a RADIUS server"),
        }
    )
    return (sizing_controls,)


@app.cell
def _(demand_controls, mo, sizing_controls):
    def _under(title, *parts):
        return mo.vstack([mo.md(f"**{title}**"), *parts])

    _of_demand, _of_sizing = demand_controls.elements, sizing_controls.elements
    _column = "<div style='flex: 1 1 300px; min-width: 0'>{}</div>"
    mo.Html(
        "<div style='display: flex; flex-wrap: wrap; gap: 2rem'>"
        + _column.format(_under("What subscribers ask", *_of_demand.values()))
        + _column.format(
            _under(
                "What the layout must do",
                _of_sizing["dcs"],
                _of_sizing["latency"],
                _of_sizing["objective_ms"],
                _of_sizing["survive"],
                _of_sizing["confidence"],
                mo.md("**What machines cost**"),
                *(_of_sizing[name] for name in ("currency", "period", "node", "front")),
            )
        )
        + "</div>"
    )


@app.cell
def _(demand_controls, sizing_controls):
    asked = {**demand_controls.value, **sizing_controls.value}
    return (asked,)


@app.cell
def _(asked, capplan, mo):
    try:
        demand = capplan.Demand(
            subscribers=1e6 * asked["subscribers"],
            busy_hour={
                "sessions": asked["sessions"],
                "length_s": 60 * asked["length_min"],
                "interim_s": 60 * asked["interim_min"],
            },
            growth=[asked["growth_low"] / 100, asked["growth_high"] / 100],
            years=asked["years"],
            reattach={"share": asked["storm"] / 100},
            data={
                "row_bytes": asked["row_bytes"],
                "retention_s": 86_400 * asked["retention_days"],
                "disk_gib": asked["disk_gib"],
            },
        )
        wrong = ""
    except capplan.InputError as _error:
        demand, wrong = None, str(_error)
    mo.stop(bool(wrong), mo.callout(wrong, kind="warn"))
    forecast = capplan.forecast(demand)
    return demand, forecast


@app.cell
def _(forecast, mo):
    _busy, _storm, _data = forecast.busy_hour, forecast.reattach, forecast.months[-1].data_gib
    _facts = mo.hstack(
        [
            mo.stat(
                f"{_busy.total_per_s:,.0f}",
                "requests per second",
                caption="mean of the busy hour",
            ),
            mo.stat(f"{forecast.open_sessions:,.0f}", "open sessions"),
            mo.stat(
                f"{_storm.peak.rates.total_per_s:,.0f}",
                "requests per second",
                caption="peak of a mass re-attach",
            ),
            mo.stat(
                f"{_data.value:,.0f} GiB", "of data, one copy", caption=f"{_data.low:,.0f} to {_data.high:,.0f} GiB"
            ),
        ],
        wrap=True,
        justify="start",
    )
    mo.vstack(
        [
            _facts,
            mo.md(
                "The layout is sized for the bursts of the busy hour, which are higher than its mean. Requests of a "
                "mass re-attach wait longer."
            ),
        ]
    )


@app.cell
def _(asked, capplan, demand, situations):
    scenario = capplan.scenario("openprovider", slo=(f"{asked['latency']}<{asked['objective_ms']}ms",))
    question = capplan.SizingQuestion(
        survive=tuple(situations[each] for each in asked["survive"]),
        confidence=asked["confidence"] / 100,
        families={"dcs": (asked["dcs"],)},
        prices=capplan.Prices(asked["currency"], {"node": asked["node"], "front": asked["front"]}, asked["period"]),
        demand=demand,
        engine="analytic",
    )
    return question, scenario


@app.cell
def _(capplan, mo, question, scenario):
    with mo.status.spinner("Searching layouts"):
        sizing = capplan.size(scenario, question)
    return (sizing,)


@app.cell
def _(capplan, mo, sizing):
    answer = mo.callout(
        mo.md("\n\n".join(capplan.sentences(sizing))),
        kind="success" if sizing.answer == "yes" and not sizing.single_points else "warn",
    )
    answer
    return (answer,)


@app.cell
def _(capplan, sizing):
    layouts = capplan.layouts(sizing)
    layouts["cost"] = layouts["cost"].map("{:,.0f}".format)
    layouts["risk"] = layouts["risk"].map("{:.1%}".format)
    layouts["held_tps"] = layouts["held_tps"].map(lambda held: f"{float(f'{held:.4g}'):,.0f}")
    layouts = layouts[["layout", "cost", "regret", "risk", "held_tps", "binding", "limit"]]
    layouts.columns = ["layout", "cost", "regret", "risk", "held per s", "tightest situation", "limited by"]
    return (layouts,)


@app.cell
def _(capplan, go, sizing):
    figure = go.FigureWidget(capplan.figure(sizing))  # the widget brings plotly; mo.ui.plotly would load from a CDN
    return (figure,)


@app.cell
def _(figure, layouts, mo):
    _table = mo.ui.table(
        layouts, selection=None, show_data_types=False, show_column_summaries=False, wrapped_columns=list(layouts)
    )
    _doubts = mo.md("\n\n".join(figure.layout.meta["text"]))  # those of the terminal
    mo.vstack([_table, mo.ui.anywidget(figure), _doubts])


@app.cell
def _(mo):
    customer = mo.ui.text("Example Telecom", label="customer")
    make = mo.ui.run_button(label="Make the proposal")
    mo.vstack([mo.md("## The proposal"), mo.hstack([customer, make], wrap=True, justify="start")])
    return customer, make


@app.cell
def _(make):
    wanted = make.value
    return (wanted,)


@app.cell
def _(capplan, customer, question, replace, scenario):
    _details = capplan.Details(customer.value or "Customer")
    whole = capplan.ProposalQuestion(_details, scenario, replace(question, engine="compiled"))
    return (whole,)


@app.cell
def _(capplan, mo, sizing, wanted, whole):
    mo.stop(
        not (wanted and sizing.chosen),
        mo.md("It takes half a minute, because it simulates the layout. `capplan verify` can compute it again."),
    )
    with mo.status.spinner("Simulating, and writing the proposal"):
        proposal = capplan.propose(whole)
        files = {ending: capplan.render_proposal(proposal, ending) for ending in (".html", ".pdf", ".xlsx", ".json")}
    mo.vstack(
        [
            mo.callout(mo.md(" ".join(capplan.sentences(proposal.sizing))), kind="success"),
            mo.hstack(
                [mo.download(data=content, filename=f"proposal{ending}") for ending, content in files.items()],
                wrap=True,
                justify="start",
            ),
        ]
    )
    return files, proposal


if __name__ == "__main__":
    app.run()
