# Recipes of the project. They need nothing but uv: `uv run just check`.

# List the recipes
default:
    @"{{just_executable()}}" --list

# Run every check that a change must pass
check: static test wheel

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

# Run the tests on all cores (arguments go to pytest)
test *arguments:
    uv run pytest {{arguments}}

# Compare what the commands in tests/frozen answer with what is stored there, digit by digit (minutes; --write, --only NAME)
frozen *arguments:
    uv run python tests/frozen/freeze.py {{arguments}}

# Run the long random checks: 2,000 networks in both engines, also in a kernel that checks its memory accesses, 500
# questions whose answers must not contradict themselves, 10,000 valid questions, of which every verb must answer 70 %
# (hours; resumes if interrupted: remove dist/valid-questions.jsonl to begin again), 50 sizings that an exhaustive
# simulation must agree with, what is marked `trust`, and the faults below
trust: && faults
    CAPPLAN_TRUST_NETWORKS=2000 uv run pytest -m slow tests/simulator/test_same_path.py
    CAPPLAN_TRUST_NETWORKS=2000 uv run pytest -m slow tests/simulator/test_memory_safety.py
    CAPPLAN_TRUST_QUESTIONS=500 uv run pytest -m "slow or not slow" tests/planner/test_random_questions.py
    CAPPLAN_TRUST_QUESTIONS=10000 uv run python tests/planner/questions_campaign.py dist/valid-questions.jsonl docs/reference/questions.json
    CAPPLAN_TRUST_SIZINGS=50 uv run pytest tests/planner/test_random_sizings.py
    CAPPLAN_TRUST_GRIDS=200 uv run pytest tests/planner/test_sizing_grids.py
    uv run pytest -m trust

# Change the code that decides answers in 450 places and count how many changes the tests notice, for the page on
# reliability (two hours; resumes if interrupted: remove dist/mutants and docs/reference/mutants.jsonl to begin again)
mutants:
    mkdir -p dist/mutants
    test -e dist/mutants/durations.xml -a -z "$(find src tests -name '*.py' -newer dist/mutants/durations.xml)" || uv run --group mutants pytest --cov=src/capplan --cov-context=test --cov-report= \
        --junit-xml=dist/mutants/durations.xml || true
    uv run --group mutants python tests/mutants/campaign.py 50 docs/reference/mutants.jsonl
    uv run python docs/generate/reliability.py

# Run capplan for long: 10^9 requests, a simulated week, half an hour of `serve` (an hour and a half)
endurance *runs:
    uv run python benchmarks/endurance.py {{runs}}
    uv run python docs/generate/reliability.py

# Make and check the files of a release in dist/release/: all tests but `trust`, wheels, sdist, bill of materials, licences, checksums;
# stops if backtests are worse than in the release before and no decision record says so
release:
    uv run python docs/generate/ratchet.py
    rm -f uv.lock
    .ci/run
    uv run --group release python release

# Move the date that pins the versions, and run everything again
upgrade date:
    sed -i 's/^exclude-newer = .*/exclude-newer = "{{date}}T00:00:00Z"/' pyproject.toml
    rm -f uv.lock
    .ci/run

# Try 300,000 hostile inputs and put some 300 faults in the way of every verb that writes, for the page on reliability
# (hours; as root, disks are really full and folders really read-only). Inputs resume if interrupted; the
# files say what was tried: remove them to begin again
faults:
    uv run python tests/fuzz/campaign.py 300000 docs/reference/inputs.jsonl
    uv run --group fuzz python tests/fuzz/guided.py 410 docs/reference/guided-inputs.json
    uv run python tests/faults/campaign.py docs/reference/faults.json
    uv run python docs/generate/reliability.py

# Regenerate the reference pages from the code (minutes: the accuracy page simulates)
docs:
    uv run python docs/generate/schemas.py
    uv run python docs/generate/outputs.py
    uv run python docs/generate/examples.py
    uv run python docs/generate/production.py
    uv run python docs/generate/tls.py
    uv run python docs/generate/pauses.py
    uv run python docs/generate/maintenance.py
    uv run python docs/generate/load_generators.py
    uv run python docs/generate/data_volume.py
    uv run python docs/generate/stopped_nodes.py
    uv run python docs/generate/another_data_centre.py
    uv run python docs/generate/validation.py
    uv run python docs/generate/priors.py --page
    uv run python docs/generate/accuracy.py
    uv run python docs/generate/reliability.py
    uv run python docs/generate/pictures.py

# Measure on a lab what compaction, repair and hints cost nodes, for docs/reference/maintenance.md (on a quiet machine with
# two cores, half an hour; `compaction`, `repair` or `hints` measures one of them)
maintenance *names:
    uv run --extra lab python docs/generate/maintenance_runs.py {{names}}
    uv run python docs/generate/maintenance.py

# Measure capplan's load generator and latte in turn on a lab, for docs/reference/load-generators.md (on a quiet machine with
# two cores, ten minutes)
load-generators:
    uv run --extra lab python docs/generate/load_generators_runs.py
    uv run python docs/generate/load_generators.py

# Measure on a lab what a request costs a node with more and older data, for docs/reference/data-volume.md (as root, on
# a quiet machine with two cores, most of an hour; resumes if interrupted)
data-volume:
    uv run --extra lab python docs/generate/data_volume_runs.py
    uv run python docs/generate/data_volume.py

# Stop the nodes of a lab and measure whom that holds, for docs/reference/stopped-nodes.md (as root, on a quiet machine
# with two cores, hours; resumes if interrupted, and `--minutes N` ends it before)
stopped-nodes *arguments:
    uv run --extra lab python docs/generate/stopped_nodes_runs.py {{arguments}}

# Measure how long answers take that wait for another data centre, for docs/reference/another-data-centre.md (as root, on
# a quiet machine with two cores, half an hour; resumes if interrupted, and `--minutes N` ends it before)
another-data-centre *arguments:
    uv run --extra lab python docs/generate/another_data_centre_runs.py {{arguments}}

# Measure what the CPU of nodes is worth in a fit, for the page of backtests (a quarter of an hour)
partly-busy:
    uv run python docs/generate/partly_busy.py

# Print how the code is built: points of a system's contract, circles of imports, private helpers with one call
house:
    uv run python docs/generate/house.py

# Regenerate the snapshots that tests compare the audits of the evidence with; review the difference
audit-snapshots:
    uv run python docs/generate/audit_snapshots.py

# Regenerate the snapshots of what each documented figure is compared by; review the difference
comparison-snapshots:
    uv run python docs/generate/comparison_snapshots.py

# Measure how often intervals contain the truth, for the accuracy page (an hour; resumes if interrupted)
coverage:
    uv run python docs/generate/coverage_of_intervals.py

# Refit every system with its prior medians moved, for the page about priors (half an hour; resumes if interrupted)
priors:
    uv run python docs/generate/priors.py

# Check what a user installs: the contents of the wheel, and that it works
wheel:
    uv run pytest -m slow tests/project/test_wheel.py

# Fit the generic systems to some rows of published load tests and predict the others, for the page of backtests; prints
# what became worse since the last release, and keeps the figures for the next one (minutes)
backtest:
    uv run python docs/generate/backtest.py

# Run the same backtests with five seeds, and keep how much chance moves their scores (an hour; resumes if interrupted)
backtest-seeds:
    OPENBLAS_NUM_THREADS=1 uv run python docs/generate/backtest_seeds.py

# Make the priors of exponents, which say how capacity grows with nodes and cores, from tests/published/scale_outs.csv
scale-outs:
    uv run python docs/generate/scale_outs.py

# Make the population of published clusters, which `cassandra` rests on without a fit, and its page; with `--fit`, fit each
# of the clusters again (minutes)
population *ARGS:
    OPENBLAS_NUM_THREADS=1 uv run python docs/generate/population.py {{ARGS}}

# Fit 250 systems whose parameters are known, and count how often bands hold, for the same page (half an hour; resumes if
# interrupted). `just backtest` only shows the counts, so that the page takes minutes: run this after a change of the fit
# or of the generic systems, then `just backtest`
synthetic:
    OPENBLAS_NUM_THREADS=1 uv run python docs/generate/synthetic_systems.py

# Predict real nodes on this machine, measure them, and write docs/live-validation.md (an hour on a quiet machine with
# two cores; resumes if interrupted)
live:
    OPENBLAS_NUM_THREADS=1 uv run --extra lab capplan validate --live --report docs

# Check the contents of the wheel, then build the sdist and the wheel into dist/
build: wheel
    uv build

# Measure speed as ratios to other simulators, each checked for the right answer first
bench *arguments:
    uv run python benchmarks {{arguments}}

# Build the site of the documents, with search, to dist/site/; a warning is an error
site:
    uv run --group docs python docs/generate/site.py

# Export the notebooks with their outputs for Jupyter, to dist/notebooks/
notebooks:
    mkdir -p dist/notebooks
    for each in notebooks/*.py; do \
        uv run marimo export ipynb "$each" --include-outputs --force -o "dist/notebooks/$(basename "$each" .py).ipynb" || exit 1; \
    done
