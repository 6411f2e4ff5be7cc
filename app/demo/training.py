"""The demo's second half: one node presses Train, the others allow it, and all report their events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.demo.agent import Agent, Say
from app.demo.report import Report
from app.models.examples import copied
from app.words import run_words
from app.words.advice_words import expected_lines
from core.cluster.tf_config import tf_config
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, RunAccepted, RunDetails
from core.vocabulary.commands import AnswerConsent, GetRun, StartRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId, short
from core.vocabulary.phases import Failed, Finished, Phase, Starting, Training, ended
from core.vocabulary.plan import Plan, RunSpec
from core.vocabulary.progress import EpochEnd
from core.vocabulary.run_folder import OUTPUTS

SCRIPT = "digits.py"
MODEL = "digits.keras"
TRAINED_S = 300.0


def copy_example(folder: Path) -> Path:
    """Copies the example unchanged; its outputs may land beside it. Returns the script's path."""
    return copied("digits", folder) / SCRIPT


async def train(nodes: Sequence[Agent], script: Path, epochs: int, say: Say) -> RunId:
    """Press Train, and wait until every node has seen the end. Raises ``TandemError`` unless it finished."""
    starter, *others = nodes
    spec = RunSpec(
        script=str(script),
        arguments=("--epochs", str(epochs)),
        devices=tuple(other.device for other in others),
    )
    say(f"{starter.name} presses Train: {script.name} --epochs {epochs}")
    run = (await starter.follower.submit(StartRun(spec=spec), RunAccepted)).run
    names = {node.device: node.name for node in nodes}
    watching = [asyncio.create_task(_watch(node, run, names, say, tells=node is starter)) for node in nodes]
    try:
        async with asyncio.timeout(TRAINED_S):
            phases = await asyncio.gather(*watching)
    except TimeoutError:
        late = next(node for node, task in zip(nodes, watching, strict=True) if not task.done())
        raise late.failure(f"did not see the run's end within {TRAINED_S:g} s") from None
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    for node, phase in zip(nodes, phases, strict=True):
        if isinstance(phase, Failed):
            raise TandemError.of(phase.problem)
        if not isinstance(phase, Finished):
            raise node.failure(f"saw the run end as {run_words.phase_words(phase)}")
    return run


async def outcome(nodes: Sequence[Agent], run: RunId, report: Report) -> tuple[Report, Path | None]:
    """``report`` with the run's results: each digest as reported by its own member, and the model's path."""
    starter = nodes[0]
    details = await starter.follower.submit(GetRun(run=run), RunDetails)
    chief = details.plan.chief.device if details.plan is not None else starter.device
    epochs: Sequence[EpochEnd] = details.epochs.get(chief, ())
    summary = details.entry.summary
    model = Path(details.entry.folder) / OUTPUTS / MODEL
    measured = msgspec.structs.replace(
        report,
        first_step_s=summary.first_step_s,
        epochs=len(epochs),
        loss_first=epochs[0].logs.get("loss") if epochs else None,
        loss_last=epochs[-1].logs.get("loss") if epochs else None,
        val_accuracy=epochs[-1].logs.get("val_accuracy") if epochs else None,
        weights_sha256={node.name: _own_digest(node, run) for node in nodes},
        strategy=summary.strategy,
        exchange=summary.exchange,
        steps_per_s=summary.steps_s,
    )
    return measured, model if await asyncio.to_thread(model.is_file) else None


def _own_digest(node: Agent, run: RunId) -> str:
    present = node.state.run
    if present is None or present.plan.run != run:
        return ""
    exits = present.members[node.device].exits.values()
    return next((exit.weights_sha256 for exit in exits if exit.weights_sha256), "")


async def _watch(node: Agent, run: RunId, names: dict[DeviceId, str], say: Say, *, tells: bool) -> Phase:
    """Reports events of ``node`` itself; ``tells``: also those of the whole run."""
    while True:
        event, state = await node.follower.next()
        match event:
            case ev.ConsentAsked():
                say(
                    f"{node.name} allows {names.get(event.device, event.name)} to run {event.script} once "
                    f"({len(event.files)} files, project {short(event.project)})"
                )
                await node.follower.submit(AnswerConsent(run=event.run, decision="once"), Done)
            case ev.MemberPhaseChanged() if event.device == node.device and state.run is not None:
                if event.phase in ("starting", "meeting"):
                    say(f"{node.name}: {run_words.member_words(state.run.members[node.device])}")
            case ev.RunPhaseChanged(phase=phase) if event.run == run:
                if tells and isinstance(phase, Starting) and state.run is not None:
                    for line in plan_lines(state.run.plan, names):
                        say(line)
                if tells:
                    say("first step" if isinstance(phase, Training) else run_words.phase_words(phase))
                if ended(phase):
                    return phase
            case ev.MemberMeasured() if tells and state.run is not None:
                for line in expected_lines(event.expectation, state.run.plan, names):
                    say(line)
            case ev.MemberEndedEpoch() if event.device == node.device:
                epoch = event.epoch
                say(f"{node.name} epoch {epoch.epoch + 1}/{epoch.epochs}: {run_words.logs_words(epoch.logs)}")
            case ev.MemberEnded() if event.device == node.device and event.exit.problem is not None:
                say(f"{node.name} {event.task}: {event.exit.problem}")


def plan_lines(plan: Plan, names: dict[DeviceId, str]) -> list[str]:
    """The plan and every member's TF_CONFIG, exactly as written."""
    parts = [f"{task.name} on {names[task.device]}" for task in plan.tasks]
    lines = [f"plan: {', '.join(parts)}"]
    lines.extend(f"TF_CONFIG of {names[task.device]}: {tf_config(plan, task)}" for task in plan.tasks)
    return lines
