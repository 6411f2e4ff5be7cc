from app.words.device_words import (
    addresses_words,
    changed_words,
    hardware_words,
    opened_words,
    reach_words,
    state_words,
    use_words,
)
from core.vocabulary.access import Grant
from core.vocabulary.readings import Hardware
from core.vocabulary.state import Device
from tests.app.laptops import BEN, HARDWARE, read


def test_what_is_not_as_it_was_allowed_is_named_and_cut_where_it_is_much() -> None:
    assert changed_words(
        {"a.csv": "new", "train.py": "changed", "b.csv": "new", "c": "gone"}, ("arguments",)
    ) == ("Changed: train.py. New: a.csv, b.csv. No longer there: c. It has other arguments.")
    assert changed_words({f"{number}.csv": "new" for number in range(9)}, ()).endswith("5.csv and 3 more.")
    assert changed_words({"a\x1b[2J\u202eb": "new"}, ()) == "New: a⟨U+001B⟩[2J⟨U+202E⟩b."
    assert (
        changed_words({}, ("network",))
        == "Its files are as you allowed them. It reaches more of the network."
    )


def test_hardware_names_gpus_first_and_says_when_there_are_none() -> None:
    assert hardware_words(HARDWARE) == "RTX 3060 · Ryzen 7, 16 cores · 34.4 GB"
    assert hardware_words(Hardware(cpu="", cores=1, memory_bytes=1 << 30)) == "CPU only · 1 core · 1.1 GB"
    assert hardware_words(None) == ""


def test_use_is_on_one_line() -> None:
    assert use_words(read(cpu_pct=12.4).reading) == "CPU 12 % · memory 25 % · GPU 64 %"
    assert use_words(None) == ""


def test_many_addresses_are_counted() -> None:
    assert addresses_words(("a", "b", "c", "d")) == "a, b and 2 more"
    assert addresses_words(()) == ""


def test_where_a_device_stands_is_said_alike_in_window_and_terminal() -> None:
    def words(**known: bool) -> str:
        return state_words(Device(device=BEN, name="ben", **known))[0]  # type: ignore[arg-type]

    assert words(seen=True) == "Not paired"
    assert words(linked=True, busy=True) == "Not paired", "it is in the same run"
    assert words(paired=True) == "Not on this network"
    assert words(paired=True, seen=True) == "Connecting…"
    assert words(paired=True, linked=True) == "Ready"
    assert words(paired=True, linked=True, busy=True) == "Training"
    assert words() == "Gone", "it was not paired"


def test_what_a_script_could_do_here_is_said_with_what_the_system_cannot_refuse() -> None:
    walled = reach_words("default", (), "none")
    assert walled.endswith("Over the network it reaches the laptops of the run only.")
    assert "through Tandem's proxy" in reach_words("default", (), "downloads")
    older = reach_words("default", ("network", "processes"), "")
    assert older.endswith(
        "This system's Linux is too old to keep it from services on this laptop and on its network "
        "and from ending your other programs."
    )
    sealed = reach_words("default", ("network", "processes"), "none")
    assert sealed.endswith("too old to keep it from ending your other programs.")
    for network in ("", "downloads", "none"):
        without = reach_words("none", (), network)
        assert "anything you can do on this laptop" in without and "network" not in without


def test_what_a_script_asks_to_open_is_named_by_both_its_paths_with_nothing_hidden() -> None:
    opened = (
        Grant(asked="~/Pic\u202etures", path="/mnt/photos"),
        Grant(asked="/out", path="/out", write=True),
    )
    assert opened_words(opened).splitlines()[1:] == [
        "Read ~/Pic⟨U+202E⟩tures (/mnt/photos)",
        "Read and change /out (/out)",
    ]
    assert opened_words(()) == ""
