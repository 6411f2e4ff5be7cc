import pytest

from app.device_words import (
    addresses_words,
    changed_words,
    hardware_words,
    size_words,
    state_words,
    use_words,
)
from core.vocabulary.readings import Hardware
from core.vocabulary.state import Device
from tests.app.laptops import BEN, HARDWARE, read


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1_023, "1023 bytes"),
        (1_024, "1 KB"),
        (1_536, "1.5 KB"),
        (5 << 20, "5 MB"),
        (16 << 30, "16 GB"),
        (3 << 40, "3,072 GB"),
    ],
)
def test_sizes_are_read_easily(size: int, words: str) -> None:
    assert size_words(size) == words


def test_what_is_not_as_it_was_allowed_is_named_and_cut_where_it_is_much() -> None:
    assert changed_words({"a.csv": "new", "train.py": "changed", "b.csv": "new", "c": "gone"}) == (
        "Changed: train.py. New: a.csv, b.csv. No longer there: c."
    )
    assert changed_words({f"{number}.csv": "new" for number in range(9)}).endswith("5.csv and 3 more.")
    assert changed_words({"a\x1b[2J\u202eb": "new"}) == "New: ab."
    assert "its arguments are not" in changed_words({})


def test_hardware_names_gpus_first_and_says_when_there_are_none() -> None:
    assert hardware_words(HARDWARE) == "RTX 3060 · Ryzen 7, 16 cores · 32 GB"
    assert hardware_words(Hardware(cpu="", cores=1, memory_bytes=1 << 30)) == "CPU only · 1 core · 1 GB"
    assert hardware_words(None) == ""


def test_use_is_on_one_line() -> None:
    assert use_words(read(cpu_pct=12.4).reading) == "CPU 12 % · memory 25 % · GPU 64 %"
    assert use_words(None) == ""


def test_many_addresses_are_counted() -> None:
    assert addresses_words(("a", "b", "c", "d")) == "a, b and 2 more"
    assert addresses_words(()) == ""


def test_a_device_that_went_is_gone() -> None:
    assert state_words(Device(device=BEN, name="ben"))[0] == "Gone"
