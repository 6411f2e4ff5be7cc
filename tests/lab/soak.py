"""Three laptops train, the third from a moment on, while something befalls one of them every 45 seconds:
``python -m tests.lab.soak``. The second and the third never paired.

Every fault proves that it happened. It hits a laptop that trains together with another one, so each laptop is
back in the run before its own next fault, while others may still be on their way. At the end all have equal
weights, and have trained with the same sequence of batches: those of one machine's undisturbed run.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil

from core.supervisor.spawn import NICE
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.commands import AddLaptops, ChangeSettings, LeaveRun, StopRun
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Finished, Stopped, Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from tests.lab import faults
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import NAMES, Lab
from tests.lab.laptops import Laptops, all_idle, trained, weights
from tests.lab.network import NETWORK, WIFI
from tests.lab.test_returns import LOGGED, has_every_epoch

SCRIPT = Path(__file__).parent / "scripts" / "naps.py"
TOGETHER = "together"
"""The run's folder."""
EVERY_S = 45.0
STEPS = 1500
DISK_MB, MEMORY_BYTES = 512, 1 << 30
"""Of the second and the third; what one may take beyond what it has."""
PAUSE_S = 5.0
"""How long one that is lost again and again stays out of the run: the others would finish in half an hour."""
HASTY = (
    "-c",
    "import sys; from app.__main__ import main; from core.run import continuation; "
    f"continuation.FIRST_PAUSE_S = continuation.MOST_PAUSE_S = {PAUSE_S}; sys.exit(main())",
)
BACK_S, SAY_S = 600.0, 15.0
CLOSE = 2e-6
V = TypeVar("V")


@dataclass
class Soak:
    lab: Lab
    laptops: Laptops
    folder: Path
    random: random.Random
    only: tuple[str, ...] = ()
    """The faults to draw from, by name; empty: all."""
    befallen: Counter[str] = field(default_factory=Counter)
    """How often there was each fault."""
    began_s: float = field(default_factory=time.monotonic)
    addresses: dict[int, tuple[str, str]] = field(init=False)
    """By host: the one that it has, and the next."""

    def __post_init__(self) -> None:
        self.addresses = {
            host: (self.lab.network.address(host), f"{NETWORK}.{host + 11}") for host in range(3)
        }

    @property
    def them(self) -> tuple[Agent, Agent, Agent]:
        return self.laptops.anna, self.laptops.ben, self.laptops.cleo

    @property
    def harm(self) -> Path:
        return self.folder / "harm"

    @property
    def brake(self) -> Path:
        return self.folder / "brake"

    def train(self, name: str, *others: Agent, resume: RunId | None = None) -> RunId:
        folder = self.folder / name
        folder.mkdir(exist_ok=resume is not None)
        shutil.copy(SCRIPT, folder)
        return self.laptops.anna.train(
            RunSpec(
                script=str(folder / SCRIPT.name),
                arguments=(
                    *("--steps", str(STEPS), "--pace-s", "0", "--brake", str(self.brake)),
                    *("--harm", str(self.harm)),
                    *LOGGED,
                ),
                devices=tuple(other.device for other in others),
                solo=not others,
                seed=7,
                resume=resume,
            )
        )

    # --- faults: each returns when it is over ---------------------------------------------------------------

    def killed_trainer(self, host: int) -> None:
        """The one that trains; another one may have been loaded ahead."""
        trainer = max(self.them[host].trainers(), key=lambda child: sum(child.cpu_times()[:2]))
        trainer.kill()
        assert psutil.wait_procs([trainer], timeout=60)[1] == []

    def killed_node(self, host: int) -> None:
        agent = self.them[host]
        trainers = agent.trainers()
        agent.kill()
        assert agent.waits_until_gone() < 0
        assert psutil.wait_procs(trainers, timeout=60)[1] == []
        time.sleep(self.random.uniform(0, 15))
        self.laptops.restart(host)

    def closed_lid(self, host: int) -> None:
        with faults.lid_closed(self.lab.network, host, self.them[host]):
            time.sleep(self.random.uniform(25, 40))

    def cut_cable(self, host: int) -> None:
        with faults.cable_out(self.lab.network, host):
            time.sleep(self.random.uniform(15, 45))

    def short_cut(self, host: int) -> None:
        with faults.cable_out(self.lab.network, host):
            time.sleep(self.random.uniform(2, 9))

    def stopped_trainer(self, host: int) -> None:
        with faults.stopped(self.them[host].trainers()):
            time.sleep(self.random.uniform(2, 15))

    def stopped_node(self, host: int) -> None:
        with faults.stopped([self.them[host].process]):
            time.sleep(self.random.uniform(2, 9))

    def another_address(self, host: int) -> None:
        """The other of its two."""
        network, other = self.lab.network, (host + 1) % 3
        former, moved = self.addresses[host]
        assert faults.calls_from(network, other, former) and not faults.calls_from(network, other, moved)
        faults.move(network, host, moved)
        self.addresses[host] = moved, former
        self.them[other].until(
            lambda state: faults.calls_from(network, other, moved) or None, "call the new address"
        )

    def left(self, host: int) -> None:
        """By its user's wish, until it is added again."""
        anna, agent = self.laptops.anna, self.them[host]
        run, device = agent.run().plan.run, agent.device
        agent.do(LeaveRun(run=run))
        for each in (agent, anna):
            each.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))
        time.sleep(self.random.uniform(0, 10))
        self._added(host)

    def full_disk(self, host: int) -> None:
        """Until its user makes room, and it is added again."""
        self._harmed(host, "fill", "disk-full")
        self.lab.network.do(host, "find", str(self.them[host].home.runs), "-name", "big", "-delete")
        self._added(host)

    def out_of_memory(self, host: int) -> None:
        """Until it is added again."""
        with faults.little_memory(self.them[host], MEMORY_BYTES):
            self._harmed(host, "grow", "out-of-memory")
        self._added(host)

    def _harmed(self, host: int, harm: str, code: str) -> None:
        """Its script takes all memory or disk space that there is, and it leaves for that reason."""
        anna, agent = self.laptops.anna, self.them[host]
        plan = agent.run().plan
        (task,) = plan.tasks_of(agent.device)
        order = self.harm.with_name(f"{self.harm.name}-{task.role}-{task.index}-{harm}")
        order.touch()
        told = anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (plan.run, agent.device))
        order.unlink()
        assert isinstance(told.event, ev.MemberLeft) and told.event.problem.code == code, told.event

    def _added(self, host: int) -> None:
        """By the starter's user; the starter itself is in each run that is resumed."""
        anna, *others = self.them
        run = anna.run().plan.run
        if self.them[host] is not anna:
            anna.do(AddLaptops(run=run, devices=(self.them[host].device,)))
            return
        anna.do(StopRun())
        assert isinstance(phase := anna.ends(run), Stopped), phase
        anna.until(lambda state: all_idle(state) and not state.busy, "see everybody idle")
        self.train(TOGETHER, *others, resume=run)

    def killed_all(self, host: int) -> None:
        """Like a power cut, with the setting to go on by itself."""
        trainers = [trainer for agent in self.them for trainer in agent.trainers()]
        for agent in self.them:
            agent.kill()
        assert all(agent.waits_until_gone() < 0 for agent in self.them)
        assert psutil.wait_procs(trainers, timeout=60)[1] == []
        for number in range(3):
            self.laptops.restart(number, go_on=number == 0)

    def befall(self, there: list[int]) -> str:
        """A random fault of one of these laptops, and its end. Returns what it was. The seed decides, as far
        as ``there`` allows."""
        hosts, sudden = self.random.sample(range(3), 3), [self.killed_trainer, self.killed_node]
        sudden += [self.closed_lid, self.cut_cable, self.short_cut, self.stopped_trainer, self.stopped_node]
        # After these, someone is to do something with the run that all are in.
        others = [self.another_address, self.left, self.killed_all, self.full_disk]
        if faults.memory_groups() is not None:
            others.append(self.out_of_memory)
        host = next(each for each in hosts if each in there)
        drawn = self.random.sample(sudden + others, len(sudden + others))
        if len(there) < 3:
            drawn = [each for each in drawn if each in sudden]
        if host == 0:  # there the script has the whole disk
            drawn = [each for each in drawn if each != self.full_disk]
        fault: Callable[[int], None] = next((each for each in drawn if each.__name__ in self.only), drawn[0])
        what = fault.__name__.replace("_", " ")
        self.befallen[what] += 1
        what += "" if fault == self.killed_all else f" on {NAMES[host]}"
        self.say(f"{what}, while {', '.join(NAMES[each] for each in sorted(there))} train …")
        fault(host)
        return what

    # --- what follows ---------------------------------------------------------------------------------------

    def say(self, what: str) -> None:
        print(f"{time.monotonic() - self.began_s:5.0f} s: {what}", flush=True)

    def wait(self, found: Callable[[], V], awaited: str) -> V:
        """The first truthy value. Says what it waits for, and what each laptop does meanwhile."""
        until_s, said, next_s = time.monotonic() + BACK_S, "", time.monotonic() + SAY_S
        while not (value := found()):
            now_s = time.monotonic()
            assert now_s < until_s, f"{awaited}: {said}"
            if now_s >= next_s:
                said, next_s = "; ".join(map(_doing, self.them)), now_s + SAY_S
                self.say(f"  waits until {awaited}: {said}")
            time.sleep(0.1)
        return value

    def together(self) -> list[int]:
        """The laptops that make steps together with another one, where all of these agree on who they are."""
        seen = [_seen(agent) for agent in self.them]
        return [host for host, each in enumerate(seen) if each and seen.count(each) == len(each[1]) > 1]

    def whole(self) -> None:
        """Waits until all three make steps together."""
        self.wait(lambda: len(self.together()) == 3, "all three train")

    def printed(self, host: int, run: RunId) -> list[str]:
        """What its script says of its logs at its end: on its own disk, which only that host sees."""
        agent = self.them[host]
        (task,) = agent.run().plan.tasks_of(agent.device)
        log = agent.home.runs / run / run_folder.LOGS / run_folder.log_name(task.name)
        return [line for line in self.lab.network.do(host, "cat", str(log)).splitlines() if ".csv: " in line]

    def newest_step(self) -> int:
        run = self.laptops.anna.run()
        return max((each.progress.done or 0 for each in run.members.values() if each.progress), default=0)

    def moves(self) -> None:
        """Waits for further steps."""
        step = self.newest_step()
        self.wait(lambda: self.newest_step() > step + 2, f"there are steps after {step}")


def _seen(agent: Agent) -> tuple[RunId, frozenset[DeviceId]] | None:
    """The run in which it makes steps, and with whom, as far as it knows."""
    run = agent.state.run
    if not agent.process_lives or run is None or not isinstance(run.phase, Training):
        return None
    makes_steps = all(run.members[device].progress for device in run.staying)
    return (run.plan.run, frozenset(run.staying)) if makes_steps else None


def _doing(agent: Agent) -> str:
    run = agent.state.run
    if run is None:
        return f"{agent.name} has no run"
    there = ", ".join(run.plan.member(device).name for device in run.staying)
    step = max((each.progress.done or 0 for each in run.members.values() if each.progress), default=0)
    phase = type(run.phase).__name__.lower()
    return f"{agent.name} {phase} in {run.plan.run[-6:]} with {there or 'nobody'}, step {step}"


def soak(soak: Soak, minutes: float) -> None:
    soak.brake.touch()
    together = soak.train(TOGETHER, soak.laptops.ben)
    soak.wait(lambda: soak.together() == [0, 1], "anna and ben train")
    soak.laptops.anna.do(AddLaptops(run=together, devices=(soak.laptops.cleo.device,)))
    soak.whole()
    soak.began_s = time.monotonic()
    next_s = 0.0
    while (passed_s := time.monotonic() - soak.began_s) < 60 * minutes:
        if passed_s < next_s:
            time.sleep(min(0.5, next_s - passed_s))
            continue
        if soak.only:
            soak.whole()
        there = soak.wait(soak.together, "two train together")
        next_s = time.monotonic() - soak.began_s + EVERY_S
        what = soak.befall(there)
        soak.say(f"{what} is over: {'; '.join(map(_doing, soak.them))}")
    soak.whole()
    soak.moves()
    soak.say("all three train, and come to the end")
    soak.brake.unlink()
    anna = soak.laptops.anna
    run = anna.run().plan.run
    for agent in soak.them:
        assert (phase := agent.ends(run, 4 * TRAINED_S)) == Finished(), phase
    digests = weights(anna)
    assert set(digests) == set(NAMES) and len(set(digests.values())) == 1, digests
    said = [soak.printed(host, run) for host in range(3)]
    assert said[0] and said == [said[0]] * 3, said
    got = trained(anna, run)
    soak.say("one machine trains undisturbed, to compare")
    alone = soak.train("alone")
    assert (phase := anna.ends(alone, 4 * TRAINED_S)) == Finished(), phase
    wanted = trained(anna, alone)
    assert got.keys() == wanted.keys() and got
    has_every_epoch(soak.folder / TOGETHER)
    compare_logs(soak.folder / TOGETHER, soak.folder / "alone")
    most = max(float(np.abs(got[name] - wanted[name]).max()) for name in wanted)
    assert most <= CLOSE, most
    for host, agent in enumerate(soak.them):
        assert len(agent.trainers()) <= 1  # loaded ahead
        faults.listens_alone(soak.lab.network, host)
    kinds = ", ".join(f"{what} {times}" for what, times in soak.befallen.most_common())
    print(f"faults: {kinds}")
    print(
        f"{soak.befallen.total()} faults; finished, equal on all three, with one machine's batches and every "
        f"file, within {most:.1e} of its weights"
    )


def compare_logs(together: Path, alone: Path) -> None:
    """Each epoch had one machine's batches and losses; if not, shows by how much each epoch differs."""
    got, wanted = (list(csv.DictReader((folder / "log.csv").open())) for folder in (together, alone))
    apart = [
        {name: float(ours[name]) - float(theirs[name]) for name in theirs}
        for ours, theirs in zip(got, wanted, strict=True)
    ]
    assert all(abs(value) <= CLOSE for epoch in apart for value in epoch.values()), apart


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--only", action="append", default=[], help="a fault, such as full_disk")
    given = parser.parse_args()
    print(f"SEED={given.seed}", flush=True)
    # On a busy machine the trainers would hardly start between two faults: they get an ordinary priority.
    os.setpriority(os.PRIO_PROCESS, 0, -NICE)
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        Lab(Path(folder), hosts=3, rate=WIFI, program=HASTY) as lab,
    ):
        laptops = Laptops(lab.agent, 3)
        for each in (laptops.anna, laptops.ben, laptops.cleo):
            each.do(ChangeSettings(change=SettingsChange(foresee=True)))
        for host in (1, 2):
            faults.small_disk(lab.network, host, laptops.first(3)[host].home.runs, DISK_MB)
        drawn = random.Random(given.seed)
        soak(Soak(lab, laptops, Path(folder), drawn, tuple(given.only)), given.minutes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
