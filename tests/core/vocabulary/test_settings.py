"""Only the given settings change."""

from core.vocabulary.settings import DEFAULT_PORT, Settings, SettingsChange, changed

CHOSEN = Settings(name="desk", port=27601, interfaces=("eth0",), theme="dark", warm_trainer=True)


def test_an_empty_change_changes_nothing() -> None:
    assert changed(CHOSEN, SettingsChange()) == CHOSEN


def test_only_the_given_fields_change_even_to_something_empty() -> None:
    after = changed(CHOSEN, SettingsChange(name="", port=0, interfaces=(), tray=False))
    assert (after.name, after.port, after.interfaces, after.tray) == ("", 0, (), False)
    assert (after.theme, after.warm_trainer, after.discovery) == ("dark", True, True)


def test_every_setting_can_be_changed() -> None:
    assert SettingsChange.__struct_fields__ == Settings.__struct_fields__


def test_by_default_a_laptop_is_discoverable_and_shows_its_icon_but_starts_nothing_by_itself() -> None:
    assert Settings().port == DEFAULT_PORT
    assert Settings().discovery and Settings().tray
    assert not (Settings().start_at_login or Settings().warm_trainer or Settings().first_run_done)
