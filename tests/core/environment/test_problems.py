"""Failures of pip and uv, and the messages a person gets."""

from pathlib import Path

import pytest

from core.environment.problems import failed, unwritable

FOLDER = Path("/home/a/tandem-python3.12")
SOURCE = "file:///home/a/t.whl"
RETRY = (
    "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after "
    "connection broken by 'NewConnectionError('<pip._vendor.urllib3.HTTPSConnection object>: Failed "
    "to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/argcomplete/"
)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((RETRY, "ERROR: No matching distribution found for argcomplete>=3.6"), "environment-no-network"),
        (
            ("error: Failed to fetch: `https://x/simple/six/`", "Caused by: dns error"),
            "environment-no-network",
        ),
        (
            ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", ""),
            "environment-no-space",
        ),
        (
            (
                "The virtual environment was not created successfully because ensurepip is not",
                "available.  On Debian/Ubuntu systems, you need to install the python3-venv",
            ),
            "environment-no-venv",
        ),
        (
            ("error: No interpreter found for Python 3.12 in managed installations or search path",),
            "environment-no-python",
        ),
        (
            (
                "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: "
                "'/home/a/t.whl'",
            ),
            "environment-no-source",
        ),
        (("error: Distribution not found at: file:///home/a/t.whl",), "environment-no-source"),
        (("ERROR: No matching distribution found for tandem-laptops",), "environment-no-source"),
        (("error: [Errno 2] No such file or directory: '/usr/bin/gcc'",), "environment-failed"),
        ((RETRY, "ERROR: ResolutionImpossible: for help visit a page"), "environment-failed"),
        ((RETRY, "Collecting x", "ERROR: Failed building wheel for x"), "environment-failed"),
        (
            (
                RETRY,
                "ERROR: Could not find a version that satisfies x==9 (from versions: 1.0, 2.0)",
                "ERROR: No matching distribution found for x==9",
            ),
            "environment-failed",
        ),
        (("ERROR: ResolutionImpossible: for help visit a page",), "environment-failed"),
        ((), "environment-failed"),
    ],
)
def test_a_failure_is_reported_by_its_cause_with_the_fix(lines: tuple[str, ...], code: str) -> None:
    problem = failed("Fetching and installing the packages", lines, "3.12", FOLDER, SOURCE)
    assert problem.code == code and problem.fix


def test_an_unknown_failure_is_reported_by_its_error_with_the_whole_output() -> None:
    lines = ("Collecting x", "ERROR: Package 'x' requires a different Python", "[notice] A new release")
    problem = failed("Fetching the packages", lines, "3.12", FOLDER, SOURCE)
    assert problem.what == ("Fetching the packages failed: ERROR: Package 'x' requires a different Python")
    assert problem.detail.splitlines() == [*lines]


@pytest.mark.parametrize(
    ("line", "disk"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device: "
            "'/tmp/pip-unpack-1/x.whl'",
            "of /tmp/pip-unpack-1/x.whl.",
        ),
        ('error: No space left on device (os error 28) at path "/cache/x"', "of /cache/x."),
        ("ERROR: [Errno 28] No space left on device", f"of {FOLDER}, or of the folder for temporary"),
    ],
)
def test_the_disk_that_is_full_is_named(line: str, disk: str) -> None:
    problem = failed("Fetching the packages", (line,), "3.12", FOLDER, SOURCE)
    assert problem.code == "environment-no-space" and disk in problem.what and problem.fix


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (SOURCE, "ERROR: Could not install: [Errno 2] No such file or directory: '/home/a/t.whl'"),
        (SOURCE, "error: Distribution not found at: file:///home/a/t.whl"),
        ("/home/a b", "ERROR: /home/a b is not a valid editable requirement. It should be a path"),
        ("/home/a b", "error: Distribution not found at: file:///home/a%20b"),
    ],
)
def test_a_missing_source_is_reported_only_where_it_is_the_cause(source: str, line: str) -> None:
    problem = failed("Fetching the packages", (line,), "3.12", FOLDER, source)
    assert problem.what == f"Tandem was installed from {source}, which no longer exists."
    other = failed("Fetching the packages", (line,), "3.12", FOLDER, "/elsewhere/t.whl")
    assert other.code == "environment-failed"


def test_a_full_disk_is_reported_as_one_wherever_it_shows() -> None:
    other = unwritable(FOLDER, OSError(28, "No space left on device", "/tmp/x"))
    assert other.code == "environment-no-space" and "/tmp/x" in other.what
    assert unwritable(FOLDER, OSError(28, "No space left on device")).code == "environment-no-space"
    assert unwritable(FOLDER, OSError(13, "Permission denied")).code == "environment-unwritable"
