"""Many runs: replications, parameter draws, experiments, on threads, processes or Dask."""
