"""Checks before a run."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_struct

from app.models import preflight
from app.models.draft import RunDraft
from app.words.advice_words import WINDOW, advice_words
from core.vocabulary import events as ev
from core.vocabulary.answers import Declared, Finding, PlanMade
from core.vocabulary.data import Data
from core.vocabulary.errors import Problem
from core.vocabulary.manifest import Listing
from core.vocabulary.options import RunOptions
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from tests.app import world
from tests.app.models.test_draft import TWO, state_of
from tests.app.words.test_advice_words import ADVICE
from tests.core.fake_node import OTHER

DRAFT = RunDraft(script="/home/ada/digits/digits.py")
PLAN = PlanMade(plan=replace_struct(world.plan(), exchange="tls"))


def found(
    state: State = TWO,
    *,
    draft: RunDraft = DRAFT,
    plan: PlanMade | Problem | None = PLAN,
    findings: tuple[Finding, ...] = (),
    **read: object,
) -> dict[str, Finding]:
    lines = preflight.lines(draft, state, world.script_read(**read), plan, findings)  # type: ignore[arg-type]
    assert all(line.fix for line in lines if line.level in ("error", "warning"))
    return {line.code: line for line in lines}


def test_all_is_well() -> None:
    lines = found()
    assert preflight.ready(list(lines.values()), PLAN)
    assert lines["paired"].what == "Bob's laptop is paired and connected, with the same versions."
    assert lines["project"].what.startswith("2 files, 182 kB, are sent from /home/ada/digits")


def test_a_value_that_the_script_would_refuse_is_a_warning_before_the_start() -> None:
    options = (
        Declared(names=("--epochs", "-e"), kind="int", default="5", help="How long to train"),
        Declared(names=("--optimizer",), choices=("adam", "sgd"), default="adam"),
        Declared(names=("--fast",), takes=False),
    )
    read = replace_struct(world.script_read(), options=options)

    def told(arguments: str) -> list[str]:
        lines = preflight.lines(replace(DRAFT, arguments=arguments), TWO, read, PLAN, ())
        return [line.what for line in lines if line.code == "argument-refused" and line.level == "warning"]

    assert told("--epochs ten --optimizer adm") == [
        "--epochs must be a whole number, not ten. --optimizer must be one of adam, sgd, not adm."
    ]
    assert told("--epochs 3 --fast") == told("'unclosed") == []


def test_alone_nothing_is_said_of_the_network() -> None:
    lines = found(state_of())
    assert "not-sealed" not in lines
    assert lines["alone"].what == "This laptop trains alone."


def test_a_run_is_sealed_as_planned_and_for_who_forbade_downloads_until_a_plan_is_made() -> None:
    own, fit = world.script_read(kind="own"), world.script_read()
    sealed = PlanMade(plan=replace_struct(PLAN.plan, strategy="own", exchange="sealed"))
    loop = PlanMade(plan=replace_struct(PLAN.plan, strategy="own", exchange="tls"))
    forbidden = replace(DRAFT, options=RunOptions(downloads=False))
    assert preflight.is_sealed(DRAFT, own, sealed)
    assert not preflight.is_sealed(DRAFT, own, loop) and not preflight.is_sealed(DRAFT, own, None)
    assert preflight.is_sealed(forbidden, own, None)
    assert not preflight.is_sealed(forbidden, fit, PLAN), "with model.fit there is nothing to forbid"
    assert preflight.is_sealed(replace(forbidden, strategy="own"), fit, None)
    assert not preflight.is_sealed(replace(forbidden, strategy="managed"), own, None)


def test_accepted_differences_are_in_sight_and_can_be_withdrawn() -> None:
    accepted = ev.SettingsChanged(settings=Settings(accepted=("c" * 64,)))
    assert preflight.ACCEPTED not in found(), "nothing was accepted"
    for line in (
        found(state_of(*world.linked(), accepted))[preflight.ACCEPTED],
        found(draft=replace(DRAFT, options=RunOptions(accept_differences=True)))[preflight.ACCEPTED],
    ):
        assert "still ends green" in line.what and line.mend
        assert preflight.needs_the_user(line)
    other = ev.SettingsChanged(settings=Settings(accepted=("d" * 64,)))
    assert preflight.ACCEPTED not in found(state_of(*world.linked(), other)), "another script's"
    assert preflight.ACCEPTED not in found(state_of(accepted)), "one laptop has its own result"


def test_who_is_missing_is_said_with_the_mend() -> None:
    lines = found(state_of(*world.linked(), world.lost()))
    assert lines["not-connected"].what.startswith("Bob's laptop is not connected")
    assert lines["not-connected"].fix == "Look whether it sleeps."


def test_differing_versions_are_named() -> None:
    problem = Problem(code="versions-differ", what="Keras 3.14 there, 3.15 here.", fix="Update Tandem there.")
    line = found(state_of(*world.linked(problem=problem)))["no-run"]
    assert "Keras 3.14 there" in line.what
    assert line.fix == "Update Tandem there."


def test_a_plan_that_cannot_be_forbids_to_train() -> None:
    refused = Problem(code="no-chief", what="No device is the chief.", fix="Make one the chief.")
    lines = found(plan=refused)
    assert lines["no-chief"].level == "error"
    assert not preflight.ready(list(lines.values()), refused)


def test_while_the_plan_is_made_nobody_may_train() -> None:
    assert not preflight.ready(list(found(plan=None).values()), None)


def test_a_network_without_mdns_or_none_at_all_does_not_forbid_to_train() -> None:
    for code in ("mdns", "no-network"):
        trouble = Finding(code=code, topic="network", level="error", what="Nobody is heard.", fix="Join one.")
        for state in (TWO, state_of()):
            lines = found(state, findings=(trouble,))
            assert code not in lines
            assert preflight.ready(list(lines.values()), PLAN)


def test_a_full_disk_forbids_to_train_and_other_notes_do_not_disturb() -> None:
    full = Finding(
        code="disk-full", topic="files", level="error", what="Only 1 MB is free.", fix="Delete something."
    )
    clock = Finding(code="clock", topic="machine", level="warning", what="The clock is late.", fix="Set it.")
    lines = found(findings=(full, clock))
    assert "clock" not in lines
    assert not preflight.ready(list(lines.values()), PLAN)


def room(free: int | None, *, draft: RunDraft = DRAFT) -> dict[str, Finding]:
    return found(
        state_of(*world.linked(), world.told(OTHER, world.reading(disk_free_bytes=free))), draft=draft
    )


def test_the_others_free_disk_is_looked_at_too() -> None:
    assert "disk-there" not in room(None), "an older Tandem does not tell"
    fine = room(400 * world.GIB)
    assert fine["disk-there"].what == "429 GB is free on the disk of Bob's laptop."
    assert preflight.ready(list(fine.values()), PLAN)
    low = room(world.GIB)["disk-there"]
    assert (low.level, low.what) == ("warning", "Only 1.1 GB is free on the disk of Bob's laptop.")
    full = room(50 << 20)
    assert full["disk-there"].level == "error"
    assert "Free some space on Bob's laptop" in full["disk-there"].fix
    assert not preflight.ready(list(full.values()), PLAN)
    out = replace(DRAFT, left_out=frozenset({OTHER}))
    assert "disk-there" not in room(50 << 20, draft=out), "who takes no part may be full"


def test_a_project_that_is_larger_than_the_room_there_is_said() -> None:
    state = state_of(*world.linked(), world.told(OTHER, world.reading(disk_free_bytes=3 * world.GIB)))
    read = replace_struct(world.script_read(), total_bytes=9 * world.GIB)
    lines = preflight.lines(DRAFT, state, read, PLAN, ())
    line = next(line for line in lines if line.code == "disk-there")
    assert line.what == "Only 3.2 GB is free on the disk of Bob's laptop, and the project takes 9.7 GB."


def test_a_run_under_way_forbids_to_train() -> None:
    state = state_of(*world.linked(), ev.RunPlanned(plan=world.plan()))
    lines = found(state)
    assert lines["busy"].level == "error"
    told = preflight.headline(DRAFT, state, world.script_read(), PLAN, list(lines.values()))
    assert told.words == "Not yet: a run is under way" and told.kind == "warning-heading", (
        "no fault of the form"
    )
    wrong = Finding(code="x", topic="run", level="error", what="It is wrong.", fix="Mend it.")
    told = preflight.headline(DRAFT, state, world.script_read(), PLAN, [*lines.values(), wrong])
    assert told.words == "Not ready: 2 problems"


def test_scripts_are_told_apart() -> None:
    own = found(kind="own", strategies=("ParameterServerStrategy",))["script"]
    assert "brings ParameterServerStrategy" in own.what
    loop = found(kind="own", strategies=("MirroredStrategy",), mirrored_loop=True)["script"]
    assert "each laptop is one of its replicas, with an equal part of each batch" in loop.what
    fits = found(kind="managed", strategies=("MirroredStrategy",))["script"]
    assert "uses model.fit in MirroredStrategy; the result matches a single machine" in fits.what
    assert "it runs as it is" in found(kind="neither")["script"].what
    assert "fit" in found(draft=replace(DRAFT, strategy="managed"), kind="own")["script"].what


@pytest.mark.parametrize("code", ["script-shares-nothing", "keras-tuner"])
def test_mistakes_are_named_and_what_concerns_sharing_only_matters_together(code: str) -> None:
    each = Problem(code=code, what="It shares nothing.", fix="Train with fit.")
    assert found(kind="neither", mistakes=(each,))[code].level == "warning"
    assert code not in found(state_of(), kind="neither", mistakes=(each,))
    trials = replace(DRAFT, several=True)
    assert code not in found(draft=trials, kind="neither", mistakes=(each,))


def test_a_file_that_only_this_laptop_has_matters_where_others_train_along() -> None:
    here = Problem(
        code="file-only-here", what="/data/a.csv lies outside.", fix="Keep it.", detail="a=/data/a.csv"
    )
    assert found(mistakes=(here,))["file-only-here"].level == "warning"
    assert "file-only-here" not in found(state_of(), mistakes=(here,))
    data = Data(name="d", path="/data", listing=Listing(digest="a" * 64, size=9), files=1, total_bytes=5)
    travels = PlanMade(plan=replace_struct(PLAN.plan, data=(data,)), tf_configs={})
    assert "file-only-here" not in found(plan=travels, mistakes=(here,))
    another = replace_struct(here, detail="more=/data2/a.csv")
    assert "file-only-here" in found(plan=travels, mistakes=(another,))


def test_what_is_left_out_of_the_project_is_named() -> None:
    line = found(skipped=(".git", "big.zip: too large", "a", "b", "c"))["skipped"]
    assert line.what == "Left out: .git, big.zip: too large, a, b and 1 more."
    why = "a-model-with-a-rather-long-name.keras: the script only writes it"
    assert found(skipped=(why,))["skipped"].what == f"Left out: {why}."


def test_without_an_earlier_run_the_speed_up_will_be_measured() -> None:
    line = found()["speed"]
    assert (line.level, line.what) == (
        "note",
        "The speed-up will be measured in the first seconds of the run.",
    )
    for alone_or_own in (found(state_of()), found(kind="own")):
        assert "unknown until the first run" in alone_or_own["speed"].what


def test_how_fast_it_was_is_said_as_it_is() -> None:
    was = "Last time on these laptops: about 1.6× as fast as here alone."
    line = found(plan=PlanMade(plan=world.plan(), expectation=was))["speed"]
    assert (line.level, line.what) == ("ok", was)


def test_trials_are_not_warned_of_a_speed_that_is_not_theirs() -> None:
    trials = replace(DRAFT, arguments="--epochs 3,5", several=True)
    slow = PlanMade(plan=PLAN.plan, expectation="Last time on these laptops: no faster.", advice=ADVICE)
    lines = found(draft=trials, plan=slow)
    assert "speed" not in lines and "single machine" not in lines["script"].what
    assert lines["trials"].what == "Each trial trains on one laptop alone, at its full speed."
    told = preflight.headline(trials, TWO, world.script_read(), slow, list(lines.values()))
    assert told.words == "Ready: 2 laptops ✓"
    assert "Last time" not in told.summary


@pytest.mark.parametrize(("kind", "named"), [("managed", False), ("own", True)])
def test_the_chief_is_named_where_the_script_brings_its_own_cluster(kind: str, named: bool) -> None:
    told = preflight.headline(DRAFT, TWO, world.script_read(kind=kind), PLAN, ())
    assert ("(chief)" in told.summary) == named


def test_laptops_that_were_no_faster_are_warned_of_with_what_would_help() -> None:
    plan = PlanMade(plan=world.plan(), expectation="Last time: 1.7× slower.", advice=ADVICE)
    lines = found(plan=plan)
    assert (lines["speed"].level, lines["speed"].fix) == ("warning", advice_words(ADVICE, WINDOW))
    assert preflight.ready(list(lines.values()), plan), "who wants to may"
    read = world.script_read()
    head = preflight.headline(DRAFT, TWO, read, plan, list(lines.values()))
    assert "1.7×" not in head.summary, "it stands among the warnings"
    good = PlanMade(plan=world.plan(), expectation="Last time: about 1.6× as fast.")
    head = preflight.headline(DRAFT, TWO, read, good, list(found(plan=good).values()))
    assert head.summary.endswith(good.expectation)


def test_a_module_that_may_be_missed_is_a_warning_and_one_that_is_missed_forbids_to_train() -> None:
    missing = Problem(code="modules-missing", what="pandas is missing on ben.", fix="Install it there.")
    plan = PlanMade(plan=world.plan(), warnings=(missing,))
    lines = found(plan=plan)
    assert (lines["modules-missing"].level, lines["modules-missing"].fix) == ("warning", missing.fix)
    assert preflight.ready(list(lines.values()), plan)
    refused = found(plan=missing)
    assert refused["modules-missing"].level == "error"
    assert not preflight.ready(list(refused.values()), missing)
