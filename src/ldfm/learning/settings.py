"""Settings of a fit <-> JSON, for model files. Only known names with values of known types come back."""

import math
from collections.abc import Mapping
from typing import Any

from ldfm.learning.priors import Dirichlet, ModifiedDirichlet, NoPrior

_PRIORS: dict[str, type[Dirichlet] | type[ModifiedDirichlet] | type[NoPrior]] = {
    "Dirichlet": Dirichlet,
    "ModifiedDirichlet": ModifiedDirichlet,
    "NoPrior": NoPrior,
}
_TYPES: dict[str, tuple[type, ...]] = {
    "variant": (str,),
    "objective": (str,),
    "max_iter": (int,),
    "tol": (int, float),
    "validation_fraction": (float, type(None)),
    "n_jobs": (int, type(None)),
    "random_state": (int, type(None)),
    "verbose": (int,),
}


def settings_to_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give what `settings_from_json` reads; a generator as random state is not kept, nor are kinds, which the schema shows."""
    record: dict[str, Any] = {
        name: settings[name] if isinstance(settings[name], types) else None for name, types in _TYPES.items()
    }
    prior = settings["prior"]
    record["prior"] = None if prior is None else {"name": type(prior).__name__, **vars(prior)}
    return record


def settings_from_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """Check and read settings; any fault is a ValueError."""
    if set(record) != {*_TYPES, "prior"}:
        raise ValueError(f"settings must be {sorted([*_TYPES, 'prior'])}, not {sorted(record)}")
    for name, types in _TYPES.items():
        if not isinstance(record[name], types) or (isinstance(record[name], bool)):
            raise ValueError(f"setting {name} cannot be {record[name]!r}")
    settings = {name: record[name] for name in _TYPES}
    settings["prior"] = _prior_from_json(record["prior"])
    return settings


def _prior_from_json(record: Any) -> Dirichlet | ModifiedDirichlet | NoPrior | None:
    if record is None:
        return None
    if not isinstance(record, Mapping) or record.get("name") not in _PRIORS:
        raise ValueError(f"unknown prior {record!r}")
    numbers = {name: value for name, value in record.items() if name != "name"}
    if not all(isinstance(v, (int, float)) and math.isfinite(v) for v in numbers.values()):
        raise ValueError(f"a prior's parameters must be numbers, not {numbers}")
    try:
        return _PRIORS[record["name"]](**numbers)
    except TypeError as error:
        raise ValueError(f"unknown parameters of prior {record['name']}: {sorted(numbers)}") from error
