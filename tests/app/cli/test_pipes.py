import asyncio
import os

import pytest

from app.cli.pipes import CHUNK, Stdin, Stdout

pytestmark = pytest.mark.real


async def test_what_comes_through_a_pipe_is_read_to_its_end() -> None:
    read, write = os.pipe()
    os.write(write, b"one\ntwo\n")
    os.close(write)
    try:
        chunks = [chunk async for chunk in Stdin(read)]
    finally:
        os.close(read)
    assert b"".join(chunks) == b"one\ntwo\n"


async def test_a_second_question_reads_on_where_the_first_one_left() -> None:
    read, write = os.pipe()
    stdin = Stdin(read)
    try:
        os.write(write, b"one\n")
        assert await anext(aiter(stdin)) == b"one\n"
        os.write(write, b"two\n")
        assert await anext(aiter(stdin)) == b"two\n"
    finally:
        os.close(write)
    assert [chunk async for chunk in stdin] == []
    assert [chunk async for chunk in stdin] == []
    os.close(read)


async def test_no_stdin_at_all_is_an_ended_one() -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    assert [chunk async for chunk in Stdin(read)] == []


async def test_a_write_returns_when_the_bytes_are_out() -> None:
    read, write = os.pipe()
    data = b"x" * (4 * CHUNK)
    taken = bytearray()

    async def take() -> None:
        while len(taken) < len(data):
            taken.extend(await asyncio.to_thread(os.read, read, CHUNK))

    try:
        await asyncio.gather(Stdout(write).write(data), take())
    finally:
        os.close(read)
        os.close(write)
    assert taken == data


async def test_a_reader_that_left_is_an_error() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(OSError):
            await Stdout(write).write(b"x")
    finally:
        os.close(write)
