"""Sentences about the tables are made of the records."""

import pytest

from ldfm.bench.protocol import Split
from ldfm.bench.reading import lines_of
from ldfm.bench.tables import Key, read_libra, read_libra_oracles, read_published

SPLIT = Split(40, 30)


def record(gap, score=-0.3, by_share=-0.3, queries=1000, error=0.001):
    return {
        "gap": {"mean": gap, "standard_error": error},
        "result": {"score": {"mean": score}, "score_by_share": {"mean": by_share}},
        "queries": queries,
        "answer": {"seconds": 9.0, "cpu_seconds": 1800.0},
        "fit": {"seconds": 3600.0},
    }


def test_who_is_ahead_is_said_by_standard_errors():
    cells = {("ldfm", "asia"): 0.010, ("ldfm", "sachs"): 0.010, ("ldfm", "child"): 0.010}
    cells |= {("mt", "asia"): 0.012, ("mt", "sachs"): 0.020, ("mt", "child"): 0.001}
    cells |= {("dn", "asia"): None}  # a query of probability zero is farther than anything
    records = {Key(500, SPLIT, model, network): record(gap) for (model, network), gap in cells.items()}
    lines = lines_of(records, {})
    assert "| MT | - | farther | closer |" in lines
    assert "| DN | farther |  |  |" in lines
    assert lines[lines.index("| MT | - | farther | closer |") - 3] == "|  | asia | sachs | child |"
    assert not any("LDFM-S by likelihood |" in line for line in lines)


def test_true_networks_say_what_other_rows_alone_do():
    oracle = read_libra_oracles()["alarm"]
    records = {Key(0, SPLIT, "oracle", "alarm"): record(0.0, score=oracle + 0.011)}
    assert any(line.endswith("other rows alone can do: alarm (+0.011).") for line in lines_of(records, {}))


def test_hours_of_the_main_tables_count_shared_fits_once():
    models = ("g-ldfm", "t-ldfm", "ldfm")  # the first two share a fit
    records = {Key(500, SPLIT, model, "asia"): record(0.1) for model in models}
    records |= {Key(2000, SPLIT, "ldfm", "asia"): record(0.1), Key(500, Split(20, 30), "ldfm", "asia"): record(0.1)}
    found = next(line for line in lines_of(records, {}) if line.startswith("- 3 cells of 5000 and 500 rows, 40/30"))
    assert found.endswith("took 3.5 hours of one processor core.")


def test_printed_numbers_are_compared_as_the_paper_divides():
    published = read_published()
    printed = {network: published[Key(5000, SPLIT, "g-ldfm", network)] for network in ("asia", "sachs", "child")}
    off = {"asia": 0.019, "sachs": -0.03, "child": 0.04}
    records = {Key(5000, SPLIT, "g-ldfm", name): record(0.1, by_share=printed[name] + by) for name, by in off.items()}
    child = records[Key(5000, SPLIT, "g-ldfm", "child")]["result"]
    child["score"]["mean"] = 2.0 * child["score_by_share"]["mean"]
    child["cmll"] = {"mean": 2.0 * (printed["child"] - 0.01)}
    line, one_by_one, *_ = lines_of(records, {})
    assert one_by_one.endswith("is this far from the printed number: child (-0.010).")
    assert "on 1 of 3 networks: asia (+0.019). Higher: child (+0.040). Lower: sachs (-0.030)." in line
    best = max(
        value for key, value in published.items() if (key.rows, key.split, key.network) == (5000, SPLIT, "alarm")
    )
    for by, text in (
        (0.01, "on 1 of 1 networks: alarm (+0.010). Not above: none."),
        (-0.01, "on 0 of 1 networks: none."),
    ):
        records = {Key(5000, SPLIT, "ldfm", "alarm"): record(0.1, by_share=best + by)}
        assert text in lines_of(records, {})[0]


def test_effort_is_compared_on_the_same_questions_and_what_moves_too_much_is_marked():
    records = {Key(500, SPLIT, "dn", name): record(0.1, score=-0.3) for name in ("asia", "sachs", "child")}
    effort = {
        Key(500, SPLIT, "dn", "asia"): record(0.1, score=-0.301),
        Key(500, SPLIT, "dn", "sachs"): record(0.1, score=-0.29),
        Key(500, SPLIT, "dn", "child"): record(0.1, score=-0.29, queries=200),
        Key(0, SPLIT, "oracle", "asia"): record(0.0),
    }
    line, *_ = lines_of(records, effort)
    assert line == "- Twice the effort moves scores of DN by: asia 500 rows -0.0010, sachs 500 rows +0.0100, too much."


def test_peers_are_compared_with_another_toolkit_by_their_gaps():
    libra = read_libra()
    assert libra[Key(5000, SPLIT, "mt", "child")] == pytest.approx(0.09)
    assert len(libra) == 8 + 9 + 9 + 3 + 8 + 9 + 9
    off = {"asia": 0.019, "sachs": 0.021, "child": -0.05}
    records = {Key(5000, SPLIT, "mt", n): record(libra[Key(5000, SPLIT, "mt", n)] + by) for n, by in off.items()}
    records[Key(500, SPLIT, "mt", "asia")] = record(None)
    lines = [line for line in lines_of(records, {}) if "Libra" in line]
    assert len(lines) == 2
    assert "5000 rows" in lines[0]
    assert lines[0].endswith("MT 2 of 3 (not sachs).")
    assert lines[1].endswith("MT 0 of 1 (not asia).")
