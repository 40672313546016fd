"""The paper's protocol: rows drawn from nine networks, questions about test rows, and how answers are scored.

Everything is drawn from seeds made of names, so that a cell of the tables can be run alone, today or in a year, on the same rows
and questions; hashes stored with every result say whether they were the same.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ldfm.inference import QueryResult
from ldfm.networks import Network, load
from ldfm.types import Booleans, Codes, Floats, Integers

ROWS = (5000, 2000, 500)
VALIDATION_ROWS, TEST_ROWS = 1000, 1000


class Split(NamedTuple):
    """How the variables of a test row are divided, in percent; the rest is hidden."""

    query: int
    evidence: int

    @property
    def name(self) -> str:
        """The name in tables, files and options."""
        return f"{self.query}-{self.evidence}"

    @classmethod
    def of(cls, text: str) -> "Split":
        """Read 40/30 or 40-30."""
        parts = text.replace("-", "/").split("/")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"a split must be query and evidence in percent such as 40/30, not {text!r}")
        query, evidence = map(int, parts)
        if query < 1 or query + evidence > 100:
            raise ValueError(f"split {text!r} must ask something, and have at most 100 percent in all")
        return cls(query, evidence)


SPLITS = (Split(40, 30), Split(30, 20), Split(30, 40), Split(20, 30))


@dataclass(frozen=True)
class Rows:
    """What one training set of one network is learned and tried on; codes (rows, n).

    Attributes
    ----------
    network
        The network they were drawn from.
    train, validation, test
        Codes. Validation and test rows are the same for every training set of a network.
    """

    network: Network
    train: Integers
    validation: Integers
    test: Integers

    @property
    def hashes(self) -> dict[str, str]:
        """Short hashes of all parts."""
        return {name: hash_of(getattr(self, name)) for name in ("train", "validation", "test")}

    def named(self, codes: Codes) -> dict[str, Any]:
        """Give codes as a table of value names, None where a cell is missing."""
        network = self.network
        return {
            name: np.array([*values, None], dtype=object)[codes[:, place]]  # a missing cell, -1, takes the last
            for place, (name, values) in enumerate(zip(network.variables, network.values, strict=True))
        }


class Questions(NamedTuple):
    """Which cells of the test rows (rows, n) are asked, and which are given."""

    asked: Booleans
    given: Booleans


def draw_rows(name: str, rows: int, seed: int) -> Rows:
    """Draw training, validation and test rows of a network."""
    network = load(name)

    def draw(part: str, count: int) -> Integers:
        return network.sample_codes(count, np.random.default_rng(_key(seed, name, part)))

    return Rows(
        network,
        draw(f"train {rows}", rows),
        draw("validation", VALIDATION_ROWS),
        draw("test", TEST_ROWS),
    )


def draw_questions(name: str, n: int, rows: int, split: Split, seed: int, part: str = "test") -> Questions:
    """Divide the variables of each row at random; the first rows have the same questions however many there are."""
    generator = np.random.default_rng(_key(seed, name, f"questions {part} {split.name}"))
    places = np.stack([generator.permutation(n) for _ in range(rows)])
    asked, given = n * split.query // 100, n * split.evidence // 100
    return Questions(places < asked, (places >= asked) & (places < asked + given))


def hash_of(array: Any) -> str:
    """Give a short hash of an array's content."""
    packed = np.ascontiguousarray(array).astype(np.int64)
    return sha256(repr(packed.shape).encode() + packed.tobytes()).hexdigest()[:16]


def _key(seed: int, *names: str) -> list[int]:
    return [seed, *(crc32(name.encode()) for name in names)]


def mean_of(values: Floats) -> dict[str, float | None]:
    """Give mean and standard error over queries; None where the mean is not finite."""
    if not len(values) or not np.isfinite(values).all():
        return {"mean": None, "standard_error": None}
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "standard_error": error}


def summary_of(found: QueryResult, n: int, split: Split) -> dict[str, Any]:
    """Score answers as the paper does: CLL and CMLL, and the larger of their means.

    Both normalisations: by the number of query variables, floor(n Q%), and by n Q% itself, which the printed numbers fit.
    """
    counts = found.n_query.astype(np.float64)
    joint, marginal = found.joint / counts, found.marginal / counts
    means = [float(part.mean()) for part in (joint, marginal)]
    best = means.index(max(means))
    of_best = (joint, marginal)[best]
    share = float(counts[0]) / (n * split.query / 100) if len(counts) else 1.0
    diagnostics = found.diagnostics
    return {
        "cll": mean_of(joint),
        "cmll": mean_of(marginal),
        "score": {**mean_of(of_best), "of": ("cll", "cmll")[best]},
        "score_by_share": {name: None if x is None else x * share for name, x in mean_of(of_best).items()},
        "query_variables": int(counts[0]) if len(counts) else 0,
        "impossible": int((~np.isfinite(found.joint)).sum()),
        "sampling": {
            "exact": float(diagnostics.exact.mean()),
            "met": float(diagnostics.met.mean()),
            "standard_error_of_mean": float(np.sqrt(((found.joint_se / counts) ** 2).sum()) / len(counts)),
            "largest_r_hat": float(diagnostics.r_hat.max()),
            "sweeps": float(diagnostics.sweeps.mean()),
        },
    }


def gap_to(oracle: Floats, found: QueryResult, of: str) -> dict[str, float | None]:
    """Give the mean and standard error of oracle minus model, both a query variable, paired by query.

    `oracle` is that of its own score; pairs have much less noise than either alone.
    """
    own = (found.joint if of == "cll" else found.marginal) / found.n_query
    return mean_of(oracle[: len(own)] - own)
