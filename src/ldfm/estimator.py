"""The estimator: checks what users give, puts tables, learning and inference together, and nothing else."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from ldfm import forests
from ldfm.inference import (
    Budget,
    Diagnostics,
    Estimate,
    ExactTables,
    Marginals,
    Method,
    QueryResult,
    exact,
    find_marginals,
)
from ldfm.kernels.forest_draws import NO_FOREST
from ldfm.learning import EMSettings, History, Prior, fit_generation
from ldfm.learning.settings import settings_from_json, settings_to_json
from ldfm.model_file import ModelRecord, read_model, write_model
from ldfm.tables import (
    MISSING,
    Columns,
    MergedRows,
    Schema,
    Table,
    TableError,
    encode,
    fill_missing,
    learn_table,
    merge_questions,
    merge_rows,
    read_source,
    roles_of_cells,
)
from ldfm.types import Codes, Floats, Integers
from ldfm.version import __version__
from ldfm.weights import ArcWeights, Variant


class LDFM(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Latent dependency forest model of a table of discrete variables.

    Every row has its own latent forest of dependencies between its values; the probability of a row adds up all forests.

    Parameters
    ----------
    variant
        "ldfm-s" (with stop weights) or "ldfm".
    objective
        "generation": EM on the probability of generating the rows.
    prior
        None for maximum likelihood, `Dirichlet` or `ModifiedDirichlet`.
    max_iter, tol
        EM stops after `max_iter` iterations, or when the objective rises by less than `tol` nats a row.
    validation_fraction
        Share of the rows held out to stop by; None: none.
    kinds
        Kinds of columns where they differ from what their dtype says: ``{"column": "discrete"}``.
    n_jobs
        Threads; None: all cores. Results do not depend on it.
    random_state
        Seed of everything random.
    verbose
        0: silent; 1: progress on stderr.

    Attributes
    ----------
    schema_
        Variables and their values.
    weights_
        `ArcWeights`.
    history_
        Convergence record.
    feature_names_in_, n_features_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from ldfm import LDFM
    >>> rows = np.array([["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "dry"], ["sun", "wet"]], dtype=object)
    >>> model = LDFM(random_state=0).fit(rows)
    >>> question = np.array([["rain", None]], dtype=object)
    >>> model.marginals(question).probabilities["x1"].round(2)
    array([[0., 1.]])
    """

    schema_: Schema
    weights_: ArcWeights
    history_: History
    n_features_in_: int

    def __init__(
        self,
        variant: Variant = "ldfm-s",
        objective: Literal["generation"] = "generation",
        prior: Prior | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        kinds: Mapping[str, str] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.objective = objective
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002 (scikit-learn passes y)
        """Learn from the rows of a table.

        Parameters
        ----------
        X
            pandas, polars or pyarrow frame, 2-D array, mapping of columns, or path to a CSV or Parquet file.
        y
            Ignored.
        sample_weight
            (rows,): a row of weight 2 counts as two rows.
        """
        self._check_settings()
        table = learn_table(read_source(X), self.kinds)
        _refuse_missing(table, "fit")
        row_weights = _row_weights(sample_weight, len(table.codes))
        train, held_out = self._split(table.codes, row_weights)
        settings = EMSettings(self.max_iter, self.tol, n_jobs=self.n_jobs, verbose=self.verbose)
        start = ArcWeights.uniform(table.schema.cardinalities, self.variant)
        weights, history = fit_generation(train, start, self.prior, settings, held_out)
        self._adopt(table.schema, weights, history, named=table.source.named)
        return self

    def _check_settings(self) -> None:
        if self.variant not in ("ldfm", "ldfm-s"):
            raise ValueError(f"variant must be 'ldfm' or 'ldfm-s', not {self.variant!r}")
        if self.objective != "generation":
            raise ValueError(
                f"objective must be 'generation', not {self.objective!r}: learning on the normalised likelihood is not there yet"
            )
        if self.prior is not None and (isinstance(self.prior, type) or not isinstance(self.prior, Prior)):
            raise ValueError(f"prior must be None, Dirichlet(...) or ModifiedDirichlet(...), not {self.prior!r}")
        if not _is_whole(self.max_iter):
            raise ValueError(f"max_iter must be a whole number, 0 or more, not {self.max_iter!r}")
        if not (_is_real(self.tol) and self.tol >= 0):
            raise ValueError(f"tol must be a number, 0 or more, not {self.tol!r}")
        fraction = self.validation_fraction
        if fraction is not None and not (_is_real(fraction) and 0 < fraction < 1):
            raise ValueError(f"validation_fraction must be None or between 0 and 1, not {fraction!r}")
        if self.n_jobs is not None and not (_is_integer(self.n_jobs) and self.n_jobs != 0):
            raise ValueError(f"n_jobs must be None or a whole number other than 0, not {self.n_jobs!r}")
        if not _is_real(self.verbose):
            raise ValueError(f"verbose must be a number, not {self.verbose!r}")
        seed = self.random_state
        if not (seed is None or isinstance(seed, np.random.Generator) or _is_whole(seed)):
            raise ValueError(f"random_state must be None, a whole number, 0 or more, or a Generator, not {seed!r}")

    def _split(self, codes: Codes, row_weights: Floats) -> tuple[MergedRows, MergedRows | None]:
        if self.validation_fraction is None:
            return merge_rows(codes, row_weights), None
        rows = len(codes)
        held = max(1, round(rows * self.validation_fraction))
        if held >= rows:
            raise ValueError(f"validation_fraction {self.validation_fraction} of {rows} rows leaves none to learn from")
        order = np.random.default_rng(self.random_state).permutation(rows)
        train, rest = order[held:], order[:held]
        return merge_rows(codes[train], row_weights[train]), merge_rows(codes[rest], row_weights[rest])

    def _adopt(self, schema: Schema, weights: ArcWeights, history: History, *, named: bool = True) -> None:
        self.schema_ = schema
        self.weights_ = weights
        self.history_ = history
        self.n_features_in_ = len(schema.columns)
        self._tables = ExactTables(weights)
        if named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @classmethod
    def from_weights(cls, root: Any, arcs: Any, stop: Any = None, *, values: Mapping[str, Sequence[Any]]) -> Self:
        """Make a ready model from arrays of weights.

        Parameters
        ----------
        root
            (S,): weights of the arcs from the root to each value.
        arcs
            (S, S): weights of the arcs between values, parent by child; 0 inside a variable.
        stop
            (S + 1,) stop weights, root first, or None for an LDFM.
        values
            The values of each column, in column order: ``{"column": [value, ...], ...}``.

        Examples
        --------
        >>> from ldfm import LDFM
        >>> arcs = [[0, 0, 0.9, 0.1], [0, 0, 0.2, 0.8], [0, 0, 0, 0], [0, 0, 0, 0]]
        >>> model = LDFM.from_weights([0.3, 0.7, 0, 0], arcs, values={"sky": ["rain", "sun"], "road": ["wet", "dry"]})
        >>> model.log_forest_sum({"sky": ["rain"], "road": ["wet"]}).round(4)
        array([-1.3093])
        """
        schema = Schema.of_values(values)
        root_row, arc_rows = np.asarray(root, dtype=np.float64), np.asarray(arcs, dtype=np.float64)
        size = sum(schema.cardinalities)
        if root_row.shape != (size,) or arc_rows.shape != (size, size):
            raise ValueError(
                f"{size} values need root weights ({size},) and arc weights ({size}, {size}), "
                f"not {root_row.shape} and {arc_rows.shape}"
            )
        stops = None if stop is None else np.asarray(stop, dtype=np.float64)
        weights = ArcWeights(np.vstack([root_row, arc_rows]), schema.cardinalities, stops)
        model = cls(variant=weights.variant)
        model._adopt(schema, weights, History(reason="made from weights"))
        return model

    # --- rows --------------------------------------------------------------------------------------------------------

    def log_forest_sum(self, X: Any) -> Floats:
        """Give log Z of complete rows (LDFM-S: times their stop weights): their log probability up to the partition."""
        return forests.log_sums(self._fitted_weights(), self._complete(X, "log_forest_sum").codes, self.n_jobs)

    def log_partition(self) -> Estimate:
        """Give log of the sum of exp(log_forest_sum) over all complete rows, by enumeration."""
        self._fitted_weights()
        return Estimate(self._exact().log_partition(), 0.0, exact=True)

    def score_samples(self, X: Any) -> Floats:
        """Give log p(row) of rows, missing cells summed out."""
        table = self._encoded(X)
        merged = merge_rows(table.codes)
        logs = exact.log_evidence(self._exact(), merged)[merged.places]
        log_partition = self._exact().log_partition()
        if log_partition == -np.inf:
            raise ValueError("no row has positive probability under this model, so rows have no scores")
        scores: Floats = logs - log_partition
        return scores

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Give the mean of `score_samples`."""
        scores = self.score_samples(X)
        if not len(scores):
            raise TableError("the table has no rows to score")
        return float(scores.mean())

    # --- questions ---------------------------------------------------------------------------------------------------

    def marginals(self, X: Any, method: Method = "auto", budget: Budget | float | None = None) -> Marginals:
        """Give the posterior of every unknown (missing) cell given the known cells of its row.

        Parameters
        ----------
        X
            Rows with missing cells.
        method
            "exact": enumerate the unknown cells. "gibbs", "tree", "blocked": average over chains of one kind. "auto": enumerate
            where there are few enough joint states, else "tree". `diagnostics` says for each row how sure the answer is.
        budget
            Effort a row for chains: seconds, or a `Budget`.
        """
        _check_method(method, ("auto", "exact", "gibbs", "tree", "blocked"))
        table = self._encoded(X)
        merged = merge_rows(table.codes)
        seed = np.random.SeedSequence(_entropy(self.random_state))
        found, errors, diagnostics = find_marginals(
            self._exact(), merged, method, Budget.of(budget), seed, self.verbose
        )
        return Marginals(
            {name: values[merged.places] for name, values in zip(self.schema_.names, found, strict=True)},
            {name: values[merged.places] for name, values in zip(self.schema_.names, errors, strict=True)},
            table.codes == MISSING,
            diagnostics.of_rows(merged.places),
            self.schema_,
            table.source.frame.implementation if table.source.frame is not None else None,
        )

    def query_log_likelihood(self, X: Any, query: Columns, evidence: Columns, method: Method = "auto") -> QueryResult:
        """Give the log-likelihood of query cells given evidence cells of the same rows.

        Parameters
        ----------
        X
            Rows; query and evidence cells must be known, all other cells are hidden whether known or not.
        query, evidence
            Column names, or boolean arrays of the shape of `X`: roles may then differ from row to row.
        method
            "exact" or "auto": enumerate query and hidden cells.
        """
        _check_method(method)
        table = self._encoded(X)
        asked, given = roles_of_cells(table, query, evidence)
        merged, distinct = merge_questions(table.codes, asked, given)
        joint, marginal, states = exact.query(self._exact(), merged, distinct)
        nothing = np.zeros(len(asked))
        diagnostics = Diagnostics.of_exact(states.astype(np.float64)).of_rows(merged.places)
        n_query = asked.sum(axis=1).astype(np.int64)
        return QueryResult(joint[merged.places], marginal[merged.places], nothing, nothing.copy(), n_query, diagnostics)

    def most_probable(self, X: Any, method: Method = "auto") -> Any:
        """Give `X` with every missing cell filled by the jointly most probable completion of its row."""
        _check_method(method)
        table = self._encoded(X)
        merged = merge_rows(table.codes)
        filled = exact.most_probable(self._exact(), merged)
        return fill_missing(table, filled[merged.places])

    # --- forests -----------------------------------------------------------------------------------------------------

    def arc_marginals(self, X: Any) -> Floats:
        """Give (rows, n + 1, n): probability that the forest of a complete row has the arc parent -> child; parent 0 is the root.

        Columns sum to 1; they are 0 for a row that no forest can generate.
        """
        return forests.marginals_of_arcs(self._fitted_weights(), self._complete(X, "arc_marginals").codes, self.n_jobs)

    def best_forest(self, X: Any) -> Integers:
        """Give (rows, n): for each variable its parent's place in the most probable forest of the row, -1 for the root."""
        table = self._complete(X, "best_forest")
        return _refuse_no_forest(forests.best_forests(self.weights_, table.codes, self.n_jobs))

    def sample_forests(self, X: Any, n: int = 1) -> Integers:
        """Give (rows, n, variables): n forests of each row, drawn independently from the posterior; parents as `best_forest`."""
        if not _is_whole(n) or n < 1:
            raise ValueError(f"n must be a whole number, 1 or more, not {n!r}")
        table = self._complete(X, "sample_forests")
        seed = np.random.SeedSequence(_entropy(self.random_state))
        return _refuse_no_forest(forests.draws_of_forests(self.weights_, table.codes, n, seed, self.n_jobs))

    def plot_forest(self, row: Any, ax: Any = None, threshold: float = 0.05) -> Any:
        """Draw the dependency forest of one row, arcs as thick as they are probable; gives matplotlib axes.

        Parameters
        ----------
        row
            A table with one complete row.
        ax
            Axes to draw on; None: new ones.
        threshold
            Arcs less probable than this are left out.
        """
        from ldfm.plots import plot_forest

        table = self._complete(row, "plot_forest")
        if len(table.codes) != 1:
            raise ValueError(f"plot_forest draws one row, the table has {len(table.codes)}")
        values = [column.values[code] for column, code in zip(self.schema_.columns, table.codes[0], strict=True)]
        _refuse_no_forest(forests.best_forests(self.weights_, table.codes, 1))
        marginals = forests.marginals_of_arcs(self.weights_, table.codes, 1)[0]
        return plot_forest(self.schema_.names, values, marginals, ax=ax, threshold=threshold)

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; `ldfm.load` reads it."""
        weights = self._fitted_weights()
        record = ModelRecord(self.schema_, weights, settings_to_json(self.get_params()), self.history_, __version__)
        write_model(Path(path), record)

    # --- checks ------------------------------------------------------------------------------------------------------

    def _fitted_weights(self) -> ArcWeights:
        """Give `weights_`, or raise scikit-learn's NotFittedError."""
        check_is_fitted(self, "weights_")
        return self.weights_

    def _exact(self) -> ExactTables:
        self._tables.n_jobs = self.n_jobs  # may have been changed since the fit
        return self._tables

    def _encoded(self, X: Any) -> Table:
        self._fitted_weights()
        return encode(read_source(X), self.schema_)

    def _complete(self, X: Any, what: str) -> Table:
        table = self._encoded(X)
        _refuse_missing(table, what)
        return table


def load(path: str | Path) -> LDFM:
    """Read a model file written by `LDFM.save`; files from strangers are safe to open."""
    record = read_model(Path(path))
    # that floating-point columns were taken as categories can be seen from the schema
    kinds = {column.name: "discrete" for column in record.schema.columns if column.type_name == "float"}
    model = LDFM(**settings_from_json(record.settings), kinds=kinds or None)
    places = tuple(f"x{place}" for place in range(len(record.schema.columns)))  # the names of an array's columns
    model._adopt(record.schema, record.weights, record.history, named=record.schema.names != places)
    return model


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral)


def _is_whole(value: Any) -> bool:
    return _is_integer(value) and int(value) >= 0


def _is_real(value: Any) -> bool:
    return isinstance(value, Real)


def _row_weights(sample_weight: Any, rows: int) -> Floats:
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight must be ({rows},), one number a row, not {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight row {bad[0]} is {weights[bad[0]]}; weights must be finite and not negative")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total <= 0:
        raise ValueError("sample_weight is 0 for every row")
    if not 1e-290 < total < 1e290:
        raise ValueError(f"sample_weight adds up to {total}, which is beyond what can be computed with; scale it")
    return weights


def _refuse_missing(table: Table, what: str) -> None:
    places = np.argwhere(table.codes == MISSING)
    if places.size:
        row, column = places[0]
        hint = ": learning from incomplete rows is not there yet" if what == "fit" else ""
        raise TableError(
            f"column {table.schema.names[column]!r} row {row} is missing; {what} needs complete rows{hint}"
        )


def _refuse_no_forest(parents: Integers) -> Integers:
    rows = np.flatnonzero((parents == NO_FOREST).any(axis=tuple(range(1, parents.ndim))))
    if rows.size:
        raise ValueError(f"row {rows[0]} has probability zero under this model, so it has no forest")
    return parents


def _check_method(method: str, known: tuple[str, ...] = ("auto", "exact")) -> None:
    if method not in known:
        hint = "" if len(known) > 2 else ": samplers answer `marginals` only so far"
        raise ValueError(f"method must be one of {', '.join(map(repr, known))}, not {method!r}{hint}")


def _entropy(random_state: int | np.random.Generator | None) -> int | None:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return random_state
