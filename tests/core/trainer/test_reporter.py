from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import msgspec
import pytest

from core.trainer.reporter import Reporter
from core.vocabulary import trainer_messages
from core.vocabulary.progress import Progress

DECODER: msgspec.json.Decoder[trainer_messages.Report] = msgspec.json.Decoder(trainer_messages.Report)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(write)
    os.close(read)


def progress(step: int) -> Progress:
    return Progress(at_s=0.0, epoch=0, epochs=1, step=step, batch=step)


def said(words: str) -> trainer_messages.Said:
    return trainer_messages.Said(words=words)


def read_all(fd: int) -> list[trainer_messages.Report]:
    return [DECODER.decode(line) for line in os.read(fd, 1 << 20).splitlines()]


def test_reports_come_out_in_order(pipe: tuple[int, int]) -> None:
    reporter = Reporter(pipe[1])
    for number in range(50):
        reporter.send(said(str(number)))
    assert reporter.flush(60)
    assert read_all(pipe[0]) == [said(str(number)) for number in range(50)]


def test_a_step_is_reported_before_what_came_after_it(pipe: tuple[int, int]) -> None:
    reporter = Reporter(pipe[1])
    reporter.progress(progress(0))
    reporter.send(said("one"))
    reporter.progress(progress(1))
    reporter.send(said("two"))
    assert reporter.flush(60)
    assert [type(report) for report in read_all(pipe[0])] == [
        trainer_messages.Progressed,
        trainer_messages.Said,
        trainer_messages.Progressed,
        trainer_messages.Said,
    ]


def test_a_node_that_does_not_read_holds_up_no_step(pipe: tuple[int, int]) -> None:
    reporter = Reporter(pipe[1])
    for _ in range(50):
        reporter.send(said("x" * 20_000))  # More than the pipe takes.
    for step in range(10_000):
        reporter.progress(progress(step))
    assert not reporter.flush(0.01)
    received = bytearray()
    done = threading.Event()

    def drain() -> None:
        while not received.endswith(b"\n") or b'"step":9999' not in received:
            received.extend(os.read(pipe[0], 65536))
        done.set()

    threading.Thread(target=drain, daemon=True).start()
    assert reporter.flush(60)
    assert done.wait(60)
    *_, last = bytes(received).splitlines()
    assert DECODER.decode(last) == trainer_messages.Progressed(progress=progress(9_999))


def test_a_node_that_is_gone_raises_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    reporter = Reporter(write)
    reporter.send(said("to nobody"))
    assert reporter.flush(60)
    reporter.send(said("again"))
    assert reporter.flush(60)
    os.close(write)
