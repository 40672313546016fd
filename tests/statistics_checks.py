"""Comparing draws with exact probabilities."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from scipy.stats import chi2

FALSE_ALARM = 1e-4  # chance that one such check rejects a right sampler


def p_value(draws: Iterable[Hashable], probabilities: Mapping[Hashable, float]) -> float:
    """Give the p-value of Pearson's test; outcomes expected less than 5 times are put together. 0 for an impossible draw."""
    counts = Counter(draws)
    total = sum(counts.values())
    if any(probabilities.get(outcome, 0.0) == 0.0 for outcome in counts):
        return 0.0
    cells, rare_expected, rare_seen = [], 0.0, 0
    for outcome, probability in probabilities.items():
        expected = total * probability
        if expected >= 5:
            cells.append((counts[outcome], expected))
        else:
            rare_expected += expected
            rare_seen += counts[outcome]
    if rare_expected >= 5:
        cells.append((rare_seen, rare_expected))
    elif rare_expected < 1e-6 and rare_seen:
        return 0.0
    if len(cells) < 2:
        return 1.0
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    return float(chi2.sf(statistic, len(cells) - 1))
