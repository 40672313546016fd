"""The page and its answers over HTTP, for this machine alone."""

import hmac
import json
import os
import secrets
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any

from ldfm.estimator import LDFM
from ldfm.explorer.answers import Answers, Document
from ldfm.explorer.desk import Desk
from ldfm.inference import ImpossibleEvidenceError
from ldfm.json_text import json_text
from ldfm.version import __version__

HOST = "127.0.0.1"
_MOST_BYTES = 1 << 20  # of a request
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _RefusedError(Exception):
    """A request that gets no answer: the status, and the reason in one line."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Explorer(ThreadingHTTPServer):
    """A server of one model's page; `serve_forever` serves it, and leaving the `with` block ends all its work.

    Parameters
    ----------
    model
        A fitted model.
    title
        What the page calls it.
    port
        Port to listen at; 0: any that is free.

    Attributes
    ----------
    token
        Secret part of the address: who does not know it gets nothing.
    """

    daemon_threads = True  # who waits for an answer does not keep the process alive
    allow_reuse_address = os.name == "posix"  # elsewhere it would share a busy port

    def __init__(self, model: LDFM, title: str, port: int = 0) -> None:
        self.answers, self.desk = Answers(model, title), Desk()  # first: where it cannot listen, it is closed at once
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ValueError(f"port {port} cannot be used: {error.strerror}") from error
        self.token = secrets.token_urlsafe(18)
        pages = files("ldfm.explorer") / "page"
        self.pages = {path.name: path.read_bytes() for path in pages.iterdir() if path.name.endswith(tuple(_TYPES))}

    def server_bind(self) -> None:
        """Listen, without asking name servers what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def server_close(self) -> None:
        """Stop listening, and end what is being computed."""
        self.desk.close()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of pages that went away while they were answered."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """URL of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Explorer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be silent

    def do_GET(self) -> None:
        """Give a file of the page, or the description of the model."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Answer a question about the model."""
        self._answer(self._post)

    def version_string(self) -> str:
        """Name the server."""
        return f"ldfm/{__version__}"

    def log_message(self, *arguments: Any) -> None:
        """Keep no log."""

    def _answer(self, found: Callable[[str], tuple[bytes, str]]) -> None:
        status = HTTPStatus.OK
        try:
            body, kind = found(self._checked_path())
        except Exception as error:
            status, document = _refusal(error)
            if status == HTTPStatus.INTERNAL_SERVER_ERROR:
                self.server.handle_error(self.request, self.client_address)
            body, kind = json_text(document).encode(), "application/json"
            self.close_connection = True  # its body may not have been read
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def _checked_path(self) -> str:
        """Give the path behind the token, if the request comes from this machine and knows it."""
        own = [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        # a page from elsewhere whose name was made to lead here still says its own name
        if (
            len(hosts) != 1
            or hosts[0] not in own
            or any(origin not in [f"http://{o}" for o in own] for origin in origins)
        ):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        _, token, *rest = self.path.partition("?")[0].split("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "the address lacks its token; use the one that ldfm explore printed"
            )
        return "/".join(rest)

    def _get(self, path: str) -> tuple[bytes, str]:
        if path == "api/model":
            return json_text(self.server.answers.description()).encode(), "application/json"
        name = path or "index.html"
        if name not in self.server.pages:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"there is nothing at {path!r}")
        return self.server.pages[name], _TYPES[name[name.rindex(".") :]]

    def _post(self, path: str) -> tuple[bytes, str]:
        answers = self.server.answers
        questions: dict[str, Callable[..., Document]] = {
            "api/posteriors": answers.posteriors,
            "api/log-probability": answers.log_probability,
            "api/most-probable": answers.most_probable,
            "api/forest": answers.forest,
        }
        if path not in questions:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"there is nothing to ask at {path!r}")
        fields = self._fields({"evidence", "page", *(["effort"] if path == "api/posteriors" else [])})
        page = str(fields.pop("page", ""))
        fields.setdefault("evidence", {})
        found = self.server.desk.serve(page, lambda: questions[path](**fields))
        return json_text(found).encode(), "application/json"

    def _fields(self, known: set[str]) -> Document:
        """Read a JSON object of known fields."""
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "questions must be application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "questions must say their length")
        if int(length) > _MOST_BYTES:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"questions have at most {_MOST_BYTES} bytes")
        try:
            fields = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the question is no JSON: {error}") from error
        if not isinstance(fields, dict) or not fields.keys() <= known:
            raise ValueError(f"a question is an object with some of the fields {', '.join(sorted(known))}")
        return fields


def _refusal(error: Exception) -> tuple[HTTPStatus, Document]:
    """Give the status and the document that say why there is no answer."""
    reason = " ".join(str(error).split())
    match error:
        case _RefusedError():
            return error.status, {"error": reason}
        case CancelledError():
            return HTTPStatus.CONFLICT, {"error": "a newer question of the same page took its place"}
        case ImpossibleEvidenceError():
            return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": reason.removeprefix("row 0: "), "impossible": True}
        case ValueError():
            return HTTPStatus.BAD_REQUEST, {"error": reason}
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"{type(error).__name__}: {reason}"}
