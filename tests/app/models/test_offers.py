"""What a click can do about a warning before the start."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_struct

from app.models import preflight
from app.models.draft import RunDraft
from app.models.offers import Check, Offer
from core.vocabulary.answers import Declared, PlanMade, ScriptRead
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.options import RunOptions
from core.vocabulary.progress import Blamed
from tests.app import world
from tests.app.models.test_draft import TWO
from tests.app.words.test_advice_words import ADVICE, advice_on
from tests.core.fake_node import ME, OTHER

BATCH = Declared(names=("-b", "--batch-size"), kind="int", default="64")
DRAFT = RunDraft()
READ = world.script_read()
ALONE = "Train on this laptop alone"
RARELY = "Meet rarely (about 1.5× as fast)"


def offers(
    code: str, plan: PlanMade | Problem | None, *, draft: RunDraft = DRAFT, read: ScriptRead = READ
) -> tuple[Offer, ...]:
    """Those of the line with this code."""
    found = preflight.lines(draft, TWO, read, plan, ())
    return next((each.offers for each in found if isinstance(each, Check) and each.code == code), ())


def offered(
    cause: Blamed = "wire", *, draft: RunDraft = DRAFT, here: bool = True, together: float = 0.5
) -> dict[str, Offer]:
    advice = replace_struct(advice_on(cause), here=here, together=together)
    made = PlanMade(plan=world.plan(), expectation="Last time: slow.", advice=advice)
    read = replace_struct(READ, options=(BATCH,))
    return {each.words: each for each in offers("speed", made, draft=draft, read=read)}


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("unlike", [ALONE]),
        ("steps", [RARELY, "Use --batch-size 128", ALONE]),
        ("wire", ["Send half the bytes", RARELY, "Use --batch-size 128", ALONE]),
        ("shares", ["Share by speed", ALONE]),
        ("load", ["Use --batch-size 128", ALONE]),
    ],
)
def test_each_cause_has_what_helps(cause: Blamed, words: list[str]) -> None:
    assert list(offered(cause, draft=RunDraft(shares={ME: 1, OTHER: 1}))) == words


def test_what_is_offered_is_done_in_the_form() -> None:
    found = offered()
    half, rarely, alone = (found[words].draft for words in ("Send half the bytes", RARELY, ALONE))
    assert half is not None and rarely is not None and alone is not None
    assert (half.options.wire, half.options.sync) == ("bf16", "exact")
    assert (rarely.options.wire, rarely.options.sync) == ("f32", "rare")
    assert alone.left_out == {OTHER}


def test_what_was_chosen_is_not_offered_again() -> None:
    chosen = RunDraft(options=RunOptions(wire="bf16", sync="rare"))
    assert list(offered(draft=chosen)) == ["Use --batch-size 128", ALONE]
    assert ALONE not in offered(draft=RunDraft(left_out=frozenset({OTHER})))
    assert ALONE not in offered(here=False), "the other laptop is the faster one"


def test_rare_meetings_slower_than_one_laptop_are_not_offered() -> None:
    slower = PlanMade(
        plan=world.plan(), expectation="Last time: slow.", advice=replace_struct(ADVICE, rarely=0.9)
    )
    assert not any(each.words.startswith("Meet rarely") for each in offers("speed", slower))
    assert RARELY in offered()


def test_an_offer_has_the_range_of_its_speed() -> None:
    ranging = replace_struct(ADVICE, spread=(0.8, 1.2))
    made = PlanMade(plan=world.plan(), expectation="Last time: slow.", advice=ranging)
    assert "Meet rarely (about 1.5× as fast, 1.2 to 1.8×)" in [each.words for each in offers("speed", made)]


def test_training_alone_is_not_offered_where_together_is_faster() -> None:
    assert ALONE in offered()
    assert ALONE not in offered(together=1.2)
    # Another laptop is the fastest, but the slowest alone takes 0.036 s, and all together 0.003 / 0.05.
    assert ALONE in offered("steps", here=False, together=0.05)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "--batch-size 128"),
        ("--epochs 3", "--epochs 3 --batch-size 128"),
        ("-b 32 --epochs 3", "--batch-size 64 --epochs 3"),
        ("--batch-size=512 'a b'", "--batch-size 1024 'a b'"),
        ("--batch-size", ""),
        ("--batch-size many", ""),
        ("--batch-size 0", ""),
        ("--name 'open", ""),
    ],
)
def test_a_larger_batch_is_written_into_the_arguments(before: str, after: str) -> None:
    found = [
        each for words, each in offered("load", draft=RunDraft(arguments=before)).items() if "batch" in words
    ]
    assert [each.draft for each in found] == ([RunDraft(arguments=after)] if after else [])


def test_trials_are_offered_nothing_that_makes_laptops_faster_together() -> None:
    made = PlanMade(plan=world.plan(), expectation="Last time: slow.", advice=ADVICE)
    assert offers("speed", made) and not offers("speed", made, draft=replace(DRAFT, several=True))


def test_commas_that_the_script_would_refuse_are_offered_as_values_to_try() -> None:
    read = replace_struct(READ, options=(BATCH,))

    def offered_for(arguments: str) -> tuple[Offer, ...]:
        return offers("argument-refused", None, draft=RunDraft(arguments=arguments), read=read)

    [offer] = offered_for("--batch-size 32,64")
    assert offer.words == "Try several values"
    assert offer.draft == RunDraft(arguments="--batch-size 32,64", several=True)
    assert offered_for("--batch-size 32,x") == offered_for("--batch-size many") == ()


@pytest.mark.parametrize("code", ["script-shares-nothing", "keras-tuner"])
def test_where_laptops_would_share_nothing_this_one_alone_is_offered(code: str) -> None:
    nothing = Problem(code=code, what="It shares nothing.", fix="Use fit.")
    read = replace_struct(READ, kind="neither", mistakes=(nothing,))
    [offer] = offers(code, None, read=read)
    assert offer.words == ALONE
    assert offer.draft is not None and offer.draft.left_out == {OTHER}


def test_what_one_laptop_lacks_can_be_installed_there() -> None:
    lack = Problem(code="modules-missing", what="pandas is missing on ben.")
    named, nobody = (replace_struct(lack, installs=(each,)) for each in (OTHER, DeviceId("fay")))
    wanted = (Offer("Install it there", device=OTHER, installs=True),)
    assert offers("modules-missing", named) == wanted
    assert offers("modules-missing", PlanMade(plan=world.plan(), warnings=(named,))) == wanted
    for other in (lack, nobody):
        assert not offers("modules-missing", other)


def test_what_several_laptops_lack_can_be_installed_on_each() -> None:
    lack = Problem(code="modules-missing", what="pandas is missing on ben (and here).", installs=(OTHER, ME))
    name = TWO.devices[OTHER].shown_name
    found = offers("modules-missing", lack)
    assert [(each.words, each.device) for each in found] == [
        (f"Install it on {name}", OTHER),
        ("Install it here", ME),
    ]
