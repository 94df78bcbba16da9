"""Fitted files with made-up predictions of the model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from capplan.layout.fitted_file import Fitted


def as_documented(fitted: Fitted, **ratios: float) -> Fitted:
    """Return the fit as if it said every figure as documented; `ratios` by row id, a double underscore for a dot."""
    wanted = {name.replace("__", "."): ratio for name, ratio in ratios.items()}
    return saying(fitted, {each.id: wanted.get(each.id, 1.0) * each.documented for each in fitted.figures})


def saying(fitted: Fitted, said: Mapping[str, float]) -> Fitted:
    """Return the fit as if it said these figures, by row id, without a band."""
    figures = tuple(
        replace(each, predicted=said[each.id], low=said[each.id], high=said[each.id]) for each in fitted.figures
    )
    return replace(fitted, figures=figures)


def left_out_at(fitted: Fitted, log_error: float, half_width: float = 0.0) -> Fitted:
    """Return the fit as if every refit said this much more than the document, in the logarithm."""
    left_out = tuple(
        replace(
            each,
            predicted=each.documented * float(np.exp(log_error)),
            low=each.documented * float(np.exp(log_error - half_width)),
            high=each.documented * float(np.exp(log_error + half_width)),
        )
        for each in fitted.left_out
    )
    return replace(fitted, left_out=left_out)


def nested_at(fitted: Fitted, log_errors: Mapping[str, float]) -> Fitted:
    """Return the fit as if nested refits said this much more of each scenario (by name), in the logarithm."""
    documented = {each.id: each.documented for each in fitted.figures}
    nested = tuple(
        replace(each, predicted=documented[each.id] * float(np.exp(log_errors[each.fold]))) for each in fitted.nested
    )
    return replace(fitted, nested=nested)
