"""The command that serves the page: what it says when it cannot."""

import socket
import sys

import pytest

from nsode_jax.app.__main__ import main


@pytest.fixture
def said(capsys):
    def said(*arguments):
        assert main(["--no-browser", *arguments]) == 2
        text = capsys.readouterr().err
        assert text.count("\n") == 1
        return text.removeprefix("nsode_jax.app: error: ").rstrip("\n")

    return said


def test_what_to_install(said, monkeypatch):
    monkeypatch.setitem(sys.modules, "nicegui", None)
    install = "pip install 'nsode_jax[app]'"
    assert said() == f"the page needs nicegui, which is not installed: {install}"


def test_where_it_cannot_be_served(said, monkeypatch):
    # Whether NiceGUI is there does not matter here.
    monkeypatch.setitem(sys.modules, "nicegui", sys)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = said("--port", port)
    assert text.startswith(f"cannot serve at 127.0.0.1:{port} (")
    assert text.endswith("); choose another with --port")
    assert said("--port", "70000").startswith("there is no port 70000")
    assert said("--host", "no.such.host.invalid").startswith("cannot serve at no.such.host")
