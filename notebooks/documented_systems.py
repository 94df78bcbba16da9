"""The five documented systems: what their load tests measured, and what the model says.

Run it as a web app with `uv run --extra notebooks marimo run notebooks/documented_systems.py`.
"""

import marimo

app = marimo.App(width="medium", app_title="capplan: documented systems")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import plotly.graph_objects as go

    import capplan

    return capplan, go, mo, np


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
def _(capplan, mo):
    systems = {each.name: each for each in capplan.every_system() if not each.from_tables}
    system = mo.ui.dropdown(list(systems), value="openprovider", label="system")
    system
    return system, systems


@app.cell
def _(system):
    name = system.value
    return (name,)


@app.cell
def _(capplan, name, systems):
    rows = capplan.validate(systems[name]).to_frame()
    return (rows,)


@app.cell
def _(go, np, rows):
    figure = go.FigureWidget()
    for label, column, colour, symbol in (
        ("fit to all figures", "predicted", "#0072B2", "circle"),
        ("fit without its scenario", "left_out", "#D55E00", "diamond"),
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
    figure.add_hline(y=1, line={"color": "#7F7F7F"})
    widest = float(np.nanmax(np.abs(np.log2(rows[["predicted", "left_out"]].div(rows["documented"], axis=0)))))
    figure.update_xaxes(title_text="documented figure, its own unit", type="log")
    figure.update_yaxes(title_text="predicted over documented", type="log", range=[-widest * 0.31, widest * 0.31])
    figure.update_layout(height=420, margin={"t": 30}, legend={"orientation": "h", "y": 1.1})
    return (figure,)


@app.cell
def _(figure, mo, rows):
    mo.vstack([mo.ui.anywidget(figure), mo.ui.table(rows, selection=None)])


if __name__ == "__main__":
    app.run()
