"""A finished run, as in its record."""

from __future__ import annotations

import math

from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed, Machine, MembershipChanged
from core.vocabulary.phases import Finished, Phase
from core.vocabulary.plan import Plan
from core.vocabulary.progress import EpochEnd, Progress, Summary
from tests.core.cluster.laptops import ANNA, BEN, plan_of

PLAN = plan_of()


def steps_of(count: int, *, fit: int = 0, start: float = 2.0, **more: float) -> tuple[Progress, ...]:
    return tuple(
        Progress(
            at_s=100.0 + step,
            fit=fit,
            epoch=step // 10,
            epochs=-(-count // 10),
            step=step,
            batch=step % 10,
            logs={"loss": start * math.exp(-step / 20), "accuracy": 1 - math.exp(-step / 15)},
            **more,  # type: ignore[arg-type]
        )
        for step in range(count)
    )


def epochs_of(count: int, *, fit: int = 0, validation: bool = True) -> tuple[EpochEnd, ...]:
    found = []
    for epoch in range(count):
        logs = {"accuracy": 0.5 + epoch / 20, "loss": 2.0 / (epoch + 1)}
        if validation:
            logs["val_loss"] = 2.2 / (epoch + 1)
        found.append(
            EpochEnd(
                at_s=110.0 + epoch,
                fit=fit,
                epoch=epoch,
                epochs=count,
                step=10 * epoch + 9,
                logs=logs,
                seconds=1.5,
            )
        )
    return tuple(found)


def run_told(
    *,
    plan: Plan | None = PLAN,
    phase: Phase | None = None,
    script: str = "train.py",
    summary: Summary | None = None,
    steps: dict[DeviceId, tuple[Progress, ...]] | None = None,
    epochs: dict[DeviceId, tuple[EpochEnd, ...]] | None = None,
    uses: dict[DeviceId, tuple[LaptopUsed, ...]] | None = None,
    membership: tuple[MembershipChanged, ...] = (),
    machines: dict[DeviceId, Machine] | None = None,
) -> RunDetails:
    members = plan.members if plan is not None else ()
    entry = RunEntry(
        run=PLAN.run,
        started_s=1_790_000_000.0,
        duration_s=75.0,
        script=script,
        source=f"/home/anna/{script}",
        arguments=("--epochs", "4"),
        devices=tuple(member.name for member in members),
        phase=phase or Finished(),
        summary=summary or Summary(),
        machines=machines or {},
    )
    both = (ANNA, BEN)
    return RunDetails(
        entry=entry,
        plan=plan,
        steps=dict.fromkeys(both, steps_of(40)) if steps is None else steps,
        epochs=dict.fromkeys(both, epochs_of(4)) if epochs is None else epochs,
        uses=uses or {},
        membership=membership,
    )
