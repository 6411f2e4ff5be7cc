import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli import command_line, spec
from app.cli.run_flags import FLAGS
from core.vocabulary import events as ev
from core.vocabulary.access import Access
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Role, RunSpec
from tests.app.cli.scripted_node import (
    ME,
    OTHER,
    PROBLEM,
    RUN,
    THIRD,
    ScriptedNode,
    follower,
    found,
    linked,
    paired,
)
from tests.core.samples import unsaid


async def read(node: ScriptedNode, *argv: str, own: bool = False, link_s: float = spec.LINK_S) -> RunSpec:
    arguments = command_line.read(["run", "train.py", *argv])
    with follower(node, own=own) as events:
        return await spec.spec_of(arguments, events, lambda line: None, link_s=link_s)


def with_other() -> ScriptedNode:
    node = ScriptedNode()
    for event in (paired(), linked()):
        node.happen(event)
    return node


async def test_a_script_alone_means_every_paired_device() -> None:
    wanted = await read(with_other(), "--", "--epochs", "3")
    assert wanted == RunSpec(script=str(Path("train.py").absolute()), arguments=("--epochs", "3"))


async def test_everything_that_can_be_said_reaches_the_spec() -> None:
    wanted = await read(
        with_other(),
        *("--with", "other,me", "--role", "me=worker,ps", "--role", "other=CHIEF"),
        *("--share", "other=48", "--seed", "5", "--strategy", "own", "--wire", "bf16"),
        *("--wait-for-away", "30", "--ask-after", "0", "--accept-differences"),
        *("--no-downloads", "--open", "other=~/Pictures", "--open", "other=/data/out:write"),
        *("--data", "photos=~/Pictures", "--data", "table=/data/table.csv"),
    )
    assert wanted.data == {"photos": str(Path.home() / "Pictures"), "table": "/data/table.csv"}
    assert wanted.opens == {OTHER: (Access(path="~/Pictures"), Access(path="/data/out", write=True))}
    assert wanted.accept_differences and not wanted.downloads
    assert wanted.devices == (OTHER,)
    assert wanted.roles == {ME: (Role.WORKER, Role.PS), OTHER: (Role.CHIEF,)}
    assert wanted.shares == {OTHER: 48}
    assert (wanted.seed, wanted.strategy, wanted.wire, wanted.solo) == (5, "own", "bf16", False)
    assert (wanted.away_s, wanted.ask_after_s) == (1800.0, 0.0)
    others = {"arguments", "solo", "shares_total", "resume", "exchange"}
    of_others = unsaid(wanted) - set(FLAGS)  # each of those has its own test
    assert of_others == others, "a field of RunSpec that this test does not try"


@pytest.mark.parametrize(
    ("text", "rows", "whole"), [("48", 48, None), ("25%", 25, 100), ("16/64", 16, 64), (" 16 / 64 ", 16, 64)]
)
async def test_a_share_is_rows_or_a_part_of_the_whole(text: str, rows: int, whole: int | None) -> None:
    wanted = await read(with_other(), "--share", f"other={text}")
    assert (wanted.shares, wanted.shares_total) == ({OTHER: rows}, whole)


async def test_me_alone_is_solo() -> None:
    assert (await read(with_other(), "--with", "me")).solo
    assert (await read(with_other(), "--solo")).solo


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--with", "anna"], "No device is called 'anna'"),
        (["--with", "stranger"], "stranger is not paired"),
        (["--with", ","], "--with does not accept ','"),
        (["--role", "other=boss"], "--role does not accept 'boss'"),
        (["--role", "chief"], "--role does not accept 'chief'"),
        (["--role", "anna=chief"], "No device is called 'anna'"),
        (["--share", "other=-3"], "--share does not accept '-3'"),
        (["--share", "other=²"], "--share does not accept '²'"),
        (["--share", "other=4/"], "--share does not accept '4/'"),
        (["--share", "other=%"], "--share does not accept '%'"),
        (["--share", "other=4%", "--share", "me=3"], "different units"),
        (["--share", "other=3", "--share", "other=4"], "--share was given twice for other"),
    ],
)
async def test_what_cannot_be_is_named(argv: list[str], what: str) -> None:
    node = with_other()
    node.happen(ev.DeviceFound(device=THIRD, name="stranger", addresses=()))
    with pytest.raises(TandemError) as refused:
        await read(node, *argv)
    assert what in refused.value.what
    assert refused.value.fix


async def test_a_node_that_just_started_lets_the_devices_connect_first() -> None:
    node = ScriptedNode()
    node.happen(paired())
    reading = asyncio.create_task(read(node, "--with", "other", own=True))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    node.happen(linked())
    assert (await reading).devices == (OTHER,)


async def test_a_device_that_stays_away_is_left_to_the_node_to_refuse() -> None:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.LinkDown(device=OTHER, problem=PROBLEM))
    node.happen(found())
    assert (await read(node, "--with", "other", own=True, link_s=0)).devices == (OTHER,)


# --- once more ---------------------------------------------------------------------------------------------

THEN = RunSpec(
    script="/a/b.py",
    arguments=("--epochs", "3"),
    roles={OTHER: (Role.CHIEF,)},
    shares={ME: 1, OTHER: 3},
    seed=7,
    wire="bf16",
)


async def again(node: ScriptedNode, *argv: str, entry: RunEntry | None = None) -> RunSpec:
    entry = entry or RunEntry(
        run=RUN,
        started_s=1.0,
        script="b.py",
        source="/a/b.py",
        arguments=("--epochs", "3"),
        devices=("other", "here"),
        device_ids=(OTHER, ME),
        spec=THEN,
        phase=Finished(),
    )
    node.answers[GetRun] = RunDetails(entry=entry)
    with follower(node) as events:
        return await spec.spec_of(
            command_line.read(["run", "--again", "2026", *argv]), events, lambda line: None
        )


async def test_again_is_as_then_with_the_laptops_that_took_part() -> None:
    assert await again(with_other()) == replace(THEN, devices=(OTHER,))


async def test_what_is_said_now_counts() -> None:
    made = await again(with_other(), "--seed", "0", "--wire", "f32", "--", "--epochs", "9")
    assert (made.seed, made.wire, made.arguments) == (0, "f32", ("--epochs", "9"))
    assert made.shares == THEN.shares
    alone = await again(with_other(), "--solo")
    assert alone.solo
    assert not alone.devices
    assert (alone.roles, alone.shares, alone.seed) == ({}, {}, 7)


async def test_a_laptop_of_then_that_is_not_paired_now_is_named() -> None:
    with pytest.raises(TandemError, match="other took part then but is no longer paired") as refused:
        await again(ScriptedNode())
    assert "--solo" in refused.value.fix
    assert (await again(ScriptedNode(), "--solo")).solo


async def test_a_run_that_another_laptop_started_is_repeated_there() -> None:
    theirs = RunEntry(run=RUN, started_s=1.0, script="b.py", phase=Finished())
    with pytest.raises(TandemError, match="started on another laptop"):
        await again(with_other(), entry=theirs)


async def test_a_record_of_an_earlier_tandem_repeats_script_and_arguments() -> None:
    old = RunEntry(
        run=RUN, started_s=1.0, script="b.py", source="/a/b.py", arguments=("-x",), phase=Finished()
    )
    assert await again(with_other(), entry=old) == RunSpec(script="/a/b.py", arguments=("-x",))
