"""The BIF reader: the shipped files, odd but valid texts, and every way in which a text can be wrong."""

import gzip
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.networks import Network, load, names, parse_bif, read_bif

RAIN = """network weather {
  property author = nobody (at all), 1996 ;
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable grass {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) {
  table 0.25, 0.75;
}
probability ( grass | rain ) {
  (yes) 0.0, 0.25, 0.75;
  (no) 0.5, 0.25, 0.25;
}
"""
RAIN_NETWORK = Network(
    "weather",
    ("rain", "grass"),
    (("yes", "no"), ("dry", "damp", "wet")),
    ((), (0,)),
    (np.array([0.25, 0.75]), np.array([[0.0, 0.25, 0.75], [0.5, 0.25, 0.25]])),
)


def shipped_text(name: str) -> str:
    return gzip.decompress((files("ldfm.networks") / "data" / f"{name}.bif.gz").read_bytes()).decode()


def line_by_line(text: str) -> dict[tuple[str, str], list[float]]:
    """Rows of a text that, like the shipped files, has one row on each line; keys are headers and given values."""
    rows, header = {}, ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("probability"):
            header = line.removeprefix("probability ( ").removesuffix(" ) {")
        elif line.startswith(("(", "table")):
            given, _, numbers = line.removesuffix(";").removeprefix("(").rpartition(")" if line[0] == "(" else "table")
            rows[header, given] = [float(number) for number in numbers.split(",")]
    return rows


@pytest.mark.parametrize("name", names())
def test_a_shipped_network_holds_every_number_of_its_file(name: str) -> None:
    network, rows = load(name), line_by_line(shipped_text(name))
    assert sum(table[..., 0].size for table in network.tables) == len(rows)
    for (header, condition), numbers in rows.items():
        child, _, parents = header.partition(" | ")
        index = network.variables.index(child)
        assert [network.variables[parent] for parent in network.parents[index]] == (parents.split(", ") * bool(parents))
        path = tuple(
            network.values[parent].index(value)
            for parent, value in zip(network.parents[index], condition.split(", "), strict=False)
        )
        np.testing.assert_allclose(network.tables[index][path], numbers, rtol=2e-7, atol=0)
    for table in network.tables:
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-15, atol=0)


def test_odd_value_names_of_a_shipped_network() -> None:
    values = dict(zip(load("child").variables, load("child").values, strict=True))
    assert values["XrayReport"] == ("Normal", "Oligaemic", "Plethoric", "Grd_Glass", "Asy/Patchy")
    assert values["LowerBodyO2"] == ("<5", "5-12", "12+")
    assert values["CO2Report"] == ("<7.5", ">=7.5")
    assert "Transp." in values["CardiacMixing"]


def test_a_plain_text() -> None:
    assert parse_bif(RAIN) == RAIN_NETWORK


def test_files_are_plain_or_compressed(tmp_path) -> None:
    (tmp_path / "plain.bif").write_text(
        "\N{BYTE ORDER MARK}" + RAIN.replace("\n", "\r\n"), encoding="utf-8", newline=""
    )
    (tmp_path / "packed.bif.gz").write_bytes(gzip.compress(RAIN.encode()))
    assert read_bif(tmp_path / "plain.bif") == RAIN_NETWORK
    assert read_bif(str(tmp_path / "packed.bif.gz")) == RAIN_NETWORK


def test_blocks_and_rows_in_any_order() -> None:
    head, variables, rest = RAIN.partition("variable rain")
    first, _, second = rest.partition("probability ( grass")
    rows = second.splitlines(keepends=True)
    swapped = "probability ( grass" + rows[0] + rows[2] + rows[1] + rows[3]
    assert parse_bif(swapped + variables + first + head) == RAIN_NETWORK


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("network weather {", '// by hand\nnetwork weather { /* * / { \n " */'),
        ("dry, damp, wet };", 'dry damp "wet" };// http://a.org'),
        ("{ yes, no };", '{ yes, no };\n  property "position = (1, 2)" ;\n  property url = http://a.org/{x} ;'),
        ("table 0.25, 0.75;", "table 0.25 .75; property x ;"),
        ("table 0.25, 0.75;", "default 2.5e-1, +75E-2;"),
        ("table 0.25, 0.75;", "() 0.25, 0.75;"),
        ("(yes) 0.0, 0.25, 0.75;", "default 0.0, 0.25, 0.75;"),
        ("(yes) 0.0, 0.25, 0.75;\n  (no) 0.5, 0.25, 0.25;", "table 0.0, 0.5, 0.25, 0.25, 0.75, 0.25;"),
        ("( grass | rain )", '( "grass" "rain" )'),
        ("( grass | rain )", "(grass,rain)"),
        ("0.5, 0.25, 0.25", "0.5004, 0.2502, 0.2502"),
    ],
)
def test_other_ways_to_write_the_same(old: str, new: str) -> None:
    assert old in RAIN
    network = parse_bif(RAIN.replace(old, new))
    assert network.variables == RAIN_NETWORK.variables
    assert network.values == RAIN_NETWORK.values
    assert network.parents == RAIN_NETWORK.parents
    for table, expected in zip(network.tables, RAIN_NETWORK.tables, strict=True):
        np.testing.assert_allclose(table, expected, rtol=0, atol=1e-3)
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-15, atol=0)


def test_a_table_counts_through_the_child_first() -> None:
    rows = "(yes) 0.0, 0.25, 0.75;\n  (no) 0.5, 0.25, 0.25;"
    assert parse_bif(RAIN.replace(rows, "table 0.0, 0.5, 0.25, 0.25, 0.75, 0.25;")) == RAIN_NETWORK


@pytest.mark.parametrize(
    "value", ['not "quite', "it's", '"', "\\", "a//b", "/* x */", "{[(|,;)]}", "table", "", "é <&>"]
)
def test_quoted_value_names(value: str) -> None:
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    text = RAIN.replace("yes, no", f"{quoted}, no").replace("(yes)", f"( {quoted} )")
    assert parse_bif(text).values[0] == (value, "no")


@pytest.mark.parametrize("value", ["not seen", "a//b", '5"', "it's", "<5", ">=7.5", "12+", "-", "a/b", "x=y", "0.5"])
def test_unquoted_value_names(value: str) -> None:
    text = RAIN.replace("yes, no", f"{value}, no").replace("(yes)", f"({value})")
    assert parse_bif(text).values[0] == (value, "no")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("grass | rain", "grass | snow", 13, "unknown parent 'snow' of variable 'grass'"),
        ("grass | rain", "grass | rain, rain", 14, "needs values for 2 parents, saw 1: yes"),
        ("probability ( rain )", "probability ( snow )", 10, "probability of unknown variable 'snow'"),
        ("probability ( rain )", "probability ( )", 10, r"expected the name of a variable, saw '\)'"),
        ("( grass | rain )", "( grass, rain | rain )", 13, r"expected '\)', saw '\|'"),
        ("  (no) 0.5, 0.25, 0.25;\n", "", 13, r"missing row of variable 'grass' given \(no\)"),
        ("table 0.25, 0.75;", "", 10, "missing row of variable 'rain'"),
        ("(no)", "(yes)", 15, r"duplicate row of variable 'grass' given \(yes\)"),
        ("(no)", "(maybe)", 15, "parent 'rain' of variable 'grass' has no value 'maybe'"),
        ("(no)", "(no, no)", 15, "needs values for 1 parents, saw 2: no, no"),
        ("0.5, 0.25, 0.25", "0.5, 0.5", 15, r"expected 3 probabilities of variable 'grass' given \(no\), saw 2"),
        ("table 0.25, 0.75", "table 0.25, 0.25, 0.5", 11, "expected 2 probabilities of variable 'rain', saw 3"),
        ("table 0.25, 0.75", "table", 11, "expected 2 probabilities of variable 'rain', saw 0"),
        ("0.5, 0.25, 0.25", "1.5, -0.25, -0.25", 15, r"negative probability -0.25 of variable 'grass' given \(no\)"),
        ("table 0.25, 0.75", "table -0.25, 1.25", 11, "negative probability -0.25 of variable 'rain'"),
        ("0.5, 0.25, 0.25", "0.5, 0.25, 0.2511", 15, r"given \(no\) sum to 1.0011, not 1"),
        ("0.5, 0.25, 0.25", "0.5, 0.25, 1e999", 15, r"given \(no\) sum to inf, not 1"),
        ("table 0.25, 0.75", "table 0.25, 0.7489", 11, "probabilities of variable 'rain' sum to 0.9989, not 1"),
        ("table 0.25, 0.75;", "table 0.25, 0.75;\n table 0.5, 0.5;", 12, "second 'table' of variable 'rain'"),
        ("table 0.25, 0.75;", "table 0.25, 0.75; default 0.5, 0.5;", 11, "both a 'table' and rows or a 'default'"),
        ("0.25, 0.75;", "0.25, nan;", 11, "expected a number, saw 'nan'"),
        ("0.25, 0.75;", "0_25, 0.75;", 11, "expected a number, saw '0_25'"),
        ("0.25, 0.75;", '0.25, "0.75";', 11, "expected a number, saw '0.75'"),
        ("variable grass", "variable rain", 7, "duplicate variable 'rain', first declared on line 4"),
        (
            "probability ( grass | rain ) {",
            "probability ( rain ) { table 0.5, 0.5; }\nprobability ( grass | rain ) {",
            13,
            "duplicate probability of variable 'rain', first given on line 10",
        ),
        ("yes, no", "yes, yes", 4, "duplicate value 'yes' of variable 'rain'"),
        ("[ 2 ] { yes, no }", "[ 0 ] { }", 4, "variable 'rain' has no values"),
        ("yes, no", "(yes), no", 5, r"expected '}', saw '\('"),
        ("[ 2 ]", "[ 3 ]", 5, "variable 'rain' declares 3 values, saw 2: yes, no"),
        ("[ 2 ]", "[ two ]", 5, "expected the number of values of variable 'rain', saw 'two'"),
        ("discrete", "continuous", 5, "expected 'discrete', saw 'continuous'"),
        ("type discrete [ 2 ] { yes, no };", "", 4, "variable 'rain' has no type"),
        ("yes, no };", "yes, no }; type discrete [ 1 ] { a };", 5, "second type of variable 'rain'"),
        ("variable rain {", "variable heavy rain {", 4, "expected '{', saw 'rain'"),
        ("variable rain {", "variable {", 4, "expected the name of a variable, saw '{'"),
        ("network weather {", "network weather { kind", 1, "expected 'property' or '}', saw 'kind'"),
        ("variable grass", "network again { }\nvariable grass", 7, "one 'network' block.*, saw 'network'"),
        ("variable grass", "x" * 50, 7, f"blocks, saw '{'x' * 40}...'"),
        ("network weather", '\n"network weather', 2, '" is never closed'),
        ("dry", "/* dry", 8, r"/\* is never closed"),
        ("( rain )", "( rain | grass )", 10, "the arcs hold a cycle: rain -> grass -> rain"),
        ("( rain )", "( rain | rain )", 10, "the arcs hold a cycle: rain -> rain"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_line(old: str, new: str, line: int, message: str) -> None:
    assert old in RAIN
    with pytest.raises(ValueError, match=f"^rain.bif, line {line}: .*{message}"):
        parse_bif(RAIN.replace(old, new, 1), source="rain.bif")


def test_a_duplicate_parent() -> None:
    text = RAIN.replace("grass | rain", "grass | rain, rain").replace("(yes)", "(yes, yes)").replace("(no)", "(no, no)")
    with pytest.raises(ValueError, match="line 13: duplicate parent 'rain' of variable 'grass'"):
        parse_bif(text)


def test_a_wrong_sum_in_a_table_names_the_values_of_the_parents() -> None:
    rows = "(yes) 0.0, 0.25, 0.75;\n  (no) 0.5, 0.25, 0.25;"
    with pytest.raises(ValueError, match=r"line 14: probabilities of variable 'grass' given \(yes\) sum to 0.5, not 1"):
        parse_bif(RAIN.replace(rows, "table 0.0, 0.25, 0.75, 0.5, 0.25, 0.25;".replace("0.75, 0.5", "0.25, 0.5")))


def test_a_long_cycle_is_found_without_recursion() -> None:
    n = 5000
    variables = "".join(f"variable v{i} {{ type discrete [ 1 ] {{ a }}; }}\n" for i in range(n))
    blocks = "".join(f"probability ( v{i} | v{(i + 1) % n} ) {{ (a) 1.0; }}\n" for i in range(n))
    with pytest.raises(
        ValueError, match=rf"line {n + 1}: the arcs hold a cycle: v0 -> v{n - 1} -> .* -> v{n - 9} -> ... -> v0$"
    ):
        parse_bif(variables + blocks)
    straight = blocks.replace(f"( v{n - 1} | v0 ) {{ (a)", f"( v{n - 1} ) {{ table")
    assert parse_bif(variables + straight).order == tuple(reversed(range(n)))


def test_a_table_without_end_is_refused() -> None:
    parents = [f"v{i}" for i in range(40)]
    text = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in [*parents, "child"])
    text += "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in parents)
    with pytest.raises(ValueError, match=f"line 82: the table of variable 'child' is too large: 40 parents, {2**41} "):
        parse_bif(text + f"probability ( child | {', '.join(parents)} ) {{ default 0.5, 0.5; }}")


@pytest.mark.parametrize("text", [shipped_text("asia").rstrip(), RAIN.rstrip()], ids=["asia", "rain"])
def test_every_truncated_text_is_refused(text: str) -> None:
    parse_bif(text)
    for length in range(len(text)):
        with pytest.raises(ValueError, match=r"^<text>, line [0-9]+: "):
            parse_bif(text[:length])


def test_damaged_files_are_named(tmp_path) -> None:
    path = tmp_path / "bad.bif"
    packed = gzip.compress(RAIN.encode())
    for data in (packed[:-20], packed[:12] + b"\xff" * 20 + packed[32:]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"bad\.bif: truncated or damaged gzip file"):
            read_bif(path)
    path.write_bytes(RAIN.replace("damp", "\N{LATIN SMALL LETTER E WITH ACUTE}").encode("latin-1"))
    with pytest.raises(ValueError, match=r"bad\.bif, line 8: expected UTF-8 text, saw byte 0xe9"):
        read_bif(path)
    path.write_text(RAIN[:-2])
    with pytest.raises(ValueError, match=r"bad\.bif, line 16: expected .*, saw the end of the file"):
        read_bif(path)


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)
# Probabilities in 64ths sum to exactly 1 in any order, so that reading must give back the very same numbers.
UNITS = 64


@st.composite
def networks(draw: st.DrawFn) -> Network:
    variables = tuple(draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)))
    values = tuple(tuple(draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))) for _ in variables)
    order = draw(st.permutations(range(len(variables))))
    parents, tables = [()] * len(order), [np.empty(0)] * len(order)
    for place, child in enumerate(order):
        parents[child] = tuple(draw(st.permutations(order[:place]))[: draw(st.integers(0, 3))])
        shape = tuple(len(values[i]) for i in (*parents[child], child))
        counts = np.random.default_rng(draw(st.integers(0, 2**32))).multinomial(
            UNITS, np.ones(shape[-1]) / shape[-1], shape[:-1]
        )
        tables[child] = counts / UNITS
    return Network(draw(NAMES), variables, values, tuple(parents), tuple(tables))


def write_bif(network: Network, flat: bool) -> str:
    def quoted(names) -> str:
        return ", ".join('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names)

    text = f"network {quoted([network.name])} {{ }}\n"
    for name, values in zip(network.variables, network.values, strict=True):
        text += f"variable {quoted([name])} {{ type discrete [ {len(values)} ] {{ {quoted(values)} }}; }}\n"
    for name, parents, table in zip(network.variables, network.parents, network.tables, strict=True):
        bar = " | " if parents else ""
        text += f"probability ( {quoted([name])}{bar}{quoted(network.variables[i] for i in parents)} ) {{\n"
        if flat:
            text += f"  table {', '.join(map(repr, np.moveaxis(table, -1, 0).ravel().tolist()))};\n"
        else:
            for index in np.ndindex(table.shape[:-1]):
                given = quoted(network.values[i][code] for i, code in zip(parents, index, strict=True))
                text += f"  ({given}) {', '.join(map(repr, table[index].tolist()))};\n"
        text += "}\n"
    return text


@settings(max_examples=100, deadline=None, database=None)
@given(networks(), st.booleans())
def test_a_network_survives_writing_and_reading(network: Network, flat: bool) -> None:
    assert parse_bif(write_bif(network, flat)) == network


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.sampled_from([*'{}()[];,|"\\/*\n ', "//", *RAIN.split()]), max_size=30).map(" ".join))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        parse_bif(RAIN + text)
    except ValueError as error:
        assert str(error).startswith("<text>, line ")  # noqa: PT017


def test_long_texts_are_read_in_linear_time() -> None:
    # Quadratic reading of any of these would take minutes.
    size = 1_000_000
    for text in (
        "/" * size,
        "/*" * size,
        "*/" * size,
        "/* " * size,
        '"' * size,
        '"' + "\\" * size,
        "1" * size,
        "{" * size,
        " " * size,
    ):
        with pytest.raises(ValueError, match=r"^<text>, line 1: "):
            parse_bif(text)
    with pytest.raises(ValueError, match="expected a number"):
        parse_bif(RAIN.replace("0.25, 0.75", "1" * size + "x"))
