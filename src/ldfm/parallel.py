"""Work on blocks of rows in threads, with results that do not depend on how many there are."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_PATIENCE = 0.1  # seconds after which a thread that waits looks whether it is still wanted
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

    At most four results a thread are kept waiting, so memory does not grow with the number of items. The kernels called must
    release the GIL. The calling thread works too: to wake others takes as long as a small block of rows.
    """
    listed = list(items)
    jobs = min(count_jobs(n_jobs), len(listed))
    if jobs <= 1:
        for item in listed:
            stop_if_unwanted()
            yield function(item)
        return
    work = _Work(function, listed, ahead=4 * jobs)
    helpers = [threading.Thread(target=work.help, daemon=True) for _ in range(jobs - 1)]
    for helper in helpers:
        helper.start()
    try:
        yield from work.results()
    finally:
        work.stop()
        for helper in helpers:
            helper.join()


class _Work(Generic[Item, Result]):
    """Items that threads take in order, and the results that wait for their turn.

    Parameters
    ----------
    function, items
        What is done to which.
    ahead
        Items that may be begun from the next result on.
    """

    def __init__(self, function: Callable[[Item], Result], items: list[Item], ahead: int) -> None:
        self._function, self._items, self._ahead = function, items, ahead
        self._begun = self._given = 0
        self._last = len(items)  # after an error no item behind it is begun
        self._found: dict[int, Result | _Failure] = {}
        self._changed = threading.Condition()
        self._unwanted = threading.Event()

    def help(self) -> None:
        """Work until all items are begun."""
        _this_thread.unwanted = self._unwanted
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._can_begin() or self._is_over())
                if self._is_over():
                    return
                place = self._begin()
            try:
                self._do(place)
            except BaseException as error:  # an exit, of which only the calling thread can make something
                self._keep(place, _Failure(error))

    def results(self) -> Iterator[Result]:
        """Yield results in order, working on items while the next is not there."""
        for place in range(len(self._items)):
            while place not in self._found:
                stop_if_unwanted()
                with self._changed:
                    mine = self._begin() if self._can_begin() else None
                    if mine is None and place not in self._found:
                        self._changed.wait(_PATIENCE)
                if mine is not None:
                    self._do(mine)
            with self._changed:
                found = self._found.pop(place)
                self._given = place + 1
                self._changed.notify_all()
            if isinstance(found, _Failure):
                raise found.error
            yield found

    def stop(self) -> None:
        """Begin no more items, and end those that `stop_if_unwanted` can."""
        with self._changed:
            self._unwanted.set()
            self._changed.notify_all()

    def _is_over(self) -> bool:
        return self._begun >= self._last or self._unwanted.is_set()

    def _can_begin(self) -> bool:
        return self._begun < min(self._last, self._given + self._ahead)

    def _begin(self) -> int:
        self._begun += 1
        return self._begun - 1

    def _do(self, place: int) -> None:
        try:
            self._keep(place, self._function(self._items[place]))
        except Exception as error:
            self._keep(place, _Failure(error))

    def _keep(self, place: int, found: "Result | _Failure") -> None:
        with self._changed:
            self._found[place] = found
            if isinstance(found, _Failure):
                self._last = min(self._last, place)
            self._changed.notify_all()


class _Failure(NamedTuple):
    error: BaseException
