"""Answers from a model."""

from ldfm.inference.answers import Diagnostics, Estimate, Marginals, Method, QueryResult
from ldfm.inference.budget import Budget
from ldfm.inference.exact import ExactTables, ImpossibleEvidenceError, TooManyStatesError
from ldfm.inference.marginals import find_marginals

__all__ = [
    "Budget",
    "Diagnostics",
    "Estimate",
    "ExactTables",
    "ImpossibleEvidenceError",
    "Marginals",
    "Method",
    "QueryResult",
    "TooManyStatesError",
    "find_marginals",
]
