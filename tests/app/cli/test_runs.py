from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli import runs
from app.cli.command_line import read
from app.cli.exit_codes import ExitCode
from core.sweep.kept import entry_of
from core.vocabulary import answers
from core.vocabulary.commands import Command, DeleteRun, FindCheckpoints, GetRun, LabelRun, ListRuns
from core.vocabulary.errors import TandemError
from core.vocabulary.events import CheckpointFound
from core.vocabulary.ids import RunId
from core.vocabulary.laptops import Change, MembershipChanged
from core.vocabulary.phases import Failed, Finished, Stopped
from core.vocabulary.plan import Moment
from core.vocabulary.progress import EpochEnd, Summary
from tests.app.cli.scripted_node import (
    ME,
    OTHER,
    PROBLEM,
    RUN,
    ScriptedNode,
    Words,
    follower,
    linked,
    paired,
    plan,
)
from tests.app.cli.test_sweep import BEGUN, SWEEP, finished

ENTRY = answers.RunEntry(
    run=RUN,
    started_s=1_795_000_000.0,
    duration_s=65.0,
    script="digits.py",
    arguments=("--epochs", "2"),
    devices=("here", "other"),
    phase=Finished(),
    summary=Summary(last_logs={"loss": 0.1}),
    folder="/runs/1",
)


async def shown(details: answers.RunDetails, node: ScriptedNode | None = None) -> list[str]:
    """The output about one run."""
    node, screen = node or ScriptedNode(), Words()
    node.answers[GetRun] = details
    with follower(node) as events:
        assert await runs._one(events, screen, RUN) == ExitCode.OK
    return screen.said.splitlines()


async def test_reports_from_other_laptops_stand_below_the_history() -> None:
    node, screen = ScriptedNode(), Words()
    screen.console.width = 160
    sent = answers.ReceivedReport(path="/received/1.html", script="cats.py", sender="ben", came_s=1.7e9)
    old = replace(sent, path="/received/0.html", script="0", sender="")
    node.answers[ListRuns] = answers.RunList(runs=(), reports=(sent, old))
    with follower(node) as events:
        assert await runs._all(events, screen, 5) == ExitCode.OK
    told = screen.said.splitlines()
    assert told[-3] == "Reports from other laptops:"
    assert told[-2].endswith("cats.py, from ben: /received/1.html") and told[-1].endswith(
        "0: /received/0.html"
    )


async def test_the_history_is_a_table() -> None:
    node, screen = ScriptedNode(), Words()
    screen.console.width = 160
    node.answers[ListRuns] = answers.RunList(runs=(ENTRY,), problem=PROBLEM)
    with follower(node) as events:
        assert await runs._all(events, screen, 5) == ExitCode.OK
    assert node.commands == [ListRuns(limit=5)]
    assert "It did not work." in screen.said
    assert RUN in screen.said
    assert "loss 0.1000" in screen.said


async def test_an_empty_history_says_what_to_try() -> None:
    node, screen = ScriptedNode(), Words()
    node.answers[ListRuns] = answers.RunList(runs=())
    with follower(node) as events:
        await runs._all(events, screen, 5)
    assert screen.said == "Nothing has been trained yet. Try: tandem demo\n"


async def test_one_run_is_reported_with_its_epochs_and_the_end_of_its_log() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=2, step=9, logs={"loss": 0.5}, seconds=1.5)
    said = await shown(
        answers.RunDetails(
            entry=ENTRY,
            plan=plan(OTHER),
            epochs={ME: (epoch,)},
            log="first\n\x1b[2Jlast\n",
            report="/runs/1/report.html",
        )
    )
    assert said[0] == f"{RUN} digits.py --epochs 2"
    assert "finished, on here, other" in said[1]
    assert "member: epoch 1/2: loss 0.5000 (1.5 s)" in said
    assert "Report: /runs/1/report.html" in said
    assert said[-1] == "  last"


async def test_one_run_says_when_laptops_were_lost_and_back() -> None:
    turns: list[tuple[Change, float, str]] = [
        ("joined", 5, ""),
        ("lost", 65, "It was killed."),
        ("back", 3700, ""),
    ]
    membership = tuple(
        MembershipChanged(device=OTHER, change=change, at_s=ENTRY.started_s + after_s, words=words)
        for change, after_s, words in turns
    )
    said = await shown(answers.RunDetails(entry=ENTRY, plan=plan(OTHER), membership=membership))
    assert [line.partition(", ")[2] for line in said if " was " in line] == [
        "after 1:05: member was lost: It was killed.",
        "after 1:01:40: member was back",
    ]


async def test_a_stopped_run_says_where_it_goes_on_and_a_resumed_one_from_which() -> None:
    entry = replace(ENTRY, phase=Stopped(), source="/a/digits.py", resumed=RunId("20261121-191204-9f3a01bc"))
    moment = Moment(step=950, epoch=3, batch=119)
    said = await shown(answers.RunDetails(entry=entry, checkpoint=moment))
    assert "Resumed from run 20261121-191204-9f3a01bc." in said
    assert f"Resumes at epoch 4, step 120. To resume: tandem resume {RUN}" in said


@pytest.mark.parametrize("ours", [None, Moment(step=1)])
async def test_a_stopped_run_says_which_other_laptop_has_a_newer_checkpoint(ours: Moment | None) -> None:
    node = ScriptedNode()
    entry = replace(ENTRY, phase=Stopped(), source="/a/digits.py")
    moment = Moment(step=950, epoch=3, batch=119)
    node.happen(paired())
    node.happen(linked())
    node.then[FindCheckpoints] = [
        CheckpointFound(run=RUN, device=OTHER, moment=replace(moment, epoch=2)),
        CheckpointFound(run=RUN, device=OTHER, moment=moment),
        CheckpointFound(run=RunId("another"), device=OTHER, moment=Moment(step=5000)),
    ]
    where = "Resumes at epoch 4, step 120, with the checkpoint on other."
    said = await shown(answers.RunDetails(entry=entry, plan=plan(OTHER), checkpoint=ours), node)
    assert f"{where} To resume: tandem resume {RUN}" in said


async def test_a_failed_run_says_why() -> None:
    failed = answers.RunEntry(run=RUN, started_s=0.0, script="x.py", phase=Failed(problem=PROBLEM))
    assert "It did not work." in await shown(answers.RunDetails(entry=failed))


async def test_json_carries_everything() -> None:
    node, screen = ScriptedNode(), Words(json=True)
    node.answers[ListRuns] = answers.RunList(runs=(ENTRY,))
    node.answers[GetRun] = answers.RunDetails(entry=ENTRY)
    with follower(node) as events:
        await runs._all(events, screen, 5)
        await runs._one(events, screen, RUN)
    listed, one = screen.told
    assert listed["runs"][0]["run"] == RUN
    assert one["run"]["entry"]["folder"] == "/runs/1"


async def test_an_unknown_run_is_refused() -> None:
    node = ScriptedNode()
    node.refuses(GetRun)
    with follower(node) as events, pytest.raises(TandemError):
        await runs._one(events, Words(), RUN)


@pytest.mark.parametrize(
    ("words", "command", "said"),
    [
        (("--name", "Warm start"), LabelRun(run=RUN, name="Warm start"), "changed"),
        (("--note", ""), LabelRun(run=RUN, note=""), "changed"),
        (("--delete",), DeleteRun(run=RUN), "deleted"),
    ],
)
async def test_a_run_is_named_annotated_and_deleted_by_the_beginning_of_its_id(
    words: tuple[str, ...], command: Command, said: str
) -> None:
    node, screen = ScriptedNode(), Words()
    node.answers[GetRun] = answers.RunDetails(entry=ENTRY)
    with follower(node) as events:
        assert await runs._change(events, screen, read(["runs", RUN[:15], *words])) == ExitCode.OK
    assert node.commands == [GetRun(run=RunId(RUN[:15]), points=False), command]
    assert screen.said == f"{RUN} is {said}.\n"


async def test_a_run_that_may_not_be_deleted_is_said() -> None:
    node, screen = ScriptedNode(), Words()
    node.answers[GetRun] = answers.RunDetails(entry=ENTRY)
    node.answers[DeleteRun] = answers.Refused(problem=PROBLEM)
    with follower(node) as events, pytest.raises(TandemError) as caught:
        await runs._change(events, screen, read(["runs", RUN, "--delete"]))
    assert caught.value.problem == PROBLEM


async def test_the_name_of_ones_own_and_the_note_stand_above_the_rest() -> None:
    entry = replace(ENTRY, name="Warm\x1b[2J start", note="half the rate\nwith ben")
    said = await shown(answers.RunDetails(entry=entry))
    assert said[1:4] == ["Warm start", "half the rate", "with ben"]


async def test_a_sweep_is_one_line_and_shows_its_trials_by_its_id() -> None:
    node, screen = ScriptedNode(), Words()
    screen.console.width = 160
    swept = replace(BEGUN.having(finished(1, 0.5)).having(finished(2, 0.25)), phase="finished")
    line = entry_of(swept, Path("/sweeps"), ())
    trial = replace(ENTRY, run=RunId("20261122-200000-00000001"), sweep=SWEEP)
    node.answers[ListRuns] = answers.RunList(runs=(trial, ENTRY), sweeps=(line,))
    with follower(node) as events:
        assert await runs._all(events, screen, 5) == ExitCode.OK
    assert "train.py, 2 trials" in screen.said and trial.run not in screen.said and RUN in screen.said
    told = await shown(answers.RunDetails(entry=line, sweep=swept, report="/sweeps/s/report.html"))
    assert told[1].split()[:3] == ["2", "--lr", "0.01"]
    assert told[-2].startswith("Best: trial 2") and told[-1] == "Report: /sweeps/s/report.html"
