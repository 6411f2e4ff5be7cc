"""Two whole nodes on the loopback find each other, pair, link, tell, forget. Real sockets, real mDNS."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.home import settings_file, trust
from core.home.trust import TrustedPeer
from core.link.problems import renamed
from core.node.client import Client
from core.node.node import Node
from core.run.runs import NodeRuns
from core.vocabulary import events as ev
from core.vocabulary.answers import Done
from core.vocabulary.commands import (
    AnswerPairing,
    CancelPairing,
    ChangeSettings,
    Forget,
    Pair,
    Rename,
    SetCodePolicy,
)
from core.vocabulary.ids import DeviceId
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.state import State
from tests.core.certificates import device_certificate
from tests.core.nodes import (
    Heard,
    address_of,
    home_of,
    id_of,
    linked,
    node,
    pair,
    quick_watch,
    refusal,
    wait_for,
)

pytestmark = pytest.mark.real


async def test_two_laptops_meet_pair_and_show_each_other(tmp_path: Path) -> None:
    async with node(tmp_path, "anna") as anna, node(tmp_path, "ben") as ben:
        me, other = id_of(anna), id_of(ben)
        await wait_for(anna, lambda s: other in s.devices and s.devices[other].seen)
        await wait_for(ben, lambda s: me in s.devices and s.devices[me].seen)
        assert not anna.state.devices[other].paired
        heard = Heard(anna)

        code = await pair(anna, ben, by_address=False)

        assert len(code.replace(" ", "")) == 6
        kinds = heard.kinds()
        assert kinds.index("DevicePaired") < kinds.index("PairingEnded")
        device = anna.state.devices[other]
        assert (device.name, device.paired, device.problem) == ("ben", True, None)
        assert device.hardware is not None and device.hardware.cores >= 1
        state = await wait_for(anna, lambda s: s.devices[other].reading is not None)
        assert state.devices[other].reading is not None
        await wait_for(ben, lambda s: s.devices[me].reading is not None)


async def test_a_pair_holds_over_a_restart_without_discovery(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        async with node(tmp_path, "ben", discovery=False) as ben:
            await pair(anna, ben)
            other = id_of(ben)
        state = await wait_for(anna, lambda s: not s.devices[other].linked)
        assert state.devices[other].problem is not None
        async with node(tmp_path, "ben", discovery=False) as ben:
            assert id_of(ben) == other
            assert ben.state.devices[id_of(anna)].paired
            await linked(anna, ben)


async def test_a_forgotten_laptop_is_out_on_both_sides(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        me, other = id_of(anna), id_of(ben)

        assert await anna.submit(Forget(device=other)) == Done()

        assert other not in anna.state.devices
        state = await wait_for(ben, lambda s: not s.devices[me].linked)
        problem = state.devices[me].problem
        assert problem is not None and problem.fix
        assert refusal(await anna.submit(Forget(device=other))) == "not-paired"
        await pair(ben, anna)


async def test_codes_that_differ_pair_nobody(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        assert await anna.submit(Pair(address=address_of(ben))) == Done()
        await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
        await wait_for(anna, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
        assert await anna.submit(AnswerPairing(same=True)) == Done()
        assert await ben.submit(AnswerPairing(same=False)) == Done()

        for face in (anna, ben):
            state = await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "failed")
            assert state.pairing is not None and state.pairing.problem is not None
            assert not any(device.paired for device in state.devices.values())


async def test_a_pairing_can_be_given_up_and_begun_again(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        assert await anna.submit(Pair(address=address_of(ben))) == Done()
        await wait_for(ben, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
        assert await ben.submit(CancelPairing()) == Done()
        for face in (anna, ben):
            await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "failed")

        await pair(anna, ben)


async def test_nickname_and_policy_are_kept(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        other = id_of(ben)
        assert await anna.submit(Rename(device=other, nickname="desk")) == Done()
        assert await anna.submit(SetCodePolicy(device=other, policy="always")) == Done()
    async with node(tmp_path, "anna") as anna:
        device = anna.state.devices[other]
        assert (device.shown_name, device.policy) == ("desk", "always")


async def test_other_versions_link_and_say_why_no_run_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        assert anna.state.me is not None
        older = replace(anna.state.me.versions, keras="3.14.0")
        monkeypatch.setattr("core.node.node.installed", lambda: older)
        async with node(tmp_path, "ben", discovery=False) as ben:
            await pair(anna, ben)
            for here, there in ((anna, ben), (ben, anna)):
                problem = here.state.devices[id_of(there)].problem
                assert problem is not None and problem.code == "versions-differ"
                assert "Keras" in problem.what and "3.14.0" in problem.what


async def test_a_record_that_claims_a_paired_laptops_id_changes_nothing_proven(tmp_path: Path) -> None:
    """mDNS can be forged by anybody on the network: it may lead a call astray, never decide who is there."""
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        other = id_of(ben)
        anna._neighbours._on_found(other, "Mallory", ("127.0.0.1:9",))

        assert anna.state.devices[other].name == "ben"
        assert anna.state.devices[other].linked
        stranger = DeviceId("e" * 64)
        anna._neighbours._on_found(stranger, "anna", ("127.0.0.1:9",))
        assert not anna.state.devices[stranger].paired


async def test_a_second_process_can_do_what_the_first_can(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        clients = [await Client.connect(each.home) for each in (anna, ben)]
        try:
            await pair(*clients)
            assert clients[0].state.devices[id_of(ben)].linked
            assert anna.state.devices[id_of(ben)].linked
        finally:
            for client in clients:
                await client.close()


async def test_a_new_name_is_told_to_the_network(tmp_path: Path) -> None:
    async with node(tmp_path, "anna") as anna, node(tmp_path, "ben") as ben:
        me = id_of(anna)
        await wait_for(ben, lambda s: me in s.devices)
        assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro"))) == Done()
        await wait_for(ben, lambda s: s.devices[me].name == "Annas Büro")
        assert anna.state.me is not None and anna.state.me.name == "Annas Büro"


async def test_a_new_name_reaches_the_paired_laptops_at_once(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        me, heard = id_of(anna), Heard(anna)

        assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro"))) == Done()

        state = await wait_for(ben, lambda s: s.devices[me].linked and s.devices[me].name == "Annas Büro")
        assert state.devices[me].problem is None
        await linked(anna, ben)
        assert await anna.submit(ChangeSettings(change=SettingsChange(theme="dark"))) == Done()
        downs = [event.problem.code for event in heard.events if isinstance(event, ev.LinkDown)]
        assert downs.count("renamed") == 1, "only a new name takes a new link"


async def test_a_new_name_arrives_though_the_old_one_was_just_said_on_a_new_link(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        me, other, neighbours = id_of(anna), id_of(ben), anna._neighbours
        heard = Heard(ben)

        def rename(event: ev.Event, state: State) -> None:
            """As soon as the old name was heard: the answer to it may be still on its way."""
            if isinstance(event, ev.LinkUp) and event.name == "anna":
                anna._settings = replace(anna._settings, name="Annas Büro")
                neighbours.introduce()

        ben.subscribe(rename)
        neighbours.links.renew(other, renamed("anna", "anna"))

        await wait_for(ben, lambda s: s.devices[me].linked and s.devices[me].name == "Annas Büro")

        ups = [event.name for event in heard.events if isinstance(event, ev.LinkUp)]
        assert ups == ["anna", "Annas Büro"], "the old name was said, and only the new link named the new one"


async def test_a_new_name_waits_for_the_end_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        me, heard = id_of(anna), Heard(anna)
        with monkeypatch.context() as under_way:
            under_way.setattr(NodeRuns, "busy", True)
            assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro"))) == Done()
        assert "LinkDown" not in heard.kinds()
        assert ben.state.devices[me].name == "anna"

        anna._on_busy(False)

        await wait_for(ben, lambda s: s.devices[me].linked and s.devices[me].name == "Annas Büro")


async def test_pairing_with_nobody_names_the_address(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        assert refusal(await anna.submit(Pair(device=DeviceId("f" * 64)))) == "not-seen"
        assert refusal(await anna.submit(Pair(address="not an address"))) == "bad-address"
        assert await anna.submit(Pair(address="127.0.0.1:9")) == Done()
        state = await wait_for(anna, lambda s: s.pairing is not None and s.pairing.stage == "failed")
        assert state.pairing is not None and state.pairing.problem is not None
        assert "127.0.0.1:9" in state.pairing.problem.what


async def test_a_paired_laptop_cannot_take_the_name_of_another(tmp_path: Path) -> None:
    """Questions such as *may Cleo run this here?* show names."""
    async with node(tmp_path, "anna", discovery=False) as anna:
        async with node(tmp_path, "ben", discovery=False) as ben:
            await pair(anna, ben)
        cleo = TrustedPeer(cert_der=device_certificate(5), name_at_pairing="Cleo", paired_at=0.0)
        await anna._neighbours.trust.change(lambda store: trust.add(store, cleo))
        other, home = id_of(ben), home_of(tmp_path, "ben", discovery=False)
        for said, shown in (("cleo", "ben"), ("Benjamin", "Benjamin")):
            named = Settings(name=said, port=0, interfaces=("lo",), discovery=False)
            settings_file.write(home.settings, named)
            again = await Node.start(home, watch=quick_watch())
            try:
                state = await wait_for(anna, lambda s: s.devices[other].linked)
                assert state.devices[other].name == shown
            finally:
                await again.stop()
            await wait_for(anna, lambda s: not s.devices[other].linked)
