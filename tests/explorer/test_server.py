"""The page's server over real HTTP: answers as the model gives them, refusals with their reason, nothing for strangers."""

import re
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_client import Client, serving
from ldfm import LDFM, Budget
from ldfm.explorer import Explorer
from ldfm.explorer.desk import CancelledError, Desk
from ldfm.learning import History
from ldfm.parallel import stop_if_unwanted
from ldfm.tables import Column, Schema, Units
from mixed_models import random_cells, random_mixed
from models import random_weights, values_of

PAGE = files("ldfm.explorer") / "page"
ASSETS = {"index.html", "app.js", "api.js", "boxes.js", "forest.js", "style.css"}


def model_of(cardinalities: tuple[int, ...]) -> LDFM:
    weights = random_weights(cardinalities, seed=1)
    model = LDFM.from_weights(weights.table[0], weights.table[1:], weights.stop, values=values_of(cardinalities))
    model.draws_ = np.random.default_rng(0).integers(0, 2, (64, len(cardinalities)))  # where chains start
    return model.set_params(random_state=0, n_jobs=1)


@pytest.fixture(scope="module")
def small() -> Iterator[Client]:
    with serving(model_of((2, 3, 2, 2))) as client:
        yield client


@pytest.fixture(scope="module")
def large() -> Iterator[Client]:
    """Give a model that cannot be enumerated."""
    with serving(model_of((2,) * 21)) as client:
        yield client


def row_of(client: Client, **evidence: Any) -> dict[str, list[Any]]:
    return {name: [evidence.get(name)] for name in client.server.answers.model.schema_.names}


# --- answers ---------------------------------------------------------------------------------------------------------


def test_the_model_is_described(small: Client) -> None:
    document = small.get("api/model").document
    assert document["title"] == "a model"
    assert document["variables"][1] == {"name": "x1", "kind": "discrete", "values": ["v0", "v1", "v2"]}


def test_exact_posteriors_are_those_of_the_model(small: Client) -> None:
    reply = small.ask("posteriors", {"x1": "v2"})
    expected = small.server.answers.model.marginals(row_of(small, x1="v2"))
    assert (reply.status, reply.document["exact"], set(reply.document["posteriors"])) == (200, True, {"x0", "x2", "x3"})
    for name, found in reply.document["posteriors"].items():
        assert found["probabilities"] == expected.probabilities[name][0].tolist()
        assert found["standard_errors"] == [0.0, 0.0]


@pytest.mark.parametrize(("effort", "budget"), [("quick", Budget(max_sweeps=1)), ("usual", None)])
def test_sampled_posteriors_are_those_of_the_model_and_say_so(large: Client, effort: str, budget: Any) -> None:
    reply = large.ask("posteriors", {"x0": "v1"}, effort=effort)
    expected = large.server.answers.model.marginals(row_of(large, x0="v1"), budget=budget)
    assert reply.document["exact"] is False
    assert reply.document["sweeps"] == expected.diagnostics.sweeps[0]
    for name, found in reply.document["posteriors"].items():
        assert found["probabilities"] == expected.probabilities[name][0].tolist()
        assert found["standard_errors"] == expected.standard_errors[name][0].tolist()
        assert max(found["standard_errors"]) > 0


def test_the_probability_of_evidence(small: Client) -> None:
    found = small.ask("log-probability", {"x0": "v1", "x1": "v0"}).document
    model = small.server.answers.model
    rows = {"x0": ["v1"], "x1": ["v0"], "x2": [None], "x3": [None]}
    assert found["exact"]
    assert found["standard_error"] == 0.0
    assert found["log_probability"] == pytest.approx(model.score_samples(rows)[0], abs=1e-12)


def test_the_most_probable_completion(small: Client) -> None:
    found = small.ask("most-probable", {"x0": "v1"}).document
    filled = small.server.answers.model.most_probable(row_of(small, x0="v1"))
    assert found == {"values": {name: filled[name][0] for name in ("x1", "x2", "x3")}, "exact": True}


def test_the_forest_is_that_of_the_model(small: Client) -> None:
    found = small.ask("forest", {"x0": "v1"}).document
    marginals = np.zeros((5, 4))
    for parent, child, share in found["arcs"]:
        marginals[parent + 1, child] = share
    expected = small.server.answers.model.arc_marginals(row_of(small, x0="v1"))[0]
    assert np.abs(marginals - expected).max() < 0.001
    assert marginals[marginals > 0].min() >= 0.001


def test_numbers_have_densities_and_are_given_as_numbers_or_texts() -> None:
    columns = (
        Column("kind", ("a", "b"), "str"),
        *(Column(n, (), "float64", "continuous", Units(1.0, 2.0)) for n in "xy"),
    )
    weights, model = random_mixed((2, 0, 0), seed=3), LDFM(random_state=0, n_jobs=1)
    model._adopt(Schema(columns), weights, History(reason="a test"), random_cells(weights, 64, seed=0))
    with serving(model) as client:
        described = client.get("api/model").document["variables"][1]
        found = client.ask("posteriors", {"y": 2.5, "kind": "a"}, effort="quick").document["posteriors"]
        as_text = client.ask("posteriors", {"y": "2.5", "kind": "a"}, effort="quick").document["posteriors"]
        refused = client.ask("posteriors", {"y": "much"})
        infinite = client.ask("posteriors", {"y": float("inf")})
    assert (described["kind"], set(found)) == ("continuous", {"x"})
    assert as_text == found
    expected = model.marginals({"kind": ["a"], "x": [None], "y": [2.5]}, budget=Budget(max_sweeps=1)).numbers["x"]
    assert (found["x"]["mean"], found["x"]["deviation"]) == (expected.means[0], expected.deviations[0])
    area = np.trapezoid(found["x"]["density"], found["x"]["grid"])
    assert area == pytest.approx(0.998, abs=0.002)
    assert found["x"]["low"] < found["x"]["mean"] < found["x"]["high"]
    assert (refused.status, refused.document["error"]) == (400, "evidence: column 'y' has numbers, not 'much'")
    assert infinite.status == 400
    assert "'y'" in infinite.document["error"]


def test_impossible_evidence_is_told_plainly() -> None:
    arcs = np.zeros((4, 4))
    arcs[0, 2] = arcs[1, 3] = 1.0  # b follows a
    model = LDFM.from_weights([0.5, 0.5, 0, 0], arcs, values={"a": ["no", "yes"], "b": ["no", "yes"]})
    with serving(model.set_params(n_jobs=1)) as client:
        replies = [
            client.ask(question, {"a": "no", "b": "yes"}) for question in ("posteriors", "forest", "most-probable")
        ]
    for reply in replies:
        document = {"error": "its known cells have probability zero under this model", "impossible": True}
        assert (reply.status, reply.document) == (422, document)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "fields", "reason"),
    [
        ({"x1": "v7"}, {}, "evidence: column 'x1' has no value 'v7'; its values are 'v0', 'v1', 'v2'"),
        (
            {"age": "v0"},
            {},
            "evidence names column 'age', which the model does not have; it has 'x0', 'x1', 'x2', 'x3'",
        ),
        ({"x1": ["v0"]}, {}, "evidence: column 'x1' needs one text or number, not ['v0']"),
        (["x1"], {}, "evidence must be an object of columns and their values, not ['x1']"),
        ({}, {"effort": "great"}, "effort must be one of 'quick', 'usual', 'thorough', not 'great'"),
        ({}, {"effort": ["quick"]}, "effort must be one of 'quick', 'usual', 'thorough', not ['quick']"),
        ({}, {"budget": 3}, "a question is an object with some of the fields effort, evidence, page"),
    ],
)
def test_bad_questions_get_400_and_one_line(small: Client, evidence: Any, fields: Any, reason: str) -> None:
    reply = small.ask("posteriors", evidence, **fields)
    assert (reply.status, reply.document) == (400, {"error": reason})


def test_what_is_no_question_is_refused(small: Client) -> None:
    path = f"/{small.server.token}/api/posteriors"
    assert small.send("POST", path, b"{", Content_Type="application/json").status == 400
    assert small.send("POST", path, b"[" * 100_000, Content_Type="application/json").status == 400
    assert small.send("POST", path, b"{}", Content_Type="text/plain").status == 415
    assert small.send("POST", path, Content_Type="application/json").status == 411
    assert small.send("POST", path, Content_Type="application/json", Content_Length=str(1 << 30)).status == 413
    assert small.ask("everything", {}).status == 404
    assert small.get("api/posteriors").status == 404
    assert small.send("DELETE", path).status == 501


@pytest.mark.parametrize("name", ["../server.py", "..%2fserver.py", "__init__.py", "page/app.js", "/etc/passwd"])
def test_only_the_page_is_served(small: Client, name: str) -> None:
    assert small.get(name).status == 404


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_who_does_not_know_the_token_gets_nothing(small: Client, token: str) -> None:
    for method, path in (("GET", ""), ("GET", "app.js"), ("GET", "api/model"), ("POST", "api/posteriors")):
        address = f"/{token}/{path}".encode().decode("latin-1")
        reply = small.send(method, address.replace("Ã©", "%C3%A9"), b"{}", Content_Type="application/json")
        assert (reply.status, "token" in reply.document["error"]) == (403, True)


def test_tokens_differ() -> None:
    with Explorer(model_of((2, 2)), "a") as one, Explorer(model_of((2, 2)), "b") as other:
        assert one.token != other.token
        assert min(len(one.token), len(other.token)) >= 20
        assert one.address == f"http://127.0.0.1:{one.server_port}/{one.token}/"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"]
)
def test_requests_for_another_host_are_refused(small: Client, host: str) -> None:
    reply = small.get("api/model", Host=host.format(port=small.server.server_port))
    assert (reply.status, reply.document) == (403, {"error": "this page is for this machine alone"})


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_requests_from_pages_of_others_are_refused(small: Client, origin: str) -> None:
    assert small.get("api/model", Origin=origin.format(port=small.server.server_port)).status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_this_machine_may_ask_by_either_name(small: Client, name: str) -> None:
    place = f"{name}:{small.server.server_port}"
    assert small.get("api/model", Host=place, Origin=f"http://{place}").status == 200


def test_it_listens_on_this_machine_alone(small: Client) -> None:
    assert small.server.socket.getsockname()[0] == "127.0.0.1"


def test_a_fault_of_ours_is_told_and_shown(small: Client, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(small.server.answers, "forest", lambda evidence: 1 / 0)
    reply = small.ask("forest", {})
    assert (reply.status, reply.document) == (500, {"error": "ZeroDivisionError: division by zero"})
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_busy_port_is_refused() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(ValueError, match=rf"port {port} cannot be used: Address already in use"):
            Explorer(model_of((2, 2)), "a", port)


# --- one at a time ---------------------------------------------------------------------------------------------------


class Worker:
    """Work that goes on until it is unwanted."""

    def __init__(self, desk: Desk, page: str) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, args=(desk, page), daemon=True)
        self.thread.start()

    def run(self, desk: Desk, page: str) -> None:
        try:
            desk.serve(page, self.work)
        except CancelledError:
            self.cancelled.set()

    def work(self) -> None:
        self.begun.set()
        while True:
            stop_if_unwanted()
            time.sleep(0.005)


def test_a_newer_question_of_a_page_ends_the_older() -> None:
    desk = Desk()
    older = Worker(desk, "page")
    assert older.begun.wait(5)
    assert desk.serve("page", lambda: "newer") == "newer"
    assert older.cancelled.wait(5)


def test_questions_of_other_pages_wait_their_turn() -> None:
    desk = Desk()
    first, second = Worker(desk, "one"), None
    assert first.begun.wait(5)
    second = Worker(desk, "other")
    assert not second.begun.wait(0.1)
    assert not first.cancelled.is_set()
    desk.close()
    assert first.cancelled.wait(5)
    assert second.cancelled.wait(5)
    with pytest.raises(CancelledError):
        desk.serve("one", lambda: "more")


def test_a_newer_question_ends_sampling(large: Client) -> None:
    large.ask("posteriors", {}, effort="quick")  # compiled by now
    found: list[int] = []
    answers = large.server.answers
    budget = Budget(target_se=1e-9, max_sweeps=2**62)

    def forever() -> None:
        found.append(large.ask("forest", {}, page="p").status)

    original, answers.forest = answers.forest, lambda evidence: answers.model.marginals(row_of(large), budget=budget)
    try:
        thread = threading.Thread(target=forever, daemon=True)
        thread.start()
        time.sleep(0.3)
        began = time.perf_counter()
        assert large.ask("posteriors", {}, page="p", effort="quick").status == 200
        thread.join(5)
    finally:
        answers.forest = original
    assert found == [409]
    assert time.perf_counter() - began < 5


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_and_its_parts_are_served(small: Client) -> None:
    for name in ("", *sorted(ASSETS)):
        reply = small.get(name)
        assert reply.status == 200
        assert reply.body == (PAGE / (name or "index.html")).read_bytes()
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert (reply.headers["Referrer-Policy"], reply.headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert small.get("app.js").headers["Content-Type"] == "text/javascript; charset=utf-8"


def test_nothing_on_the_page_comes_from_elsewhere() -> None:
    for name in ASSETS:
        text = (PAGE / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", text), name
        for part in re.findall(r"""(?:src|href)="([^"]+)"|from "([^"]+)\"""", text):
            target = "".join(part)
            assert target == "data:," or target.removeprefix("./") in ASSETS
    # what a policy without 'unsafe-inline' would not let run
    assert not re.search(r"<script>|<style>| on\w+=| style=", (PAGE / "index.html").read_text(encoding="utf-8"))


def test_the_page_is_in_the_wheel(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).parents[2]
    (wheel,) = WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name.split("/")[-1] for name in archive.namelist() if name.startswith("ldfm/explorer/page/")}
    assert shipped == ASSETS
