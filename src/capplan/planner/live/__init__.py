"""A live validation: measure a little, calibrate, predict more, and only then measure that, too."""
