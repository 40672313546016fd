"""What somebody does who has just installed the library: fit, ask and fill, on the command line and in a script."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldfm import LDFM, ModifiedDirichlet, load
from ldfm.cli.options import parse_evidence

LDFM_COMMAND = Path(sys.executable).with_name("ldfm")
PAGE = Path(__file__).parents[1] / "docs" / "tables.md"
ODD = ["two words", "it's", 'a "quote"', "a, comma", "naïve 😀", "None", "2024-02-29"]


def run(*arguments: object) -> str:
    ended = subprocess.run(
        [LDFM_COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a CSV file with odd categories, truth values, dates and missing cells; the first column decides the second."""
    path = tmp_path_factory.mktemp("stranger") / "my survey.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["what they said", "agrees", "day"])
        for number in range(140):
            said, agrees = ODD[number % 7], str(number % 7 < 3)
            writer.writerow(
                ["" if number % 11 == 5 else said, "" if number % 10 == 3 else agrees, f"2024-02-{number % 4 + 10}"]
            )
    return path


@pytest.fixture(scope="module")
def model(survey: Path) -> Path:
    path = survey.with_name("m.ldfm")
    run("fit", survey, "-o", path, "--objective", "generation", "--prior", "modified:0,1e-6")
    return path


def evidence(said: str) -> str:
    """Quote a part of --evidence as CSV does."""
    return '"' + f"what they said={said}".replace('"', '""') + '"'


def test_one_command_answers_a_question(model: Path) -> None:
    answer = json.loads(run("query", model, "--evidence", evidence('a "quote"'), "--query", "agrees", "--json"))
    assert answer["evidence"] == {"what they said": 'a "quote"'}
    (posterior,) = answer["posteriors"]
    assert posterior["values"] == [False, True]
    assert posterior["probabilities"][1] > 0.95


def test_any_value_can_be_asked_about(model: Path) -> None:
    schema = load(model).schema_
    for said in ODD:
        assert parse_evidence([evidence(said)], schema) == {"what they said": said}


def test_one_command_fills_the_gaps(model: Path, survey: Path) -> None:
    lines = list(csv.DictReader(run("impute", model, survey).splitlines()))
    given = list(csv.DictReader(survey.read_text(encoding="utf-8").splitlines()))
    assert len(lines) == 140
    for number, (line, before) in enumerate(zip(lines, given, strict=True)):
        assert all(line[name] == cell for name, cell in before.items() if cell)
        if before["what they said"]:
            assert line["agrees"] == str(number % 7 < 3)
        else:
            assert (line["what they said"] in ODD[:3]) is (line["agrees"] == "True")


def test_the_model_is_the_one_of_the_command_line(model: Path, survey: Path) -> None:
    opened = load(model)
    assert opened.schema_.columns[0].values == tuple(sorted(ODD))
    assert [column.type_name for column in opened.schema_.columns] == ["str", "bool", "str"]
    again = LDFM(objective="generation", prior=ModifiedDirichlet(0.0, 1e-6), random_state=0).fit(survey)
    assert again.weights_.table.tobytes() == opened.weights_.table.tobytes()


def test_pages_for_pandas_and_polars_are_under_twenty_lines() -> None:
    blocks = re.findall(r"## (pandas|polars)\n\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [name for name, _ in blocks] == ["pandas", "polars"]
    for _, code in blocks:
        assert len([line for line in code.splitlines() if line.strip()]) < 20
        for call in ("fit(", "impute(", "score("):
            assert call in code
