"""The models of the tables: how each is learned from a training set, and how it answers.

Models that differ only in how they answer share a fit. Hyper-parameters are chosen on the validation rows, from which nothing else
is learned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldfm import peers
from ldfm.bench.printed_sampler import CHAINS, printed_sampling
from ldfm.bench.protocol import SPLITS, Questions, Rows, draw_questions
from ldfm.estimator import LDFM
from ldfm.inference import Budget, Method, QueryResult
from ldfm.learning import FitSettings, ModifiedDirichlet, Objective, learn
from ldfm.peers import gibbs
from ldfm.tables import merge_questions, merge_rows, unmerged
from ldfm.weights import ArcWeights, Variant

FLOOR = 1e-5  # smallest weight of an arc that EM leaves


@dataclass(frozen=True)
class Effort:
    """How much work goes into fits and answers; what a model does not use does not count for it.

    Attributes
    ----------
    em_iterations
        Most iterations of EM.
    alphas
        Of the modified Dirichlet prior of EM, chosen on validation rows.
    tuning_queries
        Validation queries that choose it.
    likelihood_steps
        Steps of learning on the likelihood; None: as many as the estimator takes.
    sweeps
        Most sweeps of all chains a query of an LDFM; a query goes through at least one round.
    peer_chains
        Chains a query of a peer that samples; None: as many as the peer takes.
    """

    em_iterations: int = 100
    alphas: tuple[float, ...] = (1.1, 1.0, 0.0)
    tuning_queries: int = 100
    likelihood_steps: int | None = None
    sweeps: int = 6_000
    peer_chains: int | None = None


class Run(NamedTuple):
    """What a fit is given besides rows: effort, seed, threads, and a file for its checkpoints."""

    effort: Effort
    seed: int
    n_jobs: int | None
    checkpoint: Path | None = None


class Fit(NamedTuple):
    """A fitted model, and what a record should say of it."""

    model: Any
    facts: dict[str, Any]


class Model(NamedTuple):
    """A row of the tables.

    Attributes
    ----------
    title
        What tables call it.
    fit
        Name of its fit.
    answer
        Gives the answers of a fitted model to questions about the first of the test rows.
    uses
        The parts of `Effort` that it depends on.
    """

    title: str
    fit: str
    answer: Callable[[Any, Rows, Questions, Run], QueryResult]
    uses: tuple[str, ...] = ()


def _fit_oracle(rows: Rows, run: Run) -> Fit:
    del run
    return Fit(peers.Oracle(rows.network).fit(), {})


def _fit_peer(kind: type[peers.LearningPeer]) -> Callable[[Rows, Run], Fit]:
    def fit(rows: Rows, run: Run) -> Fit:
        options = {"n_jobs": run.n_jobs, "random_state": run.seed}
        if run.effort.peer_chains is not None and "chains" in kind().get_params():
            options["chains"] = run.effort.peer_chains
        model = kind().set_params(**options)
        # a row of weight 0 for each value, so that those which training rows lack are known
        sizes = np.array(rows.network.cardinalities)
        every = np.arange(sizes.max())[:, None] % sizes
        weights = np.concatenate([np.ones(len(rows.train)), np.zeros(len(every))])
        table = rows.named(np.concatenate([rows.train, every]))
        model.fit(table, sample_weight=weights, validation=rows.named(rows.validation))
        return Fit(model, {"choice": _plain(getattr(model, "choice_", None))})

    return fit


def _plain(choice: Any) -> Any:
    """Give a choice of hyper-parameters as JSON; for those of each variable, how often each was chosen."""
    if choice is None:
        return None
    found = {}
    for name, value in choice._asdict().items():
        if isinstance(value, np.ndarray):
            distinct, counts = np.unique(value, return_counts=True)
            many = name == "held_out"
            found[name] = float(value.sum()) if many else dict(zip(map(str, distinct), counts.tolist(), strict=True))
        else:
            found[name] = value.item() if isinstance(value, np.generic) else value
    return found


def fit_weights(
    rows: Rows, variant: Variant, objective: Objective, alpha: float | None, run: Run, *, judged: bool = True
) -> Fit:
    """Learn an LDFM from the training rows; the likelihood stops by the validation rows, EM when it has converged.

    Not `judged`, learning on the likelihood goes on to its end, where weights are sharpest.
    """
    limit = run.effort.em_iterations if objective == "generation" else run.effort.likelihood_steps
    prior = None if alpha is None else ModifiedDirichlet(alpha, FLOOR)
    settings = FitSettings(objective, prior, limit, 1e-5, run.seed, run.checkpoint, run.n_jobs)
    uniform = ArcWeights.uniform(rows.network.cardinalities, variant)
    held_out = merge_rows(rows.validation) if objective == "likelihood" and judged else None
    found = learn(merge_rows(rows.train), None, uniform, settings, held_out)
    names = dict(zip(rows.network.variables, rows.network.values, strict=True))
    weights = found.weights
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=names)
    model.set_params(n_jobs=run.n_jobs, random_state=run.seed)
    if found.draws is not None:
        model.draws_ = found.draws
    last = found.history.steps[-1]
    return Fit(model, {"iterations": last.iteration, "objective": last.objective, "stopped": found.history.reason})


def _fit_em(variant: Variant) -> Callable[[Rows, Run], Fit]:
    """Choose alpha of the prior by the score of a few validation queries."""

    def fit(rows: Rows, run: Run) -> Fit:
        count, split = run.effort.tuning_queries, SPLITS[0]
        n = len(rows.network.variables)
        questions = draw_questions(rows.network.name, n, count, split, run.seed, "validation")
        asked_of = rows.named(rows.validation[:count])
        scores: dict[float, float] = {}
        best: tuple[float, Fit] | None = None
        for alpha in run.effort.alphas:
            found = fit_weights(rows, variant, "generation", alpha, run._replace(checkpoint=None))
            answers = found.model.query_log_likelihood(asked_of, *questions, "auto", Budget(max_sweeps=1))
            scores[alpha] = float(max((part / answers.n_query).mean() for part in (answers.joint, answers.marginal)))
            if best is None or scores[alpha] > best[0]:
                best = scores[alpha], Fit(found.model, {**found.facts, "alpha": alpha, "floor": FLOOR})
        if best is None:
            raise ValueError("EM needs at least one alpha of its prior")
        return Fit(best[1].model, {**best[1].facts, "validation": {str(a): score for a, score in scores.items()}})

    return fit


def _fit_likelihood(rows: Rows, run: Run) -> Fit:
    return fit_weights(rows, "ldfm-s", "likelihood", None, run)


def _ask(model: Any, rows: Rows, questions: Questions, run: Run) -> QueryResult:
    del run
    found: QueryResult = model.query_log_likelihood(rows.named(rows.test[: len(questions.asked)]), *questions)
    return found


def _ask_network(answers: str) -> Callable[[Any, Rows, Questions, Run], QueryResult]:
    def ask(model: Any, rows: Rows, questions: Questions, run: Run) -> QueryResult:
        return _ask(model.set_params(answers=answers), rows, questions, run)

    return ask


def _ask_ldfm(method: Method) -> Callable[[Any, Rows, Questions, Run], QueryResult]:
    def ask(model: Any, rows: Rows, questions: Questions, run: Run) -> QueryResult:
        budget = Budget(max_sweeps=run.effort.sweeps)
        test = rows.named(rows.test[: len(questions.asked)])
        found: QueryResult = model.query_log_likelihood(test, *questions, method, budget)
        return found

    return ask


def _ask_as_printed(model: LDFM, rows: Rows, questions: Questions, run: Run) -> QueryResult:
    merged, asked = merge_questions(rows.test[: len(questions.asked)], *questions)
    sampling = printed_sampling(model.weights_, run.effort.peer_chains or CHAINS)
    starts = gibbs.Starts.of(unmerged(model.draws_), np.random.default_rng(run.seed))
    seed = np.random.SeedSequence(run.seed)
    return gibbs.query(sampling, starts, merged, asked, seed, run.n_jobs).of_rows(merged.places)


FITS: dict[str, Callable[[Rows, Run], Fit]] = {
    "oracle": _fit_oracle,
    "bn": _fit_peer(peers.BayesianNetwork),
    "dn": _fit_peer(peers.DependencyNetwork),
    "mt": _fit_peer(peers.MixtureOfTrees),
    "spn": _fit_peer(peers.SumProductNetwork),
    "moat": _fit_peer(peers.MixtureOfAllTrees),
    "em": _fit_em("ldfm"),
    "em-s": _fit_em("ldfm-s"),
    "likelihood": _fit_likelihood,
}
_EM = ("em_iterations", "alphas", "tuning_queries")
MODELS: dict[str, Model] = {
    "oracle": Model("true network, exact", "oracle", _ask),
    "bn-exact": Model("BN, exact", "bn", _ask_network("exact")),
    "bn-gibbs": Model("BN, Gibbs", "bn", _ask_network("gibbs"), ("peer_chains",)),
    "dn": Model("DN", "dn", _ask, ("peer_chains",)),
    "mt": Model("MT", "mt", _ask),
    "spn": Model("SPN", "spn", _ask),
    "moat": Model("MoAT", "moat", _ask, ("peer_chains",)),
    "g-ldfm": Model("LDFM by EM, collapsed Gibbs", "em", _ask_ldfm("gibbs"), (*_EM, "sweeps")),
    "t-ldfm-printed": Model("LDFM by EM, tree sampler as printed", "em", _ask_as_printed, (*_EM, "peer_chains")),
    "t-ldfm": Model("LDFM by EM, tree sampler corrected", "em", _ask_ldfm("tree"), (*_EM, "sweeps")),
    "ldfm-s": Model("LDFM-S by EM", "em-s", _ask_ldfm("auto"), (*_EM, "sweeps")),
    "ldfm": Model("LDFM-S by likelihood", "likelihood", _ask_ldfm("auto"), ("likelihood_steps", "sweeps")),
}


def settings_of(name: str, effort: Effort) -> dict[str, Any]:
    """Give the effort that a model's numbers depend on, as stored with them."""
    return {
        part: list(value) if isinstance(value := getattr(effort, part), tuple) else value for part in MODELS[name].uses
    }
