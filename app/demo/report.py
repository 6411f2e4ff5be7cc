"""The demo's measurements, whether its promises hold, and its report. Pure."""

from __future__ import annotations

import msgspec

from core.vocabulary import units
from core.vocabulary.errors import Problem

ACCURACY = 0.95
STRATEGY = "MirroredStrategy"
EXCHANGE = "tls"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The object of ``tandem demo --json``. Times in seconds; None if the demo did not get that far."""

    ok: bool = False
    nodes: int
    discovery_s: float | None = None
    """From the last node being ready until every node has found every other by mDNS."""
    pairing_s: float | None = None
    """From the pairing request until both sides are connected over TLS, for all pairs together."""
    first_step_s: float | None = None
    """From pressing Train to the first training step."""
    epochs: int = 0
    loss_first: float | None = None
    loss_last: float | None = None
    val_accuracy: float | None = None
    weights_sha256: dict[str, str] = {}
    """Digests by node name."""
    strategy: str = ""
    exchange: str = ""
    """How the members exchanged gradients: see ``core.vocabulary.plan.Exchange``."""
    steps_per_s: float | None = None
    model_path: str = ""
    total_s: float | None = None
    problem: Problem | None = None


def judged(report: Report) -> Report:
    """``report`` with ``ok``, and with the first broken promise as its problem."""
    broken = report.problem or broken_promise(report)
    return msgspec.structs.replace(report, ok=broken is None, problem=broken)


def broken_promise(report: Report) -> Problem | None:
    """The first broken promise of the demo; None if it kept them all."""
    digests = report.weights_sha256
    if report.strategy != STRATEGY:
        return _broken(
            "strategy", f"The trainers used {report.strategy or 'no strategy'} instead of {STRATEGY}."
        )
    if report.exchange != EXCHANGE:
        return _broken(
            "exchange", f"The trainers met over {report.exchange or 'nothing'}, not over {EXCHANGE}."
        )
    if len(digests) != report.nodes or not all(digests.values()):
        without = report.nodes - sum(1 for digest in digests.values() if digest)
        return _broken(
            "weights", f"{without} of {report.nodes} members did not report their weights' checksum."
        )
    if len(set(digests.values())) != 1:
        return _broken("weights", "The members ended with different weights.")
    if report.val_accuracy is None:
        return _broken("accuracy", "No validation accuracy was reported.")
    if not report.val_accuracy >= ACCURACY:  # so that NaN fails, too
        return _broken(
            "accuracy",
            f"The validation accuracy is {report.val_accuracy:.4f} after {report.epochs} epochs, less than "
            f"{ACCURACY}.",
            "Train longer: tandem demo --epochs 8 reaches it.",
        )
    if not report.model_path:
        return _broken("model", "The chief's model did not come back.")
    return None


def lines(report: Report) -> list[str]:
    """The short report at the end, for a person."""
    rows = [
        ("nodes", f"{report.nodes} on this machine"),
        ("strategy", f"{report.strategy} over {report.exchange}" if report.exchange else report.strategy),
        ("found each other in", _seconds(report.discovery_s)),
        ("paired in", _seconds(report.pairing_s)),
        ("first step after", _seconds(report.first_step_s)),
        ("speed", "" if report.steps_per_s is None else units.steps(report.steps_per_s)),
        ("loss", _losses(report)),
        ("validation accuracy", _number(report.val_accuracy)),
        *((f"weights on {name}", digest[:16]) for name, digest in report.weights_sha256.items()),
        ("model", report.model_path),
        ("total", _seconds(report.total_s)),
    ]
    return [f"  {label:<20} {value}" for label, value in rows if value]


def _broken(
    code: str, what: str, fix: str = "Please report it, with the output of tandem doctor."
) -> Problem:
    return Problem(code=f"demo-{code}", what=what, fix=fix)


def _seconds(value: float | None) -> str:
    return "" if value is None else units.duration(value)


def _losses(report: Report) -> str:
    if report.loss_first is None or report.loss_last is None:
        return ""
    return f"{_number(report.loss_first)} → {_number(report.loss_last)} in {report.epochs} epochs"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
