from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from core.supervisor.trainers import Trainers, order
from core.vocabulary import trainer_messages
from core.vocabulary.access import Grant
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.phases import Exit
from core.vocabulary.plan import Moment, Plan, Resumption, Role
from core.vocabulary.progress import LogLines
from core.vocabulary.trainer_messages import Train
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.lan import FakeTrainer
from tests.core.run.world import FINISHED
from tests.core.samples import unsaid


def test_an_order_holds_all_that_a_trainer_has_to_know() -> None:
    plan = plan_of((ANNA, BEN, CLEO), fixed={CLEO: (Role.EVALUATOR,)}, strategy="own")
    train = order(plan, plan.tasks[1], Path("/work"), Path("/run"))
    assert (train.task, train.rank, train.shares, train.seed) == ("worker:0", 1, (1, 1), 1)
    assert json.loads(train.tf_config)["task"] == {"type": "worker", "index": 0}
    assert train.peers == {"chief:0": "Anna's at 192.168.1.10:20000"}
    assert train.folder == "/work"
    assert train.keep == "", "the chief alone keeps the model"


def test_fields_that_a_plan_and_an_order_share_are_carried_over() -> None:
    plan = replace(plan_of(strategy="own"), arguments=("-x",), balance=True, seed=7, wire="bf16")
    both = set(Plan.__struct_fields__) & set(Train.__struct_fields__) - {
        "resume",
        "exchange",
        "data",
    }  # a folder here; keys; its places here
    assert not unsaid(plan) & both, "a field of Plan that this test does not try"
    train = order(plan, plan.chief, Path("/work"), Path("/run"))
    assert {name: getattr(train, name) for name in both} == {name: getattr(plan, name) for name in both}


def test_whether_shares_follow_the_speed_is_reported() -> None:
    plan = plan_of()
    assert order(plan, plan.tasks[1], Path("/work"), Path("/run")).balance
    fixed = replace(plan, balance=False)
    assert not order(fixed, fixed.chief, Path("/work"), Path("/run")).balance


def test_a_trainer_gets_its_own_private_key_and_everybodys_certificate_by_rank() -> None:
    bare = plan_of()
    tasks = [replace(task, certificate=task.name.encode()) for task in bare.tasks]
    plan = replace(bare, tasks=tuple(tasks), generation=3)
    train = order(plan, plan.tasks[1], Path("/work"), Path("/run"), b"secret")
    assert train.exchange == trainer_messages.ExchangeKeys(
        generation=3, certificates=(b"chief:0", b"worker:0"), private_key=b"secret"
    )
    assert "secret" not in repr(train)
    assert order(bare, bare.tasks[1], Path("/work"), Path("/run")).exchange is None


def test_trainers_of_one_laptop_know_of_each_other() -> None:
    plan = plan_of(fixed={ANNA: (Role.CHIEF,), BEN: (Role.WORKER, Role.WORKER)})
    orders = [order(plan, task, Path("/work"), Path("/run/kept")) for task in plan.tasks]
    assert [train.ranks for train in orders] == [(0,), (1, 2), (1, 2)]
    assert [train.rank for train in orders] == [0, 1, 2]


def test_anothers_script_or_a_sealed_one_is_within_walls_and_an_own_one_is_not(tmp_path: Path) -> None:
    def walls_of(plan: Plan, rank: int) -> trainer_messages.Enclosure | None:
        return order(plan, plan.tasks[rank], Path("/work"), Path("/home/runs/r"), temporary=tmp_path).walls

    plan = plan_of(strategy="managed")
    assert plan.starter == plan.chief.device and walls_of(plan, 0) is None
    walls = walls_of(plan, 1)
    assert walls is not None
    assert walls.folders == ("/work", "/home/runs/r/kept", "/home/runs/r/checkpoints", walls.home)
    assert walls.tandem == "/home"
    assert walls.home.startswith(str(tmp_path)) and walls.user == str(Path.home())
    assert walls.calls == tuple(sorted(task.port for task in plan.tasks))
    assert walls.port == plan.tasks[1].port and walls.downloads
    opened = (Grant(asked="~/a", path="/home/ben/a"),)
    more = order(plan, plan.tasks[1], Path("/work"), Path("/run"), opened=opened).walls
    assert more is not None and more.opened == opened
    sealed = replace(plan, exchange="sealed", strategy="own", downloads=False)
    for rank in (0, 1):
        walls = walls_of(sealed, rank)
        assert walls is not None and walls.calls is None and not walls.downloads


def test_alone_there_are_no_peers() -> None:
    plan = plan_of((ANNA,))
    train = order(plan, plan.chief, Path("/work"), Path("/run"))
    assert (train.tf_config, train.peers, train.shares) == ("", {}, (1,))
    assert train.keep == "/run/kept"


def test_every_trainer_of_a_managed_run_keeps_checkpoints() -> None:
    plan = plan_of(fixed={BEN: (Role.WORKER, Role.WORKER)})
    folders = [order(plan, task, Path("/work"), Path("/run")).checkpoints for task in plan.tasks]
    assert folders == ["/run/checkpoints", "/run/checkpoints", "/run/checkpoints-worker-1"]
    assert order(plan, plan.chief, Path("/work"), Path("/run")).resume == ""
    own = replace(plan, strategy="own")
    assert order(own, own.chief, Path("/work"), Path("/run")).checkpoints == ""
    going_on = replace(plan, resume=Resumption(run=RunId("r"), checkpoint=ProjectId("d"), moment=Moment()))
    assert order(going_on, plan.chief, Path("/work"), Path("/run")).resume == "/run/checkpoints/00000001"


def test_each_task_of_a_device_has_a_trainer_and_says_its_name(tmp_path: Path) -> None:
    made: list[FakeTrainer] = []
    said: list[object] = []

    def make(train: trainer_messages.Train, **callbacks: object) -> FakeTrainer:
        made.append(FakeTrainer(train, **callbacks))  # type: ignore[arg-type]
        return made[-1]

    def on_report(task: str, report: trainer_messages.Report) -> None:
        said.append((task, report))

    def on_output(lines: LogLines) -> None:
        said.append(lines)

    def on_exit(task: str, end: Exit) -> None:
        said.append((task, end))

    plan = plan_of(fixed={BEN: (Role.WORKER, Role.PS)}, strategy="own")
    trainers = Trainers(make, tmp_path / "tmp", on_report=on_report, on_output=on_output, on_exit=on_exit)
    folders = {"worker:0": tmp_path / "w", "ps:0": tmp_path / "p"}
    trainers.start(plan, BEN, folders, tmp_path / "logs", {}, 120.0, {"ps:0": tmp_path / "agreed"})
    assert [trainer.work for trainer in made] == [tmp_path / "w", tmp_path / "p"]
    assert [trainer.log_path.name for trainer in made] == ["worker-0.log", "ps-0.log"]
    assert all(trainer.started for trainer in made)
    assert [trainer.train.agreed for trainer in made] == ["", str(tmp_path / "agreed")]
    places = [Path(trainer.train.temporary) for trainer in made]
    assert len(set(places)) == 2 and {place.parent for place in places} == {tmp_path / "tmp"}
    assert [trainer.train.meet_timeout_s for trainer in made] == [120.0, 120.0]
    met = trainer_messages.Connecting()
    made[1].say(met)
    made[0].end()
    assert said == [("ps:0", met), ("worker:0", FINISHED)]
    made[1].stubborn = True
    trainers.stop(1)
    assert (made[0].forces, made[1].forces) == ([], [1])
    order = trainer_messages.MeetWithout(generation=1, gone=(2,))
    trainers.order(order)
    assert (made[0].orders, made[1].orders) == ([], [order])
