"""One trainer process for each of this device's tasks in a run. On the core loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, cast

from core.cluster.tf_config import address, inside, tf_config
from core.project.checkpoint_store import resumed
from core.supervisor.driver import TrainerProcess
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.temporary import place_of
from core.supervisor.warm import WarmTrainer
from core.vocabulary import limits
from core.vocabulary.access import Grant
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Exit
from core.vocabulary.plan import Plan, Role, Task, ranks, shares_by_rank
from core.vocabulary.progress import LogLines
from core.vocabulary.run_folder import CHECKPOINTS, LOGS, SAVED, log_name, task_name
from core.vocabulary.trainer_messages import Enclosure, ExchangeKeys, Order, Report, Seal, Train
from core.walls import places


class Trainer(Protocol):
    def start(self) -> None: ...

    def stop(self, force: Literal[0, 1, 2] = 0) -> None: ...

    def order(self, order: Order) -> None: ...

    @property
    def is_stopped(self) -> bool: ...

    @property
    def cpu_s(self) -> float: ...


class MakeTrainer(Protocol):
    """``TrainerProcess``, or a test's replacement. ``on_exit`` is called exactly once after ``start``."""

    def __call__(
        self,
        train: Train,
        *,
        log_path: Path,
        on_report: Callable[[Report], None],
        on_output: Callable[[LogLines], None],
        on_exit: Callable[[Exit], None],
    ) -> Trainer: ...


def real_trainers(warm: WarmTrainer, loading: LoadingTimes) -> MakeTrainer:
    """Real processes, starting with the warm one, if any. ``loading``: TensorFlow's earlier loading times."""

    def make(train: Train, **callbacks: Any) -> Trainer:
        return TrainerProcess(train, child=warm.hand_over(), loading=loading, **callbacks)

    return make


def order(
    plan: Plan,
    task: Task,
    folder: Path,
    run: Path,
    private_key: bytes = b"",
    *,
    meet_s: float = limits.MEET_S,
    temporary: Path | None = None,
    agreed: Path | None = None,
    opened: tuple[Grant, ...] = (),
    data: Mapping[str, str] = MappingProxyType({}),
) -> Train:
    """The order for one trainer. ``folder``: its script and the files beside it; ``run``: the run's own
    folder.

    ``private_key``: of the task's certificate, if members meet over TLS. ``temporary``: the home's
    folder for temporary files. ``agreed``: see ``Train``. ``opened``: additional access within walls.
    ``data``: see ``Train``.
    """
    away_s = plan.away_s if plan.patient else 0.0
    resume = resumed(run, plan)
    own_temporary = str(place_of(temporary, plan.run, task.name)) if temporary is not None else ""
    in_cluster = [other for other in plan.tasks if other.role is not Role.EVALUATOR and other is not task]
    keep = str(run / SAVED) if task is plan.chief or plan.outlasts_losses else ""
    checkpoints = str(_checkpoints(plan, task, run)) if plan.strategy == "managed" else ""
    walls, sealed = None, plan.exchange == "sealed"
    if is_walled(plan, task):
        home = own_temporary or str(run / f"home-{task_name(task.name)}")
        walls = Enclosure(
            folders=tuple(each for each in (str(folder), keep, checkpoints, home) if each),
            home=home,
            user=str(Path.home()),
            tandem=str(run.parent.parent),
            keras=places.keras_home(),
            reads=tuple(str(each) for each in (resume, agreed) if each is not None),
            port=task.port,
            calls=None if sealed else tuple(sorted({each.port for each in plan.tasks if each.port})),
            downloads=plan.downloads,
            opened=opened,
        )
    return Train(
        run=plan.run,
        task=task.name,
        folder=str(folder),
        script=plan.script,
        arguments=plan.arguments,
        tf_config=tf_config(plan, task),
        strategy=plan.strategy,
        rank=plan.tasks.index(task),
        ranks=tuple(rank for rank, device in enumerate(ranks(plan)) if device == task.device),
        shares=shares_by_rank(plan),
        balance=plan.balance,
        seed=plan.seed,
        options=plan.options,
        keep=keep,
        checkpoints=checkpoints,
        resume=str(resume) if resume is not None else "",
        peers={other.name: f"{plan.member(other.device).name} at {address(other)}" for other in in_cluster},
        meet_timeout_s=max(meet_s, away_s) if plan.redials else meet_s,
        linger_s=away_s,
        exchange=_keys(plan, private_key) if plan.exchange == "tls" and private_key else None,
        seal=_seal(plan, private_key) if plan.exchange == "sealed" else None,
        names=tuple(_name(plan, each) for each in plan.tasks),
        temporary=own_temporary,
        agreed=str(agreed) if agreed is not None else "",
        walls=walls,
        data=dict(data),
        stands_in=plan.owner is not None,
    )


def is_walled(plan: Plan, task: Task) -> bool:
    """Whether the script is another laptop's, or other members could act through it here, as they can by
    TensorFlow's runtime."""
    foreign = task.device != plan.starter or plan.of_another or plan.owner is not None
    return foreign or plan.exchange == "sealed"


def _seal(plan: Plan, private_key: bytes) -> Seal:
    return Seal(
        keys=_keys(plan, private_key),
        outside=tuple(address(task) for task in plan.tasks),
        inside=tuple(address(inside(plan, task)) for task in plan.tasks),
        downloads=plan.downloads,
    )


def _keys(plan: Plan, private_key: bytes) -> ExchangeKeys:
    return ExchangeKeys(
        generation=plan.generation,
        certificates=tuple(task.certificate for task in plan.tasks),
        private_key=private_key,
    )


def _name(plan: Plan, task: Task) -> str:
    name = plan.member(task.device).name
    return name if len(plan.tasks_of(task.device)) == 1 else f"{name} ({task.name})"


def _checkpoints(plan: Plan, task: Task, run: Path) -> Path:
    """A folder for each trainer. The first one's is served to other laptops."""
    if task == plan.tasks_of(task.device)[0]:
        return run / CHECKPOINTS
    return run / f"{CHECKPOINTS}-{task_name(task.name)}"


class Trainers:
    """Callbacks name the task. ``on_exit`` is called exactly once for each started task."""

    def __init__(
        self,
        make: MakeTrainer,
        temporary: Path,
        *,
        on_report: Callable[[str, Report], None],
        on_output: Callable[[LogLines], None],
        on_exit: Callable[[str, Exit], None],
    ) -> None:
        self._make = make
        self._temporary = temporary
        self._on_report = on_report
        self._on_output = on_output
        self._on_exit = on_exit
        self._running: dict[str, Trainer] = {}
        self._none_run = asyncio.Event()
        self._none_run.set()

    def start(
        self,
        plan: Plan,
        device: DeviceId,
        folders: Mapping[str, Path],
        run: Path,
        private_keys: Mapping[str, bytes],
        meet_s: float,
        agreed: Mapping[str, Path],
        opened: tuple[Grant, ...] = (),
        data: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``folders`` and the other arguments of ``order`` are by task name; ``run``: the run's own
        folder."""
        for task in plan.tasks_of(device):
            train = order(
                plan,
                task,
                folders[task.name],
                run,
                private_keys.get(task.name, b""),
                meet_s=meet_s,
                temporary=self._temporary,
                agreed=agreed.get(task.name),
                opened=opened,
                data=data,
            )
            trainer = self._make(
                train,
                log_path=run / LOGS / log_name(task.name),
                on_report=partial(self._on_report, task.name),
                on_output=self._on_output,
                on_exit=partial(self._ended, task.name),
            )
            self._running[task.name] = trainer
            self._none_run.clear()
            trainer.start()

    def stop(self, force: int) -> None:
        for trainer in tuple(self._running.values()):
            trainer.stop(cast("Literal[0, 1, 2]", force))

    async def wait_ended(self) -> None:
        """Waits until none runs."""
        await self._none_run.wait()

    def order(self, order: Order) -> None:
        for trainer in tuple(self._running.values()):
            trainer.order(order)

    def stopped(self) -> frozenset[str]:
        """The tasks whose process is stopped: by a signal or a debugger."""
        return frozenset(task for task, trainer in self._running.items() if trainer.is_stopped)

    def cpu_s(self) -> dict[str, float]:
        """Processor time of each task's process, in seconds."""
        return {task: trainer.cpu_s for task, trainer in self._running.items()}

    def _ended(self, task: str, end: Exit) -> None:
        self._running.pop(task, None)
        if not self._running:
            self._none_run.set()
        self._on_exit(task, end)
