"""What all peers share: tables in, codes out, hyper-parameters chosen on rows held out."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from ldfm.checks import RandomState, check_n_jobs, check_random_state, is_share, seed_sequence
from ldfm.inference.answers import Diagnostics, QueryResult
from ldfm.tables import (
    MISSING,
    Columns,
    Kinds,
    MergedRows,
    Schema,
    Table,
    TableError,
    encode,
    learn_table,
    merge_questions,
    merge_rows,
    read_source,
    refuse_missing,
    roles_of_cells,
    weights_of_rows,
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

    Attributes
    ----------
    schema_
        Variables and their values.
    feature_names_in_, n_features_in_
        As in scikit-learn.
    """

    schema_: Schema
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that columns may hold categories and text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

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
        return self._answer(merged, distinct).of_rows(merged.places)

    @abstractmethod
    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        """Answer distinct questions: cells are query where `asked`, else evidence where known, else hidden."""

    def _adopt(self, schema: Schema, *, named: bool) -> None:
        self.schema_ = schema
        self.n_features_in_ = len(schema.columns)
        if named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _encoded(self, X: Any) -> Table:
        check_is_fitted(self, "schema_")
        return encode(read_source(X), self.schema_)


class LearningPeer(Peer):
    """A peer that is learned from rows.

    Parameters
    ----------
    validation_fraction
        Share of the rows held out to choose hyper-parameters by, where `fit` is given no validation rows.
    kinds
        Kinds of columns where they differ from what their dtype says: ``{"column": "discrete"}``; "discrete": that of all.
    n_jobs
        Threads; None: all cores. Results do not depend on it.
    random_state
        Seed of everything random.
    """

    validation_fraction: float
    kinds: Kinds
    n_jobs: int | None
    random_state: RandomState

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

    @abstractmethod
    def _learn(self, rows: TrainingRows) -> None:
        """Choose hyper-parameters and set the fitted attributes."""

    def _check_settings(self) -> None:
        if not is_share(self.validation_fraction):
            raise ValueError(f"validation_fraction must be between 0 and 1, not {self.validation_fraction!r}")
        check_n_jobs(self.n_jobs)
        check_random_state(self.random_state)

    def _training_rows(self, table: Table, sample_weight: Any, validation: Any) -> TrainingRows:
        refuse_missing(table, "fit")
        codes, weights = table.codes, weights_of_rows(sample_weight, len(table.codes))
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
            raise ValueError(f"too few rows to hold some out (n_samples={len(codes)}); give validation rows")
        order = np.random.default_rng(self._seed()).permutation(len(codes))
        rest, train = order[:held], order[held:]
        return TrainingRows(
            merge_rows(codes[train], weights[train]), merge_rows(codes[rest], weights[rest]), whole, cardinalities
        )

    def _seed(self) -> np.random.SeedSequence:
        return seed_sequence(self.random_state)


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
