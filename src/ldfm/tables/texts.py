"""Cells of text files <-> values: which type a column of texts has, and texts as values of a type."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from ldfm.tables.schema import Scalar

# "None" is not in this list: it is a value of many tables, the insurance network's among them
MISSING_IN_CSV = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})

# "007" and "+1" are names, not numbers: as numbers they would not come back as they were; longer numbers do not fit 64 bits
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,17})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)")
# as Python, R and SQL write them: files of one table may come from several programs
_BOOLS = {text: value for value in (False, True) for text in (str(value), str(value).lower(), str(value).upper())}


def typed_texts(texts: Sequence[str]) -> list[Scalar]:
    """Find the type of a column of texts, whole numbers, then bools, then numbers, else text, and give its values."""
    if all(map(_INTEGER.fullmatch, texts)):
        return [int(text) for text in texts]
    if _BOOLS.keys() >= set(texts):
        return [_BOOLS[text] for text in texts]
    if all(map(_NUMBER.fullmatch, texts)):
        return [float(text) for text in texts]
    return list(texts)


def text_as(text: str, type_name: str) -> Any:
    """Read a text as a value of the type its column has in a model; the text itself where it is none of that type."""
    if type_name == "bool":
        return _BOOLS.get(text, text)
    if type_name in ("int", "float"):
        if _INTEGER.fullmatch(text):  # not by way of float, which has 53 bits
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text
    if type_name in ("date", "datetime"):
        try:
            return date.fromisoformat(text) if type_name == "date" else datetime.fromisoformat(text)
        except ValueError:
            return text
    return text
