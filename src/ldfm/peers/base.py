"""What all peers share: tables in, codes out, hyper-parameters chosen on rows held out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from ldfm.inference.answers import Diagnostics, QueryResult
from ldfm.tables import (
    MISSING,
    Columns,
    MergedRows,
    Schema,
    Table,
    TableError,
    encode,
    learn_table,
    merge_questions,
    merge_rows,
    read_source,
    roles_of_cells,
)
from ldfm.types import Booleans, Floats

TARGET_SE = 0.05  # nats a row: what a sampled joint answer should reach
AGREED = 1.05  # largest R-hat of chains that agree


class TrainingRows(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    train
        Rows that candidates are learned from.
    held_out
        Rows that candidates are compared on.
    whole
        Rows that the chosen candidate is learned from: `train` and `held_out` together where these were split by the peer, `train`
        where the user gave validation rows.
    cardinalities
        Number of values of each variable.
    """

    train: MergedRows
    held_out: MergedRows
    whole: MergedRows
    cardinalities: tuple[int, ...]


class Peer(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of discrete tables that answers p(query | evidence).

    Parameters
    ----------
    validation_fraction
        Share of the rows held out to choose hyper-parameters by, where `fit` is given no validation rows.
    kinds
        Kinds of columns where they differ from what their dtype says: ``{"column": "discrete"}``.
    n_jobs
        Threads; None: all cores. Results do not depend on it.
    random_state
        Seed of everything random.

    Attributes
    ----------
    schema_
        Variables and their values.
    feature_names_in_, n_features_in_
        As in scikit-learn.
    """

    validation_fraction: float
    kinds: Mapping[str, str] | None
    n_jobs: int | None
    random_state: int | np.random.Generator | None
    schema_: Schema
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, validation: Any = None) -> Self:  # noqa: ARG002
        """Learn from the rows of a table.

        Parameters
        ----------
        X
            Table of complete rows, of any type that `LDFM.fit` takes.
        y
            Ignored.
        sample_weight
            (rows,): a row of weight 2 counts as two rows.
        validation
            Table of complete rows to choose hyper-parameters by; None: a share of `X`, after which the chosen ones are learned with
            again from all of `X`.
        """
        self._check_settings()
        table = learn_table(read_source(X), self.kinds)
        rows = self._training_rows(table, sample_weight, validation)
        self._adopt(table.schema, named=table.source.named)
        self._learn(rows)
        return self

    def query_log_likelihood(self, X: Any, query: Columns, evidence: Columns) -> QueryResult:
        """Give the log-likelihood of query cells given evidence cells of the same rows.

        Parameters
        ----------
        X
            Rows; query and evidence cells must be known, all other cells are hidden whether known or not.
        query, evidence
            Column names, or boolean arrays of the shape of `X`: roles may then differ from row to row.
        """
        table = self._encoded(X)
        asked, given = roles_of_cells(table, query, evidence)
        merged, distinct = merge_questions(table.codes, asked, given)
        found = self._answer(merged, distinct)
        places = merged.places
        return QueryResult(
            found.joint[places],
            found.marginal[places],
            found.joint_se[places],
            found.marginal_se[places],
            found.n_query[places],
            found.diagnostics.of_rows(places),
        )

    @abstractmethod
    def _learn(self, rows: TrainingRows) -> None:
        """Choose hyper-parameters and set the fitted attributes."""

    @abstractmethod
    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        """Answer distinct questions: cells are query where `asked`, else evidence where known, else hidden."""

    def _check_settings(self) -> None:
        if not _is_between(self.validation_fraction, 0.0, 1.0):
            raise ValueError(f"validation_fraction must be between 0 and 1, not {self.validation_fraction!r}")
        if self.n_jobs is not None and not (_is_integer(self.n_jobs) and self.n_jobs != 0):
            raise ValueError(f"n_jobs must be None or a whole number other than 0, not {self.n_jobs!r}")
        seed = self.random_state
        if not (seed is None or isinstance(seed, np.random.Generator) or (_is_integer(seed) and seed >= 0)):
            raise ValueError(f"random_state must be None, a whole number, 0 or more, or a Generator, not {seed!r}")

    def _adopt(self, schema: Schema, *, named: bool) -> None:
        self.schema_ = schema
        self.n_features_in_ = len(schema.columns)
        if named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _training_rows(self, table: Table, sample_weight: Any, validation: Any) -> TrainingRows:
        refuse_missing(table, "fit")
        codes, weights = table.codes, _row_weights(sample_weight, len(table.codes))
        cardinalities = table.schema.cardinalities
        whole = merge_rows(codes, weights)
        if validation is not None:
            held_out = encode(read_source(validation), table.schema)
            refuse_missing(held_out, "validation")
            if not len(held_out.codes):
                raise TableError("the validation table has no rows")
            return TrainingRows(whole, merge_rows(held_out.codes), whole, cardinalities)
        held = max(1, round(len(codes) * self.validation_fraction))
        if held >= len(codes):
            raise ValueError(f"{len(codes)} rows are too few to hold some out; give validation rows")
        order = np.random.default_rng(self._seed()).permutation(len(codes))
        rest, train = order[:held], order[held:]
        return TrainingRows(
            merge_rows(codes[train], weights[train]), merge_rows(codes[rest], weights[rest]), whole, cardinalities
        )

    def _encoded(self, X: Any) -> Table:
        check_is_fitted(self, "schema_")
        return encode(read_source(X), self.schema_)

    def _seed(self) -> np.random.SeedSequence:
        seed = self.random_state
        return np.random.SeedSequence(int(seed.integers(2**63)) if isinstance(seed, np.random.Generator) else seed)


class DensityPeer(DensityMixin, Peer):  # type: ignore[misc]
    """A peer that has a joint probability."""

    def score_samples(self, X: Any) -> Floats:
        """Give log p(row) of rows, missing cells summed out."""
        merged = merge_rows(self._encoded(X).codes)
        scores: Floats = self._log_probabilities(merged)[merged.places]
        return scores

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Give the mean of `score_samples`."""
        scores = self.score_samples(X)
        if not len(scores):
            raise TableError("the table has no rows to score")
        return float(scores.mean())

    @abstractmethod
    def _log_probabilities(self, rows: MergedRows) -> Floats:
        """Give the log probability of the known cells of distinct rows."""


def refuse_missing(table: Table, what: str) -> None:
    """Refuse a table with missing cells."""
    places = np.argwhere(table.codes == MISSING)
    if places.size:
        row, column = places[0]
        raise TableError(f"column {table.schema.names[column]!r} row {row} is missing; {what} needs complete rows")


def mean_log(logs: Floats, rows: MergedRows) -> float:
    """Give the mean of log probabilities of distinct rows, each counted by its weight."""
    return float(rows.weights @ logs / rows.weights.sum())


def count_states(rows: MergedRows, asked: Booleans, cardinalities: tuple[int, ...]) -> Floats:
    """Give the number of joint states of the query and hidden cells of each distinct row."""
    unknown = asked | (rows.codes == MISSING)
    states: Floats = np.where(unknown, np.array(cardinalities, dtype=np.float64), 1.0).prod(axis=1)
    return states


def exact_result(
    joint: Floats, marginal: Floats, rows: MergedRows, asked: Booleans, cardinalities: tuple[int, ...]
) -> QueryResult:
    """Put exact answers together."""
    nothing = np.zeros(len(joint))
    diagnostics = Diagnostics.of_exact(count_states(rows, asked, cardinalities))
    return QueryResult(joint, marginal, nothing, nothing.copy(), asked.sum(axis=1).astype(np.int64), diagnostics)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral)


def _is_between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, Real) and low < float(value) < high


def _row_weights(sample_weight: Any, rows: int) -> Floats:
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight must be ({rows},), one number a row, not {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight row {bad[0]} is {weights[bad[0]]}; weights must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is 0 for every row")
    return weights
