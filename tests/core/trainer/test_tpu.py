"""Absent TPUs, and one that only seems to exist. TensorFlow runs in this process."""

from __future__ import annotations

import socket
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from core.vocabulary.errors import TandemError

pytestmark = pytest.mark.cluster


@pytest.fixture
def tpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    from core.trainer import tpu

    for name in tpu._NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tpu, "_is_there", lambda device: False)
    return tpu


@pytest.fixture
def resolver(tpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """TensorFlow's class, set to report absence, and restored afterwards."""
    import tensorflow as tf

    found = tf.distribute.cluster_resolver.TPUClusterResolver
    monkeypatch.setattr(found, "__init__", found.__init__)
    tpu.name_absence()
    return found


@pytest.mark.parametrize("name", [None, "", "local"])
def test_a_tpu_that_is_not_here_is_named_at_once(resolver: Any, name: str | None) -> None:
    with pytest.raises(TandemError) as caught:
        resolver(tpu=name)
    assert caught.value.code == "no-tpu"
    assert "MultiWorkerMirroredStrategy" in caught.value.fix


def test_a_script_that_tries_a_tpu_first_goes_on_without(resolver: Any) -> None:
    with pytest.raises(ValueError, match="there is none here"):
        resolver()


def test_an_address_at_which_nothing_answers_is_named(resolver: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        with pytest.raises(TandemError, match=f"127.0.0.1:{port} does not answer"):
            resolver(tpu=f"grpc://127.0.0.1:{port}")


def test_an_address_that_answers_goes_to_tensorflow(resolver: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        assert resolver(tpu=address).master() == address


def test_naming_absence_twice_wraps_once(tpu: ModuleType, resolver: Any) -> None:
    before = resolver.__init__
    tpu.name_absence()
    assert resolver.__init__ is before


def test_without_a_tpu_there_is_no_strategy(tpu: ModuleType) -> None:
    said: list[str] = []
    assert tpu.strategy(said.append) is None
    assert said == []


def test_a_tpu_that_the_machine_names_is_taken(tpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []

    def find(tpu: str) -> str:
        steps.append(tpu)
        return "resolver"

    fake = SimpleNamespace(
        distribute=SimpleNamespace(
            cluster_resolver=SimpleNamespace(TPUClusterResolver=find),
            TPUStrategy=lambda resolver: ("strategy", resolver),
        ),
        config=SimpleNamespace(experimental_connect_to_cluster=steps.append),
        tpu=SimpleNamespace(experimental=SimpleNamespace(initialize_tpu_system=steps.append)),
    )
    monkeypatch.setattr(tpu, "tf", fake)
    monkeypatch.setenv("TPU_NAME", "mine")
    assert tpu.strategy(lambda words: None) == ("strategy", "resolver")
    assert steps == ["mine", "resolver", "resolver"]


def test_a_tpu_that_fails_is_said_and_left(tpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tpu: str) -> None:
        raise RuntimeError("no such project")

    resolvers = SimpleNamespace(TPUClusterResolver=fails)
    monkeypatch.setattr(tpu, "tf", SimpleNamespace(distribute=SimpleNamespace(cluster_resolver=resolvers)))
    monkeypatch.setenv("TPU_NAME", "mine")
    said: list[str] = []
    assert tpu.strategy(said.append) is None
    assert "no such project" in said[0]
