"""Documents as JSON that every reader takes."""

import json
import math
from datetime import date
from typing import Any


def json_text(document: Any) -> str:
    """Give one JSON document; infinite numbers and NaN, which JSON does not have, become null, dates text."""
    return json.dumps(_plain(document), allow_nan=False)


def _plain(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _plain(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_plain(value) for value in document]
    if isinstance(document, date):
        return document.isoformat()
    return None if isinstance(document, float) and not math.isfinite(document) else document
