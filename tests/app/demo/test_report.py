import pytest
from msgspec.structs import replace

from app.demo.report import Report, judged, lines
from core.vocabulary import wire
from tests.app.cli.scripted_node import PROBLEM

KEPT = Report(
    nodes=2,
    discovery_s=1.2,
    pairing_s=0.1,
    first_step_s=9.8,
    epochs=8,
    loss_first=1.75,
    loss_last=0.05,
    val_accuracy=0.986,
    weights_sha256={"anna": "ab" * 32, "ben": "ab" * 32},
    strategy="MirroredStrategy",
    exchange="tls",
    steps_per_s=34.0,
    model_path="/data/digits.keras",
    total_s=20.9,
)


def test_all_promises_kept_is_ok() -> None:
    report = judged(KEPT)
    assert report.ok
    assert report.problem is None


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (replace(KEPT, strategy="MultiWorkerMirroredStrategy"), "demo-strategy"),
        (replace(KEPT, exchange="tensorflow"), "demo-exchange"),
        (replace(KEPT, weights_sha256={"anna": "ab" * 32, "ben": "cd" * 32}), "demo-weights"),
        (replace(KEPT, weights_sha256={"anna": "ab" * 32, "ben": ""}), "demo-weights"),
        (replace(KEPT, weights_sha256={"anna": "ab" * 32}), "demo-weights"),
        (replace(KEPT, val_accuracy=0.9499), "demo-accuracy"),
        (replace(KEPT, val_accuracy=None), "demo-accuracy"),
        (replace(KEPT, val_accuracy=float("nan")), "demo-accuracy"),
        (replace(KEPT, model_path=""), "demo-model"),
        (replace(KEPT, problem=PROBLEM), "test"),
    ],
)
def test_one_broken_promise_is_enough_to_fail(broken: Report, code: str) -> None:
    report = judged(broken)
    assert not report.ok
    assert report.problem is not None
    assert report.problem.code == code


def test_the_object_has_every_field_that_scripts_rely_on() -> None:
    told = wire.from_json(wire.to_json(judged(KEPT)), dict)
    assert {
        *("ok", "discovery_s", "pairing_s", "first_step_s", "epochs", "loss_first", "loss_last"),
        *("val_accuracy", "weights_sha256", "strategy", "exchange", "steps_per_s", "model_path"),
    } <= set(told)


def test_the_words_leave_out_what_was_not_measured() -> None:
    assert "  found each other in  1.2 s" in lines(KEPT)
    assert "  strategy             MirroredStrategy over tls" in lines(KEPT)
    early = lines(Report(nodes=2, discovery_s=1.0))
    assert not any("paired in" in line or "model" in line for line in early)
