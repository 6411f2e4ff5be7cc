from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from core.cluster.make_plan import FIRST_PORT, LAST_PORT, Roles, make_plan, new_run_id
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.options import RunOptions
from core.vocabulary.plan import Plan, Role, RunSpec, shares_by_rank
from tests.core.cluster.laptops import ANNA, BEN, CLEO, HOSTS, NAMES, plan_of
from tests.core.samples import unlike_default, unsaid


def plan_for(spec: RunSpec, roles: Roles | None = None) -> Plan:
    return make_plan(
        spec,
        starter=ANNA,
        project=ProjectId("d" * 64),
        script="train.py",
        strategy="managed",
        roles=roles or {ANNA: (Role.CHIEF,), BEN: (Role.WORKER,)},
        names=NAMES,
        hosts=HOSTS,
    )


def test_a_run_id_sorts_by_time_and_repeats_for_nobody() -> None:
    early, late = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC)
    assert new_run_id(early)[:15] == "20260102-000000"
    assert new_run_id(early) < new_run_id(late)
    assert len({new_run_id(early) for _ in range(50)}) == 50


def test_tasks_come_in_rank_order_whoever_started() -> None:
    plan = plan_of(
        (ANNA, BEN, CLEO), fixed={ANNA: (Role.WORKER, Role.PS), CLEO: (Role.CHIEF,)}, strategy="own"
    )
    assert [(task.name, task.device) for task in plan.tasks] == [
        ("chief:0", CLEO),
        ("worker:0", ANNA),
        ("worker:1", BEN),
        ("ps:0", ANNA),
    ]
    assert [member.device for member in plan.members] == [CLEO, ANNA, BEN]
    assert [task.port for task in plan.tasks] == [FIRST_PORT + rank for rank in range(4)]
    assert plan.chief.host == HOSTS[CLEO]


def test_each_run_asks_for_other_ports_of_the_range() -> None:
    plans = [plan_for(RunSpec(script="x")) for _ in range(20)]
    assert len({plan.chief.port for plan in plans}) > 1
    assert all(FIRST_PORT <= task.port < LAST_PORT for plan in plans for task in plan.tasks)


def test_one_device_alone_has_no_address() -> None:
    plan = plan_of((ANNA,))
    assert plan.solo
    assert (plan.chief.host, plan.chief.port) == ("", 0)


@pytest.mark.parametrize("shares", [{ANNA: 75}, {ANNA: 0}, {ANNA: 48, BEN: 16}])
def test_one_device_alone_has_no_shares(shares: dict[DeviceId, int]) -> None:
    plan = plan_for(RunSpec(script="x", shares=shares, shares_total=100), {ANNA: (Role.CHIEF,)})
    assert [member.share for member in plan.members] == [1]


def test_a_seed_is_drawn_once_for_all_and_can_be_fixed() -> None:
    assert plan_for(RunSpec(script="x", seed=7)).seed == 7
    assert plan_for(RunSpec(script="x")).seed != plan_for(RunSpec(script="x")).seed


@pytest.mark.parametrize("seed", [-1, 1 << 31])
def test_a_seed_that_numpy_would_refuse_is_refused_at_once(seed: int) -> None:
    with pytest.raises(TandemError, match="is not a valid seed"):
        plan_for(RunSpec(script="x", seed=seed))


def test_shares_follow_the_members_in_rank_order() -> None:
    plan = plan_for(RunSpec(script="x", shares={BEN: 16, ANNA: 48}))
    assert shares_by_rank(plan) == (48, 16)
    assert shares_by_rank(plan_for(RunSpec(script="x"))) == (1, 1)


def test_shares_follow_the_speed_unless_the_user_fixed_them_or_nothing_is_shared() -> None:
    assert plan_for(RunSpec(script="x")).balance
    assert not plan_for(RunSpec(script="x", shares={ANNA: 48, BEN: 16})).balance
    assert not plan_of(strategy="own").balance
    assert not plan_of((ANNA,)).balance


def test_a_laptop_that_is_several_members_counts_as_many_and_shares_its_part_equally() -> None:
    two = {ANNA: (Role.CHIEF, Role.WORKER), BEN: (Role.WORKER,)}
    plan = plan_of(fixed=two)
    assert [member.share for member in plan.members] == [2, 1]
    assert [task.device for task in plan.tasks] == [ANNA, ANNA, BEN]
    assert shares_by_rank(plan) == (1, 1, 1)
    by_hand = [replace(member, share=share) for member, share in zip(plan.members, (48, 16), strict=True)]
    assert shares_by_rank(replace(plan, members=tuple(by_hand))) == (24, 24, 16)
    odd = [replace(member, share=share) for member, share in zip(plan.members, (47, 17), strict=True)]
    assert shares_by_rank(replace(plan, members=tuple(odd))) == (47, 47, 34)


def test_a_share_of_a_whole_leaves_the_rest_to_the_others() -> None:
    plan = plan_for(RunSpec(script="x", shares={BEN: 25}, shares_total=100))
    assert shares_by_rank(plan) == (75, 25)
    assert not plan.balance
    with pytest.raises(TandemError, match="more than 64"):
        plan_for(RunSpec(script="x", shares={BEN: 65}, shares_total=64))


@pytest.mark.parametrize(
    "shares", [{ANNA: 48}, {ANNA: 1, BEN: 1, CLEO: 1}, {ANNA: -1, BEN: 1}, {ANNA: 0, BEN: 0}]
)
def test_impossible_shares_are_refused(shares: dict[DeviceId, int]) -> None:
    with pytest.raises(TandemError) as caught:
        plan_for(RunSpec(script="x", shares=shares))
    assert caught.value.code == "bad-shares"


def test_one_of_several_may_have_no_share_and_all_none_may_not() -> None:
    plan = plan_for(RunSpec(script="t", shares={ANNA: 64, BEN: 0}))
    assert [member.share for member in plan.members] == [64, 0]
    for shares, words in (({ANNA: 0, BEN: 0}, "All shares are 0"), ({ANNA: 1, BEN: -1}, "share is -1")):
        with pytest.raises(TandemError, match=words) as failure:
            plan_for(RunSpec(script="t", shares=shares))
        assert failure.value.code == "bad-shares" and failure.value.fix


def test_the_rest_of_a_total_may_be_nothing_and_not_less() -> None:
    plan = plan_for(RunSpec(script="t", shares={ANNA: 100}, shares_total=100))
    assert [member.share for member in plan.members] == [100, 0]
    with pytest.raises(TandemError, match="more than 100"):
        plan_for(RunSpec(script="t", shares={ANNA: 101}, shares_total=100))


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_a_seed_is_what_the_user_chose(seed: int) -> None:
    assert plan_for(RunSpec(script="t", seed=seed)).seed == seed


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_an_invalid_seed_is_refused(seed: int) -> None:
    with pytest.raises(TandemError, match=f"{seed} is not a valid seed") as failure:
        plan_for(RunSpec(script="t", seed=seed))
    assert failure.value.code == "bad-seed"


def test_without_a_wish_the_seed_is_another_one_each_time() -> None:
    assert len({plan_for(RunSpec(script="t")).seed for _ in range(20)}) > 15


def test_a_plan_follows_speeds_only_where_nobody_fixed_shares_and_there_are_two() -> None:
    assert plan_for(RunSpec(script="t")).balance
    assert not plan_for(RunSpec(script="t", shares={ANNA: 1, BEN: 1})).balance
    assert not plan_of((ANNA,)).balance
    assert not plan_of(strategy="own").balance


def test_ports_follow_each_other_and_all_lie_in_tensorflows_range() -> None:
    for _ in range(200):
        first, second = (task.port for task in plan_for(RunSpec(script="t")).tasks)
        assert FIRST_PORT <= first < second == first + 1 < LAST_PORT


def test_one_task_alone_needs_neither_host_nor_port() -> None:
    (task,) = plan_of((ANNA,)).tasks
    assert (task.host, task.port) == ("", 0)


def test_what_the_user_asked_for_is_in_the_plan() -> None:
    plan = plan_for(RunSpec(script="t", arguments=("--epochs", "3"), wire="bf16"))
    assert (plan.arguments, plan.wire, plan.script, plan.starter) == (
        ("--epochs", "3"),
        "bf16",
        "train.py",
        ANNA,
    )
    assert [member.name for member in plan.members] == [NAMES[ANNA], NAMES[BEN]]


def test_what_a_spec_and_a_plan_both_name_is_carried_over() -> None:
    spec = RunSpec(
        **asdict(unlike_default(RunOptions)), script="train.py", arguments=("-x",), strategy="managed", seed=7
    )
    # ``exchange`` is planned; what is resumed is fetched, and data is read, before the plan names them
    both = set(RunSpec.__struct_fields__) & set(Plan.__struct_fields__) - {"exchange", "resume", "data"}
    assert not unsaid(spec) & both, "a field of RunSpec that this test does not try"
    plan = plan_for(spec)
    assert {name: getattr(plan, name) for name in both} == {name: getattr(spec, name) for name in both}


def test_managed_members_meet_over_tls() -> None:
    assert plan_for(RunSpec(script="t")).exchange == "tls"
    assert plan_of((ANNA,)).exchange == "tensorflow", "nobody to meet"


@pytest.mark.parametrize(
    "spec", [{"away_s": 0.0}, {"away_s": 1e9}, {"ask_after_s": -1.0}, {"away_s": math.nan}]
)
def test_an_impossible_patience_is_refused(spec: dict[str, float]) -> None:
    with pytest.raises(TandemError) as failure:
        plan_for(RunSpec(script="t", **spec))  # type: ignore[arg-type]
    assert failure.value.code == "bad-patience"


def test_a_strategy_of_the_scripts_own_meets_by_tensorflow_in_sealed_trainers() -> None:
    assert plan_of(strategy="own").exchange == "sealed"
    assert plan_of((ANNA,), strategy="own").exchange == "tensorflow", "nobody to meet"


def test_a_loop_in_mirrored_strategy_meets_like_a_managed_run_unless_somebody_only_serves() -> None:
    loop: dict[str, Any] = {"strategy": "own", "mirrored_loop": True}
    assert plan_of(**loop).exchange == "tls"
    assert plan_of((ANNA,), **loop).exchange == "tensorflow", "nobody to meet"
    fixed: dict[DeviceId, tuple[Role, ...]] = {CLEO: (Role.EVALUATOR,)}
    assert plan_of((ANNA, BEN, CLEO), fixed=fixed, **loop).exchange == "sealed"
