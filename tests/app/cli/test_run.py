import asyncio

import pytest
from msgspec.structs import replace

from app.cli import run as run_command
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.models import run_again
from core.run import problems
from core.run.abilities import why_not
from core.vocabulary import events as ev
from core.vocabulary import phases
from core.vocabulary.answers import Answer, Refused, RunAccepted, RunDetails, RunEntry
from core.vocabulary.commands import AnalyseScript, ChangeSettings, Command, GetRun, Quit, StartRun, StopRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped, Stopping
from core.vocabulary.plan import Moment, Resumption, Role, RunSpec
from core.vocabulary.progress import Progress, Summary
from core.vocabulary.settings import Settings
from tests.app import world
from tests.app.cli.scripted_node import ME, OTHER, PROBLEM, RUN, ScriptedNode, Words, follower, paired, plan
from tests.app.cli.test_prompts import Keyboard
from tests.app.world import phase


def running() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=plan(OTHER)))
    entry = RunEntry(run=RUN, started_s=0.0, script="digits.py", phase=Finished(), folder="/runs/1")
    node.answers[GetRun] = RunDetails(entry=entry)
    return node


TO_TRAINING = (phase(phases.Preparing()), phase(phases.Starting()), phase(phases.Training()))


async def followed(node: ScriptedNode, screen: Words, *events: ev.Event) -> int:
    with follower(node) as follow:
        for event in events:
            node.happen(event)
        run, last = await run_command.follow(follow, screen, RUN, Interrupts())
        return await run_command.report(follow, screen, run, last, interrupted=False)


async def test_a_finished_run_says_what_came_out() -> None:
    screen = Words()
    summary = ev.RunSummarised(run=RUN, summary=Summary(last_logs={"loss": 0.1}, outputs=("a.keras",)))
    assert await followed(running(), screen, *TO_TRAINING, summary, phase(Finished())) == ExitCode.OK
    assert "The run is finished." in screen.said
    assert "loss 0.1000" in screen.said
    assert "/runs/1/outputs" in screen.said


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (Failed(problem=PROBLEM), ExitCode.FAILED),
        (Failed(problem=Problem(code="consent-refused", what="ben said no.")), ExitCode.REFUSED),
        (Failed(problem=Problem(code="train-crossed", what="ben's run goes first.")), ExitCode.REFUSED),
        (Stopped(by="ben"), ExitCode.STOPPED),
    ],
)
async def test_the_exit_code_says_how_it_ended(end: Phase, code: ExitCode) -> None:
    screen = Words(json=True)
    assert await followed(running(), screen, *TO_TRAINING, phase(end)) == code
    (told,) = screen.told
    assert told["ok"] is False
    assert told["run"] == RUN
    assert told["phase"]["type"] in ("failed", "stopped")


async def test_a_run_that_goes_on_by_itself_is_followed_to_its_end() -> None:
    node, screen = running(), Words()
    assert node.state.run is not None
    plan = node.state.run.plan
    moment = Moment(step=120)
    resume = Resumption(run=RUN, checkpoint=ProjectId("c" * 64), moment=moment, back=("ben",))
    follows = ev.RunPlanned(plan=replace(plan, run=RunId("20260101-000000-00000002"), resume=resume))

    def then(of: Phase) -> ev.RunPhaseChanged:
        return ev.RunPhaseChanged(run=follows.plan.run, phase=of)

    stops = phase(Stopping(back=("ben",))), phase(Stopped(by="here", goes_on=True, back=("ben",)))
    begins = then(phases.Preparing()), then(phases.Starting()), then(phases.Training())
    code = await followed(node, screen, *TO_TRAINING, *stops, follows, *begins, then(Finished()))
    assert code == ExitCode.OK
    assert "going on with ben from step 120" in screen.said and "stopped" not in screen.said


async def test_a_run_that_was_to_go_on_and_could_not_has_failed() -> None:
    screen = Words()
    stopped = phase(Stopping()), phase(Stopped(by="here", goes_on=True))
    cannot = ev.NoticeRaised(problem=replace(PROBLEM, code="not-gone-on"))
    assert await followed(running(), screen, *TO_TRAINING, *stopped, cannot) == ExitCode.FAILED
    assert screen.said.endswith("It did not work.\nDo this.\n")


async def test_a_run_without_a_folder_still_reports() -> None:
    node, screen = running(), Words()
    node.answers[GetRun] = Refused(problem=PROBLEM)
    assert await followed(node, screen, phase(Failed(problem=PROBLEM))) == ExitCode.FAILED
    assert screen.said.endswith("It did not work.\nDo this.\n")


async def test_ctrl_c_stops_then_terminates_then_leaves() -> None:
    node, screen, interrupts = running(), Words(), Interrupts()
    for event in TO_TRAINING:
        node.happen(event)
    with follower(node) as follow:
        leaving = asyncio.create_task(run_command.follow(follow, screen, RUN, interrupts))
        interrupts.interrupt()
        await screen.wait_said("Stopping at the end of this step")
        interrupts.interrupt()
        await screen.wait_said("Ending the trainers")
        assert not leaving.done()
        interrupts.interrupt()
        _, last = await leaving
        code = await run_command.report(follow, screen, RUN, last, interrupted=True)
    assert [command for command in node.commands if isinstance(command, StopRun)] == [StopRun()] * 3
    assert code == ExitCode.INTERRUPTED
    assert "Not waiting for the run to end." in screen.said


@pytest.mark.parametrize(
    ("own", "epochs", "sent"),
    [
        pytest.param(True, 3, [Quit(leaves=True)], id="its node leaves"),
        pytest.param(True, 0, [StopRun()], id="it would be lost: train_on_batch has no checkpoints"),
        pytest.param(False, 3, [], id="it goes on in another process"),
    ],
)
async def test_when_the_system_ends_the_command_the_run_goes_on_unless_it_would_be_lost(
    own: bool, epochs: int, sent: list[Command]
) -> None:
    node, screen, interrupts = running(), Words(), Interrupts()
    step = Progress(at_s=1.0, epoch=0, epochs=epochs, step=9, batch=9)
    for event in (*TO_TRAINING, world.progressed(ME, step)):
        node.happen(event)
    node.then[StopRun] = [phase(Stopping()), phase(Stopped(by="here"))]
    with follower(node, own=own) as follow:
        interrupts.by_system = True
        interrupts.interrupt()
        _, last = await run_command.follow(follow, screen, RUN, interrupts)
        code = await run_command.report(follow, screen, RUN, last, interrupted=True)
    assert [command for command in node.commands if isinstance(command, Quit | StopRun)] == sent
    assert code == ExitCode.INTERRUPTED


async def test_one_ctrl_c_waits_for_the_end_of_the_step() -> None:
    node, screen, interrupts = running(), Words(), Interrupts()
    for event in TO_TRAINING:
        node.happen(event)
    node.then[StopRun] = [phase(Stopping()), phase(Stopped(by="here"))]
    with follower(node) as follow:
        interrupts.interrupt()
        _, last = await run_command.follow(follow, screen, RUN, interrupts)
        code = await run_command.report(follow, screen, RUN, last, interrupted=True)
    assert last == Stopped(by="here")
    assert code == ExitCode.INTERRUPTED


ALONE = Problem(code="would-be-alone", what="No other laptop can take part in this run.", fix="Say --solo.")


def lonely() -> ScriptedNode:
    node = ScriptedNode()
    node.answers[StartRun] = lambda command: (
        RunAccepted(run=RUN) if command.spec.solo else Refused(problem=ALONE)
    )
    return node


@pytest.mark.parametrize(("typed", "begins"), [("yes\n", True), ("no\n", False), ("", False)])
async def test_a_run_that_would_be_one_alone_is_asked_about_first(typed: str, begins: bool) -> None:
    node, screen, keyboard, spec = lonely(), Words(), Keyboard(), RunSpec(script="/a.py")
    with follower(node) as follow:
        asked = asyncio.create_task(run_command.start_or_ask(follow, screen, spec, Interrupts(), keyboard))
        await screen.wait_said("Train on this laptop alone? [yes/no]")
        assert "No other laptop can take part" in screen.said
        keyboard.types(typed)
        if begins:
            assert await asked == RUN
        else:
            with pytest.raises(TandemError, match="No other laptop"):
                await asked
    specs = [command.spec for command in node.commands if isinstance(command, StartRun)]
    assert specs == [spec, replace(spec, solo=True)][: 1 + begins]


async def test_alone_it_is_asked_for_without_what_was_said_of_the_others() -> None:
    """Otherwise a yes would be refused because of a share or role of a laptop that takes no part."""
    node, keyboard = lonely(), Keyboard()
    spec = RunSpec(
        script="/a.py",
        devices=(OTHER,),
        roles={OTHER: (Role.CHIEF,), ME: (Role.WORKER,)},
        shares={OTHER: 25},
        shares_total=100,
        seed=7,
    )
    screen = Words()
    with follower(node) as follow:
        asked = asyncio.create_task(run_command.start_or_ask(follow, screen, spec, Interrupts(), keyboard))
        await screen.wait_said("[yes/no]")
        keyboard.types("yes\n")
        assert await asked == RUN
    (_, alone) = [command.spec for command in node.commands if isinstance(command, StartRun)]
    assert alone == RunSpec(script="/a.py", solo=True, seed=7)
    two_cards = replace(spec, roles={ME: (Role.CHIEF, Role.WORKER)})
    assert run_again.alone(two_cards, ME).roles == two_cards.roles


async def test_ctrl_c_at_that_question_starts_nothing() -> None:
    node, screen, interrupts = lonely(), Words(), Interrupts()
    with follower(node) as follow:
        spec = RunSpec(script="/a.py")
        asked = asyncio.create_task(run_command.start_or_ask(follow, screen, spec, interrupts, Keyboard()))
        await screen.wait_said("[yes/no]")
        interrupts.interrupt()
        with pytest.raises(TandemError, match="No other laptop"):
            await asked
    assert len([command for command in node.commands if isinstance(command, StartRun)]) == 1


async def test_without_anybody_to_ask_a_run_that_would_be_one_alone_is_refused() -> None:
    with follower(lonely()) as follow, pytest.raises(TandemError, match="No other laptop") as caught:
        await run_command.start_or_ask(follow, Words(), RunSpec(script="/a.py"), Interrupts(), None)
    assert "--solo" in caught.value.fix


class SlowNode(ScriptedNode):
    """Its run begins when it is stopped, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = asyncio.Event()

    async def submit(self, command: Command) -> Answer:
        answer = await super().submit(command)
        if isinstance(command, StopRun):
            self.stopped.set()
        elif isinstance(command, StartRun):
            await self.stopped.wait()
        return answer


async def test_ctrl_c_ends_a_run_that_has_not_begun_yet() -> None:
    node, screen, interrupts = SlowNode(), Words(), Interrupts()
    node.answers[StartRun] = Refused(problem=problems.stopped_by("here"))
    with follower(node) as follow:
        interrupts.interrupt()
        assert await run_command.start(follow, screen, RunSpec(script="digits.py"), interrupts) is None
    assert [type(command) for command in node.commands] == [StartRun, StopRun]
    assert "The run was stopped on here." in screen.said


async def test_how_far_the_fetching_is_is_reported_until_the_run_begins() -> None:
    node, screen = ScriptedNode(), Words()
    node.answers[StartRun] = RunAccepted(run=RUN)
    node.then[StartRun] = [world.came(0), world.came(70_500_000)]
    with follower(node) as follow:
        begun = await run_command.start(follow, screen, RunSpec(script="x.py", resume=RUN), Interrupts())
        node.happen(world.came(70_500_000))
    assert begun == RUN
    assert [line.partition(": ")[2] for line in screen.said.splitlines()] == [
        "0 bytes of 70.5 MB.",
        "70.5 MB of 70.5 MB.",
    ]


async def test_what_is_refused_is_no_stop() -> None:
    node = ScriptedNode()
    node.refuses(StartRun)
    with follower(node) as follow, pytest.raises(TandemError, match="It did not work"):
        await run_command.start(follow, Words(), RunSpec(script="digits.py"), Interrupts())


async def test_a_resume_that_a_laptop_prevents_is_told_with_the_ways_to_do_without_it() -> None:
    spec = RunSpec(script="/a.py", devices=(OTHER,), resume=RUN)
    ways = f"To resume without it: tandem resume {RUN} --with NAME,…, or --solo for this laptop alone."
    node = running()
    why = why_not(node.state.devices[OTHER])
    assert why is not None
    node.answers[StartRun] = Refused(problem=why.problem)
    with follower(node) as follow, pytest.raises(TandemError, match="not connected") as refused:
        await run_command.train(follow, Words(), spec, Interrupts(), None)
    assert refused.value.fix == f"{why.fix} {ways}"

    screen, no = Words(), problems.refused_by_user()
    node.answers[StartRun] = RunAccepted(run=RUN)
    node.then[StartRun] = [phase(Failed(problem=no))]
    with follower(node) as follow:
        code = await run_command.train(follow, screen, spec, Interrupts(), None)
    assert code == ExitCode.REFUSED
    assert f"{no.fix} {ways}" in " ".join(screen.said.split())


async def test_a_node_that_dies_in_a_run_ends_the_command() -> None:
    node = running()
    with follower(node) as follow:
        node.happen(ev.NodeStopped())
        with pytest.raises(TandemError, match="ended from elsewhere"):
            await run_command.follow(follow, Words(), RUN, Interrupts())


@pytest.mark.parametrize(
    ("known", "withdraw", "said"),
    [
        ((), False, ""),
        (("d",), True, ""),
        (("d", "c"), False, "are accepted for this script"),
        (("d", "c"), True, "no longer"),
    ],
)
async def test_an_acceptance_is_said_before_the_start_and_can_be_withdrawn(
    known: tuple[str, ...], withdraw: bool, said: str
) -> None:
    node, screen = ScriptedNode(), Words()
    node.happen(ev.SettingsChanged(settings=Settings(accepted=known)))
    node.answers[AnalyseScript] = replace(world.script_read(), code="c")
    with follower(node) as follow:
        await run_command.acceptance(follow, screen, RunSpec(script="/a.py"), withdraw=withdraw)
    assert said in screen.said and bool(screen.said) == bool(said)
    changes = [each.change.accepted for each in node.commands if isinstance(each, ChangeSettings)]
    assert changes == ([("d",)] if said == "no longer" else [])


async def test_fewer_bits_are_reported_and_the_run_is_ok() -> None:
    summary = ev.RunSummarised(run=RUN, summary=Summary(steps=9, sent_bits=8))
    words = "gradients sent in 8 bits: not the result of one machine"
    for screen in (Words(json=True), Words()):
        assert await followed(running(), screen, *TO_TRAINING, summary, phase(Finished())) == ExitCode.OK
        if screen.json:
            (told,) = screen.told
            assert (told["ok"], told["not_exact"], told["summary"]["sent_bits"]) == (True, words, 8)
        else:
            assert f"The run is finished, {words}." in screen.said


TOLD = "The metric 'rmse' is of the batch as a whole."


@pytest.mark.parametrize("accepted", [False, True])
async def test_a_told_difference_that_nobody_accepted_is_not_ok(accepted: bool) -> None:
    summary = ev.RunSummarised(run=RUN, summary=Summary(steps=9, told=(TOLD,), accepted=accepted))
    for screen in (Words(json=True), Words()):
        code = await followed(running(), screen, *TO_TRAINING, summary, phase(Finished()))
        assert code == (ExitCode.OK if accepted else ExitCode.DIFFERS)
        if screen.json:
            (told,) = screen.told
            assert (told["ok"], told["told"]) == (accepted, [TOLD])
        else:
            assert ("not with the result of one machine" in screen.said) is not accepted
            assert TOLD in screen.said
