"""Order statistics of independent, identical branches in closed form."""

from scipy import special


def kth_of_n_mean_exponential(mean_s: float, k: int, n: int) -> float:
    """Return the mean time until k of n exponential branches are done: a harmonic sum (Renyi 1953)."""
    return mean_s * sum(1 / left for left in range(n - k + 1, n + 1))


def kth_of_n_level(level: float, k: int, n: int) -> float:
    """Return the level at which one branch has the quantile that the k-th of n has at `level`."""
    return float(special.betaincinv(k, n - k + 1, level))
