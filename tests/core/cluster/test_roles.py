from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cluster.make_plan import propose_roles
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Role, StrategyKind
from tests.core.cluster.laptops import ANNA, BEN, CLEO, NAMES

CHIEF, WORKER, PS, EVALUATOR, NONE = Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR, Role.NONE


def propose(
    *devices: DeviceId,
    fixed: dict[DeviceId, tuple[Role, ...]] | None = None,
    strategy: StrategyKind = "managed",
    parameter_server: bool = False,
) -> dict[DeviceId, tuple[Role, ...]]:
    return propose_roles(
        devices,
        fixed=fixed or {},
        strategy=strategy,
        parameter_server=parameter_server,
        names=NAMES,
    )


def refusal(*devices: DeviceId, **settings: object) -> TandemError:
    with pytest.raises(TandemError) as caught:
        propose(*devices, **settings)  # type: ignore[arg-type]
    assert caught.value.fix
    return caught.value


def test_the_starter_is_the_chief() -> None:
    roles = propose(ANNA, BEN, CLEO)
    assert list(roles.items()) == [(ANNA, (CHIEF,)), (BEN, (WORKER,)), (CLEO, (WORKER,))]


def test_the_user_can_make_another_laptop_the_chief() -> None:
    assert propose(ANNA, BEN, fixed={BEN: (CHIEF,)}) == {BEN: (CHIEF,), ANNA: (WORKER,)}


def test_a_fixed_worker_is_not_proposed_as_chief() -> None:
    assert propose(ANNA, BEN, fixed={ANNA: (WORKER,)}) == {BEN: (CHIEF,), ANNA: (WORKER,)}


def test_without_the_starter_the_first_device_that_it_named_is_the_chief() -> None:
    roles = propose(ANNA, CLEO, BEN, fixed={ANNA: (NONE,)})
    assert list(roles.items()) == [(CLEO, (CHIEF,)), (BEN, (WORKER,))]


def test_two_chiefs_are_named() -> None:
    error = refusal(ANNA, BEN, fixed={ANNA: (CHIEF,), BEN: (CHIEF,)})
    assert error.code == "two-chiefs"
    assert "Anna's" in error.what
    assert "Ben's" in error.what


def test_a_missing_chief_is_reported() -> None:
    assert refusal(ANNA, BEN, fixed={ANNA: (WORKER,), BEN: (WORKER,)}).code == "no-chief"


def test_a_role_for_a_device_outside_the_run_is_named() -> None:
    error = refusal(ANNA, BEN, fixed={CLEO: (WORKER,)})
    assert error.code == "role-without-device"
    assert "Cleo's" in error.what


@pytest.mark.parametrize("role", [PS, EVALUATOR])
def test_a_managed_run_has_no_ps_and_no_evaluator(role: Role) -> None:
    error = refusal(ANNA, BEN, fixed={BEN: (role,)})
    assert error.code == "role-needs-own-strategy"
    assert "Ben's" in error.what


def test_a_laptop_with_several_gpus_can_be_several_members() -> None:
    fixed = {ANNA: (CHIEF, WORKER), BEN: (WORKER,)}
    assert propose(ANNA, BEN, fixed=fixed) == fixed


def test_other_tasks_beside_are_for_scripts_with_their_own_strategy() -> None:
    fixed: dict[DeviceId, tuple[Role, ...]] = {ANNA: (CHIEF, PS), BEN: (WORKER, WORKER)}
    assert refusal(ANNA, BEN, fixed=fixed).code == "role-needs-own-strategy"
    assert propose(ANNA, BEN, fixed=fixed, strategy="own") == fixed


def test_a_role_and_none_at_once_is_refused() -> None:
    assert refusal(ANNA, BEN, fixed={BEN: (WORKER, NONE)}, strategy="own").code == "role-and-none"


def test_nobody_takes_part() -> None:
    assert refusal(ANNA, fixed={ANNA: (NONE,)}).code == "no-devices"


def test_a_script_with_parameter_servers_gets_one() -> None:
    assert propose(ANNA, BEN, strategy="own", parameter_server=True) == {ANNA: (CHIEF, PS), BEN: (WORKER,)}
    assert propose(ANNA, strategy="own", parameter_server=True) == {ANNA: (CHIEF, PS, WORKER)}
    assert propose(ANNA, BEN, fixed={BEN: (PS,)}, strategy="own", parameter_server=True) == {
        ANNA: (CHIEF, WORKER),
        BEN: (PS,),
    }


@given(
    devices=st.lists(st.sampled_from([ANNA, BEN, CLEO]), unique=True, min_size=1),
    fixed=st.dictionaries(
        st.sampled_from([ANNA, BEN, CLEO]), st.lists(st.sampled_from(list(Role)), max_size=3).map(tuple)
    ),
    strategy=st.sampled_from(["managed", "own"]),
    parameter_server=st.booleans(),
)
def test_whatever_is_fixed_there_is_one_chief_or_a_sentence(
    devices: list[DeviceId],
    fixed: dict[DeviceId, tuple[Role, ...]],
    strategy: StrategyKind,
    parameter_server: bool,
) -> None:
    try:
        roles = propose(*devices, fixed=fixed, strategy=strategy, parameter_server=parameter_server)
    except TandemError as error:
        assert error.what
        assert error.fix
        return
    given_roles = [role for each in roles.values() for role in each]
    assert CHIEF in next(iter(roles.values()))
    assert given_roles.count(CHIEF) == 1
    assert NONE not in given_roles
    assert all(roles.values())
    for device, wanted in fixed.items():
        if wanted and NONE not in wanted:
            assert roles[device][: len(wanted)] == wanted


def test_names_are_listed_as_people_say_them() -> None:
    three = {ANNA: (CHIEF,), BEN: (CHIEF,), CLEO: (CHIEF,)}
    assert "Anna's, Ben's and Cleo's" in refusal(ANNA, BEN, CLEO, fixed=three).what
    two = {ANNA: (CHIEF,), BEN: (CHIEF,)}
    assert "Anna's and Ben's were" in refusal(ANNA, BEN, fixed=two).what
    workers = {ANNA: (WORKER,), BEN: (WORKER,)}
    assert "one of Anna's and Ben's the chief" in refusal(ANNA, BEN, fixed=workers).fix


def test_a_device_without_a_name_is_called_by_its_id() -> None:
    with pytest.raises(TandemError) as caught:
        propose_roles([ANNA], fixed={BEN: (WORKER,)}, strategy="managed")
    assert caught.value.code == "role-without-device" and "bbbbbbbb" in caught.value.what


def test_only_scripts_with_a_strategy_of_their_own_have_servers_and_evaluators() -> None:
    for role in (PS, EVALUATOR):
        assert refusal(ANNA, BEN, fixed={BEN: (role,)}).code == "role-needs-own-strategy"
        assert propose(ANNA, BEN, fixed={BEN: (role,)}, strategy="own")[BEN] == (role,)
    assert propose(ANNA, BEN, parameter_server=True) == {ANNA: (CHIEF,), BEN: (WORKER,)}
