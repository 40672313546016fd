"""A user's table -> schema and integer codes."""

from ldfm.tables.bending import bend_columns
from ldfm.tables.cells import Source, TableError
from ldfm.tables.encoding import Kinds, Table, encode, learn_table, refuse_missing
from ldfm.tables.evidence import row_of_evidence
from ldfm.tables.filling import fill_missing, in_order, new_frame, template_of
from ldfm.tables.merging import MergedRows, merge_rows, unmerged, weights_of_rows
from ldfm.tables.roles import Columns, merge_questions, roles_of_cells
from ldfm.tables.schema import MISSING, Column, Schema, missing_cells, only_cells
from ldfm.tables.sources import read_source
from ldfm.tables.units import PLAIN, Bend, Units

__all__ = [
    "MISSING",
    "PLAIN",
    "Bend",
    "Column",
    "Columns",
    "Kinds",
    "MergedRows",
    "Schema",
    "Source",
    "Table",
    "TableError",
    "Units",
    "bend_columns",
    "encode",
    "fill_missing",
    "in_order",
    "learn_table",
    "merge_questions",
    "merge_rows",
    "missing_cells",
    "new_frame",
    "only_cells",
    "read_source",
    "refuse_missing",
    "roles_of_cells",
    "row_of_evidence",
    "template_of",
    "unmerged",
    "weights_of_rows",
]
