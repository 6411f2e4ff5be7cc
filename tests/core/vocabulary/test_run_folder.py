"""Names in a run's folder: none from another laptop leads out of it."""

import pytest

from core.vocabulary.run_folder import is_run_id, log_name, task_name


@pytest.mark.parametrize("run", ["20261121-191204-9f3a01bc", "a", "9", "Z" * 40])
def test_a_runs_id_is_letters_digits_and_dashes(run: str) -> None:
    assert is_run_id(run)


@pytest.mark.parametrize("run", ["", ".", "..", "-a", "a/b", "a\\b", "a.b", "a\n", "ä", "Z" * 41])
def test_an_id_that_could_lead_out_of_the_folder_is_refused(run: str) -> None:
    assert not is_run_id(run)


def test_a_tasks_name_is_one_plain_name_on_the_disk() -> None:
    assert task_name("worker:0") == "worker-0"
    assert log_name("worker:0") == "worker-0.log"
    assert task_name("../../etc/passwd") == "------etc-passwd"
    assert task_name("x" * 500) == "x" * 60
