import pytest

from core.vocabulary.ids import RunId, short, started_s


def test_a_runs_id_gives_its_start_time() -> None:
    for recorded_s in (0.0, 9e9, float("nan")):
        assert started_s(RunId("20261121-191204-9f3a01bc"), recorded_s) == 1_795_288_324.0
        assert started_s(RunId("19700101-000000-0"), recorded_s) == 0.0


@pytest.mark.parametrize("odd", ["", "odd", "20261121", "20261321-191204-x", "20261121-196204-x", "../etc"])
def test_an_invalid_run_id_falls_back_to_the_time_of_the_record(odd: str) -> None:
    assert started_s(RunId(odd), 60.0) == 60.0


def test_eight_characters_tell_devices_apart() -> None:
    assert short("0123456789") == "01234567" and short("x") == "x"
