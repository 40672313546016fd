"""Answers from a model."""

from ldfm.inference.answers import Diagnostics, Estimate, Marginals, Method, QueryResult
from ldfm.inference.exact import ExactTables, ImpossibleEvidenceError, TooManyStatesError

__all__ = [
    "Diagnostics",
    "Estimate",
    "ExactTables",
    "ImpossibleEvidenceError",
    "Marginals",
    "Method",
    "QueryResult",
    "TooManyStatesError",
]
