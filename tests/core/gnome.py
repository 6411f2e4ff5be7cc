"""A private D-Bus with the part of GNOME's session that keeps a laptop awake."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import Proxy, open_dbus_connection

SUSPEND = 4
GNOME = "org.gnome.SessionManager"


class Desktop:
    """Answers like GNOME's session. ``held``: cookies of the suspend inhibitors."""

    def __init__(self, address: str) -> None:
        self.held: set[int] = set()
        self.asked = 0
        self._seen = 0
        self._changes = threading.Semaphore(0)
        self._connection = open_dbus_connection(address)
        Proxy(message_bus, self._connection).RequestName(GNOME)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            call = self._connection.receive()
            if call.header.message_type != MessageType.method_call:
                continue
            match call.header.fields[HeaderFields.member]:
                case "Inhibit":
                    assert call.body[3] == SUSPEND
                    self.asked += 1
                    self.held.add(self.asked)
                    answer = new_method_return(call, "u", (self.asked,))
                case "Uninhibit":
                    self.held.remove(call.body[0])
                    answer = new_method_return(call)
                case _:
                    self._connection.send(new_method_return(call))
                    return
            self._connection.send(answer)
            self._changes.release()

    async def changes(self, count: int) -> None:
        """Waits for that many requests in total."""
        for _ in range(count - self._seen):
            assert await asyncio.to_thread(self._changes.acquire, timeout=10)
        self._seen = count

    def close(self, address: str) -> None:
        place = DBusAddress("/org/gnome/SessionManager", bus_name=GNOME, interface=GNOME)
        with open_dbus_connection(address) as connection:
            connection.send_and_get_reply(new_method_call(place, "End"), timeout=10)
        self._thread.join()
        self._connection.close()


@contextmanager
def desktop() -> Iterator[Desktop]:
    """Where this process looks for one. Skips without a dbus-daemon."""
    if not shutil.which("dbus-daemon"):
        pytest.skip("dbus-daemon is not installed")
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bus:
        assert bus.stdout
        address = bus.stdout.readline().strip()
        played = Desktop(address)
        try:
            with mock.patch.dict(os.environ, DBUS_SESSION_BUS_ADDRESS=address):
                yield played
        finally:
            played.close(address)
            bus.terminate()
