"""Turns a script's end into an exit. Includes TensorFlow's own errors, so it is imported here."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import ModuleType

import pytest

from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import ExchangeKeys, Seal, Train

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def exits() -> ModuleType:
    from core.trainer import exits

    return exits


def raised(folder: Path, source: str, name: str = "train.py") -> BaseException:
    """The exception raised by running this script."""
    path = folder / name
    path.write_text(source)
    try:
        exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return error
    raise AssertionError("the script did not raise")


def ended(exits: ModuleType, folder: Path, source: str, **known: bool) -> Exit:
    exit: Exit = exits.of_script(raised(folder, source), folder, **{"cluster": False, **known})
    return exit


def words(exit: Exit) -> str:
    assert exit.problem is not None and exit.problem.fix
    return exit.problem.what


@pytest.mark.parametrize(
    "source",
    [
        "import errno, os; raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))",
        "import errno, os; raise OSError(errno.EROFS, os.strerror(errno.EROFS), 'digits.keras')",
        "from tensorflow import errors\n"
        "raise errors.ResourceExhaustedError(None, None, 'No space left on device')",
    ],
)
def test_a_full_or_read_only_disk_is_not_the_scripts_fault(
    exits: ModuleType, tmp_path: Path, source: str
) -> None:
    ended_so = ended(exits, tmp_path, source)
    assert ended_so.reason == "script-error"
    assert "(train.py, line " in words(ended_so)
    assert ended_so.problem is not None and ended_so.problem.fix.startswith("Free some space, or make")


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ("raise EOFError('EOF when reading a line')", "from an argument"),
        ("raise Exception('URL fetch failure on https://example.org/a.gz: None')", "to the internet"),
        ("import urllib.error\nraise urllib.error.URLError('no route')", "to the internet"),
        ("raise ImportError('You must install pydot')", "Install the missing package"),
        ("import no_such_module", "Install the missing package"),
        ("raise ModuleNotFoundError(\"No module named 'tf_keras'\")", "Use Keras 3"),
        ("raise ImportError('Keras cannot be imported. Check that it is installed.')", "Use Keras 3"),
        ("raise ValueError('no')", "Correct the script"),
    ],
)
def test_an_error_comes_with_what_to_do(exits: ModuleType, tmp_path: Path, source: str, fix: str) -> None:
    end = ended(exits, tmp_path, source)
    assert end.reason == "script-error"
    assert end.problem is not None and fix in end.problem.fix


@pytest.mark.parametrize("source", ["import sys; sys.exit()", "import sys; sys.exit(0)", "raise SystemExit"])
def test_exit_code_zero_is_a_normal_end(exits: ModuleType, tmp_path: Path, source: str) -> None:
    assert ended(exits, tmp_path, source) == Exit(reason="finished")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import sys\nsys.exit(3)", "The script exited with exit code 3 (train.py, line 2)."),
        (
            "def f():\n    raise SystemExit('no data')\nf()",
            "The script exited with the text 'no data' (train.py, line 2).",
        ),
    ],
)
def test_another_exit_code_is_reported_with_its_line(
    exits: ModuleType, tmp_path: Path, source: str, what: str
) -> None:
    exit = ended(exits, tmp_path, source)
    assert exit.reason == "script-error"
    assert words(exit) == what


def test_an_error_names_the_scripts_own_innermost_line(exits: ModuleType, tmp_path: Path) -> None:
    exit = ended(exits, tmp_path, "import json\ndef load():\n    return json.loads('{')\nload()")
    assert exit.reason == "script-error"
    assert words(exit).startswith("JSONDecodeError: ") and words(exit).endswith("(train.py, line 3).")
    assert exit.problem is not None
    assert 'File "train.py", line 4, in <module>' in exit.problem.detail
    assert "json/decoder.py" in exit.problem.detail


def test_our_frames_are_left_out_of_every_part_of_the_traceback(exits: ModuleType, tmp_path: Path) -> None:
    from core.trainer import script

    (tmp_path / "train.py").write_text(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('worse') from error\n"
    )
    inner = raised(tmp_path, (tmp_path / "train.py").read_text())
    try:
        exec(compile("raise inner", str(Path(script.__file__)), "exec"), {"inner": inner})
    except ValueError as error:
        assert exits._TRAINER in "".join(traceback.format_exception(error))
        detail = exits.own_traceback(error, tmp_path)
    assert exits._TRAINER not in detail
    assert "ZeroDivisionError" in detail and "direct cause" in detail and "ValueError: worse" in detail


def test_only_our_frames_means_no_traceback_at_all(exits: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("if x\n")
    source = "compile('if x', folder + '/train.py', 'exec')"
    assert exits.__file__ is not None
    try:
        exec(compile(source, exits.__file__, "exec"), {"folder": str(tmp_path)})
    except SyntaxError as error:
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
        detail = exits.own_traceback(error, tmp_path)
    assert detail.startswith('  File "train.py", line 1\n    if x\n')


def test_a_syntax_error_names_its_line(exits: ModuleType, tmp_path: Path) -> None:
    exit = ended(exits, tmp_path, "x = 1\nif x\n    pass\n")
    assert words(exit) == "SyntaxError: expected ':' (train.py, line 2)."
    assert exit.problem is not None
    assert "if x" in exit.problem.detail


def test_a_module_beside_the_script_counts_as_the_script(exits: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    error = raised(tmp_path, "raise KeyError('label')", name="deep/data.py")
    assert (
        words(exits.of_script(error, tmp_path, cluster=False)) == "KeyError: 'label' (deep/data.py, line 1)."
    )


@pytest.mark.parametrize(
    "source",
    [
        "raise MemoryError",
        "import tensorflow as tf\nraise tf.errors.ResourceExhaustedError(None, None, 'OOM when allocating')",
        "try:\n    raise MemoryError\nexcept MemoryError as error:\n    raise RuntimeError('in') from error",
    ],
)
def test_memory_that_ran_out_is_reported_as_such(exits: ModuleType, tmp_path: Path, source: str) -> None:
    exit = ended(exits, tmp_path, source)
    assert exit.reason == "out-of-memory"
    assert "batch" in str(exit.problem)


@pytest.mark.parametrize(
    "error",
    [
        "OSError(28, 'No space left on device')",
        "tf.errors.ResourceExhaustedError(None, None, 'model.keras; No space left on device')",
    ],
)
def test_a_full_disk_is_the_laptops_fault_where_others_can_go_on(
    exits: ModuleType, tmp_path: Path, error: str
) -> None:
    source = f"import tensorflow as tf\nraise {error}"
    assert ended(exits, tmp_path, source).reason == "script-error"
    exit = ended(exits, tmp_path, source, leaves=True)
    assert exit.reason == "killed" and exit.problem is not None
    assert exit.problem.code == "disk-full"
    assert exit.problem.what == "The disk is full (train.py, line 2)."
    script = ended(exits, tmp_path, "raise OSError(30, 'Read-only file system')", leaves=True)
    assert script.reason == "script-error", "it may be so on every laptop"


PEER_GONE = [
    "tf.errors.UnavailableError(None, None, 'Connection reset by peer')",
    "tf.errors.AbortedError(None, None, 'aborted')",
    "tf.errors.InternalError(None, None, 'Collective ops is aborted by: a peer')",
    "tf.errors.DeadlineExceededError(None, None, 'Barrier failed in CoordinationService')",
]


@pytest.mark.parametrize("error", PEER_GONE)
def test_a_peer_that_went_away_is_a_lost_peer_only_in_a_cluster(
    exits: ModuleType, tmp_path: Path, error: str
) -> None:
    source = f"import tensorflow as tf\nraise {error}"
    assert ended(exits, tmp_path, source, cluster=True).reason == "lost-peer"
    assert ended(exits, tmp_path, source, cluster=False).reason == "script-error"


@pytest.mark.parametrize(
    "source",
    [
        "raise ConnectionResetError('the download broke')",
        "import tensorflow as tf\nraise tf.errors.InvalidArgumentError(None, None, 'shapes differ')",
        "import tensorflow as tf\n"
        "raise tf.errors.ResourceExhaustedError(None, None, 'Received message larger than max')",
    ],
)
def test_a_scripts_own_error_is_reported_as_its_own(exits: ModuleType, tmp_path: Path, source: str) -> None:
    assert ended(exits, tmp_path, source, cluster=True).reason == "script-error"


def test_endless_messages_are_cut_on_the_screen_and_whole_in_the_detail(
    exits: ModuleType, tmp_path: Path
) -> None:
    exit = ended(exits, tmp_path, "raise ValueError('first line.\\n' + 'x' * 5000)")
    assert words(exit) == "ValueError: first line (train.py, line 1)."
    assert exit.problem is not None and "x" * 5000 in exit.problem.detail
    assert len(words(ended(exits, tmp_path, "raise ValueError('y' * 5000)"))) < 400


def test_a_failure_in_tandem_is_not_blamed_on_the_script(exits: ModuleType) -> None:
    unknown = TandemError(code="keras-unknown", what="Keras 9 is not known.", fix="Install Keras 3.15.")
    assert exits.of_bug(unknown).problem == unknown.problem
    broke = exits.of_bug(AttributeError("no such thing"))
    assert (broke.reason, broke.problem.code) == ("killed", "trainer-broke")
    assert "no such thing" in broke.problem.what


def test_a_cluster_that_cannot_start_is_a_failed_meeting(exits: ModuleType) -> None:
    taken = exits.of_meeting(RuntimeError("UNKNOWN: Could not start gRPC server"))
    assert (taken.reason, taken.problem.code, taken.shared) == ("never-met", "port-taken", False)
    other = exits.of_meeting(RuntimeError("something else"))
    assert (other.reason, other.problem.code) == ("never-met", "never-met")
    assert "something else" in other.problem.detail


def test_an_error_of_tandem_in_the_script_keeps_its_own_message(exits: ModuleType, tmp_path: Path) -> None:
    source = (
        "from core.vocabulary.errors import TandemError\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    raise RuntimeError('wrapped') from TandemError(code='no-x', what='No x.', fix='Get it.')\n"
    )
    exit = ended(exits, tmp_path, source)
    assert exit.reason == "script-error"
    assert exit.problem is not None
    assert (exit.problem.code, exit.problem.fix) == ("no-x", "Get it.")
    assert exit.problem.what == "No x (train.py, line 5)."


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("exchange-mismatch", "script-error"),
        ("exchange-left", "lost-peer"),
        ("exchange-restarted", "lost-peer"),
        ("exchange-broken", "killed"),
    ],
)
def test_the_error_that_ended_an_exchange_keeps_its_own_message(
    exits: ModuleType, code: str, reason: str
) -> None:
    failure = TandemError(code=code, what="Member 1 has left: the data ran out.", fix="Get more.", detail="d")
    exit = exits.of_exchange(failure)
    assert (exit.reason, exit.problem) == (reason, failure.problem)


def test_keys_that_do_not_fit_are_reported_in_their_own_words(exits: ModuleType) -> None:
    failure = TandemError(code="exchange-pins", what="Two members have the same one.", fix="Start it again.")
    exit = exits.of_meeting(failure)
    assert (exit.reason, exit.shared, exit.problem) == ("never-met", False, failure.problem)


@pytest.mark.parametrize(("over_tls", "reason"), [(False, "lost-peer"), (True, "script-error")])
def test_over_tls_an_error_of_the_scripts_own_tensorflow_is_no_lost_member(
    exits: ModuleType, tmp_path: Path, over_tls: bool, reason: str
) -> None:
    """The exchange itself reports who left; a parameter server or a data service is the script's own."""
    from core.trainer.orders import Orders
    from core.trainer.reporter import Reporter
    from core.trainer.session import TrainerSession

    keys = ExchangeKeys(generation=1, certificates=(b"a", b"b"), private_key=b"k")
    places = ("127.0.0.1:2222", "127.0.0.1:2223")
    order = Train(
        run="r",
        task="chief:0",
        folder=str(tmp_path),
        script="train.py",
        tf_config='{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}',
        exchange=keys if over_tls else None,
        seal=None if over_tls else Seal(keys=keys, outside=places, inside=places),
    )
    reads, writes = os.pipe()
    orders = Orders(reads)
    try:
        session = TrainerSession(order, Reporter(writes), orders)
        error = raised(tmp_path, "import tensorflow as tf\nraise tf.errors.UnavailableError(None, None, 'x')")
        assert session._exit_of(error).reason == reason
    finally:
        orders._lines.close()
        os.close(writes)
