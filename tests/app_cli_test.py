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
    text = said("--host", "no.such.host.invalid")
    assert text.startswith("cannot serve at no.such.host") and text.endswith("with --host")
    assert said("--host", "192.0.2.1").endswith("; choose another with --host")


def test_what_is_no_option(said):
    assert said("--port", "70000").startswith(
        "argument --port: '70000' is not a whole number from 1"
    )
    assert said("--port", "http").startswith("argument --port: 'http' is not a whole number")
    assert said("--bogus").startswith("unrecognized arguments: --bogus (--help")
