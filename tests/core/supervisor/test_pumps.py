"""Bytes carried between pipes and sockets: all of them, to the end, whichever side ends first."""

import os
import select
import socket
import subprocess
import sys

import pytest

from core.supervisor import pumps

pytestmark = pytest.mark.real
LIMIT_S = 60.0
MUCH = bytes(range(256)) * 8192
"""More than a pipe and a socket hold together."""


def at(fd: int) -> socket.socket:
    end = socket.socket(fileno=fd)
    end.settimeout(LIMIT_S)
    return end


def all_of(end: socket.socket) -> bytes:
    data = b""
    while more := end.recv(65536):
        data += more
    return data


def test_output_of_a_pipe_can_be_waited_for() -> None:
    read, write = os.pipe()
    with at(pumps.from_pipe(read, "out")) as end:
        assert select.select([end], [], [], 0)[0] == []
        os.write(write, b"a report\n")
        assert select.select([end], [], [], LIMIT_S)[0] == [end]
        assert end.recv(100) == b"a report\n"
        os.close(write)
        assert end.recv(100) == b""


def test_written_bytes_go_into_the_pipe_and_so_does_the_end() -> None:
    read, write = os.pipe()
    with at(pumps.to_pipe(write, "orders")) as end, os.fdopen(read, "rb") as pipe:
        end.sendall(b"an order\n")
        assert pipe.readline() == b"an order\n"
        end.shutdown(socket.SHUT_WR)
        assert pipe.read() == b""


def test_a_chatty_process_loses_nothing() -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 8192)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with at(pumps.from_pipe(os.dup(process.stdout.fileno()), "stdout")) as end:
        process.stdout.close()
        assert all_of(end) == MUCH
    assert process.wait(LIMIT_S) == 0


def test_the_writer_notices_that_the_reader_is_gone() -> None:
    read, write = os.pipe()
    at(pumps.from_pipe(read, "out")).close()
    with pytest.raises(BrokenPipeError):
        while True:
            os.write(write, MUCH)
    os.close(write)


def test_a_death_can_be_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with at(pumps.death_of(process)) as end:
        assert select.select([end], [], [], 0)[0] == []
        assert process.stdin is not None
        process.stdin.close()
        assert end.recv(1) == b""
    assert process.wait(LIMIT_S) == 1
