"""How columns of numbers are seen, chosen before the fit: which are on bent scales, and which are measured from several others.

The two go together. A column that is the sum of skewed ones is a line in them as they are, and no line in anything on bent scales;
a product is one on bent scales alone. So where bends were chosen, relations are looked for among straight columns too: those in
them are left straight if that explains the table better.
"""

from dataclasses import replace

import numpy as np

from ldfm.learning.relating import Look, look_for_relations
from ldfm.relations import Relations
from ldfm.tables import Schema, Table, bend_columns, merge_rows
from ldfm.types import Booleans, Floats


def choose_scales(
    table: Table, row_weights: Floats | None, *, bend: bool, relate: bool
) -> tuple[Table, Relations | None]:
    """Give a table of straight columns as a model is to see it, and the relations of its columns."""
    bent = bend_columns(table, row_weights) if bend else table
    if not relate or not table.schema.is_mixed:
        return bent, None
    found = _look(bent, row_weights)
    if bent.schema != table.schema:
        straight = _look(table, row_weights).relations
        if straight is not None:
            unbent = _unbent(bent, table, straight.involved)
            other = _look(unbent, row_weights)
            if _score(other, unbent) > _score(found, bent):
                return unbent, other.relations
    return bent, found.relations


def _look(table: Table, row_weights: Floats | None) -> Look:
    merged = merge_rows(table.codes, row_weights)
    return look_for_relations(merged, table.schema.cardinalities, table.schema.continuous)


def _unbent(bent: Table, straight: Table, places: Booleans) -> Table:
    """Give a bent table with some of its columns straight."""
    pairs = zip(bent.schema.columns, straight.schema.columns, places, strict=True)
    columns = tuple(replace(one, units=other.units) if is_straight else one for one, other, is_straight in pairs)
    return Table(Schema(columns), np.where(places, straight.codes, bent.codes), bent.source)


def _score(look: Look, table: Table) -> float:
    """Give how well the columns are explained, in nats a row, in the table's units."""
    lost = 0.0
    for place, column in enumerate(table.schema.columns):
        if column.is_continuous:
            cells = table.codes[:, place]
            lost += float(column.units.log_slopes(cells[~np.isnan(cells)]).mean())
    return look.score - lost
