"""The estimator: a model as scikit-learn wants it."""

from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, DensityMixin, OneToOneFeatureMixin, TransformerMixin

from ldfm.model import ForestModel, read_model_as
from ldfm.tables import in_order


class LDFM(ForestModel, OneToOneFeatureMixin, TransformerMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Latent dependency forest model of a table of discrete and continuous variables.

    Every row has its own latent forest of dependencies between its values; the probability of a row adds up all forests.

    Parameters
    ----------
    variant
        "ldfm-s" (with stop weights) or "ldfm".
    objective
        "likelihood": the normalised probability of the rows, by stochastic gradients (needs "ldfm-s"). "generation": EM on the
        probability of generating the rows, as in the paper.
    prior
        None for maximum likelihood, `Dirichlet` or `ModifiedDirichlet`. Learning on the likelihood starts from EM with it, or
        without one from how probable values are given each other.
    max_iter
        Largest number of iterations of EM (None: 200), or of steps of the likelihood (None: 3,200, or 800 of a table
        that has at most 4,096 different rows).
    tol
        EM stops when the objective rises by less than this, in nats a row.
    validation_fraction
        Share of the rows held out to stop by; EM and mixed tables hold out complete rows only, other fits any with two known cells.
        None: none for EM and mixed tables; for others a tenth of the rows, up to 1,000.
    kinds
        Kinds of columns where they differ from what their dtype says: ``{"column": "discrete"}``, or "continuous"; one of the two
        words alone: that of all. Floating-point columns are continuous, with a warning if they have missing cells and few numbers,
        all whole, and whole numbers with many different values, with a warning; everything else is discrete.
    warm_start
        Start `fit` from the weights there are, where the table has the same columns and values.
    checkpoint
        File that keeps the state of a long fit; a fit that was stopped goes on from there and ends at the same weights. The
        checkpoint of another fit is refused, but replaced by `partial_fit` and `warm_start`, which go on from earlier weights.
    n_jobs
        Threads; None: all cores. Results do not depend on it.
    random_state
        Seed of everything random.
    verbose
        0: silent; 1: progress on stderr.
    bend
        Whether columns of numbers that are skewed or have heavy tails are modelled on a bent scale, on which they are closer to
        normal given the column that tells most of them. Numbers go in and come out as they are.
    relate
        Whether columns of numbers may be measured from a line in several others, so that the model is one of what that leaves of
        them. Arcs have one parent, and cannot say that a column is the sum of two others. `weights_.relations` has what was found;
        `partial_fit` and `warm_start` keep it, as they keep bends.

    Attributes
    ----------
    schema_
        Variables and their values.
    weights_
        `ArcWeights`, or `MixedWeights` where a column is continuous.
    history_
        Convergence record.
    n_iter_
        Iterations of EM, or steps of the likelihood.
    draws_
        (draws, n) codes, or cells where a column is continuous: draws of the model, from which chains start; no rows of the table.
        After EM they are made when they are first needed.
    feature_names_in_, n_features_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from ldfm import LDFM
    >>> rows = np.array([["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "dry"], ["sun", "wet"]], dtype=object)
    >>> model = LDFM(objective="generation", random_state=0).fit(rows)
    >>> question = np.array([["rain", None]], dtype=object)
    >>> model.marginals(question).probabilities["x1"].round(2)
    array([[0., 1.]])
    """

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that columns may hold categories, text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # an array whose dtype holds no filled value becomes one of objects
        return tags

    def transform(self, X: Any) -> Any:
        """Give `X` with every missing cell filled by its most probable value, its columns in the order of the table of `fit`.

        `set_output` chooses the kind of frame that comes out; if it was not called, what `impute` gives, but an array for a list
        of rows, as scikit-learn's own transformers do.
        """
        return in_order(self.impute(X), self.schema_.names)


def load(path: str | Path) -> LDFM:
    """Read a model file written by `LDFM.save`; files from strangers are safe to open."""
    return read_model_as(LDFM, Path(path))
