"""What commands print."""

import json
import math
from typing import Any


def print_json(document: Any) -> None:
    """Print one JSON document; infinite numbers and NaN, which JSON does not have, become null."""
    print(json.dumps(_without_infinities(document), allow_nan=False))


def _without_infinities(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _without_infinities(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_without_infinities(value) for value in document]
    return None if isinstance(document, float) and not math.isfinite(document) else document


def shown(value: Any) -> str:
    """Give a name or value as text: quoted if it could be misread, control characters escaped (terminals obey them)."""
    text = str(value)
    plain = text.isprintable() and text == text.strip() and text and "," not in text
    return text if plain else repr(text)
