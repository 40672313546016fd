import time

import pytest

from ldfm.parallel import blocks, count_jobs, map_in_order


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


def test_blocks_cover_all_rows_once():
    cuts = blocks(10, 4)
    assert [(c.start, c.stop) for c in cuts] == [(0, 4), (4, 8), (8, 10)]
    assert blocks(0, 4) == []


def test_numbers_of_jobs():
    assert count_jobs(3) == 3
    assert count_jobs(None) == count_jobs(-1) >= 1
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        count_jobs(0)
