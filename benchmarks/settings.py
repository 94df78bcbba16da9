"""The two textbook models as plain numbers, for contenders that know nothing of capplan. Times in seconds."""

MM4_SERVERS, MM4_SERVICE_S, MM4_RATE_PER_S = 4, 1.0e-3, 3200.0
"""Four servers at 80 % load."""

MM4_BUSY_RATE_PER_S = 3800.0
"""The same at 95 % load."""

QUORUM_REPLICAS, QUORUM_NEEDED, QUORUM_SERVICE_S, QUORUM_RATE_PER_S = 3, 2, 1.0e-3, 700.0
"""Every request goes to three single servers at 70 % load and is done with the second answer."""
