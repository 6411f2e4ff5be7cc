from __future__ import annotations

import os
import threading

from core.trainer.orders import Orders
from core.vocabulary import trainer_messages
from core.vocabulary.wire import to_json

TRAIN = trainer_messages.Train(run="r", task="chief:0", folder="/f", script="s.py", arguments=("ä b",))


def test_the_run_comes_first_and_stop_is_handled_once() -> None:
    read, write = os.pipe()
    orders = Orders(read)
    os.write(write, to_json(TRAIN) + b"\n")
    assert orders.wait_train() == TRAIN
    heard = threading.Semaphore(0)
    following = orders.follow(heard.release)
    assert not orders.stop_asked.is_set()
    for _ in range(3):
        os.write(write, to_json(trainer_messages.Stop()) + b"\n")
    assert heard.acquire(timeout=60)
    assert orders.stop_asked.is_set()
    os.close(write)
    following.join(60)
    assert not heard.acquire(blocking=False)


def test_an_order_to_leave_stops_nobody_else() -> None:
    read, write = os.pipe()
    orders = Orders(read)
    os.write(write, to_json(TRAIN) + b"\n" + to_json(trainer_messages.Stop(leaves=True)) + b"\n")
    assert orders.wait_train() == TRAIN
    following = orders.follow(lambda: None)
    assert orders.leave_asked.wait(60) and not orders.stop_asked.is_set()
    os.close(write)
    following.join(60)


def test_a_trainer_kept_ready_first_reads_what_to_become() -> None:
    read, write = os.pipe()
    orders = Orders(read)
    begin = trainer_messages.Become(environment=(b"HOME=/h", b"TOKEN=x"), sealed=True)
    os.write(write, to_json(begin) + b"\n")
    assert orders.wait_begin() == begin and "TOKEN" not in repr(begin)
    os.write(write, to_json(TRAIN) + b"\n")
    assert orders.wait_train() == TRAIN
    os.close(write)
    assert orders.wait_train() is None


def test_a_pipe_that_closes_brings_no_run() -> None:
    for wait in (Orders.wait_begin, Orders.wait_train):
        read, write = os.pipe()
        os.close(write)
        assert wait(Orders(read)) is None
