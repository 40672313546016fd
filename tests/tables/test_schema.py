import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.tables import Column, Schema
from ldfm.tables.schema import plain, type_name

KINDS_OF_VALUES = [
    st.text(max_size=6),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
]
values = st.one_of([st.lists(kind, min_size=1, max_size=5, unique=True) for kind in KINDS_OF_VALUES])
mappings = st.dictionaries(st.text(max_size=6), values, min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(mappings)
def test_json_round_trip(mapping):
    schema = Schema.of_values(mapping)
    read = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert read == schema
    for column, cells in zip(read.columns, mapping.values(), strict=True):
        assert [type(value) for value in column.values] == [type(value) for value in cells]


@settings(max_examples=100, deadline=None)
@given(mappings)
def test_sizes(mapping):
    schema = Schema.of_values(mapping)
    assert schema.names == tuple(mapping)
    assert schema.cardinalities == tuple(len(cells) for cells in mapping.values())
    assert [column.type_name for column in schema.columns] == [type(cells[0]).__name__ for cells in mapping.values()]


GOOD = {"name": "a", "kind": "discrete", "dtype": "String", "type": "str", "values": ["x", "y"]}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 1}, "column name and dtype must be text"),
        ({"name": None}, "column name and dtype must be text"),
        ({"dtype": []}, "column name and dtype must be text"),
        ({"kind": "continuous"}, "a continuous column must have exactly the fields"),
        ({"kind": "ordinal"}, "column 'a': unknown kind 'ordinal'"),
        ({"kind": ["discrete"]}, r"column 'a': unknown kind \['discrete'\]"),
        ({"type": "complex"}, "column 'a': needs a known type"),
        ({"type": ["str"]}, "column 'a': needs a known type"),
        ({"type": {}}, "column 'a': needs a known type"),
        ({"type": None}, "column 'a': needs a known type"),
        ({"values": "xy"}, "column 'a': needs a known type and a list of values"),
        ({"values": {"x": 1}}, "a list of values"),
        ({"values": []}, "column 'a': values must be one or more"),
        ({"values": ["x", "x"]}, "column 'a': values must be different"),
        ({"values": ["x", 1]}, "column 'a': values must be one or more and all of one type"),
        ({"values": ["x", None]}, "all of one type"),
        ({"values": [["x"], ["y"]]}, "all of one type"),
        ({"values": [1, 2]}, "column 'a': values must be of type str"),
        ({"type": "int"}, "must be of type int"),
        ({"type": "int", "values": [True, False]}, "must be of type int"),
        ({"type": "int", "values": [1, True]}, "all of one type"),
        ({"type": "bool", "values": [0, 1]}, "must be of type bool"),
        ({"type": "float", "values": [1, 2]}, "must be of type float"),
        ({"type": "float", "values": [1.0, float("nan")]}, "column 'a': values must be finite"),
        ({"type": "float", "values": [float("inf")]}, "column 'a': values must be finite"),
        ({"type": "date", "values": ["2020-13-01"]}, "month must be in|Invalid isoformat"),
        ({"type": "date", "values": ["yesterday"]}, "Invalid isoformat"),
        ({"type": "date", "values": [20200101]}, "column 'a': values of type date must be written as text"),
        ({"type": "datetime", "values": [None]}, "column 'a': values of type datetime must be written as text"),
        ({"type": "datetime", "values": ["x"]}, "Invalid isoformat"),
        ({"type": "date", "values": ["2020-01-01", "20200101"]}, "must be different"),
    ],
)
def test_malformed_columns_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Column.from_json({**GOOD, **change})


@pytest.mark.parametrize("record", [None, [], "a", 1, {}, {"name": "a"}, {**GOOD, "more": 1}, list(GOOD)])
def test_records_that_are_no_columns_are_refused(record):
    with pytest.raises(ValueError, match="a column must have exactly the fields"):
        Column.from_json(record)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "a schema needs at least one column"),
        ({}, "a schema must be a list of columns"),
        (None, "a schema must be a list of columns"),
        ("ab", "a schema must be a list of columns"),
        ([GOOD, GOOD], "column name 'a' occurs more than once"),
        ([GOOD, None], "a column must have exactly the fields"),
    ],
)
def test_malformed_schemas_are_refused(records, message):
    with pytest.raises(ValueError, match=message):
        Schema.from_json(records)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GOOD)), anything, max_size=5), anything)
def test_any_change_of_a_record_is_read_or_a_value_error(change, instead):
    for records in ([{**GOOD, **change}], [instead], instead):
        try:
            schema = Schema.from_json(records)
        except ValueError:
            continue
        assert json.loads(json.dumps(schema.to_json())) == records


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a schema needs at least one column"),
        ({"a": []}, r"column 'a': values must be one or more .*, not \[\]"),
        ({"a": "xy"}, "column 'a': needs a list of values, not the text 'xy'"),
        ({"a": ["x", "x"]}, r"column 'a': values must be different, not \['x', 'x'\]"),
        ({"a": [1, 1.0]}, "column 'a': values must be one or more and all of one type"),
        ({"a": [True, 1]}, "all of one type"),
        ({"a": [None]}, "all of one type"),
        ({"a": [(1, 2)]}, "all of one type"),
        ({"a": [[1]]}, "all of one type"),
        ({"a": [np.nan]}, "column 'a': values must be finite"),
        ({"a": ["x"], 1: ["x"], "1": ["y"]}, "column name '1' occurs more than once"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Schema.of_values(given)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.datetime64("2020-01-02"), date(2020, 1, 2)),
        (np.datetime64("2020-01"), date(2020, 1, 1)),
        (np.datetime64("2020-01-02T03:04", "ns"), datetime(2020, 1, 2, 3, 4)),
        (pd.Timestamp("2020-01-02 03:04:05.678901"), datetime(2020, 1, 2, 3, 4, 5, 678901)),
        (
            pd.Timestamp("2020-01-02 03:04:05.678901+00:00"),
            datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        ),
        ("x", "x"),
        (datetime(2020, 1, 1), datetime(2020, 1, 1)),
    ],
)
def test_scalars_of_libraries_become_python_values(scalar, value):
    assert plain(scalar) == value
    assert type(plain(scalar)) is type(value)
    assert Schema.of_values({"a": [scalar]}).columns[0].values == (value,)


@pytest.mark.parametrize("scalar", [np.datetime64(1, "ns"), pd.Timestamp(1)])
def test_nanoseconds_are_refused(scalar):
    with pytest.raises(ValueError, match="times are read to the microsecond, not as 1970-01-01"):
        plain(scalar)


def test_type_names():
    assert [type_name(value) for value in (True, 1, 1.0, "x", date(2020, 1, 1), datetime(2020, 1, 1))] == [
        "bool",
        "int",
        "float",
        "str",
        "date",
        "datetime",
    ]
    assert type_name(b"x") is None
    assert type_name(None) is None
