from __future__ import annotations

from core.trainer.graphics import choose, idle_words


def test_each_of_a_laptops_trainers_uses_a_gpu_of_its_own() -> None:
    gpus = ["GPU:0", "GPU:1"]
    assert [choose(gpus, None, index) for index in range(3)] == [["GPU:0"], ["GPU:1"], []]
    assert choose([], None, 0) == []


def test_a_script_with_its_own_strategy_uses_all_or_as_many_as_ordered() -> None:
    gpus = ["GPU:0", "GPU:1"]
    assert choose(gpus, None, None) == gpus
    assert choose(gpus, 1, None) == ["GPU:0"]
    assert choose(gpus, 0, 0) == []


def test_gpus_that_would_stay_idle_are_reported_with_advice() -> None:
    assert idle_words(1, 1) == idle_words(2, 2) == idle_words(0, 1) == ""
    words = idle_words(2, 1)
    assert words.startswith("This laptop has 2 GPUs, but only the first takes part.")
    assert "--role NAME=worker,worker" in words
