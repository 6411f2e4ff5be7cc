from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.cluster.tf_config import address, check, is_loopback, tf_config
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Plan, Role, Task
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of


def refused(plan: Plan) -> str:
    with pytest.raises(TandemError) as caught:
        check(plan)
    assert caught.value.fix
    return caught.value.code


def test_the_exact_text_for_two_laptops() -> None:
    plan = plan_of()
    assert tf_config(plan, plan.tasks[1]) == (
        '{"cluster": {"chief": ["192.168.1.10:20000"], "worker": ["192.168.1.11:20001"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )


def test_one_process_alone_has_none() -> None:
    plan = plan_of((ANNA,))
    check(plan)
    assert tf_config(plan, plan.chief) == ""


def test_the_evaluator_is_told_of_the_cluster_but_is_no_part_of_it() -> None:
    plan = plan_of((ANNA, BEN, CLEO), fixed={CLEO: (Role.EVALUATOR,)}, strategy="own")
    check(plan)
    text = json.loads(tf_config(plan, plan.tasks[2]))
    assert text["task"] == {"type": "evaluator", "index": 0}
    assert set(text["cluster"]) == {"chief", "worker"}


def test_an_ipv6_address_is_in_brackets() -> None:
    assert (
        address(Task(device=ANNA, role=Role.CHIEF, index=0, host="fe80::1", port=20000)) == "[fe80::1]:20000"
    )


def test_localhost_among_several_hosts_is_refused_and_named() -> None:
    plan = plan_of(hosts={ANNA: "127.0.0.1", BEN: "192.168.1.11"})
    assert refused(plan) == "localhost-in-cluster"


def test_all_members_on_one_machine_may_use_loopback() -> None:
    check(plan_of(hosts={ANNA: "127.0.0.1", BEN: "127.0.0.1"}))


def test_two_tasks_at_one_address_are_refused() -> None:
    plan = plan_of(hosts={ANNA: "192.168.1.10", BEN: "192.168.1.10"})
    same = tuple(replace(task, port=20_000) for task in plan.tasks)
    assert refused(replace(plan, tasks=same)) == "same-address"


def test_a_task_without_an_address_is_refused() -> None:
    assert refused(plan_of(hosts={ANNA: "192.168.1.10"})) == "broken-plan"
    plan = plan_of()
    without = (plan.tasks[0], replace(plan.tasks[1], port=0))
    assert refused(replace(plan, tasks=without)) == "broken-plan"


def test_two_chiefs_in_a_plan_from_elsewhere_are_refused() -> None:
    plan = plan_of()
    two = (plan.tasks[0], replace(plan.tasks[1], role=Role.CHIEF))
    assert refused(replace(plan, tasks=two)) == "broken-plan"


def test_a_task_of_a_stranger_is_refused() -> None:
    plan = plan_of()
    assert refused(replace(plan, tasks=(plan.tasks[0], replace(plan.tasks[1], device=CLEO)))) == "broken-plan"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_is_known_in_each_form(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback("192.168.1.1")


@pytest.mark.parametrize("host", ["annas-laptop.local", "fe80::1%eth0", "127.example", ""])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_loopback_is_known_with_a_zone_and_in_capitals() -> None:
    assert is_loopback("::1%lo")
    assert is_loopback("LocalHost")


roles = st.lists(st.sampled_from([Role.WORKER, Role.PS, Role.EVALUATOR]), min_size=1, max_size=3).map(tuple)


def test_sealed_tasks_have_ports_of_their_own_where_two_laptops_chose_the_same() -> None:
    plan = plan_of((ANNA, BEN, CLEO), strategy="own")
    plan = replace(plan, tasks=tuple(replace(task, port=65535) for task in plan.tasks))
    listed = json.loads(tf_config(plan, plan.chief))["cluster"]
    assert [*listed["chief"], *listed["worker"]] == [
        "127.77.0.1:65535",
        "127.77.0.2:1024",
        "127.77.0.3:1025",
    ]


@given(anna=roles, ben=roles, cleo=roles)
def test_every_member_gets_the_same_cluster_and_its_own_place_in_it(
    anna: tuple[Role, ...], ben: tuple[Role, ...], cleo: tuple[Role, ...]
) -> None:
    fixed = {ANNA: (Role.CHIEF, *anna), BEN: ben, CLEO: cleo}
    plan = plan_of((ANNA, BEN, CLEO), fixed=fixed, strategy="own")
    check(plan)
    assert plan.exchange == "sealed"
    places = {f"127.77.0.{rank + 1}" for rank in range(len(plan.tasks))}
    texts = {task.name: json.loads(tf_config(plan, task)) for task in plan.tasks}
    assert len({json.dumps(text["cluster"]) for text in texts.values()}) == 1
    for task in plan.tasks:
        text = texts[task.name]
        assert text["task"] == {"type": str(task.role), "index": task.index}
        if task.role is not Role.EVALUATOR:
            listed = text["cluster"][str(task.role)][task.index]
            host, port = listed.split(":")
            places.remove(host)  # to each its own
            assert port == str(task.port)
    listed = [one for each in json.loads(tf_config(plan, plan.chief))["cluster"].values() for one in each]
    assert len(set(listed)) == len(listed) == sum(task.role is not Role.EVALUATOR for task in plan.tasks)
