"""Two laptops and a run, as events: for the tests of the training screens."""

from __future__ import annotations

from datetime import UTC, datetime

from core.cluster.make_plan import make_plan, propose_roles
from core.cluster.tf_config import tf_config
from core.vocabulary import events as ev
from core.vocabulary.answers import PlanMade, Refused, RunDetails, RunEntry, ScriptRead
from core.vocabulary.commands import Command, PlanRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.phases import Finished, Phase, Preparing, Starting, Training
from core.vocabulary.plan import Member, Moment, Plan, Role, RunSpec, Task
from core.vocabulary.progress import EpochEnd, Expectation, LogLines, Progress, Settled, Summary
from core.vocabulary.readings import GpuReading, Hardware, Reading
from tests.core.fake_node import ME, OTHER, VERSIONS

RUN = RunId("20261121-191204-9f3a01bc")
GIB = 1 << 30
HARDWARE = Hardware(cpu="Ryzen 7 7840U", cores=16, memory_bytes=32 * GIB, gpus=("NVIDIA RTX 4060",))


def linked(
    name: str = "Bob's laptop", device: DeviceId = OTHER, problem: Problem | None = None
) -> list[ev.Event]:
    """Another laptop, paired and connected."""
    return [
        ev.DevicePaired(device=device, name=name, addresses=("192.168.1.3:27600",)),
        ev.LinkUp(
            device=device,
            name=name,
            address="192.168.1.3:27600",
            versions=VERSIONS,
            hardware=HARDWARE,
            problem=problem,
        ),
    ]


def lost(device: DeviceId = OTHER) -> ev.LinkDown:
    problem = Problem(code="silent", what="It fell silent 9 s ago.", fix="Look whether it sleeps.")
    return ev.LinkDown(device=device, problem=problem)


def reading(
    use: float = 40.0,
    *,
    gpus: tuple[GpuReading, ...] = (),
    no_gpu: str = "",
    disk_free_bytes: int | None = None,
) -> Reading:
    return Reading(
        at_s=1000.0,
        cpu_pct=use,
        memory_used_bytes=9 * GIB,
        memory_total_bytes=16 * GIB,
        sent_bytes_s=2.5e6,
        received_bytes_s=3.5e6,
        temperature_c=61.0,
        disk_free_bytes=disk_free_bytes,
        gpus=gpus,
        no_gpu=no_gpu
        or ("" if gpus else "this laptop has no NVIDIA, AMD or Intel graphics that reports its use"),
    )


def gpu(use: float | None = 80.0, why: str = "") -> GpuReading:
    if use is None:
        return GpuReading(name="Intel Iris Xe", why=why)
    return GpuReading(
        name="NVIDIA RTX 4060",
        use_pct=use,
        memory_used_bytes=5 * GIB,
        memory_total_bytes=8 * GIB,
        temperature_c=71.0,
        power_w=60.0,
    )


def told(device: DeviceId, what: Reading) -> ev.TelemetryReported:
    return ev.TelemetryReported(device=device, reading=what)


def plan(
    *,
    members: tuple[tuple[DeviceId, str, int], ...] = ((ME, "here", 48), (OTHER, "Bob's laptop", 16)),
    strategy: str = "managed",
    script: str = "digits.py",
    arguments: tuple[str, ...] = (),
) -> Plan:
    roles = [Role.CHIEF] + [Role.WORKER] * (len(members) - 1)
    tasks = tuple(
        Task(
            device=device,
            role=role,
            index=max(0, place - 1),
            host="" if len(members) == 1 else f"192.168.1.{place + 2}",
            port=0 if len(members) == 1 else 20000 + place,
        )
        for place, ((device, _, _), role) in enumerate(zip(members, roles, strict=True))
    )
    return Plan(
        run=RUN,
        starter=ME,
        project=ProjectId("c" * 64),
        script=script,
        arguments=arguments,
        strategy=strategy,  # type: ignore[arg-type]
        members=tuple(Member(device=device, name=name, share=share) for device, name, share in members),
        tasks=tasks,
        seed=7,
    )


def phase(what: Phase) -> ev.RunPhaseChanged:
    return ev.RunPhaseChanged(run=RUN, phase=what)


def begun(made: Plan | None = None) -> list[ev.Event]:
    """The events up to the first step."""
    made = made or plan()
    return [
        ev.RunPlanned(plan=made),
        phase(Preparing()),
        phase(Starting()),
        phase(Training()),
        *(ev.MemberPhaseChanged(run=RUN, device=m.device, phase="training") for m in made.members),
    ]


def progress(
    step: int, *, steps: int | None = 23, epochs: int = 8, loss: float = 0.5, wait_s: float | None = 0.01
) -> Progress:
    per_epoch = steps or 23
    return Progress(
        at_s=1000.0 + step / 10,
        epoch=step // per_epoch,
        epochs=epochs,
        step=step,
        batch=step % per_epoch,
        steps_in_epoch=steps,
        logs={"loss": loss, "accuracy": max(0.0, 1 - loss / 3)},
        samples_s=640.0,
        steps_s=10.0,
        step_s=0.1,
        wait_s=wait_s,
    )


MOMENT = Moment(step=950, epoch=3, batch=119)
"""Epoch 4, step 120."""


def found(run: RunId = RUN, moment: Moment = MOMENT) -> ev.CheckpointFound:
    """The other laptop has a newer checkpoint."""
    return ev.CheckpointFound(run=run, device=OTHER, moment=moment)


def came(done: int, run: RunId = RUN) -> ev.CheckpointCame:
    return ev.CheckpointCame(run=run, device=OTHER, done=done, total=70_500_000)


def progressed(device: DeviceId, what: Progress) -> ev.MemberProgressed:
    return ev.MemberProgressed(run=RUN, device=device, progress=what)


EXPECTED = Expectation(alone_s=(0.1, 0.3), step_s=0.08, wire_s=0.0176, wire_bytes=1_200_000, shares=(48, 16))
SETTLED = Settled(
    step_s=0.085, samples_s=753.0, wire_s=0.02, wire_bytes=1_200_000, shares={ME: 47, OTHER: 17}
)


def measured(expectation: Expectation = EXPECTED) -> ev.MemberMeasured:
    return ev.MemberMeasured(run=RUN, device=ME, expectation=expectation)


def epoch_ended(device: DeviceId, number: int, loss: float, epochs: int = 8) -> ev.MemberEndedEpoch:
    end = EpochEnd(
        at_s=1000.0 + 2.3 * (number + 1),
        epoch=number,
        epochs=epochs,
        step=23 * (number + 1) - 1,
        logs={"loss": loss, "accuracy": 1 - loss / 3, "val_loss": loss * 1.1, "val_accuracy": 1 - loss / 2.8},
        seconds=2.3,
    )
    return ev.MemberEndedEpoch(run=RUN, device=device, epoch=end)


def logged(device: DeviceId, text: str, task: str = "chief:0", stream: str = "stdout") -> ev.MemberLogged:
    return ev.MemberLogged(run=RUN, device=device, lines=LogLines(task=task, stream=stream, text=text))


SUMMARY = Summary(
    strategy="MirroredStrategy",
    first_step_s=9.5,
    train_s=20.0,
    total_s=31.0,
    epochs=8,
    steps=184,
    steps_s=9.2,
    samples_s=590.0,
    last_logs={"loss": 0.0812, "accuracy": 0.9791, "val_loss": 0.1023, "val_accuracy": 0.9722},
    weights_sha256={ME: "d" * 64, OTHER: "d" * 64},
    outputs=("digits.keras", "trained/model.keras"),
)


def finished(summary: Summary = SUMMARY, last: Phase | None = None) -> list[ev.Event]:
    return [ev.RunSummarised(run=RUN, summary=summary), phase(last or Finished())]


def entry(
    number: int = 0,
    *,
    script: str = "digits.py",
    last: Phase | None = None,
    devices: tuple[str, ...] = ("here", "Bob's laptop"),
    folder: str = "",
    source: str = "/home/ada/digits/digits.py",
    device_ids: tuple[DeviceId, ...] = (ME, OTHER),
    spec: RunSpec | None = None,
) -> RunEntry:
    started_s = 1_795_000_000.0 - 86_000.0 * number
    return RunEntry(
        run=RunId(f"{datetime.fromtimestamp(started_s, UTC):%Y%m%d-%H%M%S}-9f3a01bc"),
        started_s=started_s,
        duration_s=31.0 + 400 * number,
        script=script,
        source=source,
        devices=devices,
        device_ids=device_ids,
        spec=spec,
        arguments=spec.arguments if spec is not None else (),
        phase=last or Finished(),
        summary=SUMMARY,
        folder=folder,
    )


def details(of: RunEntry, *, shift: float = 0.0, steps: int = 184) -> RunDetails:
    points = tuple(progress(step, loss=shift + 2.3 / (1 + step / 20)) for step in range(steps))
    ends = tuple(epoch_ended(ME, n, shift + 2.3 / (1 + n)).epoch for n in range(steps // 23))
    return RunDetails(
        entry=of, plan=plan(), steps={ME: points}, epochs={ME: ends}, log="Epoch 1/8\n23/23 - loss: 1.2\n"
    )


def script_read(
    script: str = "digits.py",
    *,
    kind: str = "managed",
    folder: str = "/home/ada/digits",
    mistakes: tuple[Problem, ...] = (),
    skipped: tuple[str, ...] = (),
    strategies: tuple[str, ...] = (),
    mirrored_loop: bool = False,
) -> ScriptRead:
    files = tuple(
        ProjectFile(path=path, size=size, sha256="e" * 64)
        for path, size in ((script, 2_000), ("data.npz", 180_000))
    )
    return ScriptRead(
        script=script,
        folder=folder,
        kind=kind,  # type: ignore[arg-type]
        strategies=strategies,
        mirrored_loop=mirrored_loop,
        mistakes=mistakes,
        files=files,
        skipped=skipped,
        total_bytes=182_000,
        code="c" * 64,
    )


def planned(command: Command) -> PlanMade | Refused:
    """Plans by the node's own rules, with this laptop and the other."""
    assert isinstance(command, PlanRun)
    spec = command.spec
    try:
        devices = (ME,) if spec.solo else (ME, *spec.devices)
        roles = propose_roles(devices, fixed=spec.roles, strategy=spec.strategy or "managed")
        names = {ME: "here", OTHER: "Bob's laptop"}
        made = make_plan(
            spec,
            starter=ME,
            project=ProjectId("p"),
            script="digits.py",
            strategy=spec.strategy or "managed",
            roles=roles,
            names=names,
            hosts={ME: "192.168.1.2", OTHER: "192.168.1.3"},
        )
    except TandemError as error:
        return Refused(problem=error.problem)
    texts = {f"{t.device}/{t.name}": tf_config(made, t) for t in made.tasks if not made.solo}
    return PlanMade(plan=made, tf_configs=texts)
