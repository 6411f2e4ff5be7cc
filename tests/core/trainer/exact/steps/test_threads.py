"""One thread of a script at a time."""

from __future__ import annotations

import threading

import pytest

from core.trainer.exact.steps.threads import OneThread
from core.vocabulary.errors import TandemError


def refused(one: OneThread, kind: str, name: str = "") -> str:
    """The error of another thread's call; empty if it may run."""
    told = [""]

    def call() -> None:
        try:
            with one.calls(kind, lambda: name):
                pass
        except TandemError as error:
            told[0] = error.problem.what

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return told[0]


def test_another_threads_call_is_refused_while_one_lasts() -> None:
    one = OneThread()
    with one.calls("train_on_batch", lambda: ""):
        said = refused(one, "train_on_batch")
        assert said == "The script calls train_on_batch in one thread while train_on_batch runs in another."
    assert refused(one, "train_on_batch") == ""


def test_the_call_under_way_is_named_with_its_number() -> None:
    one = OneThread()
    with one.calls("fit", lambda: "fit 2"), one.calls("evaluate", lambda: "evaluate 1"):
        assert "while fit 2 runs" in refused(one, "evaluate", "fit 2")


def test_a_call_that_fails_lets_other_threads_in() -> None:
    one = OneThread()
    with pytest.raises(ValueError, match="broken"), one.calls("fit", lambda: "fit 1"):
        raise ValueError("broken")
    assert refused(one, "fit") == ""
