"""Audits of sums: all members decide alike, and allow for the rounding of what is really sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


class Alone:
    """Collectives of a single member, which gathers what it gives."""

    met = present = (0,)
    failure: Any = None

    def gather_numbers(self, own: list[float], what: str) -> list[list[float]]:
        return [own]


class Marks:
    """Marks of one gradient, as sent or received."""

    def __init__(self, *marks: float) -> None:
        self.marks = np.array([marks])

    def begin(self) -> None: ...

    def end(self) -> np.ndarray:
        return self.marks


def engine_of(**given: Any) -> Any:
    from core.trainer.exact.steps.course import AuditTime

    return SimpleNamespace(
        **{"wire": "f32", "audits": AuditTime(), "step": 0, "draws_apart": False, "collectives": Alone()}
        | given
    )


def model_of(tf: Any, *, kind: str = "float32", run_eagerly: bool = False) -> Any:
    policy = SimpleNamespace(compute_dtype=kind)
    weights = [tf.Variable(tf.zeros([300], kind))]
    return SimpleNamespace(
        name="it", dtype_policy=policy, trainable_variables=weights, run_eagerly=run_eagerly
    )


def traced_of() -> Any:
    from core.trainer.exact.steps.result import Traced

    return Traced(step=None, state=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "wire"),
    [({"run_eagerly": True}, "f32"), ({"kind": "float16"}, "f32"), ({}, "bf16")],
    ids=["eagerly", "16 bits", "narrow wire"],
)
def test_members_with_and_without_a_graphics_card_both_audit_sums(
    tf: Any, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], wire: str
) -> None:
    from core.trainer.exact.steps.audit import Auditor

    decided = []
    for cards in ([], ["GPU:0"]):
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind, cards=cards: cards)
        auditor, traced = Auditor(engine_of(wire=wire), model_of(tf, **model), is_training=True), traced_of()
        auditor.portion_begins(traced, 64)
        decided.append((traced.course.able, traced.course.sums_alone))
    assert decided == [(False, True)] * 2


def audited(tf: Any, off: float, wire: str = "f32", **model: Any) -> None:
    """Audits one step, in which the received sum is wrong by `off` times its size."""
    from core.trainer.exact.steps.audit import Auditor

    meter = SimpleNamespace(sent=Marks(1.0, 1.0), received=Marks(1.0, 1.0 + off))
    traced = traced_of()
    traced.course.sums_alone = True
    auditor = Auditor(engine_of(wire=wire, meter=meter), model_of(tf, **model), is_training=True)
    auditor.audited(traced, 64, lambda: None, 1)  # type: ignore[arg-type, return-value]


def test_sums_of_16_bit_weights_may_round_as_16_bits_do(tf: Any) -> None:
    from core.vocabulary.errors import TandemError

    audited(tf, 2.0**-9, kind="bfloat16")
    audited(tf, 2.0**-12, kind="float16")
    audited(tf, 2.0**-9, wire="bf16")
    with pytest.raises(TandemError, match="sums of gradients"):
        audited(tf, 2.0**-6, kind="bfloat16")


def test_sums_sent_as_float32_may_not_although_larger_models_would_be_narrowed(tf: Any) -> None:
    from core.vocabulary.errors import TandemError

    audited(tf, 2.0**-24, wire="auto")
    with pytest.raises(TandemError, match="sums of gradients"):
        audited(tf, 2.0**-12, wire="auto")
