"""Test laptops: ids, names, hardware."""

from __future__ import annotations

from core.cluster.make_plan import FIRST_PORT, make_plan, propose_roles
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.plan import Plan, Role, RunSpec, StrategyKind
from core.vocabulary.readings import Hardware

ANNA, BEN, CLEO = DeviceId("a" * 64), DeviceId("b" * 64), DeviceId("c" * 64)
NAMES = {ANNA: "Anna's", BEN: "Ben's", CLEO: "Cleo's"}
HOSTS = {ANNA: "192.168.1.10", BEN: "192.168.1.11", CLEO: "192.168.1.12"}
RUN = RunId("20261121-191204-9f3a01bc")


def hardware(cores: int = 4, gpus: int = 0) -> Hardware:
    return Hardware(cpu="cpu", cores=cores, memory_bytes=16 << 30, gpus=("gpu",) * gpus)


def plan_of(
    devices: tuple[DeviceId, ...] = (ANNA, BEN),
    *,
    fixed: dict[DeviceId, tuple[Role, ...]] | None = None,
    strategy: StrategyKind = "managed",
    hosts: dict[DeviceId, str] | None = None,
    starter: DeviceId = ANNA,
    project: str = "d" * 64,
    script: str = "train.py",
    mirrored_loop: bool = False,
) -> Plan:
    roles = propose_roles(devices, fixed=fixed or {}, strategy=strategy, names=NAMES)
    return make_plan(
        RunSpec(script=script, seed=1),
        starter=starter,
        project=ProjectId(project),
        script=script,
        strategy=strategy,
        mirrored_loop=mirrored_loop,
        roles=roles,
        names=NAMES,
        hosts=HOSTS if hosts is None else hosts,
        run=RUN,
        first_port=FIRST_PORT,
    )
