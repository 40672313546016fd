"""How the dependencies of rows change with their values."""

from typing import NamedTuple

import numpy as np

from ldfm.types import Codes, Floats

_SURE = 4.0  # standard errors that a change must have
_FEWEST = 8  # rows with a value


class Change(NamedTuple):
    """An arc that is more probable with one value of a variable than with another.

    Attributes
    ----------
    parent, child
        The arc; parent -1 is the root.
    context
        The variable whose values decide.
    low, high
        Codes of the values with which the arc is least and most probable.
    low_share, high_share
        Its mean probability there.
    """

    parent: int
    child: int
    context: int
    low: int
    high: int
    low_share: float
    high_share: float

    @property
    def size(self) -> float:
        """Difference of the probabilities."""
        return self.high_share - self.low_share


def find_changes(codes: Codes, marginals: Floats, cardinalities: tuple[int, ...]) -> list[Change]:
    """Give for each arc the variable whose values change it most, if one surely does; greatest changes first.

    Parameters
    ----------
    codes
        (rows, n): complete rows.
    marginals
        (rows, n + 1, n): their arc marginals.
    cardinalities
        Number of values of each variable.
    """
    best: dict[tuple[int, int], Change] = {}
    for context, count in enumerate(cardinalities):
        values = [v for v in range(count) if (codes[:, context] == v).sum() >= _FEWEST]
        if len(values) < 2:
            continue
        groups = [marginals[codes[:, context] == v] for v in values]
        means = np.stack([group.mean(axis=0) for group in groups])
        variances = np.stack([group.var(axis=0) / len(group) for group in groups])
        low, high = means.argmin(axis=0), means.argmax(axis=0)
        size = means.max(axis=0) - means.min(axis=0)
        noise = np.sqrt(_pick(variances, low) + _pick(variances, high))
        for parent, child in np.argwhere((size > _SURE * noise) & (size > 0.01)).tolist():
            found = Change(
                parent - 1,
                child,
                context,
                values[low[parent, child]],
                values[high[parent, child]],
                float(means[low[parent, child], parent, child]),
                float(means[high[parent, child], parent, child]),
            )
            if (parent, child) not in best or found.size > best[parent, child].size:
                best[parent, child] = found
    return sorted(best.values(), key=lambda change: -change.size)


def _pick(numbers: Floats, places: Floats) -> Floats:
    """Give from (values, n + 1, n) the entry at `places` (n + 1, n) of each arc."""
    picked: Floats = np.take_along_axis(numbers, places[None].astype(np.int64), axis=0)[0]
    return picked
