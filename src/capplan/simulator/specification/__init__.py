"""What both engines share: the clock, random streams, sampling of distributions, arrivals and the timeline."""
