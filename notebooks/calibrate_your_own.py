# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Calibrate your own: drop load tests of a cluster, see what may be believed, and predict what nobody measured.

Run it as a web app with `uv run --extra notebooks marimo run notebooks/calibrate_your_own.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: calibrate your own")


@app.cell
def _():
    import pathlib
    import tempfile

    import marimo as mo
    import pandas as pd
    import plotly.graph_objects as go

    import capplan
    from capplan.reports import figure as look

    return capplan, go, look, mo, pathlib, pd, tempfile


@app.cell
def _(mo):
    mo.md(
        """
        # Calibrate your own

        Drop the outputs of a load generator, or a table of load tests. What is there already is a published test of
        Cassandra 5.0: writes at LOCAL_QUORUM on three nodes by 4 to 81 clients, in two campaigns.
        """
    )


@app.cell
def _():
    example = """campaign,executors,calls per s,latency ms
    2,4,3941,1
    2,8,6670,1.2
    2,16,12754,1.2
    2,24,16670,1.4
    2,36,23998,1.5
    2,54,30226,1.8
    2,81,33986,2.4
    3,4,3796,1
    3,8,7316,1.1
    3,16,13212,1.2
    3,24,18027,1.3
    3,36,24211,1.5
    3,54,30447,1.7
    3,81,34692,2.3
    """.replace("    ", "")
    usual_columns = """[columns]
    repeat = "campaign"
    clients = "executors"
    throughput_tps = "calls per s"
    latency_mean_ms = "latency ms"

    [constants]
    load_kind = "closed"
    request_class = "write"
    cass_nodes = 3
    rf = 3
    consistency_write = "LOCAL_QUORUM"
    read_fraction = 0
    row_bytes = 220
    """.replace("    ", "")
    return example, usual_columns


@app.cell
def _(mo, usual_columns):
    files = mo.ui.file(multiple=True, kind="area", label="load tests")
    columns_text = mo.ui.text_area(
        usual_columns, label="what the columns of a spreadsheet are; tables and outputs of tools need none", rows=8
    )
    mo.vstack([files, mo.accordion({"Columns": columns_text})])
    return columns_text, files


@app.cell
def _(columns_text, example, files):
    dropped = {each.name: each.contents for each in files.value} or {"curve.csv": example.encode()}
    columns = columns_text.value
    return columns, dropped


@app.cell
def _(capplan, columns, dropped, mo, pathlib, tempfile):
    def imported():
        with tempfile.TemporaryDirectory() as folder:
            mapping = pathlib.Path(folder, "columns.toml")
            mapping.write_text(columns)
            paths = [pathlib.Path(folder, pathlib.Path(name).name) for name in dropped]
            for path, content in zip(paths, dropped.values(), strict=True):
                path.write_bytes(content)
            try:
                return capplan.import_load_tests(*paths, mapping=mapping if columns.strip() else None), ""
            except capplan.InputError as error:
                return None, str(error).replace(f"{folder}/", "")

    table, refusal = imported()
    mo.stop(table is None, mo.callout(refusal, kind="danger"))
    return (table,)


@app.cell
def _(capplan, mo, pd, table):
    audit = capplan.audit(table)
    findings = pd.DataFrame(
        [
            {"row": each.line, "rule": each.rule, "found": each.sentence, "what to do": each.action}
            for each in audit.findings
        ]
    )
    believed = table[[each.believed for each in audit.rows]].reset_index(drop=True)
    refused = len(table) - len(believed)
    mo.vstack(
        [
            mo.md(
                f"## Audit\n\n{len(table)} rows of {table['run_id'].nunique()} runs; "
                + (f"**{refused} must not be believed** and are left out below." if refused else "none is refused.")
            ),
            *(
                [
                    mo.ui.table(
                        findings,
                        selection=None,
                        show_data_types=False,
                        show_column_summaries=False,
                        wrapped_columns=list(findings),
                    )
                ]
                if len(findings)
                else []
            ),
        ]
    )
    return audit, believed


@app.cell
def _(believed, capplan, mo):
    systems = {each.name: each for each in capplan.every_system() if each.name in ("cassandra", "two-tier")}
    system = mo.ui.dropdown(list(systems), value="cassandra", label="system")
    counts = sorted(believed["clients"].dropna().unique())
    most = int(counts[2 * len(counts) // 3 - 1 if len(counts) < 4 else 2 * len(counts) // 3]) if counts else 0
    train = mo.ui.text(f"clients <= {most}", label="rows to fit in the backtest")
    mo.hstack([system, train], justify="start", wrap=True)
    return system, systems, train


@app.cell
def _(system, systems):
    its = systems[system.value]
    return (its,)


@app.cell
def _(train):
    kept = train.value
    return (kept,)


@app.cell
def _(believed, capplan, its, kept, mo):
    def tested():
        try:
            with mo.status.spinner("Fitting some rows, and predicting the others"):
                return capplan.backtest(its, believed, kept), ""
        except capplan.InputError as error:
            return None, str(error)

    backtest, why_not = tested()
    mo.stop(backtest is None, mo.callout(f"No backtest: {why_not}", kind="warn"))
    return (backtest,)


@app.cell
def _(backtest, go, look, mo, pd):
    scores = pd.DataFrame(
        [
            {
                "quantity": quantity,
                "estimate by": name,
                "median error": f"{score.median_abs_error:.1%}",
                "worst": f"{score.worst_abs_error:.1%}",
            }
            for quantity, rules in backtest.summary.items()
            for name, score in rules.items()
            if score.median_abs_error is not None
        ]
    )
    errors = go.FigureWidget(layout={"template": look.either()})
    unseen = [each for each in backtest.rows if each.quantity == "throughput_tps"] or list(backtest.rows)
    errors.add_scatter(
        x=[each.measured for each in unseen],
        y=[each.predicted.value for each in unseen],
        error_y={
            "array": [each.predicted.high - each.predicted.value for each in unseen],
            "arrayminus": [each.predicted.value - each.predicted.low for each in unseen],
        },
        mode="markers",
        name="rows that the fit has not seen",
        text=[each.run_id for each in unseen],
        marker={"color": look.COLOURS[0], "size": 9},
    )
    ends = [min(each.measured for each in unseen), max(each.measured for each in unseen)]
    errors.add_scatter(x=ends, y=ends, mode="lines", name="as measured", line={"color": look.NEUTRAL})
    errors.update_xaxes(title_text=f"measured {unseen[0].quantity}", tickformat=",")
    errors.update_yaxes(title_text="predicted, with its 90 % band", tickformat=",")
    errors.update_layout(height=360, margin={"t": 30}, legend={"orientation": "h", "y": 1.15})
    mo.vstack(
        [
            mo.md(
                f"## Backtest\n\nFitted to {backtest.trained_rows} rows, which predict the other "
                f"{backtest.unseen_rows}. " + " ".join(backtest.remarks)
            ),
            mo.ui.anywidget(errors),
            mo.ui.table(scores, selection=None, show_data_types=False, show_column_summaries=False, page_size=20),
        ]
    )
    return errors, scores


@app.cell
def _(believed, capplan, its, mo):
    def calibrated():
        try:
            with mo.status.spinner("Fitting every row"):
                return capplan.calibrate(its, evidence=believed), ""
        except capplan.InputError as error:
            return None, str(error)

    fitted, no_fit = calibrated()
    mo.stop(fitted is None, mo.callout(f"No fit: {no_fit}", kind="danger"))
    usual = {name: value for name, value in its.usual_scenario(fitted).given().items() if name != "system"}
    return fitted, usual


@app.cell
def _(mo, usual):
    nodes = usual.get("cass_nodes", 3)
    controls = mo.ui.dictionary(
        {
            "cass_nodes": mo.ui.slider(
                1, 60, value=nodes if isinstance(nodes, int) else 3, label="nodes in each data centre", show_value=True
            ),
            "load": mo.ui.slider(5, 95, step=5, value=60, label="load, % of the capacity", show_value=True),
        }
    )
    return (controls,)


@app.cell
def _(controls):
    asked = dict(controls.value)
    return (asked,)


@app.cell
def _(asked, capplan, fitted, its, mo, usual):
    layout = {**usual, "cass_nodes": asked["cass_nodes"]}
    with mo.status.spinner("Solving the layout"):
        capacity = capplan.what_if(capplan.scenario(its.name, **layout), fitted=fitted).capacity
        found = capplan.what_if(
            capplan.scenario(its.name, **layout, tps=capacity.value * asked["load"] / 100), fitted=fitted
        )
        sentences = capplan.sentences(found)
    return capacity, found, sentences


@app.cell
def _(capacity, capplan, controls, found, go, mo, sentences):
    curve = go.FigureWidget(capplan.figure(found))  # the widget brings plotly; mo.ui.plotly would load from a CDN
    latency = found.latency
    mo.vstack(
        [
            mo.md("## Predict"),
            controls.vstack(),
            mo.hstack(
                [
                    mo.stat(
                        f"{capacity.value:,.0f}",
                        "capacity, per s",
                        caption=f"{capacity.low:,.0f} to {capacity.high:,.0f}",
                    ),
                    mo.stat(
                        f"{latency.value:.3g} ms",
                        found.metric.name,
                        caption=f"{latency.low:.3g} to {latency.high:.3g} ms at {found.offered_tps:,.0f} per s",
                    ),
                    mo.stat(found.bottleneck, "bottleneck"),
                ],
                wrap=True,
                justify="start",
            ),
            mo.callout(mo.md("\n\n".join(sentences)), kind="warn"),
            mo.ui.anywidget(curve),
        ]
    )
    return (curve,)


if __name__ == "__main__":
    app.run()
