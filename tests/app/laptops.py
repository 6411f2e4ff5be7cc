"""Other laptops as events, for the screens' tests."""

from __future__ import annotations

from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.readings import GpuReading, Hardware, Reading
from tests.core.fake_node import VERSIONS

BEN = DeviceId("b1" * 32)
CARA = DeviceId("c1" * 32)
RUN = RunId("20261121-191204-9f3a01bc")
HARDWARE = Hardware(cpu="Ryzen 7", cores=16, memory_bytes=32 << 30, gpus=("RTX 3060",))
PROBLEM = Problem(code="oh", what="It went wrong.", fix="Mend it.")


def found(device: DeviceId = BEN, name: str = "ben", where: str = "10.0.0.2:27600") -> ev.DeviceFound:
    return ev.DeviceFound(device=device, name=name, addresses=(where,))


def paired(device: DeviceId = BEN, name: str = "ben", nickname: str = "") -> ev.DevicePaired:
    return ev.DevicePaired(device=device, name=name, nickname=nickname)


def linked(
    device: DeviceId = BEN, name: str = "ben", busy: bool = False, problem: Problem | None = None
) -> ev.LinkUp:
    return ev.LinkUp(
        device=device,
        name=name,
        address="10.0.0.2:27600",
        versions=VERSIONS,
        hardware=HARDWARE,
        busy=busy,
        problem=problem,
    )


def read(device: DeviceId = BEN, cpu_pct: float = 40.0) -> ev.TelemetryReported:
    reading = Reading(
        at_s=1.0,
        cpu_pct=cpu_pct,
        memory_used_bytes=4 << 30,
        memory_total_bytes=16 << 30,
        sent_bytes_s=0.0,
        received_bytes_s=0.0,
        gpus=(GpuReading(name="RTX 3060", use_pct=64.0),),
    )
    return ev.TelemetryReported(device=device, reading=reading)


def code_shown(
    code: str = "408355", name: str = "ben", warning: Problem | None = None
) -> ev.PairingCodeShown:
    return ev.PairingCodeShown(device=BEN, name=name, code=code, warning=warning)


def pairing_began(incoming: bool = False, name: str = "ben") -> ev.PairingBegan:
    return ev.PairingBegan(incoming=incoming, name=name, address="10.0.0.2:27600", device=BEN)


def consent_asked(
    run: RunId = RUN, name: str = "ben", script: str = "train.py", changed: bool = False
) -> ev.ConsentAsked:
    return ev.ConsentAsked(
        run=run,
        device=BEN,
        name=name,
        project=ProjectId("d" * 64),
        script=script,
        arguments=("--epochs", "5", "my data"),
        files=(
            ProjectFile(path=script, size=2_048, sha256="a" * 64),
            ProjectFile(path="data/rows.csv", size=5 << 20, sha256="b" * 64),
        ),
        changed=changed,
    )
