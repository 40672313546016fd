"""Settings of a fit: checks of what users give, and settings <-> JSON for model files.

In a model file there are known names with values a fit accepts, in both directions. Threads, progress and checkpoints belong to
whoever runs a fit, not to the model: n_jobs, verbose, checkpoint and warm_start are not kept. Nor are kinds, which the schema
shows. Files say of `bend` and `relate` only that they are False, so that older versions of the library can read those that do not
need them.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ldfm.checks import check_n_jobs, check_random_state, is_real, is_share, is_whole
from ldfm.files import check_target
from ldfm.learning.priors import Dirichlet, ModifiedDirichlet, NoPrior, Prior

_PRIORS: dict[str, type[Dirichlet] | type[ModifiedDirichlet] | type[NoPrior]] = {
    kind.__name__: kind for kind in (Dirichlet, ModifiedDirichlet, NoPrior)
}


_SWITCHES = ("bend", "relate")  # of how columns of numbers are seen; on unless said otherwise


def _is_plain_whole(value: Any, limit: float = np.inf) -> bool:
    return type(value) is int and 0 <= value < limit


_ACCEPTS: dict[str, Callable[[Any], bool]] = {
    "variant": lambda value: value in ("ldfm", "ldfm-s"),
    "objective": lambda value: value in ("generation", "likelihood"),
    "max_iter": lambda value: value is None or _is_plain_whole(value, 2**63),
    "tol": lambda value: type(value) is float and value >= 0,
    "validation_fraction": lambda value: value is None or (type(value) is float and 0 < value < 1),
    "random_state": lambda value: value is None or _is_plain_whole(value),
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of an estimator that no fit can be made with; the error names the first."""
    _check_model(settings["variant"], settings["objective"], settings["prior"])
    _check_stopping(settings)
    for name in _SWITCHES:
        if not isinstance(settings[name], (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, not {settings[name]!r}")
    check_n_jobs(settings["n_jobs"])
    if settings["checkpoint"] is not None:
        check_target(Path(settings["checkpoint"]))
    if not is_real(settings["verbose"]):
        raise ValueError(f"verbose must be a number, not {settings['verbose']!r}")
    check_random_state(settings["random_state"])


def _check_model(variant: Any, objective: Any, prior: Any) -> None:
    if variant not in ("ldfm", "ldfm-s"):
        raise ValueError(f"variant must be 'ldfm' or 'ldfm-s', not {variant!r}")
    if objective not in ("generation", "likelihood"):
        raise ValueError(f"objective must be 'generation' or 'likelihood', not {objective!r}")
    if objective == "likelihood" and variant != "ldfm-s":
        raise ValueError("objective 'likelihood' learns an LDFM-S; set variant='ldfm-s', or objective='generation'")
    if prior is not None and (isinstance(prior, type) or not isinstance(prior, Prior)):
        raise ValueError(f"prior must be None, Dirichlet(...) or ModifiedDirichlet(...), not {prior!r}")


def _check_stopping(settings: Mapping[str, Any]) -> None:
    max_iter, tol, fraction = settings["max_iter"], settings["tol"], settings["validation_fraction"]
    least = 1 if settings["objective"] == "likelihood" else 0
    if max_iter is not None and not is_whole(max_iter, least):
        raise ValueError(f"max_iter must be None or a whole number, {least} or more, not {max_iter!r}")
    if not (is_real(tol) and tol >= 0):
        raise ValueError(f"tol must be a number, 0 or more, not {tol!r}")
    if fraction is not None and not is_share(fraction):
        raise ValueError(f"validation_fraction must be None or between 0 and 1, not {fraction!r}")


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
    record |= {name: False for name in _SWITCHES if not settings[name]}
    settings_from_json(record)
    return record


def settings_from_json(record: Any) -> dict[str, Any]:
    """Check and read settings; any fault is a ValueError."""
    names = {*_ACCEPTS, "prior"}
    if not isinstance(record, Mapping) or set(record) - set(_SWITCHES) != names:
        raise ValueError(f"settings must be {', '.join(sorted(names))}, and perhaps {', '.join(_SWITCHES)}")
    for name in _SWITCHES:
        if record.get(name, False) is not False:
            raise ValueError(f"setting {name} can only be false, not {record[name]!r}")
    for name, accepts in _ACCEPTS.items():
        if not accepts(record[name]):
            raise ValueError(f"setting {name} cannot be {record[name]!r}")
    return {**record, "prior": _prior_from_json(record["prior"])} | {name: name not in record for name in _SWITCHES}


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
