"""Work on blocks of rows in threads, with results that do not depend on how many there are."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_this_thread = threading.local()


def count_jobs(n_jobs: int | None) -> int:
    """Give the number of threads: None means all cores this process may use, -1 too, -2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for no threads, None for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def blocks(rows: int, size: int) -> list[slice]:
    """Cut rows into blocks; where the cuts are depends on the number of rows alone."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def stop_if_unwanted() -> None:
    """End the work of a thread whose results nobody waits for any more, by a `CancelledError`.

    These are threads of `map_in_order` after Ctrl-C or an error, and those in `unwanted_when`. Python cannot stop a thread from
    outside: items that take long call this about every tenth of a second.
    """
    unwanted = getattr(_this_thread, "unwanted", None)
    if unwanted is not None and unwanted.is_set():
        raise CancelledError


@contextmanager
def unwanted_when(event: threading.Event) -> Iterator[None]:
    """Let `stop_if_unwanted` end what this thread does in the block once the event is set."""
    _this_thread.unwanted = event
    try:
        yield
    finally:
        _this_thread.unwanted = None


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> Iterator[Result]:
    """Yield ``function(item)`` for each item in order; with one job no thread is started.

    At most two results a thread are kept waiting, so memory does not grow with the number of items. The kernels called must
    release the GIL.
    """
    jobs = count_jobs(n_jobs)
    pending = iter(items)
    if jobs == 1:
        for item in pending:
            stop_if_unwanted()
            yield function(item)
        return
    first_two = list(islice(pending, 2))
    if len(first_two) < 2:
        yield from map(function, first_two)
        return
    unwanted = threading.Event()

    def one(item: Item) -> Result:
        _this_thread.unwanted = unwanted
        return function(item)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(one, item) for item in first_two)
        waiting.extend(pool.submit(one, item) for item in islice(pending, 2 * jobs - 2))
        try:
            while waiting:
                stop_if_unwanted()
                result = waiting.popleft().result()
                waiting.extend(pool.submit(one, item) for item in islice(pending, 1))
                yield result
        finally:
            unwanted.set()
            for future in waiting:
                future.cancel()
