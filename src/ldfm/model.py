"""The model: checks what users give, puts tables, learning and inference together, and nothing else."""

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

import numpy as np

from ldfm import forests
from ldfm.checks import check_count, seed_sequence
from ldfm.inference import (
    Budget,
    Engine,
    Estimate,
    Marginals,
    Method,
    QueryResult,
    engine_of,
)
from ldfm.kernels.forest_draws import NO_FOREST
from ldfm.learning import (
    FitSettings,
    History,
    Objective,
    Prior,
    choose_scales,
    draw_from,
    hold_out,
    learn,
    uniform_weights,
)
from ldfm.learning.settings import check_settings, settings_from_json, settings_to_json
from ldfm.mixed_weights import MixedWeights
from ldfm.model_file import ModelRecord, read_model, write_model
from ldfm.pictures import Pictures
from ldfm.relations import Relations
from ldfm.tables import (
    Columns,
    Kinds,
    Schema,
    Table,
    TableError,
    encode,
    fill_missing,
    learn_table,
    merge_questions,
    merge_rows,
    missing_cells,
    new_frame,
    read_source,
    refuse_missing,
    roles_of_cells,
    row_of_evidence,
    template_of,
    weights_of_rows,
)
from ldfm.types import Floats, Integers, Rows
from ldfm.version import __version__
from ldfm.weights import ArcWeights, Variant

Model = TypeVar("Model", bound="ForestModel")


class _Draws:
    """Draws of a model, made when they are first asked for: asking about rows is not to change a model, as scikit-learn sees it."""

    def __init__(self, rows: Rows | None) -> None:
        self.rows = rows

    def of(self, weights: ArcWeights | MixedWeights, n_jobs: int | None) -> Rows:
        """Give them, from the model that has these weights."""
        if self.rows is None:
            self.rows = draw_from(weights, 0, n_jobs)
        return self.rows


class ForestModel(Pictures):
    """An LDFM without scikit-learn around it; parameters and attributes are those of `ldfm.LDFM`.

    Commands use it: to import scikit-learn takes longer than to learn from a small table.
    """

    schema_: Schema
    weights_: Any
    history_: History
    _kept_draws: "_Draws"
    _partition: Estimate | None
    _template: Any
    n_features_in_: int
    n_iter_: int

    def __init__(
        self,
        variant: Variant = "ldfm-s",
        objective: Objective = "likelihood",
        prior: Prior | None = None,
        max_iter: int | None = None,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        kinds: Kinds = None,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
        bend: bool = True,
        relate: bool = True,
    ) -> None:
        self.variant = variant
        self.objective = objective
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.bend = bend
        self.relate = relate

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
        check_settings(self._settings())
        table = learn_table(read_source(X), self.kinds)
        row_weights = None if sample_weight is None else weights_of_rows(sample_weight, len(table.codes))
        if self.warm_start and hasattr(self, "schema_") and self.schema_.straight == table.schema:
            # weights that are there are those of its scales and relations
            return self._learn(encode(table.source, self.schema_), row_weights, warm=True)
        seen, relations = choose_scales(table, row_weights, bend=bool(self.bend), relate=bool(self.relate))
        return self._learn(seen, row_weights, warm=self.warm_start, relations=relations)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Go on learning from more rows, from the weights there are; the first call is a `fit` and fixes columns and values.

        Parameters
        ----------
        X
            Rows; values that the first table did not have are an error.
        y
            Ignored.
        sample_weight
            (rows,): as in `fit`.
        """
        if not hasattr(self, "weights_"):
            return self.fit(X, sample_weight=sample_weight)
        check_settings(self._settings())
        table = encode(read_source(X), self.schema_)
        row_weights = None if sample_weight is None else weights_of_rows(sample_weight, len(table.codes))
        return self._learn(table, row_weights, warm=True)

    def _learn(
        self, table: Table, row_weights: Floats | None, *, warm: bool, relations: Relations | None = None
    ) -> Self:
        seed = self._seed()
        train, held_out = hold_out(table.codes, row_weights, self.validation_fraction, self.objective, seed)
        settings = FitSettings(
            self.objective,
            self.prior,
            self.max_iter,
            self.tol,
            seed,
            None if self.checkpoint is None else Path(self.checkpoint),
            self.n_jobs,
            self.verbose,
        )
        known = warm and hasattr(self, "weights_") and self.schema_.columns == table.schema.columns
        uniform = uniform_weights(table.schema, self.variant, relations)
        fitted = learn(train, self.weights_ if known else None, uniform, settings, held_out)
        self._adopt(table.schema, fitted.weights, fitted.history, fitted.draws, named=table.source.named)
        self._template = template_of(table.source, table.schema)
        return self

    def _adopt(
        self,
        schema: Schema,
        weights: ArcWeights | MixedWeights,
        history: History,
        draws: Rows | None,
        *,
        named: bool = True,
    ) -> None:
        self.schema_ = schema
        self.weights_ = weights
        self.history_ = history
        self.n_iter_ = history.steps[-1].iteration if len(history) else 0
        self.n_features_in_ = len(schema.columns)
        self._kept_draws = _Draws(draws)
        self._answers = engine_of(weights, self._draws, tuple(column.units.bend for column in schema.columns))
        self._partition = None
        self._template = None
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
        model._adopt(schema, weights, History(reason="made from weights"), None)
        return model

    # --- rows --------------------------------------------------------------------------------------------------------

    def log_forest_sum(self, X: Any) -> Floats:
        """Give log Z of complete rows (LDFM-S: times their stop weights): their log probability up to the partition.

        With continuous columns it is a log density, in the table's units.
        """
        weights, codes = self._fitted_weights(), self._complete(X, "log_forest_sum").codes
        sums: Floats = forests.log_sums(weights, codes, self.n_jobs) - self.schema_.log_slopes(codes)
        return sums

    def log_partition(self) -> Estimate:
        """Give log of the sum of exp(log_forest_sum) over all complete rows, an integral over the numbers in them.

        Exact where rows can be enumerated and where all columns are continuous, else by annealing.
        """
        self._fitted_weights()
        if self._partition is None:
            self._partition = self._engine().log_partition(self._seed())
        return self._partition

    def score_samples(self, X: Any) -> Floats:
        """Give log p(row) of rows, missing cells summed out. Beyond enumeration both sums are estimates.

        With continuous columns it is a log density, in the table's units.
        """
        merged = merge_rows(self._encoded(X).codes)
        log_partition = self.log_partition().value
        if log_partition == -np.inf:
            raise ValueError("no row has positive probability under this model, so rows have no scores")
        logs = self._engine().log_evidence(merged, self._spawn(), self.verbose)
        scores: Floats = logs - log_partition - self.schema_.log_slopes(merged.codes, ~missing_cells(merged.codes))
        return scores[merged.places]

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
            where there are few enough joint states, else the kernel that measured best. `diagnostics` says for each row how sure
            the answer is.
        budget
            Effort a row for chains: seconds, or a `Budget`.
        """
        _check_method(method)
        table = self._encoded(X)
        merged = merge_rows(table.codes)
        found = self._engine().marginals(merged, method, Budget.of(budget), self._spawn(), self.verbose)
        return found.of_table(table, merged.places)

    def query_log_likelihood(
        self,
        X: Any,
        query: Columns,
        evidence: Columns,
        method: Method = "auto",
        budget: Budget | float | None = None,
    ) -> QueryResult:
        """Give the log-likelihood of query cells given evidence cells of the same rows.

        Parameters
        ----------
        X
            Rows; query and evidence cells must be known, all other cells are hidden whether known or not.
        query, evidence
            Column names, or boolean arrays of the shape of `X`: roles may then differ from row to row.
        method
            As in `marginals`. Where cells are not enumerated the joint is found by clamping query cells in turn, and the method
            says which sweeps chains make between.
        budget
            Effort a row for chains: seconds, or a `Budget`.
        """
        _check_method(method)
        table = self._encoded(X)
        merged, distinct = merge_questions(table.codes, *roles_of_cells(table, query, evidence))
        found = self._engine().queries(merged, distinct, method, Budget.of(budget), self._spawn(), self.verbose)
        return found.of_rows(merged.places, self.schema_.log_slopes(merged.codes, distinct))

    def most_probable(self, X: Any, method: Method = "auto") -> Any:
        """Give `X` with every missing cell filled by the jointly most probable completion of its row.

        Beyond enumeration it is searched for from many starts, and may be missed.
        """
        _check_method(method)
        table = self._encoded(X)
        merged = merge_rows(table.codes)
        filled = self._engine().most_probable(merged, method, self._spawn())
        return fill_missing(table, filled[merged.places])

    def impute(self, X: Any, how: str = "marginal", method: Method = "auto") -> Any:
        """Give `X` with every missing cell filled.

        Parameters
        ----------
        X
            Rows with missing cells.
        how
            "marginal": each cell by its own most probable value, in continuous columns by its mean. "joint": by the jointly most
            probable completion of the row. "draw": by a draw from the posterior of the row's missing cells.
        method
            As in `marginals`.
        """
        if how not in ("marginal", "joint", "draw"):
            raise ValueError(f"how must be 'marginal', 'joint' or 'draw', not {how!r}")
        if how == "joint":
            return self.most_probable(X, method)
        _check_method(method)
        table = self._encoded(X)
        if how == "draw":
            return fill_missing(table, self._engine().draw(table.codes, self._spawn()))
        merged = merge_rows(table.codes)
        found = self._engine().marginals(merged, method, Budget(), self._spawn(), self.verbose)
        best = np.stack([np.argmax(values, axis=1) for values in found.means], axis=1).astype(table.codes.dtype)
        for place, numbers in found.numbers.items():
            units = self.schema_.columns[place].units
            best[:, place] = units.cells(numbers.in_units(units).means)
        return fill_missing(table, best[merged.places])

    def sample(self, n: int = 1, evidence: Mapping[Any, Any] | None = None) -> Any:
        """Draw rows from the model.

        Parameters
        ----------
        n
            How many.
        evidence
            Values to hold fixed: ``{"column": value, ...}``.

        Returns
        -------
        A frame like the one the model was fitted with in this process, with its dtypes and categories, else a mapping of
        column names to arrays.
        """
        check_count("n", n)
        self._fitted_weights()
        row = row_of_evidence(evidence or {}, self.schema_)
        known = np.repeat(encode(read_source(row), self.schema_).codes, n, axis=0)
        codes = self._engine().draw(known, self._spawn())
        return new_frame(self.schema_, codes, self._template)

    # --- forests -----------------------------------------------------------------------------------------------------

    def arc_marginals(self, X: Any) -> Floats:
        """Give (rows, n + 1, n): probability that the forest of a row has the arc parent -> child; parent 0 is the root.

        Missing cells are averaged over. Columns sum to 1; they are 0 for a row that no forest can generate.
        """
        table = self._encoded(X)
        if not missing_cells(table.codes).any():
            return forests.marginals_of_arcs(self.weights_, table.codes, self.n_jobs)
        merged = merge_rows(table.codes)
        return self._engine().arc_marginals(merged, self._spawn())[merged.places]

    def best_forest(self, X: Any) -> Integers:
        """Give (rows, n): for each variable its parent's place in the most probable forest of the row, -1 for the root."""
        table = self._complete(X, "best_forest")
        return _refuse_no_forest(forests.best_forests(self.weights_, table.codes, self.n_jobs))

    def sample_forests(self, X: Any, n: int = 1) -> Integers:
        """Give (rows, n, variables): n forests of each row, drawn independently from the posterior; parents as `best_forest`."""
        check_count("n", n)
        table = self._complete(X, "sample_forests")
        return _refuse_no_forest(forests.draws_of_forests(self.weights_, table.codes, n, self._spawn(), self.n_jobs))

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; `ldfm.load` reads it."""
        weights = self._fitted_weights()
        settings = settings_to_json(self._settings())
        # whoever opens the file should not have to wait for them
        draws = self._draws() if len(self.history_) else self._kept_draws.rows
        record = ModelRecord(self.schema_, weights, settings, self.history_, __version__, draws)
        write_model(Path(path), record)

    # --- checks ------------------------------------------------------------------------------------------------------

    def _fitted_weights(self) -> Any:
        """Give `weights_`, or raise scikit-learn's NotFittedError."""
        if not hasattr(self, "weights_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call its fit first")
        return self.weights_

    def _settings(self) -> dict[str, Any]:
        """Give the parameters of `__init__` as they are now."""
        return {name: getattr(self, name) for name in signature(ForestModel).parameters}

    def _engine(self) -> Engine:
        self._answers.n_jobs = self.n_jobs  # may have been changed since the fit
        return self._answers

    def _seed(self) -> int:
        return int(self._spawn().generate_state(1)[0])

    def _spawn(self) -> np.random.SeedSequence:
        return seed_sequence(self.random_state)

    def _draws(self) -> Rows:
        weights = self._fitted_weights()
        return self._kept_draws.of(weights, self.n_jobs)

    @property
    def draws_(self) -> Rows:
        """Draws of the model (draws, n), from which chains start; made now if it came without."""
        return self._draws()

    @draws_.setter
    def draws_(self, rows: Rows) -> None:
        self._kept_draws = _Draws(rows)  # copies of the model keep theirs

    def _encoded(self, X: Any) -> Table:
        self._fitted_weights()
        return encode(read_source(X), self.schema_)

    def _complete(self, X: Any, what: str) -> Table:
        table = self._encoded(X)
        refuse_missing(table, what)
        return table


def read_model_as(kind: type[Model], path: Path) -> Model:
    """Read a model file as an object of a class, one of the kind of `ForestModel`."""
    record = read_model(path)
    # columns that were not taken as their dtype says can be seen from the schema
    kinds = {
        column.name: column.kind
        for column in record.schema.columns
        if (column.type_name == "float") != column.is_continuous
    }
    model = kind(**settings_from_json(record.settings), kinds=kinds or None)
    places = tuple(f"x{place}" for place in range(len(record.schema.columns)))  # the names of an array's columns
    model._adopt(record.schema, record.weights, record.history, record.draws, named=record.schema.names != places)
    return model


def _refuse_no_forest(parents: Integers) -> Integers:
    rows = np.flatnonzero((parents == NO_FOREST).any(axis=tuple(range(1, parents.ndim))))
    if rows.size:
        raise ValueError(f"row {rows[0]} has probability zero under this model, so it has no forest")
    return parents


def _check_method(method: str) -> None:
    known = get_args(Method)
    if method not in known:
        raise ValueError(f"method must be one of {', '.join(map(repr, known))}, not {method!r}")
