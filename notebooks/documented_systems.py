# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The five documented systems: what their load tests measured, and what the model says.

Run it as a web app with `uv run --extra notebooks marimo run notebooks/documented_systems.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: documented systems")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import pandas as pd
    import plotly.graph_objects as go

    import capplan
    from capplan.reports import figure as look

    return capplan, go, look, mo, np, pd


@app.cell
def _(mo):
    mo.md(
        """
        # Documented systems

        Five load tests stand behind capplan. Each figure is predicted twice: by the fit to all figures, and by a fit
        that has not seen its scenario. The second says what a prediction of a new layout is worth.
        """
    )


@app.cell
def _(mo):
    from capplan.systems.registry import documented_systems

    systems = {each.name: each for each in documented_systems()}
    system = mo.ui.dropdown(list(systems), value="openprovider", label="system")
    system
    return system, systems


@app.cell
def _(system):
    name = system.value
    return (name,)


@app.cell
def _(capplan, mo, name, systems):
    with mo.status.spinner("Comparing with the documented figures"):
        rows = capplan.validate(systems[name]).to_frame()
    return (rows,)


@app.cell
def _(go, look, np, rows):
    figure = go.FigureWidget(layout={"template": look.either()})
    for label, column, colour, symbol in (
        ("fit to all figures", "predicted", look.COLOURS[0], "circle"),
        ("fit without its scenario", "left_out", look.COLOURS[1], "diamond"),
    ):
        known = rows.dropna(subset=[column])
        figure.add_scatter(
            x=known["documented"],
            y=known[column] / known["documented"],
            mode="markers",
            name=label,
            marker={"color": colour, "symbol": symbol, "size": 9},
            text=known["id"],
            hovertemplate="%{text}: %{y:.2f} of the documented figure<extra></extra>",
        )
    figure.add_hline(y=1, line={"color": look.NEUTRAL})
    widest = float(np.nanmax(np.abs(np.log2(rows[["predicted", "left_out"]].div(rows["documented"], axis=0)))))
    figure.update_xaxes(title_text="documented figure, its own unit", type="log", tickformat=",")
    figure.update_yaxes(title_text="predicted over documented", type="log", range=[-widest * 0.31, widest * 0.31])
    _ = figure.update_layout(height=420, margin={"t": 30}, legend={"orientation": "h", "y": 1.1})
    return (figure,)


@app.cell
def _(pd, rows):
    def figure_of(row, name):
        in_ms = 1e3 if row["unit"] == "s" else 1.0
        return f"{float(f'{row[name] * in_ms:.3g}'):,.10g}"

    def band(row, value, low, high):
        if pd.isna(row[value]):
            return "-"
        return f"{figure_of(row, value)} ({figure_of(row, low)} to {figure_of(row, high)})"

    table = pd.DataFrame(
        {
            "figure": row["name"],
            "unit": {"s": "ms", "1": ""}.get(row["unit"], row["unit"]),
            "documented": figure_of(row, "documented"),
            "predicted by the fit to all": band(row, "predicted", "band_low", "band_high"),
            "by the fit without its scenario": band(row, "left_out", "left_out_low", "left_out_high"),
            "band holds": {True: "yes", False: "no"}.get(row["held"], "-"),
            "not scored, because": row["not_scored"],
        }
        for _, row in rows.iterrows()
    )
    return (table,)


@app.cell
def _(figure, mo, rows, table):
    scored = rows[rows["held"].notna() & (rows["not_scored"] == "")]
    _errors = scored["left_out_error"].abs()
    _words = (
        f"**{int(scored['held'].sum())} of {len(scored)} bands hold the figure that their fit has not seen.** The "
        f"median error is {_errors.median():.0%}, the largest {_errors.max():.0%}. The bands are 90 % bands."
        if len(scored)
        else "**No figure was left out**, so nothing here says what a prediction of a new layout is worth."
    )
    mo.vstack(
        [
            mo.callout(mo.md(_words), kind="info"),
            mo.ui.anywidget(figure),
            mo.ui.table(
                table,
                selection=None,
                show_data_types=False,
                show_column_summaries=False,
                wrapped_columns=list(table),
                page_size=20,
            ),
        ]
    )


if __name__ == "__main__":
    app.run()
