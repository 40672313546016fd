import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

from ldfm.parallel import blocks, count_jobs, map_in_order, stop_if_unwanted, unwanted_when


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_order(jobs):
    def slow_first(item: int) -> int:
        time.sleep(0.02 if item % 3 == 0 else 0)
        return item * item

    assert list(map_in_order(slow_first, range(20), jobs)) == [k * k for k in range(20)]
    assert list(map_in_order(slow_first, [], jobs)) == []
    assert list(map_in_order(slow_first, [3], jobs)) == [9]


def test_an_error_comes_through_and_little_is_started_ahead():
    started = []

    def fail_at_three(item: int) -> int:
        started.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    with pytest.raises(ValueError, match="three"):
        list(map_in_order(fail_at_three, range(1000), 2))
    assert len(started) < 20


@pytest.mark.parametrize("jobs", [2, 5])
def test_of_several_errors_the_first_in_order_comes_through(jobs):
    def fail(item: int) -> int:
        time.sleep(0.02 if item == 4 else 0)  # the others fail earlier
        if item >= 4:
            raise ValueError(item)
        return item

    results = map_in_order(fail, range(100), jobs)
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"^4$"):
        next(results)


def test_an_exit_comes_through_from_any_thread():
    def leave(item: int) -> None:
        time.sleep(0.01)
        if threading.current_thread() is not threading.main_thread():
            raise SystemExit(item)

    with pytest.raises(SystemExit):
        list(map_in_order(leave, range(100), 2))


def test_few_results_wait_while_nobody_takes_them():
    started = []
    results = map_in_order(lambda item: started.append(item) or item, range(1000), 3)
    assert next(results) == 0
    time.sleep(0.1)
    assert len(started) <= 1 + 4 * 3
    assert list(results) == list(range(1, 1000))


def test_a_slow_item_does_not_hold_others_up():
    seventh = threading.Event()

    def wait_or_go_on(item: int) -> tuple[int, bool]:
        if item == 7:
            seventh.set()
        return threading.get_ident(), seventh.wait(10.0) if item == 0 else True

    found = list(map_in_order(wait_or_go_on, range(16), 2))
    assert all(reached for _, reached in found)
    assert len({thread for thread, _ in found}) == 2
    assert threading.get_ident() in {thread for thread, _ in found}


def test_blocks_cover_all_rows_once():
    cuts = blocks(10, 4)
    assert [(c.start, c.stop) for c in cuts] == [(0, 4), (4, 8), (8, 10)]
    assert blocks(0, 4) == []


def test_numbers_of_jobs():
    assert count_jobs(3) == 3
    assert count_jobs(None) == count_jobs(-1) >= 1
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        count_jobs(0)


def test_threads_stop_when_nobody_waits_for_them():
    ended = []

    def long(item: int) -> None:
        try:
            for _ in range(600):
                time.sleep(0.01)
                stop_if_unwanted()
        finally:
            ended.append(item)

    def fail_or_wait(item: int) -> None:
        if item == 0:
            raise ValueError("zero")
        long(item)

    began = time.perf_counter()
    with pytest.raises(ValueError, match="zero"):
        list(map_in_order(fail_or_wait, range(10), 2))
    assert time.perf_counter() - began < 3.0
    assert len(ended) < 9
    stop_if_unwanted()  # this thread is wanted


INTERRUPTED = """
import time
from ldfm import LDFM
from ldfm.networks import load
data = load("alarm").sample(200, seed=0)
names = list(data)
model = LDFM(objective="generation", max_iter=2, n_jobs={jobs}, random_state=0).fit(data)
model.query_log_likelihood({{name: cells[:1] for name, cells in data.items()}}, names[:15], names[15:20], budget=0.1)
LDFM(max_iter=1, n_jobs={jobs}, random_state=0).fit(data)  # all is compiled: work is to be stopped, not the compiler
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize(
    "call",
    [
        "model.query_log_likelihood(data, names[:15], names[15:20], budget=60.0)",
        "LDFM(objective='generation', max_iter=10**6, tol=0.0, n_jobs={jobs}).fit(data)",
        "LDFM(objective='likelihood', max_iter=10**6, n_jobs={jobs}).fit(data)",
    ],
    ids=["query", "em", "likelihood"],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_within_a_second(jobs, call):
    code = INTERRUPTED.format(jobs=jobs, call=call.format(jobs=jobs))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        stopped = float(process.stdout.readline())
    assert stopped - sent < 1.0
    assert process.returncode == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_ends_once_it_is_unwanted(jobs):
    unwanted = threading.Event()

    def one(item: int) -> int:
        if item == 3:
            unwanted.set()
        return item

    with pytest.raises(CancelledError), unwanted_when(unwanted):
        list(map_in_order(one, range(1000), jobs))
    stop_if_unwanted()  # outside it is nobody's business
    assert list(map_in_order(one, range(5), jobs)) == [0, 1, 2, 3, 4]
