"""The extent of a consent: the same files, arguments and strategy, and no more than was shown."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.cluster.make_plan import make_plan
from core.vocabulary.access import Grant, is_within, least
from core.vocabulary.ids import DeviceId, ProjectId, SweepId
from core.vocabulary.permission import Permission, asked_by, beyond, covers, hash_of
from core.vocabulary.plan import Plan, Role, RunSpec, TrialOf

PROJECT = ProjectId("a" * 64)
ANNA, BEN = DeviceId("1" * 64), DeviceId("2" * 64)

requests = st.builds(
    Permission,
    project=st.sampled_from([PROJECT, ProjectId("b" * 64)]),
    arguments=st.sampled_from(["", hash_of(("--epochs", "3"))]),
    strategy=st.sampled_from(["managed", "own"]),
    network=st.sampled_from(["none", "downloads", "open"]),
    walls=st.sampled_from(["default", "none"]),
    folders=st.sets(st.sampled_from(["/pictures", "/music", "/music/new"])).map(least),
).flatmap(
    lambda asked: st.sets(st.sampled_from(["/pictures", "/music/new"])).map(
        lambda writes: replace(asked, writes=least(writes), folders=least(asked.folders, but=writes))
    )
)


def planned(**changes: Any) -> Plan:
    plan = make_plan(
        RunSpec(script="train.py"),
        starter=ANNA,
        project=PROJECT,
        script="train.py",
        strategy="managed",
        roles={ANNA: (Role.CHIEF,), BEN: (Role.WORKER,)},
        names={ANNA: "Anna", BEN: "Ben"},
        hosts=dict.fromkeys((ANNA, BEN), "127.0.0.1"),
    )
    return replace(plan, **changes)


@given(requests, requests, requests)
def test_covering_is_an_order(one: Permission, two: Permission, three: Permission) -> None:
    assert covers(one, one)
    assert not (covers(one, two) and covers(two, three)) or covers(one, three)
    assert not (covers(one, two) and covers(two, one)) or one == two


@given(requests, requests)
def test_a_request_that_exceeds_any_part_is_not_covered(allowed: Permission, asked: Permission) -> None:
    same = all(
        getattr(allowed, part) == getattr(asked, part) for part in ("project", "arguments", "strategy")
    )
    networks, walls = ["none", "downloads", "open"], ["default", "none"]
    within = (
        networks.index(asked.network) <= networks.index(allowed.network)
        and walls.index(asked.walls) <= walls.index(allowed.walls)
        and all(is_within(each, (*allowed.folders, *allowed.writes)) for each in asked.folders)
        and all(is_within(each, allowed.writes) for each in asked.writes)
    )
    assert covers(allowed, asked) is (same and within)


@given(requests)
def test_a_permission_recorded_by_an_older_tandem_covers_nothing(asked: Permission) -> None:
    older = Permission(project=asked.project, arguments=asked.arguments)
    assert not covers(older, asked)
    assert beyond(older, asked) == ("older",)


def test_permission_without_network_covers_neither_downloads_nor_an_unsealed_script() -> None:
    sealed = planned(exchange="sealed", strategy="own", downloads=False)
    allowed = asked_by(sealed, "none")
    assert covers(allowed, asked_by(replace(sealed, exchange="sealed"), "none"))
    others = {
        "network": replace(sealed, downloads=True),
        "strategy": planned(),
        "arguments": replace(sealed, arguments=("--epochs", "3")),
    }
    for part, plan in others.items():
        assert part in beyond(allowed, asked_by(plan, "none"))
    assert "network" in beyond(allowed, asked_by(planned(strategy="own"), "none"))


def test_permission_for_a_sweep_covers_exactly_the_listed_arguments() -> None:
    sets = (("--lr", "1"), ("--lr", "2"))

    def trial(arguments: tuple[str, ...], sets: tuple[tuple[str, ...], ...] = sets) -> Permission:
        place = TrialOf(sweep=SweepId("s"), number=1, trials=len(sets), argument_sets=sets)
        return asked_by(planned(arguments=arguments, trial=place), "default")

    allowed = trial(sets[0])
    assert allowed == replace(trial(sets[1]), arguments=allowed.arguments, also=allowed.also)
    for covered in (
        trial(sets[1]),
        trial(sets[0], sets[:1]),
        asked_by(planned(arguments=sets[1]), "default"),
    ):
        assert covers(allowed, covered)
    for wider in (
        trial(sets[0], (*sets, ("--lr", "3"))),
        trial((), ((), *sets)),
        asked_by(planned(arguments=("--lr", "3")), "default"),
        asked_by(planned(), "default"),
    ):
        assert beyond(allowed, wider) == ("arguments",)
    assert not covers(asked_by(planned(arguments=sets[0]), "default"), allowed), "a run is no sweep"


@pytest.mark.parametrize(("allowed", "asked"), list(product(("default", "none"), repeat=2)))
def test_permission_inside_walls_does_not_cover_running_without_them(allowed: Any, asked: Any) -> None:
    is_covered = covers(asked_by(planned(), allowed), asked_by(planned(), asked))
    assert is_covered is not ((allowed, asked) == ("default", "none"))


def test_permission_for_a_folder_covers_its_contents_but_reading_does_not_cover_writing() -> None:
    def asks(*paths: str, write: bool = False) -> Permission:
        opened = tuple(Grant(asked=path, path=path, write=write) for path in paths)
        return asked_by(planned(), "default", (), opened)

    allowed = asks("/data")
    for narrower in (asks(), asks("/data"), asks("/data/new", "/data")):
        assert covers(allowed, narrower)
    for wider in (asks("/"), asks("/database"), asks("/data", "/mnt"), asks("/data", write=True)):
        assert beyond(allowed, wider) == ("folders",)
    assert covers(asks("/data", write=True), asks("/data/new"))
