import pytest

from app.words import device_names
from core.vocabulary import events as ev
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State
from tests.app.cli.scripted_node import ME, OTHER, THIRD, ScriptedNode, found, paired


def state(*events: ev.Event) -> State:
    node = ScriptedNode()
    for event in events:
        node.happen(event)
    return node.state


def test_a_device_is_found_by_name_nickname_or_the_beginning_of_its_id() -> None:
    known = state(paired(), ev.DeviceRenamed(device=OTHER, nickname="Ben's"))
    for text in ("other", "OTHER ", "ben's", "bbbb", "b" * 64):
        found = device_names.find(known, text)
        assert found is not None
        assert found.device == OTHER, text
    assert device_names.find(known, "bbb") is None
    assert device_names.find(known, "") is None
    assert device_names.find(known, "anna") is None


def test_a_stranger_with_a_paired_devices_name_is_never_meant() -> None:
    known = state(paired(), ev.DeviceFound(device=THIRD, name="other", addresses=()))
    found = device_names.find(known, "other")
    assert found is not None
    assert found.device == OTHER


def test_two_devices_of_one_name_must_be_told_apart() -> None:
    known = state(paired(), paired(THIRD))
    with pytest.raises(TandemError, match=r"other \(bbbbbbbb\), other \(cccccccc\)"):
        device_names.find(known, "other")


def test_only_paired_devices_where_asked() -> None:
    known = state(found())
    assert device_names.find(known, "other", paired=True) is None
    assert device_names.find(known, "other") is not None


def test_me_is_this_laptop() -> None:
    known = state(paired())
    assert device_names.is_me(known, "me")
    assert device_names.is_me(known, "Here")
    assert device_names.is_me(known, "aaaa")
    assert not device_names.is_me(known, "other")
    # Another laptop has my name: the name means that paired one, and I am "me".
    assert not device_names.is_me(state(paired(name="here")), "here")


def test_an_unknown_name_says_who_is_there() -> None:
    assert "Visible or paired: other." in device_names.unknown(state(found()), "x").what
    assert "No other device" in device_names.unknown(state(), "\x1b[2Jx").what
    assert "\x1b" not in device_names.unknown(state(), "\x1b[2Jx").what


def test_every_device_gets_a_name_on_the_screen() -> None:
    stranger = DeviceId("f" * 64)
    names = device_names.names_of(state(paired()), (ME, OTHER, stranger))
    assert names == {ME: "here", OTHER: "other", stranger: "ffffffff"}
