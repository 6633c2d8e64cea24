"""What is let in: requests that are meant for this page and are not too large."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Guard:
    """ASGI middleware that refuses what other pages, or other names of this machine, send.

    A page from elsewhere that is open in the same browser can neither read nor steer this one,
    and a name that was made to point here (DNS rebinding) does not help it.
    """

    def __init__(self, app: Application, hosts: Sequence[str], largest: int):
        """
        Args:
          app: what is guarded.
          hosts: names under which it may be asked for; none: any.
          largest: bytes that a request may have.
        """
        self._app, self._hosts, self._largest = app, tuple(hosts), largest

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] in ("http", "websocket") and (refusal := self._refusal(scope)):
            await _refuse(scope["type"], refusal, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host = headers.get("host", "")
        if self._hosts and _split(f"//{host}").hostname not in self._hosts:
            return 403, "This page is not served under that name."
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            return 403, "Another page may not use this one."
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            length = headers.get("content-length", "")
            if not length.isdigit():
                return 411, "How long is it?"
            if int(length) > self._largest:
                return 413, "That is too large."
        return None


def _split(url: str) -> SplitResult:
    """The parts of an address; none of what is no address, such as //[::1."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


async def _refuse(kind: str, refusal: tuple[int, str], send: Send) -> None:
    status, text = refusal
    if kind == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
