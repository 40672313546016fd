"""Settings of a fit <-> JSON, for model files: known names with values a fit accepts, in both directions.

Threads, progress and checkpoints belong to whoever runs a fit, not to the model: n_jobs, verbose, checkpoint and warm_start are
not kept. Nor are kinds, which the schema shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ldfm.learning.priors import Dirichlet, ModifiedDirichlet, NoPrior

_PRIORS: dict[str, type[Dirichlet] | type[ModifiedDirichlet] | type[NoPrior]] = {
    kind.__name__: kind for kind in (Dirichlet, ModifiedDirichlet, NoPrior)
}


def _is_whole(value: Any, limit: float = np.inf) -> bool:
    return type(value) is int and 0 <= value < limit


_ACCEPTS: dict[str, Callable[[Any], bool]] = {
    "variant": lambda value: value in ("ldfm", "ldfm-s"),
    "objective": lambda value: value in ("generation", "likelihood"),
    "max_iter": lambda value: value is None or _is_whole(value, 2**63),
    "tol": lambda value: type(value) is float and value >= 0,
    "validation_fraction": lambda value: value is None or (type(value) is float and 0 < value < 1),
    "random_state": lambda value: value is None or _is_whole(value),
}


def settings_to_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give what `settings_from_json` reads; a generator as random state becomes None. What cannot be kept is a ValueError."""
    record = {name: _plain(settings[name]) for name in _ACCEPTS}
    record["tol"] = _as_float(record["tol"])
    if not isinstance(record["random_state"], int):
        record["random_state"] = None
    prior = settings["prior"]
    if prior is None:
        record["prior"] = None
    elif _PRIORS.get(type(prior).__name__) is type(prior):
        record["prior"] = {"name": type(prior).__name__} | {name: _as_float(v) for name, v in vars(prior).items()}
    else:
        raise ValueError(
            f"prior {prior!r} cannot be kept in a model file, only {', '.join(_PRIORS)} can; set prior=None to save without it"
        )
    settings_from_json(record)
    return record


def settings_from_json(record: Any) -> dict[str, Any]:
    """Check and read settings; any fault is a ValueError."""
    names = {*_ACCEPTS, "prior"}
    if not isinstance(record, Mapping) or set(record) != names:
        raise ValueError(f"settings must be {', '.join(sorted(names))}")
    for name, accepts in _ACCEPTS.items():
        if not accepts(record[name]):
            raise ValueError(f"setting {name} cannot be {record[name]!r}")
    return {**record, "prior": _prior_from_json(record["prior"])}


def _prior_from_json(record: Any) -> Dirichlet | ModifiedDirichlet | NoPrior | None:
    if record is None:
        return None
    if not isinstance(record, Mapping) or record.get("name") not in tuple(_PRIORS):
        raise ValueError(f"unknown prior {record!r}")
    kind = _PRIORS[record["name"]]
    numbers = {name: value for name, value in record.items() if name != "name"}
    if set(numbers) != {field.name for field in fields(kind)} or any(type(v) is not float for v in numbers.values()):
        raise ValueError(f"prior {record['name']} cannot have the parameters {numbers}")
    return kind(**numbers)


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's, and a bool given for a number into it."""
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, bool) else value


def _as_float(value: Any) -> Any:
    value = _plain(value)
    return float(value) if isinstance(value, int) else value
