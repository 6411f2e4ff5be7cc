"""Who computes what, by rank; and the records of earlier versions."""

import json

import pytest

from core.vocabulary import wire
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.options import RunOptions
from core.vocabulary.plan import (
    Member,
    Moment,
    Plan,
    Role,
    RunSpec,
    Task,
    ranks,
    shares_by_rank,
    with_ports,
    without_ports,
)

ANNA, BEN, CLEO = DeviceId("a" * 64), DeviceId("b" * 64), DeviceId("c" * 64)


def plan(*tasks: tuple[DeviceId, Role, int], **shares: int) -> Plan:
    named = {ANNA: "anna", BEN: "ben", CLEO: "cleo"}
    return Plan(
        run=RunId("run"),
        starter=ANNA,
        project=ProjectId("d" * 64),
        script="train.py",
        members=tuple(
            Member(device=device, name=name, share=shares.get(name, 1)) for device, name in named.items()
        ),
        tasks=tuple(Task(device=device, role=role, index=index) for device, role, index in tasks),
    )


TOGETHER = plan((ANNA, Role.CHIEF, 0), (BEN, Role.WORKER, 0), (CLEO, Role.EVALUATOR, 0))


def test_a_task_is_named_as_tensorflow_names_it() -> None:
    assert [task.name for task in TOGETHER.tasks] == ["chief:0", "worker:0", "evaluator:0"]


def test_one_task_is_a_run_alone_and_two_are_a_cluster() -> None:
    assert plan((ANNA, Role.CHIEF, 0)).solo
    assert not TOGETHER.solo


def test_the_chief_is_the_first_task() -> None:
    assert TOGETHER.chief.role is Role.CHIEF and TOGETHER.chief.device == ANNA


def test_a_device_is_found_with_its_own_share_and_tasks() -> None:
    several = plan((BEN, Role.CHIEF, 0), (ANNA, Role.WORKER, 0), (BEN, Role.WORKER, 1), ben=3)
    assert several.member(BEN) == Member(device=BEN, name="ben", share=3)
    assert [task.name for task in several.tasks_of(BEN)] == ["chief:0", "worker:1"]
    assert several.tasks_of(CLEO) == ()
    with pytest.raises(KeyError):
        several.member(DeviceId("e" * 64))


def test_each_task_gets_the_port_that_its_own_device_chose() -> None:
    complete = with_ports(
        TOGETHER, {ANNA: {"chief:0": 1000}, BEN: {"worker:0": 2000}, CLEO: {"evaluator:0": 3000}}
    )
    assert [task.port for task in complete.tasks] == [1000, 2000, 3000]
    assert all(task.port == 0 for task in TOGETHER.tasks)
    assert without_ports(complete) == TOGETHER


def test_each_task_gets_the_certificate_that_its_own_device_made() -> None:
    ports = {ANNA: {"chief:0": 1000}, BEN: {"worker:0": 2000}, CLEO: {"evaluator:0": 3000}}
    complete = with_ports(TOGETHER, ports, {ANNA: {"chief:0": b"anna's"}, BEN: {"worker:0": b"ben's"}})
    assert [task.certificate for task in complete.tasks] == [b"anna's", b"ben's", b""]
    assert without_ports(complete) == TOGETHER


def test_only_chief_and_workers_compute_rows() -> None:
    with_server = plan(
        (ANNA, Role.CHIEF, 0), (BEN, Role.WORKER, 0), (CLEO, Role.PS, 0), (CLEO, Role.EVALUATOR, 0)
    )
    assert ranks(with_server) == (ANNA, BEN)
    assert shares_by_rank(with_server) == (1, 1)


def test_shares_are_in_rank_order() -> None:
    assert shares_by_rank(plan((BEN, Role.CHIEF, 0), (ANNA, Role.WORKER, 0), anna=16, ben=48)) == (48, 16)


def test_a_device_with_several_tasks_divides_its_share_among_them() -> None:
    three = [(ANNA, Role.CHIEF, 0), (BEN, Role.WORKER, 0), (BEN, Role.WORKER, 1)]
    assert shares_by_rank(plan(*three, anna=32, ben=32)) == (32, 16, 16)
    assert shares_by_rank(plan(*three, anna=2, ben=3)) == (4, 3, 3)
    assert shares_by_rank(plan(*three, anna=0, ben=3)) == (0, 3, 3)


def test_the_moment_with_more_steps_is_newer_then_the_later_fit_epoch_and_batch() -> None:
    moments = [
        Moment(step=1, fit=5, epoch=5, batch=5),
        Moment(step=2, fit=0, epoch=9, batch=9),
        Moment(step=2, fit=1, epoch=0, batch=9),
        Moment(step=2, fit=1, epoch=1, batch=0),
        Moment(step=2, fit=1, epoch=1, batch=1),
    ]
    assert sorted([*moments[2:], *moments[:2]], key=lambda moment: moment.order) == moments


def test_fields_left_open_in_a_plan_have_plain_defaults() -> None:
    assert (TOGETHER.generation, TOGETHER.strategy, TOGETHER.wire) == (0, "managed", "f32")
    assert TOGETHER.exchange == "tensorflow", "what a Tandem does that knows of no other"
    assert not TOGETHER.balance and TOGETHER.seed == 0 and TOGETHER.resume is None


OLDER_SPEC = b"""{"script":"/a/train.py","arguments":["--epochs","3"],"devices":[],"solo":true,"roles":{},
"shares":{},"shares_total":null,"strategy":null,"seed":7,"wire":"bf16","exchange":null,"away_s":60.0,
"ask_after_s":0.0,"resume":null,"downloads":false,"accept_differences":true}"""
OLDER_PLAN = b"""{"run":"20261103-101500-0a1b2c3d","generation":0,"starter":"aa","project":"dd",
"script":"train.py","arguments":[],"strategy":"managed","members":[{"device":"aa","name":"anna","share":1}],
"tasks":[{"device":"aa","role":"chief","index":0,"host":"","port":0,"certificate":""}],"balance":false,"seed":7,
"wire":"bf16","exchange":"tensorflow","downloads":false,"away_s":60.0,"ask_after_s":0.0,"resume":null,
"code":"cc","accept_differences":true}"""
CHOSEN = RunOptions(wire="bf16", downloads=False, away_s=60.0, ask_after_s=0.0, accept_differences=True)


@pytest.mark.parametrize(("kind", "older"), [(RunSpec, OLDER_SPEC), (Plan, OLDER_PLAN)])
def test_options_in_records_and_messages_of_earlier_versions_are_read(
    kind: type[RunOptions], older: bytes
) -> None:
    """Histories, plans on links and JSON lines had them in this form before they became one value."""
    read = wire.from_json(older, kind)
    assert read.options == CHOSEN and type(read.options) is RunOptions
    written = json.loads(wire.to_json(read))
    of_then = json.loads(older)
    for name in set(RunOptions.__struct_fields__) & set(of_then):
        assert written[name] == of_then[name], "an earlier version reads it as before"
