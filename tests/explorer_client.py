"""A server of a model in a thread of this process, and questions to it over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from command_line import strict_json
from ldfm import LDFM
from ldfm.explorer import Explorer


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return strict_json(self.body.decode())


class Client:
    def __init__(self, server: Explorer) -> None:
        self.server = server

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send a request to a path of the server, as it is."""
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=300)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            length = {} if body is None else {"Content-Length": str(len(body))}
            for name, text in {**length, **headers}.items():
                connection.putheader(name.replace("_", "-"), text)
            connection.endheaders(body)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """Get what is at a path behind the token."""
        return self.send("GET", f"/{self.server.token}/{path}", **headers)

    def ask(self, question: str, evidence: Any, **fields: Any) -> Reply:
        """Ask as the page does."""
        body = json.dumps({"evidence": evidence, **fields}).encode()
        return self.send("POST", f"/{self.server.token}/api/{question}", body, Content_Type="application/json")


@contextmanager
def serving(model: LDFM) -> Iterator[Client]:
    with Explorer(model, "a model") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join()
