"""Which epoch of a run was its best."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from core.history.best import MOST, beats, better, deciding, with_epoch
from core.vocabulary.progress import Best, EpochEnd


@pytest.mark.parametrize(
    ("metric", "which"),
    [
        *(("loss", "lower"), ("val_loss", "lower"), ("root_mean_squared_error", "lower"), ("mae", "lower")),
        *(("accuracy", "higher"), ("val_sparse_top_k_categorical_accuracy", "higher"), ("auc", "higher")),
        *(("accuracy_loss", "lower"), ("wombat", ""), ("learning_rate", "")),
    ],
)
def test_the_name_tells_which_values_are_better(metric: str, which: str) -> None:
    assert better(metric) == which


def epoch(number: int, **logs: float) -> EpochEnd:
    return EpochEnd(at_s=float(number), epoch=number, epochs=9, step=number, seconds=1.0, logs=logs)


def best_of(epochs: Iterable[EpochEnd]) -> dict[str, Best]:
    best: dict[str, Best] = {}
    for end in epochs:
        best = with_epoch(best, end)
    return best


def test_the_best_of_each_metric_is_kept_with_its_epoch() -> None:
    best = best_of(
        [
            epoch(0, loss=1.0, val_loss=0.9, val_accuracy=0.7, wombat=1.0),
            epoch(1, loss=0.5, val_loss=0.4, val_accuracy=0.9, wombat=2.0),
            epoch(2, loss=0.2, val_loss=0.6, val_accuracy=0.9),
        ]
    )
    assert best == {
        "loss": Best(value=0.2, epoch=2),
        "val_loss": Best(value=0.4, epoch=1),
        "val_accuracy": Best(value=0.9, epoch=1),
    }, "the first of equal ones, and nothing of a metric whose name does not tell"


def test_a_value_that_is_not_finite_is_never_the_best() -> None:
    ends = [epoch(0, loss=math.nan), epoch(1, loss=3.0), epoch(2, loss=-math.inf), epoch(3, loss=math.nan)]
    assert best_of(ends) == {"loss": Best(value=3.0, epoch=1)}


def test_the_number_of_best_values_is_limited() -> None:
    assert len(best_of([epoch(0, **{f"loss_{n}": 1.0 for n in range(MOST + 9)})])) == MOST


def test_losses_take_precedence_among_many_metrics() -> None:
    many = {f"a_loss_{n:02}": 1.0 for n in range(MOST)} | {f"val_a_loss_{n:02}": 1.0 for n in range(MOST)}
    ends = [
        epoch(0, **many),
        epoch(1, **many, loss=0.5, val_loss=0.6),
        epoch(2, **many, loss=0.4, val_loss=0.7),
    ]
    best = best_of(ends)
    assert (best["loss"], best["val_loss"]) == (Best(value=0.4, epoch=2), Best(value=0.6, epoch=1))
    assert len(best) == MOST and deciding(best) == "val_loss"


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [
        (("accuracy", "loss", "val_accuracy", "val_loss"), "val_loss"),
        (("accuracy", "loss"), "loss"),
        (("loss", "val_auc"), "val_auc"),
        (("wombat", "lr"), ""),
    ],
)
def test_runs_are_compared_by_validation_and_the_loss_first(metrics: tuple[str, ...], chosen: str) -> None:
    assert deciding(metrics) == chosen


def test_better_is_lower_or_higher_as_the_name_says() -> None:
    assert beats("val_loss", 0.1, 0.2) and not beats("val_loss", 0.2, 0.2)
    assert beats("accuracy", 0.2, 0.1) and not beats("wombat", 1, 2) and not beats("wombat", 2, 1)
