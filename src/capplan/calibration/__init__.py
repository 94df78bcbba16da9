"""Where every number comes from: evidence, audit, fit, validation."""
