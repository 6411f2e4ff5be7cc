from core.ids import DeviceId
from core.project.consent import FILES_SHOWN, ConsentRequest, needs_consent, question, request_for
from core.project.manifest import Manifest
from tests.core.project.making import manifest_for

ADA = DeviceId("ab" * 32)
FIRST = manifest_for({"train.py": b"1", "a.csv": b"1", "b.csv": b"1"})
SECOND = manifest_for({"train.py": b"2", "a.csv": b"1", "c.csv": b"1"})


def asked(manifest: Manifest = FIRST, approved: Manifest | None = None, **more: object) -> ConsentRequest:
    arguments = {"device": ADA, "name": "Ada's laptop", **more}
    return request_for(manifest, approved=approved, **arguments)  # type: ignore[arg-type]


def test_any_changed_byte_asks_again_unless_always() -> None:
    assert needs_consent("ask", (), FIRST.digest)
    assert not needs_consent("ask", (FIRST.digest,), FIRST.digest)
    assert needs_consent("ask", (FIRST.digest,), SECOND.digest)
    assert not needs_consent("always", (), SECOND.digest)


def test_the_question_says_who_what_and_how_much() -> None:
    text = question(asked(arguments=("--epochs", "3 4")))
    assert "Ada's laptop (abababab) wants to run" in text
    assert "train.py --epochs '3 4'" in text
    assert "3 files, 0.00 MB" in text
    assert FIRST.digest[:8] in text
    assert "a.csv (1 bytes)" in text
    assert text.index("train.py (1 bytes)") < text.index("a.csv (1 bytes)")


def test_what_changed_since_the_approved_version_is_shown() -> None:
    request = asked(SECOND, approved=FIRST)
    assert request.changes is not None
    assert request.changes.changed == ("train.py",)
    assert request.changes.added == ("c.csv",)
    assert request.changes.removed == ("b.csv",)
    text = question(request)
    assert "changed: train.py" in text
    assert "new: c.csv" in text
    assert "gone: b.csv" in text
    assert "a.csv" not in text


def test_many_files_do_not_flood_the_screen() -> None:
    many = manifest_for({"train.py": b"", **{f"{n}.csv": b"x" * n for n in range(100)}})
    text = question(asked(many))
    assert f"and {101 - FILES_SHOWN} more" in text
    assert len(text.splitlines()) < FILES_SHOWN + 6
    assert "99.csv" in text


def test_a_peer_can_forge_no_lines_and_move_no_cursor() -> None:
    text = question(asked(name="Eve\n  0 files\x1b[2J", arguments=("x\ny\x1b[1A", "a b")))
    assert "\x1b" not in text
    assert "Eve\\n" in text
    assert len(text.splitlines()) == len(question(asked()).splitlines())
