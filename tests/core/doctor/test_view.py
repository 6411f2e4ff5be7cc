from pathlib import Path

from core.doctor.view import Examined, error, note, ok, warning
from core.home.home import Home
from core.vocabulary.settings import Settings


def test_the_port_is_the_nodes_and_without_one_that_of_the_settings(tmp_path: Path) -> None:
    alone = Examined(Home(tmp_path), settings=Settings(port=27650))
    assert (alone.running, alone.wanted_port) == (False, 27650)
    both = Examined(Home(tmp_path), settings=Settings(port=27650), port=27601)
    assert (both.running, both.wanted_port) == (True, 27601)


def test_a_finding_has_its_level_and_only_some_can_be_mended_here() -> None:
    findings = [
        ok("a", "t", "w"),
        note("a", "t", "w", "f"),
        warning("a", "t", "w", "f"),
        error("a", "t", "w", "f"),
    ]
    assert [finding.level for finding in findings] == ["ok", "note", "warning", "error"]
    assert all((each.code, each.topic, each.what) == ("a", "t", "w") for each in findings)
    assert [finding.fix for finding in findings] == ["", "f", "f", "f"]
    assert not any(finding.mend for finding in findings)
    assert warning("a", "t", "w", "f", mend=True).mend and error("a", "t", "w", "f", mend=True).mend
