"""How the dependencies of rows change with their values."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ldfm.types import Floats, Integers

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
        Codes of the values, or groups of values, with which the arc is least and most probable.
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


def find_changes(groups: Sequence[Integers], marginals: Floats, *, outside: bool = False) -> list[Change]:
    """Give for each arc the variable whose values change it most, if one surely does; greatest changes first.

    Parameters
    ----------
    groups
        For each variable (rows,): the code of its value, or of a group of its values.
    marginals
        (rows, n + 1, n): the arc marginals of the rows.
    outside
        Only variables that are neither parent nor child of the arc.
    """
    best: dict[tuple[int, int], Change] = {}
    for context, codes in enumerate(groups):
        values = [v for v, count in enumerate(np.bincount(codes)) if count >= _FEWEST]
        if len(values) < 2:
            continue
        parts = [marginals[codes == v] for v in values]
        means = np.stack([part.mean(axis=0) for part in parts])
        variances = np.stack([part.var(axis=0) / len(part) for part in parts])
        low, high = means.argmin(axis=0), means.argmax(axis=0)
        size = means.max(axis=0) - means.min(axis=0)
        noise = np.sqrt(_pick(variances, low) + _pick(variances, high))
        for parent, child in np.argwhere((size > _SURE * noise) & (size > 0.01)).tolist():
            if outside and context in (parent - 1, child):
                continue
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


def _pick(numbers: Floats, places: Integers) -> Floats:
    """Give from (values, n + 1, n) the entry at `places` (n + 1, n) of each arc."""
    picked: Floats = np.take_along_axis(numbers, places[None], axis=0)[0]
    return picked
