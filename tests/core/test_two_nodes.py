"""Two whole nodes on the loopback find each other, pair, link, exchange messages, forget. Real sockets,
real mDNS."""

from pathlib import Path

import pytest

from core.vocabulary.answers import Done
from core.vocabulary.commands import (
    ChangeSettings,
)
from core.vocabulary.settings import SettingsChange
from tests.core.nodes import (
    Heard,
    id_of,
    node,
    pair,
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


async def test_a_new_name_is_announced_to_the_network(tmp_path: Path) -> None:
    async with node(tmp_path, "anna") as anna, node(tmp_path, "ben") as ben:
        me = id_of(anna)
        await wait_for(ben, lambda s: me in s.devices)
        assert await anna.submit(ChangeSettings(change=SettingsChange(name="Annas Büro"))) == Done()
        await wait_for(ben, lambda s: s.devices[me].name == "Annas Büro")
        assert anna.state.me is not None and anna.state.me.name == "Annas Büro"
