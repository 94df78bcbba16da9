"""The parts that both engines share: clock, random streams, sampling, arrivals and the timeline."""
