"""The rows that a report is about."""

from typing import Any

import numpy as np

from ldfm.tables import Column, Schema, missing_cells
from ldfm.types import Floats, Integers, Rows


def table_of(schema: Schema, codes: Rows) -> dict[str, list[Any]]:
    """Give codes as a table that a model reads, None where they are missing."""
    table = {}
    for place, column in enumerate(schema.columns):
        cells: list[Any] = [None] * len(codes)
        known = np.flatnonzero(~missing_cells(codes[:, place]))
        for row, value in zip(known.tolist(), column.decode(codes[known, place]), strict=True):
            cells[row] = value
        table[column.name] = cells
    return table


def known_cells(codes: Rows, place: int) -> Rows:
    """Give the cells of a column that are not missing."""
    column: Rows = codes[~missing_cells(codes[:, place]), place]
    return column


def frequencies(codes: Rows, place: int, count: int) -> Floats:
    """Give the shares of a discrete column's values among its known cells."""
    column = known_cells(codes, place).astype(np.int64)
    return np.bincount(column, minlength=count) / max(len(column), 1)


class Groups:
    """Rows by the values of one variable; numbers are below or above their median.

    Attributes
    ----------
    codes
        (rows,): the group of each row.
    labels
        What the groups are called.
    """

    codes: Integers
    labels: list[str]

    def __init__(self, column: Column, cells: Rows) -> None:
        if column.is_continuous:
            middle = float(np.median(cells))
            self.codes = (cells > middle).astype(np.int64)
            self.labels = [f"{column.name} \u2264 {column.shown(middle)}", f"{column.name} > {column.shown(middle)}"]
        else:
            self.codes = cells.astype(np.int64)
            self.labels = [f"{column.name} = {value}" for value in column.values]
