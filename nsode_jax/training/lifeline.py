"""Notices within seconds that one of the processes that train together has died."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import struct
import sys
import threading
import time
import traceback
from typing import Protocol, runtime_checkable


@runtime_checkable
class KeyValueStore(Protocol):
    """What the processes share before they are connected: JAX's distributed client."""

    def key_value_set(self, key: str, value: str) -> None: ...

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str: ...


class Lifeline:
    """A connection of each process to process 0, which breaks when one of them dies.

    JAX's own heartbeats notice that too, but after long, and then abort the process with
    a stack trace. Only the death of process 0, where JAX's service runs, is noticed at
    once; a process may then end with JAX's words for it.
    """

    _KEY = "nsode_jax/lifeline"
    _CONNECT_SECONDS = 60
    _GRACE_SECONDS = 1.0  # For a process that is about to fail for the same reason.
    _NOTICE_SECONDS = 5.0  # Until a busy machine has told of a death.
    _MESSAGE = struct.Struct("!i")  # Number of a lost process, or:
    _GOODBYE = -1

    def __init__(self, process: int, processes: int, host: str, store: KeyValueStore):
        """
        Args:
          process: number of this process.
          processes: how many there are.
          host: the machine of process 0.
          store: through which it tells the others its port.

        Raises:
          OSError: if a process cannot be reached.
        """
        self._process, self._processes = process, processes
        self._host, self._store = host, store
        self._ending = threading.Lock()  # Never released: who has it ends the process.
        self._died = threading.Event()  # Another process, not of an error that it told.
        self._connections = self._accept() if process == 0 else {0: self._connect()}
        for connection in self._connections.values():
            connection.settimeout(None)
            _keep_alive(connection)
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def goodbye(self) -> None:
        """Tells the others that this process ends as it should."""
        self._tell(self._GOODBYE)

    def fail(self, code: int, error: BaseException | None = None) -> None:
        """Ends this process, and thereby all. (JAX would wait for the others for minutes.)

        Args:
          code: the exit code.
          error: to be printed, unless another process has died: then it is that one which
            is missed, and it is named instead.
        """
        if error is not None and self._died.wait(self._NOTICE_SECONDS):
            self._watching.join()  # It ends the process.
        self._ending.acquire()
        if error is not None:
            traceback.print_exception(error)
        self._tell(self._process)
        self._exit(code)

    def _accept(self) -> dict[int, socket.socket]:
        ipv6 = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        secret, connections = secrets.token_bytes(16), {}
        end = time.monotonic() + self._CONNECT_SECONDS
        with socket.create_server(
            ("", 0), family=family, backlog=self._processes, dualstack_ipv6=ipv6
        ) as server:
            contact = f"{server.getsockname()[1]} {secret.hex()}"
            self._store.key_value_set(self._KEY, contact)
            while len(connections) < self._processes - 1:
                server.settimeout(max(end - time.monotonic(), 0.01))
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    missing = set(range(1, self._processes)) - set(connections)
                    raise OSError(
                        f"process {min(missing)} has not connected; see what it printed"
                    ) from None
                connection.settimeout(5.0)
                introduction = self._receive(connection, len(secret) + self._MESSAGE.size)
                if introduction[: len(secret)] == secret:
                    (number,) = self._MESSAGE.unpack(introduction[len(secret) :])
                    connections[number] = connection
                else:  # A stranger.
                    connection.close()
        return connections

    def _connect(self) -> socket.socket:
        contact = self._store.blocking_key_value_get(self._KEY, 1000 * self._CONNECT_SECONDS)
        port, secret = contact.split()
        connection = socket.create_connection((self._host, int(port)), self._CONNECT_SECONDS)
        connection.sendall(bytes.fromhex(secret) + self._MESSAGE.pack(self._process))
        return connection

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for number, connection in self._connections.items():
                selector.register(connection, selectors.EVENT_READ, number)
            while selector.get_map():
                for key, _ in selector.select():
                    connection = self._connections[key.data]
                    message = self._receive(connection, self._MESSAGE.size)
                    if not message:  # The connection has broken.
                        self._died.set()
                        self._end(key.data)
                    (number,) = self._MESSAGE.unpack(message)
                    if number != self._GOODBYE:
                        if number != key.data:  # Process 0 tells of another one.
                            self._died.set()
                        time.sleep(self._GRACE_SECONDS)
                        self._end(number)
                    selector.unregister(connection)

    def _end(self, lost: int) -> None:
        if self._process == 0:
            self._tell(lost)
            time.sleep(self._GRACE_SECONDS)
        self._ending.acquire()
        self._exit(
            1,
            f"nsode_jax.train: stopped: process {lost} of {self._processes} is gone; "
            "the same command goes on from the newest checkpoint",
        )

    def _exit(self, code: int, words: str = "") -> None:
        if words:
            _say_last(words)
        sys.stdout.flush()
        sys.stderr.flush()
        if self._process == 0:
            # Last of all: JAX aborts the others when they miss it.
            time.sleep(2 * self._GRACE_SECONDS)
        os._exit(code)

    def _tell(self, number: int) -> None:
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(self._MESSAGE.pack(number))

    @staticmethod
    def _receive(connection: socket.socket, size: int) -> bytes:
        """So many bytes, or none if the connection breaks before."""
        received = b""
        while len(received) < size:
            try:
                part = connection.recv(size - len(received))
            except OSError:
                return b""
            if not part:
                return b""
            received += part
        return received


def _say_last(words: str) -> None:
    """Says it on the standard error, where nothing follows.

    JAX, in its own threads, notices a lost process 0 in the same millisecond.
    """
    sys.stderr.flush()
    standard_error = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.write(standard_error, f"{words}\n".encode())


def _keep_alive(connection: socket.socket) -> None:
    """Has the connection break within 30 seconds when the other machine is off."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):  # They differ between systems.
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
