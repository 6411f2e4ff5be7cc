"""Lost laptops return to the run automatically: real agents and trainers."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from core.project import checkpoint_store
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.commands import AddLaptops, ChangeSettings
from core.vocabulary.errors import LEFT_RUN
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished, Stopped
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import Run, State
from tests.lab import faults
from tests.lab.agent import LIMIT_S, ROOT, TRAINED_S, Agent
from tests.lab.lab import linked
from tests.lab.laptops import Laptops, saved, trained, weights
from tests.lab.network import Network

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(2400)]

SCRIPT = Path(__file__).parent / "scripts" / "naps.py"
STEPS = 1500
BRAKED, NEARLY_OVER, PACE_S = 1000, 150, 0.01
"""Steps of a training that is braked until they are needed; so many take less time than a start."""
AWAY_S, CABLE_S = 300.0, 15.0
SHORT_S, LID_S, MINUTE_S = 3.0, 30.0, 60.0
EPOCHS = 10
LOGGED = ("--epochs", str(EPOCHS), "--logs", "--validate")
"""Each epoch ends with a validation, and its callbacks write logs and a model."""
Wanted = Callable[..., dict[str, np.ndarray]]
COUNT = pytest.mark.parametrize("count", [2, 3], ids=["two", "three"])
CLOSE = 2e-6
"""float32 sums are added in another order if one laptop has all the rows."""


def train(
    laptops: Laptops,
    folder: Path,
    pace_s: float,
    *others: Agent,
    steps: int = STEPS,
    brake: Path | None = None,
    more: tuple[str, ...] = (),
) -> RunId:
    """Presses Train on anna's, for these others. ``brake``: while this file exists, a step takes a second.
    ``more`` arguments."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    braked = () if brake is None else ("--brake", str(brake))
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        arguments=("--steps", str(steps), "--pace-s", str(pace_s), "--pure", *braked, *more),
        devices=tuple(other.device for other in others),
        solo=not others,
        seed=7,
    )
    return laptops.anna.train(spec)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Wanted:
    """The weights and batches of one machine's undisturbed run of so many steps, made once."""
    found: dict[tuple[int, tuple[str, ...]], dict[str, np.ndarray]] = {}

    def undisturbed(
        laptops: Laptops, steps: int = STEPS, more: tuple[str, ...] = ()
    ) -> dict[str, np.ndarray]:
        if (steps, more) not in found:
            folder = tmp_path_factory.mktemp("undisturbed") / "naps"
            run = train(laptops, folder, 0.0, steps=steps, more=more)
            assert laptops.anna.ends(run, 4 * TRAINED_S) == Finished()
            found[steps, more] = trained(laptops.anna, run)
        return found[steps, more]

    return undisturbed


def kept(agent: Agent, run: RunId) -> None:
    """Waits until it has a checkpoint of the run."""
    folder, until_s = agent.home.runs / run / run_folder.CHECKPOINTS, time.monotonic() + LIMIT_S
    while checkpoint_store.newest_by_size(folder) is None:
        assert time.monotonic() < until_s
        time.sleep(0.05)


def under_way(run: RunId, *them: Agent) -> None:
    """Waits until all of them make steps, and have a checkpoint."""
    for agent in them:
        agent.trains(run)
        kept(agent, run)


def goes_on(agent: Agent, before: RunId, *them: Agent) -> Run:
    """Waits until exactly these make steps in a run that resumes ``before``."""

    def making_steps(state: State) -> Run | None:
        run = state.run
        if run is None or run.plan.resume is None or run.plan.resume.run != before:
            return None
        assert not run.over, f"{run.phase}\n{agent.log_end()}"
        assert {member.device for member in run.plan.members} == {each.device for each in them}
        assert all(member.share > 0 for member in run.plan.members), "who is back computes again"
        return run if all(member.progress for member in run.members.values()) else None

    return agent.until(making_steps, f"go on with {before}", 2 * TRAINED_S)


def all_train(agent: Agent, before: RunId, *them: Agent) -> Run:
    """Waits until all of these make steps in a run after ``before``, in which they may come one by one."""

    def making_steps(state: State) -> Run | None:
        run = state.run
        if run is None or run.plan.run == before or run.over:
            return None
        here = {member.device for member in run.plan.members} == {each.device for each in them}
        return run if here and all(member.progress for member in run.members.values()) else None

    return agent.until(making_steps, f"go on with {before} and all of them", 3 * TRAINED_S)


def ends_with_the_weights(agent: Agent, run: RunId, wanted: dict[str, np.ndarray], *them: Agent) -> None:
    """All finish without anybody's help, with the weights and the batches of the undisturbed run."""
    for each in them:
        assert each.ends(run, 4 * TRAINED_S) == Finished()
    summary = agent.run().summary
    assert summary is not None and not summary.told
    got = trained(agent, run)
    assert got.keys() == wanted.keys() and got
    for name, values in wanted.items():
        np.testing.assert_allclose(got[name], values, rtol=0, atol=CLOSE, err_msg=name)
    for each in them:
        assert each.trainers() == []
        until_s = time.monotonic() + LIMIT_S
        while list(each.home.runs.glob("*/tasks")):  # they are deleted after the end is reported
            assert time.monotonic() < until_s
            time.sleep(0.05)


def ends_well(agent: Agent, run: RunId, wanted: dict[str, np.ndarray], *them: Agent) -> None:
    """All finish without anybody's help, with equal weights, those of the undisturbed run."""
    ends_with_the_weights(agent, run, wanted, *them)
    digests = weights(agent)
    assert set(digests) == {each.name for each in them} and len(set(digests.values())) == 1


def gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=60)[1] == []


def newest_step(agent: Agent) -> int:
    progress = agent.run().members[agent.device].progress
    assert progress is not None and progress.done is not None
    return progress.done


@pytest.mark.complete
@pytest.mark.parametrize("who", [1, 0], ids=["worker", "chief"])
@COUNT
def test_a_laptop_whose_trainer_was_killed_is_back_in_the_run(
    laptops: Laptops, tmp_path: Path, wanted: Wanted, who: int, count: int
) -> None:
    them = anna, *others = laptops.first(count)
    lost = them[who]
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "killed", 0.05, *others)
    under_way(run, *them)
    assert anna.run().chief.device == anna.device
    (trainer,) = lost.trainers()

    trainer.kill()
    assert gone([trainer])
    killed_s = time.monotonic()

    left = anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, lost.device))
    assert isinstance(left.event, ev.MemberLeft) and left.event.problem.code == "killed"
    again = goes_on(anna, run, *them).plan
    assert again.resume is not None
    told = anna.hears(
        ev.MemberProgressed, lambda event: (event.run, event.device) == (again.run, lost.device)
    )
    stopped = anna.hears(
        ev.RunPhaseChanged, lambda event: event.run == run and isinstance(event.phase, Stopped)
    )
    assert stopped.event == ev.RunPhaseChanged(
        run=run, phase=Stopped(by="anna", goes_on=True, back=(lost.name,))
    )
    first = anna.hears(ev.MemberProgressed, lambda event: event.run == again.run)
    last = max(
        (each for each in anna.told if isinstance(each.event, ev.MemberProgressed) and each.event.run == run),
        key=lambda each: each.at_s,
    )
    began_s = anna.hears(ev.MemberProgressed, lambda event: event.run == run).at_s
    planned_s = anna.hears(ev.RunPlanned, lambda event: event.plan.run == run).at_s
    print(
        f"start of the run {began_s - planned_s:.1f} s; "
        f"killed → in {told.at_s - killed_s:.1f} s; pause of the other {first.at_s - last.at_s:.1f} s; "
        f"from step {again.resume.moment.step}"
    )
    ends_well(anna, again.run, expected, *them)


def goes_on_alone(agent: Agent) -> int:
    """Waits until it makes steps of which it is told from now on. The newest step before."""
    before = newest_step(agent)
    agent.until(lambda state: newest_step(agent) > before + 1 or None, "go on alone")
    return before


def says(agent: Agent, *words: str) -> dict[str, object]:
    """What a user's command answers at a terminal of that laptop."""
    command = (sys.executable, "-m", "app", *words, "--json", "--home", str(agent.home.folder))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_without_a_laptop_the_other_goes_on_and_it_comes_back_until_the_run_is_nearly_over(
    laptops: Laptops,
    network: Network,
    tmp_path: Path,
    wanted: Wanted,
) -> None:
    """In one training ben's node is killed, its lid closed, it leaves by command, its trainer is killed."""
    anna, ben = laptops.anna, laptops.ben
    expected = wanted(laptops, BRAKED)
    brake = tmp_path / "brake"
    brake.touch()
    run = train(laptops, tmp_path / "project", PACE_S, ben, steps=BRAKED, brake=brake)
    for agent in (anna, ben):
        agent.trains(run)
    kept(anna, run)
    trainers, device = ben.trainers(), ben.device

    # It is back once its node is started again.
    ben.kill()
    assert ben.waits_until_gone() < 0 and gone(trainers)
    anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))
    alone = goes_on_alone(anna)
    ben = laptops.restart(1)
    again = goes_on(anna, run, anna, ben).plan
    assert again.resume is not None and again.resume.moment.step > alone
    run = again.run
    kept(anna, run)

    # It is back by itself once its lid is opened.
    with faults.lid_closed(network, 1, ben):
        closed_s = time.monotonic()
        left = anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))
        assert isinstance(left.event, ev.MemberLeft) and left.event.problem.code == "device-away"
        print(f"lid closed → the other goes on {left.at_s - closed_s:.1f} s")
        alone = goes_on_alone(anna)
    opened_s = time.monotonic()
    again = goes_on(anna, run, anna, ben).plan
    assert again.resume is not None and again.resume.moment.step > alone
    told = anna.hears(ev.MemberProgressed, lambda event: (event.run, event.device) == (again.run, device))
    print(f"lid opened → in {told.at_s - opened_s:.1f} s")
    run = again.run
    kept(anna, run)

    # Who leaves by command stays out until it is added again.
    trainers = ben.trainers()
    assert trainers
    assert says(ben, "leave") == {"ok": True, "run": run, "did": "leave"}
    for agent in (anna, ben):
        left = agent.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))
        assert isinstance(left.event, ev.MemberLeft)
        assert (left.event.problem.code, left.event.problem.what) == (LEFT_RUN, "ben left the run.")
    assert gone(trainers) and ben.trainers() == []
    goes_on_alone(anna)
    assert not anna.run().over and ben.trainers() == [], "nobody brings it back"
    assert says(anna, "add", "ben")["ok"] is True
    run = goes_on(anna, run, anna, ben).plan.run

    # Once less is left to do than a start takes, nobody lost is brought back.
    brake.unlink()
    anna.until(lambda state: newest_step(anna) > BRAKED - NEARLY_OVER or None, "be nearly over", TRAINED_S)
    (trainer,) = ben.trainers()
    trainer.kill()
    assert gone([trainer])
    for agent in (anna, ben):
        left = agent.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, device))
        assert isinstance(left.event, ev.MemberLeft)
        assert left.event.problem.code == "killed" and "SIGKILL" in left.event.problem.what
    assert newest_step(anna) < BRAKED - 1, "it was over before anything happened"
    ends_with_the_weights(anna, run, expected, anna, ben)
    summary = anna.run().summary
    assert summary is not None and summary.weights_sha256.keys() == {anna.device}
    assert BRAKED - NEARLY_OVER < summary.left[device] < BRAKED
    linked(anna, ben)


@pytest.mark.complete
def test_after_minutes_without_network_or_with_a_closed_lid_it_is_back(
    laptops: Laptops, network: Network, tmp_path: Path, wanted: Wanted
) -> None:
    """As by default, each has the next trainer loaded. Without network, both go on, each by itself. Epochs
    end meanwhile, and what their callbacks write is complete in the end."""
    anna, ben = laptops.anna, laptops.ben
    expected = wanted(laptops, BRAKED, LOGGED)
    for agent in (anna, ben):
        agent.do(ChangeSettings(change=SettingsChange(foresee=True)))
    brake = tmp_path / "brake"
    brake.touch()
    folder = tmp_path / "project"
    run = train(laptops, folder, PACE_S, ben, steps=BRAKED, brake=brake, more=LOGGED)
    run = out_and_back(anna, ben, run, faults.cable_out(network, 1))
    run = out_and_back(anna, ben, run, faults.lid_closed(network, 1, ben))
    for agent in (anna, ben):
        agent.do(ChangeSettings(change=SettingsChange(foresee=False)))
    brake.unlink()
    ends_well(anna, run, expected, anna, ben)
    assert len(printed(anna, run)) == 2 and printed(ben, run) == printed(anna, run)
    has_every_epoch(folder)


def printed(agent: Agent, run: RunId) -> list[str]:
    """What a member's script says of its logs at its end."""
    (task,) = agent.run().plan.tasks_of(agent.device)
    log = agent.home.runs / run / run_folder.LOGS / run_folder.log_name(task.name)
    return [line for line in log.read_text().splitlines() if ".csv: " in line]


def has_every_epoch(folder: Path) -> None:
    """The logs and models that the script's callbacks wrote there are complete."""
    for name in ("log.csv", "anew.csv"):
        with (folder / name).open() as file:
            epochs = [line["epoch"] for line in csv.DictReader(file)]
        assert epochs == [str(each) for each in range(EPOCHS)], f"{name}: {epochs}"
    models = sorted((folder / "models").iterdir())
    assert [path.name for path in models] == [f"{epoch:02d}.keras" for epoch in range(1, EPOCHS + 1)]
    assert all(map(saved, models))


def out_and_back(anna: Agent, ben: Agent, run: RunId, fault: AbstractContextManager[None]) -> RunId:
    """The run that goes on with both once the fault of ben's laptop is over."""
    for agent in (anna, ben):
        agent.trains(run)
    kept(anna, run)
    with fault:
        anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, ben.device))
        time.sleep(AWAY_S)
        alone = goes_on_alone(anna)
    back_s = time.monotonic()
    again = goes_on(anna, run, anna, ben).plan
    assert again.resume is not None and again.resume.moment.step > alone
    told = anna.hears(ev.MemberProgressed, lambda event: (event.run, event.device) == (again.run, ben.device))
    print(f"back → in {told.at_s - back_s:.1f} s")
    return again.run


@pytest.mark.complete
def test_a_third_laptop_that_comes_late_trains_as_well(
    laptops: Laptops, tmp_path: Path, wanted: Wanted
) -> None:
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    expected = wanted(laptops)
    run = train(laptops, tmp_path / "late", 0.05, ben)
    for agent in (anna, ben):
        agent.trains(run)
    kept(anna, run)
    alone = newest_step(anna)

    anna.do(AddLaptops(run=run, devices=(cleo.device,)))

    again = goes_on(anna, run, anna, ben, cleo).plan
    assert again.resume is not None and again.resume.moment.step > alone
    assert again.resume.back == ("cleo",)
    ends_well(anna, again.run, expected, anna, ben, cleo)


@pytest.mark.complete
def test_three_laptops_get_over_one_fault_after_the_other_in_one_training(
    laptops: Laptops, network: Network, tmp_path: Path, wanted: Wanted
) -> None:
    """The third comes late, a worker's node is killed, then the chief's trainer, and a cable is pulled."""
    anna, ben, cleo = laptops.anna, laptops.ben, laptops.cleo
    expected = wanted(laptops, BRAKED)
    brake = tmp_path / "brake"
    brake.touch()
    run = train(laptops, tmp_path / "project", PACE_S, ben, steps=BRAKED, brake=brake)
    under_way(run, anna, ben)
    anna.do(AddLaptops(run=run, devices=(cleo.device,)))
    run = goes_on(anna, run, anna, ben, cleo).plan.run
    kept(anna, run)

    trainers = ben.trainers()
    ben.kill()
    assert ben.waits_until_gone() < 0 and gone(trainers)
    goes_on_without(anna, run, ben)
    ben = laptops.restart(1)
    run = goes_on(anna, run, anna, ben, cleo).plan.run
    kept(anna, run)

    assert anna.run().chief.device == anna.device
    (trainer,) = anna.trainers()
    trainer.kill()
    assert gone([trainer])
    anna.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, anna.device))
    run = goes_on(anna, run, anna, ben, cleo).plan.run
    kept(anna, run)

    with faults.cable_out(network, 2):
        pulled_s = time.monotonic()
        goes_on_without(anna, run, cleo)
        time.sleep(max(0.0, CABLE_S - (time.monotonic() - pulled_s)))
    run = goes_on(anna, run, anna, ben, cleo).plan.run

    brake.unlink()
    ends_well(anna, run, expected, anna, ben, cleo)


@pytest.mark.complete
def test_three_laptops_get_over_what_people_do_to_them_in_one_training(
    laptops: Laptops, network: Network, tmp_path: Path, wanted: Wanted
) -> None:
    """A cable is out for three seconds, a worker's lid is closed and then the starter's, one leaves and is
    added again, a worker gets another address, and a cable is out for a minute."""
    them = anna, ben, cleo = laptops.first(3)
    expected = wanted(laptops, BRAKED)
    brake = tmp_path / "brake"
    brake.touch()
    run = train(laptops, tmp_path / "people", PACE_S, ben, cleo, steps=BRAKED, brake=brake)
    under_way(run, *them)

    with faults.cable_out(network, 1):
        time.sleep(SHORT_S)
    assert makes_steps_with(anna, *them) == run, "nobody left"

    with faults.lid_closed(network, 1, ben), lasting(LID_S):
        goes_on_without(anna, run, ben)
    run = goes_on(anna, run, *them).plan.run
    under_way(run, *them)
    linked(ben, cleo)

    with faults.lid_closed(network, 0, anna), lasting(LID_S):
        alone = goes_on(ben, run, ben, cleo).plan
    assert alone.owner is not None and alone.owner.device == anna.device
    run = all_train(anna, run, *them).plan.run
    kept(anna, run)

    assert says(cleo, "leave") == {"ok": True, "run": run, "did": "leave"}
    goes_on_without(anna, run, cleo)
    assert says(anna, "add", "cleo")["ok"] is True
    run = goes_on(anna, run, *them).plan.run
    kept(anna, run)

    moved, former = "10.77.0.13", network.address(2)
    try:
        assert faults.calls_from(network, 0, former) >= 2 and not faults.calls_from(network, 0, moved)
        faults.move(network, 2, moved)
        anna.until(lambda state: faults.calls_from(network, 0, moved) >= 2 or None, "call the new address")
        run = makes_steps_with(anna, *them)
        kept(anna, run)

        with faults.cable_out(network, 1), lasting(MINUTE_S):
            goes_on_without(anna, run, ben)
        run = all_train(anna, run, *them).plan.run

        brake.unlink()
        ends_well(anna, run, expected, *them)
    finally:
        faults.move(network, 2, former)
    anna.until(lambda state: faults.calls_from(network, 0, former) or None, "call the former address")


@contextmanager
def lasting(seconds: float) -> Iterator[None]:
    """For at least so long."""
    began_s = time.monotonic()
    yield
    time.sleep(max(0.0, began_s + seconds - time.monotonic()))


def makes_steps_with(agent: Agent, *them: Agent) -> RunId:
    """Waits until it makes further steps with all of these, in any run."""
    before = newest_step(agent)

    def making_steps(state: State) -> RunId | None:
        run = state.run
        if run is None or run.over or {*run.staying} != {each.device for each in them}:
            return None
        done = [each.progress.done if each.progress else None for each in run.members.values()]
        return run.plan.run if all(each is not None and each > before + 2 for each in done) else None

    return agent.until(making_steps, "make steps with all of them", 3 * TRAINED_S)


def goes_on_without(agent: Agent, run: RunId, lost: Agent) -> None:
    agent.hears(ev.MemberLeft, lambda event: (event.run, event.device) == (run, lost.device))
    goes_on_alone(agent)


@pytest.mark.complete
@COUNT
def test_when_all_were_killed_at_once_the_run_goes_on_once_they_are_on_again(
    laptops: Laptops, tmp_path: Path, wanted: Wanted, count: int
) -> None:
    expected = wanted(laptops)
    laptops.restart(0, go_on=True)
    them = anna, *others = laptops.first(count)
    for other in others:
        linked(anna, other)
    run = train(laptops, tmp_path / "power", 0.05, *others)
    under_way(run, *them)
    trainers = [trainer for agent in them for trainer in agent.trainers()]

    for agent in them:
        agent.kill()
    assert all(agent.waits_until_gone() < 0 for agent in them) and gone(trainers)
    for number in range(count):
        laptops.restart(number, go_on=number == 0)
    them = laptops.first(count)

    again = all_train(them[0], run, *them).plan
    ends_well(them[0], again.run, expected, *them)
