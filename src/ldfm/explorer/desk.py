"""One piece of work at a time, the newest that a page wants."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TypeVar

from ldfm.parallel import stop_if_unwanted, unwanted_when

Result = TypeVar("Result")


class Desk:
    """Where requests wait for the model: one is served at a time, and a newer one of the same page ends the older."""

    def __init__(self) -> None:
        self._turn, self._guard = threading.Lock(), threading.Lock()
        self._newest: dict[str, threading.Event] = {}
        self._closed = False

    def serve(self, page: str, work: Callable[[], Result]) -> Result:
        """Do some work for a page in its turn; a `CancelledError` if the page wants other work by then."""
        unwanted = threading.Event()
        with self._guard:
            if self._closed:
                raise CancelledError
            older = self._newest.get(page)
            self._newest[page] = unwanted
        if older is not None:
            older.set()
        try:
            with self._turn, unwanted_when(unwanted):
                stop_if_unwanted()
                return work()
        finally:
            with self._guard:
                if self._newest.get(page) is unwanted:
                    del self._newest[page]

    def close(self) -> None:
        """End all work, and begin none any more."""
        with self._guard:
            self._closed = True
            for unwanted in self._newest.values():
                unwanted.set()
