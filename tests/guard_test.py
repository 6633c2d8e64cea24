"""Which requests the page lets in."""

import asyncio

import pytest

from nsode_jax.app.guard import Guard

LOCAL = ("127.0.0.1", "localhost")


def status(hosts=LOCAL, kind="http", method="GET", **headers):
    """What a request is answered with; 200 if it is let in."""
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": kind, "method": method, "headers": named}
    asyncio.run(Guard(app, hosts, 100)(scope, None, send))
    return sent[0].get("status", sent[0]["type"])


@pytest.mark.parametrize("host", ["127.0.0.1:8090", "localhost:8090", "LOCALHOST"])
def test_the_page_itself_is_let_in(host):
    assert status(host=host) == 200
    assert status(host=host, origin=f"http://{host}") == 200
    assert status(method="POST", host=host, content_length="100") == 200


@pytest.mark.parametrize("host", ["evil.example:8090", "", "127.0.0.1.evil.example", "[::1]:8090"])
def test_other_names_are_refused_unless_all_are_served(host):
    assert status(host=host) == 403
    assert status(hosts=(), host=host) == 200


def test_other_pages_are_refused():
    for origin in ("https://evil.example", "http://127.0.0.1:9999", "null"):
        assert status(host="127.0.0.1:8090", origin=origin) == 403
        refused = status(kind="websocket", host="127.0.0.1:8090", origin=origin)
        assert refused == "websocket.close"


def test_what_is_no_address_is_refused():
    assert status(host="[::1") == 403
    assert status(host="localhost", origin="http://[::1") == 403


def test_large_requests_are_refused_unread():
    for length, answer in (("101", 413), ("", 411), ("-1", 411), ("1e2", 411)):
        assert status(method="POST", host="localhost", content_length=length) == answer


def test_what_is_no_request_passes():
    assert status(kind="lifespan") == 200
