"""Answers from a model."""

from ldfm.inference.answers import Diagnostics, Estimate, Marginals, Method, Numbers, QueryResult
from ldfm.inference.budget import Budget
from ldfm.inference.chains import Starts
from ldfm.inference.completion import average_arc_marginals, draw_completions, log_evidence, most_probable
from ldfm.inference.conditionals import log_conditionals
from ldfm.inference.engines import Engine, Posteriors, engine_of
from ldfm.inference.exact import ExactTables, ImpossibleEvidenceError, TooManyStatesError
from ldfm.inference.marginals import find_marginals
from ldfm.inference.queries import find_queries

__all__ = [
    "Budget",
    "Diagnostics",
    "Engine",
    "Estimate",
    "ExactTables",
    "ImpossibleEvidenceError",
    "Marginals",
    "Method",
    "Numbers",
    "Posteriors",
    "QueryResult",
    "Starts",
    "TooManyStatesError",
    "average_arc_marginals",
    "draw_completions",
    "engine_of",
    "find_marginals",
    "find_queries",
    "log_conditionals",
    "log_evidence",
    "most_probable",
]
