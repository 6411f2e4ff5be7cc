"""The doctor's findings on whether trainers reach each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.doctor import network
from core.doctor.reach import check_reach, finding
from core.doctor.trial import Reach
from core.doctor.view import Examined
from core.vocabulary import events as ev
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Dialled
from core.vocabulary.versions import Versions
from tests.core.doctor.views import view
from tests.core.fake_node import HARDWARE, OTHER, VERSIONS

PAIRED = ev.DevicePaired(device=OTHER, name="ben")


def up(versions: Versions) -> ev.LinkUp:
    return ev.LinkUp(device=OTHER, name="ben", address="10.0.0.2:27600", versions=versions, hardware=HARDWARE)


def asked_over(base: Path, found: Reach | None, *events: ev.Event) -> tuple[Examined, list[DeviceId]]:
    tried: list[DeviceId] = []

    async def try_with(device: DeviceId) -> Reach | None:
        tried.append(device)
        return found

    seen = view(base, *events)
    return Examined(seen.home, state=seen.state, port=seen.port, try_reach=try_with), tried


def went(inward: Dialled, outward: Dialled) -> Reach:
    return Reach(inward, outward, own_host="10.0.0.1", peer_host="fe80::2%eth0")


@pytest.mark.parametrize(
    ("inward", "outward", "code", "level"),
    [
        ("answers", "answers", "reach", "ok"),
        ("silent", "answers", "reach-closed-here", "note"),
        ("answers", "refused", "reach-closed-there", "note"),
        ("unreachable", "stranger", "reach-closed", "error"),
    ],
)
def test_each_way_has_its_verdict(inward: Dialled, outward: Dialled, code: str, level: str) -> None:
    found = finding("ben", went(inward, outward))

    assert (found.code, found.level) == (code, level)
    assert found.what.endswith(".") and (found.fix or level == "ok")


def test_a_closed_way_names_whose_firewall_and_that_one_is_enough() -> None:
    here, there = finding("ben", went("silent", "answers")), finding("ben", went("answers", "refused"))

    assert "A connection from ben to a trainer's port here (10.0.0.1) got no answer" in here.what
    assert "the firewall here" in here.what and "On this laptop:" in here.fix
    assert "A connection from here to a trainer's port on ben (fe80::2%eth0) was refused" in there.what
    assert "ben's firewall" in there.what and "On ben:" in there.fix
    for found in (here, there):
        assert "One direction is enough for runs that Tandem manages" in found.what
        assert "need both directions" in found.fix


def test_where_neither_way_is_open_both_are_reported_and_how_to_open_one() -> None:
    found = finding("ben", went("unreachable", "stranger"))

    assert "was rejected on the way" in found.what and "was answered by something else" in found.what
    assert found.fix.startswith("Open one of the two. On this laptop:") and "On ben:" in found.fix


def test_the_command_is_that_of_the_firewall_that_is_on(tmp_path: Path) -> None:
    etc, run = tmp_path / "etc", tmp_path / "run"
    (etc / "ufw").mkdir(parents=True)
    run.mkdir()
    assert "20000–32000 in from fe80::2 in" in network.let_trainers_in("fe80::2%eth0", etc, run)

    (run / "firewalld").mkdir()
    assert "firewall-cmd --add-port=20000-32000/tcp" in network.let_trainers_in("10.0.0.2", etc, run)

    (etc / "ufw/ufw.conf").write_text("ENABLED=yes\n")
    command = "sudo ufw allow from 10.0.0.2 to any port 20000:32000 proto tcp"
    assert network.let_trainers_in("10.0.0.2", etc, run) == command


async def test_only_linked_laptops_are_asked(tmp_path: Path) -> None:
    seen, tried = asked_over(tmp_path, went("answers", "answers"), PAIRED)

    (found,) = await check_reach(seen)

    assert (found.code, found.level, tried) == ("reach-nobody", "note", [])


async def test_a_laptop_is_asked_over_its_link(tmp_path: Path) -> None:
    present = up(VERSIONS)
    seen, tried = asked_over(tmp_path, went("answers", "silent"), PAIRED, present)

    (found,) = await check_reach(seen)

    assert (found.code, tried) == ("reach-closed-there", [OTHER])


async def test_a_laptop_that_does_not_answer_gets_no_verdict(tmp_path: Path) -> None:
    seen, tried = asked_over(tmp_path, None, PAIRED, up(VERSIONS))

    (found,) = await check_reach(seen)

    assert (found.code, found.level, tried) == ("reach-untried", "note", [OTHER])
