"""The pictures of a fitted model: what the estimator inherits to draw its answers."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ldfm import forests
from ldfm.inference import Engine, Marginals
from ldfm.learning import History
from ldfm.tables import Schema, Table, TableError, missing_cells
from ldfm.types import Floats, Rows


class Drawable(Protocol):
    """What a model must have and answer to be drawn."""

    schema_: Schema
    weights_: Any
    history_: History
    n_jobs: int | None

    @property
    def objective(self) -> str:
        """What it was learned on."""

    def arc_marginals(self, X: Any) -> Floats:
        """Give the arc marginals of rows."""

    def marginals(self, X: Any) -> Marginals:
        """Give the posteriors of unknown cells."""

    def _encoded(self, X: Any) -> Table: ...

    def _engine(self) -> Engine: ...

    def _draws(self) -> Rows: ...

    def _spawn(self) -> np.random.SeedSequence: ...

    def _fitted_weights(self) -> Any: ...


def names_in_forests(model: Drawable) -> tuple[str, ...]:
    """Give the names of variables where arcs are shown: of those that are measured from others arcs say what is left."""
    names, related = model.schema_.names, model.weights_.related
    return tuple(f"{name} (rest)" if is_one else name for name, is_one in zip(names, related, strict=True))


class Pictures:
    """Methods that draw, for a class that is `Drawable`; they need matplotlib, which is imported when they are called."""

    def plot_forest(self: Drawable, row: Any, ax: Any = None, threshold: float = 0.05) -> Any:
        """Draw the dependency forest of one row, arcs as thick as they are probable; gives matplotlib axes.

        Parameters
        ----------
        row
            A table with one row; what depends on missing cells is averaged over them.
        ax
            Axes to draw on; None: new ones.
        threshold
            Arcs less probable than this are left out.
        """
        from ldfm.plots import plot_forest

        values, marginals = _row_to_draw(self, row, "plot_forest")
        return plot_forest(names_in_forests(self), values, marginals, ax=ax, threshold=threshold)

    def plot_contrast(self: Drawable, row: Any, other: Any, ax: Any = None, threshold: float = 0.1) -> Any:
        """Draw which arcs are more probable in one row and which in another, as thick as they differ; gives matplotlib axes.

        Parameters
        ----------
        row, other
            Tables with one row each; what depends on missing cells is averaged over them, so that two rows that know one value
            each show what that value changes.
        ax
            Axes to draw on; None: new ones.
        threshold
            Arcs whose probability differs by less are left out, or grey where both rows have them.
        """
        from ldfm.plots import plot_contrast

        values, marginals = zip(*(_row_to_draw(self, one, "plot_contrast") for one in (row, other)), strict=True)
        return plot_contrast(names_in_forests(self), values, marginals, ax=ax, threshold=threshold)

    def plot_overview(self: Drawable, X: Any = None, ax: Any = None) -> Any:
        """Draw the mean probability of every arc over rows, as a heat map; gives matplotlib axes.

        Parameters
        ----------
        X
            Rows to average over, each with its missing cells filled by a draw; None: draws of the model.
        ax
            Axes to draw on; None: new ones.
        """
        from ldfm.plots import plot_overview

        self._fitted_weights()
        codes = self._draws() if X is None else self._encoded(X).codes
        if not len(codes):
            raise TableError("the table has no rows to average over")
        if missing_cells(codes).any():
            codes = self._engine().draw(codes, self._spawn())
        mean = forests.mean_marginals_of_arcs(self.weights_, codes, self.n_jobs)
        return plot_overview(names_in_forests(self), mean, ax=ax)

    def plot_marginals(self: Drawable, row: Any, ax: Any = None) -> Any:
        """Draw the posteriors of the unknown cells of one row as bars, with their standard errors; gives matplotlib axes.

        Numbers are put in bins.

        Parameters
        ----------
        row
            A table with one row.
        ax
            Axes to draw on; None: new ones.
        """
        from ldfm.plots import plot_marginals

        answer = self.marginals(row)
        if len(answer.unknown) != 1:
            raise ValueError(f"plot_marginals draws one row, the table has {len(answer.unknown)}")
        shown = [column for column, unknown in zip(self.schema_.columns, answer.unknown[0], strict=True) if unknown]
        if not shown:
            raise ValueError("row 0 has no unknown cell whose posterior could be drawn")
        values: dict[str, Sequence[Any]] = {}
        shares, errors = {}, {}
        for column in shown:
            name = column.name
            if column.is_continuous:
                values[name], shares[name] = answer.numbers[name].bins(0)
                errors[name] = np.zeros(len(shares[name]))
            else:
                values[name], shares[name] = column.values, answer.probabilities[name][0]
                errors[name] = answer.standard_errors[name][0]
        return plot_marginals(values, shares, errors, ax=ax)

    def plot_history(self: Drawable, ax: Any = None) -> Any:
        """Draw how the objective went up during the fit, and that of held-out rows; gives matplotlib axes."""
        from ldfm.plots import plot_history

        self._fitted_weights()
        if not len(self.history_):
            raise ValueError(f"this model has no record of a fit ({self.history_.reason})")
        steps = np.array([step.iteration for step in self.history_])
        return plot_history(steps, self.history_.objective, self.history_.validation, self.objective, ax=ax)


def _row_to_draw(model: Drawable, row: Any, what: str) -> tuple[list[Any], Floats]:
    """Give the values of one row, "?" where they are missing, and its arc marginals."""
    table = model._encoded(row)
    if len(table.codes) != 1:
        raise ValueError(f"{what} draws one row, the table has {len(table.codes)}")
    pairs = zip(model.schema_.columns, missing_cells(table.codes[0]), strict=True)
    values = ["?" if missing else column.shown(table.codes[0, i]) for i, (column, missing) in enumerate(pairs)]
    marginals = model.arc_marginals(row)[0]
    if not marginals.any():
        raise ValueError("row 0 has probability zero under this model, so it has no forest")
    return values, marginals
