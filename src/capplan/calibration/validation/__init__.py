"""How well a calibrated system predicts its evidence, beside simple rules."""
