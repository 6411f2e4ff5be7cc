"""What a node's screen shows of other laptops, and what they learn of it. In memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.home import settings_file, trust
from core.home.trust import TrustedPeer
from core.net.port import EVERYWHERE, LOOPBACK
from core.net.strangers import AT_ONCE, Strangers
from core.node import neighbours
from core.node.node import Node
from core.run.runs import NodeRuns
from core.vocabulary import events as ev
from core.vocabulary.answers import (
    Answer,
    Done,
    Finding,
    Findings,
    PlanMade,
    Refused,
    RunDetails,
    RunList,
    StateNow,
)
from core.vocabulary.commands import (
    AnswerPairing,
    CancelPairing,
    ChangeSettings,
    Command,
    FindCheckpoints,
    Forget,
    GetRun,
    GetState,
    ListRuns,
    Mend,
    Pair,
    PlanRun,
    Rename,
    RunDoctor,
    SaveDiagnostics,
    SetCodePolicy,
)
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import BusyTold, StopAsked, TelemetrySent
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.state import State
from core.vocabulary.traffic import LinkLost, LinkNews
from tests.core.certificates import device_certificate, device_key, identity_of, odd_certificate
from tests.core.link.examples import reading
from tests.core.node.conftest import MakeNode
from tests.core.nodes import Heard, address_of, home_of, id_of, linked, pair, refusal, wait_for

GONE = DeviceId("e" * 64)


async def paired(laptop: MakeNode) -> tuple[Node, Node]:
    anna, ben = await laptop("anna", discovery=False), await laptop("ben", discovery=False)
    await pair(anna, ben)
    return anna, ben


async def test_a_pairing_is_reported_only_once_it_is_stored(laptop: MakeNode) -> None:
    anna, ben = await laptop("anna", discovery=False), await laptop("ben", discovery=False)
    heard = Heard(anna)
    await pair(anna, ben)
    kinds = heard.kinds()
    assert kinds.index("PairingBegan") < kinds.index("PairingCodeShown") < kinds.index("PairingAnswered")
    assert kinds.index("DevicePaired") < kinds.index("PairingEnded")


async def test_once_a_laptop_is_linked_again_its_files_are_called_for_at_once(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = await paired(laptop)
    reached = list[DeviceId]()
    monkeypatch.setattr(anna._neighbours.transfers, "reached", reached.append)
    anna._neighbours.links.drop(id_of(ben), Problem(code="x", what="Enough."))
    await wait_for(anna, lambda state: bool(reached))
    assert reached == [id_of(ben)]


async def test_addresses_of_a_paired_laptop_have_places_that_strangers_cannot_take(
    laptop: MakeNode, tmp_path: Path
) -> None:
    anna, ben = await paired(laptop)
    strangers = anna._neighbours.listener.strangers
    here = "127.0.0.1"

    def has_places(strangers: Strangers) -> bool:
        others = [strangers.admit(f"192.0.2.{number}") for number in range(AT_ONCE)]
        mine = strangers.admit(here)
        for guest in (*others, mine):
            if guest is not None:
                guest.leave()
        return mine is not None and None not in others

    assert has_places(strangers)
    await anna.stop()
    anna = await laptop("anna", discovery=False)
    assert has_places(anna._neighbours.listener.strangers), "it is remembered"
    assert await anna.submit(Forget(device=id_of(ben))) == Done()
    strangers = anna._neighbours.listener.strangers
    assert [bool(strangers.admit(f"192.0.2.{number}")) for number in range(AT_ONCE)] == [True] * AT_ONCE
    assert strangers.admit(here) is None


async def test_a_device_that_is_not_seen_cannot_be_paired_without_an_address(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    assert refusal(await anna.submit(Pair(device=GONE))) == "not-seen"
    assert refusal(await anna.submit(Pair())) == "not-seen"
    assert refusal(await anna.submit(Pair(address="not an address"))) == "bad-address"


async def test_a_pairing_that_cannot_be_stored_is_none(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_: object) -> None:
        raise TandemError(code="home-full", what="The disk is full.", fix="Make room.")

    anna, ben = await laptop("anna", discovery=False), await laptop("ben", discovery=False)
    assert await anna.submit(Pair(address=address_of(ben))) == Done()
    for face in (anna, ben):
        await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
    for face in (anna, ben):
        monkeypatch.setattr(face._neighbours.trust, "change", full)
        assert await face.submit(AnswerPairing(same=True)) == Done()
    state = await wait_for(anna, lambda s: s.pairing is not None and s.pairing.stage == "failed")
    assert state.pairing is not None and state.pairing.problem is not None
    assert state.pairing.problem.code == "home-full"
    assert not anna._neighbours.trust.store.peers


async def test_a_nickname_and_a_policy_reach_the_screen_and_the_file(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)
    other = id_of(ben)
    heard = Heard(anna)
    assert await anna.submit(Rename(device=other, nickname="the  desk\n")) == Done()
    assert await anna.submit(SetCodePolicy(device=other, policy="always")) == Done()
    device, kept = anna.state.devices[other], anna._neighbours.trust.store.peer(other)
    assert (device.shown_name, device.policy) == ("the desk", "always")
    assert kept is not None and (kept.nickname, kept.code_policy) == ("the desk", "always")
    assert [kind for kind in heard.kinds() if kind in ("DeviceRenamed", "CodePolicyChanged")] == [
        "DeviceRenamed",
        "CodePolicyChanged",
    ]
    assert await anna.submit(Rename(device=other, nickname="")) == Done()
    assert anna.state.devices[other].shown_name == "ben"


async def test_a_forgotten_laptop_is_out_on_both_sides_and_can_be_paired_again(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)
    me, other = id_of(anna), id_of(ben)
    assert await anna.submit(Forget(device=other)) == Done()
    assert other not in anna.state.devices
    assert anna._neighbours.links.linked == ()
    state = await wait_for(ben, lambda s: not s.devices[me].linked)
    assert state.devices[me].problem is not None
    assert refusal(await anna.submit(Forget(device=other))) == "not-paired"
    await pair(ben, anna)


async def test_a_pairing_survives_a_restart(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)
    other = id_of(ben)
    assert await anna.submit(Rename(device=other, nickname="desk")) == Done()
    await anna.stop()
    state = await wait_for(ben, lambda s: not s.devices[id_of(anna)].linked)
    problem = state.devices[id_of(anna)].problem
    assert problem is not None and problem.code == "closed"
    again = await laptop("anna", discovery=False)
    device = again.state.devices[other]
    assert device.paired and device.nickname == "desk" and device.addresses[0] == address_of(ben)
    await linked(again, ben)


async def test_readings_and_busyness_come_over_the_link(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)
    me, other = id_of(anna), id_of(ben)
    for here, there in ((anna, other), (ben, me)):
        await wait_for(here, lambda s, there=there: s.devices[there].reading is not None)  # type: ignore[misc]
    heard = Heard(anna)
    for busy in (False, True):
        anna._neighbours._on_link_message(other, BusyTold(busy=busy))
    told = [event.busy for event in heard.events if isinstance(event, ev.BusyChanged)]
    assert told == [False, True]
    anna._neighbours._on_link_message(other, TelemetrySent(reading=reading(9.0)))
    device = anna.state.devices[other]
    assert device.reading == reading(9.0) and device.busy


async def test_a_seal_that_was_allowed_meanwhile_is_found_when_it_matters_and_announced(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the doctor, and by a run that would be refused without it; nobody restarts Tandem."""
    anna, ben = await paired(laptop)

    async def nothing_else(*_: object, **__: object) -> tuple[Finding, ...]:
        return ()

    monkeypatch.setattr("core.node.diagnostics.examine", nothing_else)
    project = tmp_path / "own"
    project.mkdir()
    (project / "train.py").write_text(
        "import tensorflow as tf\nstrategy = tf.distribute.ParameterServerStrategy(None)\n"
    )

    async def looked_at(node: Node, seal: str, by: Command) -> Answer:
        other = ben if node is anna else anna
        with monkeypatch.context() as patch:
            patch.setattr("core.supervisor.seals.find", lambda: seal)
            answer = await node.submit(by)
        assert node.state.me is not None and node.state.me.versions.seal == seal
        await wait_for(other, lambda s: _seal(s, id_of(node)) == seal)
        return answer

    planned = PlanRun(spec=RunSpec(script=str(project), devices=(id_of(ben),)))
    for node in (anna, ben):
        await looked_at(node, "namespace", RunDoctor())
        await looked_at(node, "", RunDoctor())
    with monkeypatch.context() as patch:
        patch.setattr("core.supervisor.seals.find", lambda: "")
        refused = await anna.submit(planned)
    assert isinstance(refused, Refused) and refused.problem.code == "not-sealed"
    assert isinstance(await looked_at(ben, "namespace", RunDoctor()), Findings)
    assert isinstance(await looked_at(anna, "namespace", planned), PlanMade)


def _seal(state: State, device: DeviceId) -> str | None:
    versions = state.devices[device].versions
    return None if versions is None else versions.seal


async def test_other_messages_are_passed_to_the_runs(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = await paired(laptop)
    came = asyncio.Queue[tuple[DeviceId, object]]()
    monkeypatch.setattr(anna._runs, "on_message", lambda device, message: came.put_nowait((device, message)))
    news: list[LinkNews] = []
    monkeypatch.setattr(anna._runs, "on_link", news.append)
    assert ben._neighbours.links.send(id_of(anna), StopAsked(run=RunId("r")))
    async with asyncio.timeout(60):
        assert await came.get() == (id_of(ben), StopAsked(run=RunId("r")))
    assert came.empty(), "neither readings nor whether it is busy"
    enough = Problem(code="x", what="Enough.")
    anna._neighbours.links.drop(id_of(ben), enough)
    await wait_for(anna, lambda s: not s.devices[id_of(ben)].linked)
    assert news == [LinkLost(id_of(ben), enough)]


async def test_other_versions_link_and_say_why_no_run_is_possible(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = await laptop("anna", discovery=False)
    assert anna.state.me is not None
    older = replace(anna.state.me.versions, keras="3.14.0")
    monkeypatch.setattr("core.node.node.installed", lambda: older)
    ben = await laptop("ben", discovery=False)
    await pair(anna, ben)
    for here, there in ((anna, "ben"), (ben, "anna")):
        problem = here.state.devices[id_of(ben if here is anna else anna)].problem
        assert problem is not None and problem.code == "versions-differ"
        assert problem.what.endswith(f"on {there}.")


async def test_a_record_that_claims_a_paired_laptops_id_changes_nothing_proven(laptop: MakeNode) -> None:
    """mDNS can be forged by anybody on the network: it may misdirect a call, never decide who is there."""
    anna, ben = await paired(laptop)
    anna._neighbours._on_found(id_of(ben), "Mallory", ("127.0.0.1:9",))
    device = anna.state.devices[id_of(ben)]
    assert device.name == "ben" and device.linked
    anna._neighbours._on_found(GONE, "anna", ("127.0.0.1:9",))
    assert not anna.state.devices[GONE].paired


async def test_a_new_name_reaches_the_paired_laptops_at_once_over_the_same_link(
    laptop: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = await paired(laptop)
    me, heard, told = id_of(anna), Heard(anna), Heard(ben)
    assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro"))) == Done()
    await wait_for(ben, lambda s: s.devices[me].linked and s.devices[me].name == "Annas Büro")
    assert "LinkDown" not in heard.kinds(), "a run may be under way"
    assert await anna.submit(ChangeSettings(change=SettingsChange(theme="dark"))) == Done()
    with monkeypatch.context() as under_way:
        under_way.setattr(NodeRuns, "busy", True)
        assert anna._neighbours.links.send(id_of(ben), BusyTold(busy=True))
        await wait_for(ben, lambda s: s.devices[me].busy)
        names = [event.name for event in told.events if isinstance(event, ev.BusyChanged)]
        assert names == ["Annas Büro", ""], "told once"
        peer = ben._neighbours.links._peers[me]
        assert peer.link is not None
        peer.on_back(peer.link)
        assert ben.state.devices[me].name == "Annas Büro" and ben.state.devices[me].busy


async def test_a_new_name_arrives_though_the_old_one_was_just_said_on_a_new_link(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)
    me, neighbours = id_of(anna), anna._neighbours
    heard = Heard(ben)

    def rename(event: ev.Event, state: State) -> None:
        """Immediately after the old name arrived: its answer may still be under way."""
        if isinstance(event, ev.LinkUp) and event.name == "anna":
            anna._settings = replace(anna._settings, name="Annas Büro")
            neighbours.tell_name()

    ben.subscribe(rename)
    neighbours.links.drop(id_of(ben), Problem(code="x", what="Enough."))
    await wait_for(ben, lambda s: s.devices[me].linked and s.devices[me].name == "Annas Büro")
    ups = [event.name for event in heard.events if isinstance(event, ev.LinkUp)]
    assert ups == ["anna"], "the old name was said, and the new one over the same link"


async def test_a_laptop_cannot_take_the_name_of_another(laptop: MakeNode) -> None:
    """Questions such as *may Cleo run this here?* show names."""
    anna, ben = await paired(laptop)
    cleo = TrustedPeer(cert_der=device_certificate(5), name_at_pairing="Cleo", paired_at=0.0)
    await anna._neighbours.trust.change(lambda store: trust.add(store, cleo))
    for said, shown in (("cleo", "ben"), ("Benjamin", "Benjamin")):
        anna._neighbours._on_up(id_of(ben), replace(ben._hello(), name=said), address_of(ben))
        assert anna.state.devices[id_of(ben)].name == shown
    assert anna._neighbours._name_for(cleo.device, "Cleo") == "Cleo"


async def test_the_address_of_a_laptop_is_remembered(laptop: MakeNode) -> None:
    anna, ben = await paired(laptop)

    def hints() -> tuple[str, ...]:
        peer = anna._neighbours.trust.store.peer(id_of(ben))
        assert peer is not None
        return peer.addr_hints

    assert hints() == (address_of(ben),)
    anna._neighbours._on_up(id_of(ben), ben._hello(), "127.0.0.1:4711")
    async with asyncio.timeout(60):
        while "127.0.0.1:4711" not in hints():  # noqa: ASYNC110  (the file is written in a thread)
            await asyncio.sleep(0.001)


async def test_a_network_that_changed_is_reported_and_called_in(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    anna._neighbours._on_addresses(("10.0.0.5:27600",))
    assert anna.state.me is not None and anna.state.me.addresses == ("10.0.0.5:27600",)


async def test_changed_settings_reach_the_network_and_only_those(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    presence = anna._neighbours._presence
    assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro", theme="dark"))) == Done()
    assert await anna.submit(ChangeSettings(change=SettingsChange(discovery=True))) == Done()
    assert await anna.submit(ChangeSettings(change=SettingsChange(interfaces=("lo", "eth0")))) == Done()
    assert presence.changes == [  # type: ignore[union-attr]
        {"name": "Annas Büro", "wanted": None, "discovery": None},
        {"name": None, "wanted": None, "discovery": True},
        {"name": None, "wanted": ("lo", "eth0"), "discovery": None},
    ]
    assert anna.state.me is not None and anna.state.me.name == "Annas Büro"
    assert anna._hello().name == "Annas Büro"
    assert anna.state.notices == ()
    kept, _ = settings_file.read(anna.home.settings)
    assert (kept.name, kept.theme, kept.discovery) == ("Annas Büro", "dark", True)


async def test_another_port_waits_for_the_next_start(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    assert await anna.submit(ChangeSettings(change=SettingsChange(port=31999))) == Done()
    assert [notice.code for notice in anna.state.notices] == ["port-later"]
    for change, code in ((SettingsChange(port=80), "bad-port"), (SettingsChange(name="a\nb"), "bad-name")):
        assert refusal(await anna.submit(ChangeSettings(change=change))) == code
    assert anna.state.me is not None and anna.state.me.settings.port == 31999
    assert settings_file.read(anna.home.settings)[0].port == 31999


async def test_a_node_introduces_itself_with_what_it_is(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    hello, me = anna._hello(), anna.state.me
    assert me is not None
    assert (hello.name, hello.versions, hello.hardware) == ("anna", me.versions, me.hardware)
    assert me.addresses == (f"127.0.0.1:{hello.port}",) and not hello.busy
    assert me.home == str(anna.home.folder)


async def test_a_node_without_a_run_answers_all_the_same(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    assert await anna.submit(GetState()) == StateNow(state=anna.state)
    assert await anna.submit(ListRuns()) == RunList(runs=())
    assert await anna.submit(ListRuns(limit=2**80)) == RunList(runs=())
    for command in (GetRun(run=RunId("20260101-000000-00000000")), FindCheckpoints(run=RunId("x"))):
        assert not isinstance(await anna.submit(command), RunDetails | Done)
    assert refusal(await anna.submit(AnswerPairing(same=True))) == "no-pairing"
    assert refusal(await anna.submit(Rename(device=GONE, nickname="x"))) == "not-paired"
    assert refusal(await anna.submit(Forget(device=GONE))) == "not-paired"
    assert refusal(await anna.submit(Mend(code="not-sealed"))) == "no-such-mend"
    nowhere = SaveDiagnostics(path=str(anna.home.folder / "missing" / "d.zip"))
    assert refusal(await anna.submit(nowhere)) == "diagnostics-unwritable"
    assert await anna.submit(CancelPairing()) == Done()


async def test_a_socket_that_is_gone_is_opened_again(laptop: MakeNode) -> None:
    anna = await laptop("anna", discovery=False)
    assert await anna.submit(Mend(code="socket-gone")) == Done()
    await anna.stop()
    assert anna._socket.done == ["open", "reopen", "close"]  # type: ignore[attr-defined]


async def test_the_doctors_view_is_this_nodes(laptop: MakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[tuple[object, bool]] = []

    async def examine(view: object, *, deep: bool = False) -> tuple[()]:
        looks.append((view, deep))
        return ()

    monkeypatch.setattr("core.doctor.examination.examine", examine)
    anna = await laptop("anna", discovery=False)
    assert await anna.submit(RunDoctor(deep=True)) == Findings(findings=())
    assert looks == [(anna._view, True)]
    assert anna._view.state is anna.state and anna._view.port == anna._neighbours.port


async def test_a_node_for_this_machine_alone_listens_on_no_other_address(laptop: MakeNode) -> None:
    for interfaces, hosts in (
        (("lo",), LOOPBACK),
        (("lo", "lo0"), LOOPBACK),
        (("lo", "eth0"), EVERYWHERE),
        ((), EVERYWHERE),
    ):
        assert neighbours._hosts(Settings(interfaces=interfaces)) == hosts


async def test_a_certificate_that_ran_out_is_reported_at_the_start(laptop: MakeNode, tmp_path: Path) -> None:
    home = home_of(tmp_path, "anna")
    key, der = device_key(41), odd_certificate(key=device_key(41), years=(2000, 2020))
    identity_of(key, der, home.identity)
    for path in (home.identity, *home.identity.iterdir()):
        path.chmod(0o700 if path.is_dir() else 0o600)
    anna = await laptop("anna", discovery=False)
    (notice,) = anna.state.notices
    assert notice.code == "own-certificate-expired" and "This laptop's own certificate expired" in notice.what
    assert "home of this laptop's Tandem" in notice.fix
