"""The same examples in every run: a property test that fails here fails everywhere."""

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("deterministic")
