# Every check of the project by name. With nothing but uv installed: `uv run just check`.

# List the recipes
default:
    @"{{just_executable()}}" --list

# Run everything a change must pass
check: static test

# Check format, lint, types and layers without running anything
static:
    uv run ruff format --check
    uv run ruff check
    uv run mypy
    uv run lint-imports --no-logo

# Format the code and fix what the linter can fix
fix:
    uv run ruff format
    uv run ruff check --fix

# Run the tests (arguments go to pytest)
test *arguments:
    uv run pytest {{arguments}}

# Run the long versions of what is checked at random: 2,000 networks in both engines, and in a kernel that checks itself
trust:
    CAPPLAN_TRUST_NETWORKS=2000 uv run pytest tests/simulator/test_same_path.py
    CAPPLAN_TRUST_NETWORKS=2000 uv run pytest -m slow tests/simulator/test_memory_safety.py

# Make the reference pages anew from the code (minutes: the accuracy page simulates)
docs:
    uv run python docs/generate/schemas.py
    uv run python docs/generate/validation.py
    uv run python docs/generate/accuracy.py

# Write anew the snapshots that tests hold the audits of the evidence against; review the difference
audit-snapshots:
    uv run python docs/generate/audit_snapshots.py

# Measure how often intervals hold the truth (an hour, resumed where it was interrupted), for the accuracy page
coverage:
    uv run python docs/generate/coverage_of_intervals.py

# Check what a wheel would hold, then build the sdist and the wheel into dist/
build:
    uv run pytest tests/project/test_wheel.py
    uv build

# Measure speed as ratios against peers, each checked for the right answer first
bench *arguments:
    uv run python benchmarks {{arguments}}
