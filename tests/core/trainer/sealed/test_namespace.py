"""Leaving a network for good, each test in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from core.supervisor import seals

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(seals.why_none()), reason=seals.why_none() or "namespaces are here"),
]
NOBODY = 65534


def run(code: str, *, user: int | None = None) -> str:
    """Returns its output."""
    # Another user may be unable to start the interpreter in its folder. A process that has changed its user
    # may not write to its own /proc until it declares itself dumpable (prctl(2), PR_SET_DUMPABLE).
    become = (
        ""
        if user is None
        else f"os.setgroups([]); os.setgid({user}); os.setuid({user})\n"
        "import ctypes; ctypes.CDLL(None).prctl(4, 1)\n"
    )
    head = (
        "import encodings.idna, os, socket, threading\nfrom core.trainer.sealed import namespace, listeners\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + become + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


USERS = [None, *([NOBODY] if os.geteuid() == 0 else [])]


@pytest.mark.parametrize("user", USERS)
def test_inside_there_is_a_loopback_and_nothing_else_and_the_user_stays(user: int | None) -> None:
    said = run(
        """
        before = os.getuid(), os.getgid()
        outside = socket.create_server(("127.0.0.1", 0))
        namespace.enter()
        assert (os.getuid(), os.getgid()) == before
        with socket.create_server(("127.77.0.1", 0)) as listener:
            socket.create_connection(listener.getsockname()).close()
        try:
            socket.create_connection(outside.getsockname(), 5)
        except ConnectionRefusedError:
            print("another loopback,", [name for _, name in socket.if_nameindex()])
        """,
        user=user,
    )
    assert said == "another loopback, ['lo']"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has none outside, either")
def test_root_has_no_right_over_the_laptop_inside() -> None:
    said = run(
        """
        socket.sethostname(socket.gethostname())  # as it is: nothing changes
        namespace.enter()
        try:
            socket.sethostname(socket.gethostname())
        except PermissionError:
            print("refused")
        """
    )
    assert said == "refused"


@pytest.mark.parametrize("user", USERS)
def test_sockets_that_are_handed_out_stay_inside(user: int | None) -> None:
    said = run(
        """
        asking, giving = socket.socketpair()
        answers, tells = os.pipe()
        inside = os.fork()
        if not inside:
            asking.close()
            namespace.enter()
            os.write(tells, b".")
            namespace.give_sockets(giving)
            os._exit(0)
        giving.close()
        os.read(answers, 1)
        assert namespace.is_apart(inside) and not namespace.is_apart(os.getpid())
        make = namespace.socket_maker(asking)
        listener, caller = make(), make()
        listener.bind(("127.77.0.1", 0))
        listener.listen()
        place = listener.getsockname()
        caller.connect(place)
        listener.accept()[0].sendall(b"from inside")
        print(caller.recv(100).decode())
        # What listens there is read in this process's network, where it is not to be found.
        assert place[1] not in [each.rpartition(":")[2] for each in listeners.reachable(os.getpid())]
        try:
            socket.create_connection(place, 5)
        except ConnectionRefusedError:
            print("nobody there from here")
        asking.close()
        os.waitpid(inside, 0)
        """,
        user=user,
    )
    assert said.splitlines() == ["from inside", "nobody there from here"]


def test_a_process_with_threads_is_refused_and_stays_where_it_is() -> None:
    said = run(
        """
        over = threading.Event()
        threading.Thread(target=over.wait).start()
        before = os.readlink("/proc/self/ns/net")
        try:
            namespace.enter()
        except OSError as error:
            assert os.readlink("/proc/self/ns/net") == before
            print("refused")
        over.set()
        """,
        user=USERS[-1],
    )
    assert said == "refused"
