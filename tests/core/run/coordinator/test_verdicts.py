"""Which member the run waits for, and why: derived from trainers' reports, on a clock moved by the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from msgspec import structs

from core.run.coordinator import state as co
from core.run.coordinator.verdicts import FRESH_S, UNTOLD_S, verdicts
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import ACTIVITY_EVERY_S, MISSED_S
from core.vocabulary.options import ASK_AFTER_S
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.phases import Exit, MemberPhase
from core.vocabulary.waits import Activity, Cause, PeerWait, TrainerStatus, WaitsFor
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import MANIFEST

TASKS = {ANNA: "chief:0", BEN: "worker:0", CLEO: "worker:1"}
RANKS = {ANNA: 0, BEN: 1, CLEO: 2}
NOW_S = 1000.0


def waiting(*devices: DeviceId, lasted_s: float = 10.0, **more: object) -> TrainerStatus:
    peers = tuple(PeerWait(rank=RANKS[device], lasted_s=lasted_s, **more) for device in devices)  # type: ignore[arg-type]
    return TrainerStatus(activity="exchange", lasted_s=lasted_s, peers=peers)


def busy(
    activity: Activity = "script", where: str = "train.py, line 3", *, lasted_s: float = 12.0
) -> TrainerStatus:
    return TrainerStatus(activity=activity, where=where, lasted_s=lasted_s)


def seen(
    statuses: Mapping[DeviceId, TrainerStatus],
    *,
    members: tuple[DeviceId, ...] = (ANNA, BEN),
    phases: Mapping[DeviceId, MemberPhase] | None = None,
    away: Mapping[DeviceId, float] | None = None,
    ended: tuple[DeviceId, ...] = (),
    age_s: float = 0.0,
    ask_after_s: float = ASK_AFTER_S,
) -> dict[DeviceId, WaitsFor]:
    plan = plan_of(members, project=MANIFEST.digest)
    plan = structs.replace(plan, ask_after_s=ask_after_s)
    state = co.coordinate(ANNA, Prepare(plan=plan, manifest=MANIFEST), 0.0)
    parts = {}
    for device, part in state.parts.items():
        phase = (phases or {}).get(device, "training")
        exits = {TASKS[device]: Exit(reason="finished")} if device in ended else {}
        parts[device] = replace(part, phase=phase, away_s=(away or {}).get(device), exits=exits)
    heard = {TASKS[device]: co.Heard(status, NOW_S - age_s) for device, status in statuses.items()}
    state = replace(
        state, parts=MappingProxyType(parts), statuses=MappingProxyType(heard), stage=co.Running()
    )
    return {wait.device: wait for wait in verdicts(state, NOW_S)}


def causes(found: Mapping[DeviceId, WaitsFor]) -> dict[DeviceId, Cause]:
    return {device: wait.cause for device, wait in found.items()}


def test_without_reported_waits_nobody_is_waited_for() -> None:
    assert seen({}) == {}
    assert seen({ANNA: busy(), BEN: busy()}) == {}, "each computes, and none waits for the other"


def test_each_laptop_is_named_if_all_are_in_their_own_code_for_long() -> None:
    statuses = {ANNA: busy("step", lasted_s=1000.0), BEN: busy(lasted_s=1000.0)}
    found = seen(statuses)
    assert causes(found) == {ANNA: "script", BEN: "script"}
    assert found[BEN].where == "train.py, line 3" and found[BEN].lasted_s == 1000.0
    assert seen({ANNA: busy(lasted_s=1000.0)}) == {}, "Ben's has told nothing that takes long"
    assert seen(statuses | {BEN: busy(lasted_s=ASK_AFTER_S - 1)}) == {}
    assert causes(seen(statuses, away={BEN: NOW_S - 9})) == {BEN: "away"}
    never = seen(statuses, ask_after_s=0.0)
    assert causes(never) == {ANNA: "script", BEN: "script"}, "nobody is asked, and yet each is named"
    assert seen(statuses | {BEN: busy(lasted_s=ASK_AFTER_S - 1)}, ask_after_s=0.0) == {}


def test_a_script_in_its_own_code_is_named_with_its_line() -> None:
    found = seen({ANNA: waiting(BEN), BEN: busy("callback", "train.py, line 12, in on_epoch_end")})
    assert found == {
        BEN: WaitsFor(
            device=BEN,
            cause="script",
            lasted_s=10.0,
            activity="callback",
            where="train.py, line 12, in on_epoch_end",
        )
    }


def test_bytes_on_their_way_are_counted_with_the_time_left() -> None:
    come = {"bytes_come": 25, "bytes_total": 100, "bytes_s": 2.5}
    found = seen({ANNA: waiting(BEN, **come), BEN: waiting(ANNA, heard_s=0.5)})
    assert found[BEN] == WaitsFor(
        device=BEN, cause="wire", lasted_s=10.0, bytes_come=25, bytes_total=100, left_s=30.0
    )
    assert found[ANNA].cause == "wire" and found[ANNA].left_s is None


def test_a_step_whose_bytes_are_coming_waits_for_the_wire() -> None:
    statuses = {ANNA: waiting(BEN, bytes_come=5, bytes_total=9, bytes_s=1.0), BEN: busy("step")}
    assert causes(seen(statuses)) == {BEN: "wire"}
    statuses[ANNA] = waiting(BEN, bytes_come=5, bytes_total=9)
    assert causes(seen(statuses)) == {BEN: "script"}


def test_a_stopped_process_outweighs_its_earlier_reports() -> None:
    found = seen({ANNA: waiting(BEN), BEN: TrainerStatus(activity="script", stopped=True)})
    assert causes(found) == {BEN: "stopped"}


def test_a_laptop_that_is_away_is_named_with_the_time_for_which_it_is_waited_for() -> None:
    found = seen({ANNA: waiting(BEN), BEN: busy()}, away={BEN: NOW_S - 70})
    assert found == {
        BEN: WaitsFor(device=BEN, cause="away", lasted_s=70.0, since_s=NOW_S - 70.0, left_s=530.0)
    }


def test_a_laptop_that_is_away_is_named_even_if_nobody_waits_yet() -> None:
    assert causes(seen({}, away={BEN: NOW_S - MISSED_S})) == {BEN: "away"}
    assert seen({}, away={BEN: NOW_S - MISSED_S / 2}) == {}


def test_reports_of_a_laptop_that_is_away_do_not_count() -> None:
    assert causes(seen({BEN: waiting(ANNA)}, away={BEN: NOW_S - 9})) == {BEN: "away"}


def test_a_trainer_that_still_loads_tensorflow_is_not_silent() -> None:
    statuses = {ANNA: waiting(BEN, connected=False, heard_s=20.0)}
    assert causes(seen(statuses, phases={BEN: "starting"})) == {BEN: "starting"}
    assert causes(seen(statuses, phases={BEN: "meeting"})) == {BEN: "connection"}


@pytest.mark.parametrize(("connected", "cause"), [(True, "silent"), (False, "connection")])
def test_a_peer_without_a_sign_of_life_is_silent_or_not_connected(connected: bool, cause: Cause) -> None:
    statuses = {ANNA: waiting(BEN, connected=connected, heard_s=6.0), BEN: waiting(ANNA)}
    assert seen(statuses)[BEN].cause == cause


def test_a_connection_that_broke_a_moment_ago_is_not_reported() -> None:
    statuses = {ANNA: waiting(BEN, connected=False, heard_s=0.5, bytes_total=9), BEN: waiting(ANNA)}
    assert seen(statuses)[BEN].cause == "wire"


@pytest.mark.parametrize("age_s", [0.0, 2.7, 3.4, 3.6, ACTIVITY_EVERY_S])
def test_the_verdict_stays_between_two_reports_of_a_trainer(age_s: float) -> None:
    lost = {ANNA: waiting(BEN, connected=False, heard_s=6.0), BEN: waiting(ANNA)}
    assert seen(lost, age_s=age_s)[BEN].cause == "connection"
    well = {ANNA: waiting(BEN, heard_s=0.9), BEN: waiting(ANNA)}
    assert seen(well, age_s=age_s)[BEN].cause == "wire"


def test_an_old_report_proves_nobodys_silence() -> None:
    statuses = {ANNA: waiting(BEN, heard_s=6.0), BEN: waiting(ANNA)}
    assert seen(statuses, age_s=FRESH_S)[BEN].cause == "wire"


def test_a_trainer_that_reports_nothing_for_long_is_busy() -> None:
    assert seen({ANNA: waiting(BEN, lasted_s=UNTOLD_S - 1)}) == {}
    found = seen({ANNA: waiting(BEN, lasted_s=UNTOLD_S)})
    assert causes(found) == {BEN: "script"} and found[BEN].activity is None


def test_only_the_end_of_a_chain_is_named() -> None:
    statuses = {ANNA: waiting(BEN, CLEO), BEN: waiting(CLEO), CLEO: busy()}
    assert causes(seen(statuses, members=(ANNA, BEN, CLEO))) == {CLEO: "script"}


def test_two_that_keep_a_third_waiting_are_both_named() -> None:
    statuses = {ANNA: waiting(BEN, CLEO), BEN: busy(), CLEO: TrainerStatus(activity="script", stopped=True)}
    assert causes(seen(statuses, members=(ANNA, BEN, CLEO))) == {BEN: "script", CLEO: "stopped"}


def test_a_member_still_at_work_after_another_finished_is_named() -> None:
    found = seen({BEN: busy("script", "train.py, line 9")}, ended=(ANNA,))
    assert found[BEN].where == "train.py, line 9" and found[BEN].lasted_s == 12.0
    assert seen({ANNA: waiting(BEN)}, ended=(BEN,)) == {}, "an end is no wait"
