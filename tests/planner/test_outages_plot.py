"""The plot of outages shows every simulated loss over time, and every verdict."""

import pytest

from capplan.planner.outages.answer import OutagesAnswer
from capplan.planner.outages.effort import Effort
from capplan.planner.outages.outages import OutagesQuestion, outages_of_network
from capplan.planner.outages.transient import Times
from capplan.planner.reports.outages_plot import plot
from tests.planner.test_outages import pair
