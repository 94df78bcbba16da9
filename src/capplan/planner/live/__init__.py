"""Live validation: measures a little, calibrates, predicts more, and only then measures the predicted loads."""
