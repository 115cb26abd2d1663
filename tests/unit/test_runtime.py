from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kizami.runtime import SystemRuntime, boot_id, identify, machine_id, sortable_id


def test_this_process_is_known_to_live() -> None:
    runtime = SystemRuntime()
    assert not runtime.is_gone(runtime.process)


def test_an_ended_process_of_this_machine_is_known_to_be_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identify(child.pid)
    runtime = SystemRuntime()
    assert not runtime.is_gone(identity)
    child.communicate(b"\n", timeout=30)
    assert runtime.is_gone(identity)


def test_a_reused_process_id_is_another_process() -> None:
    """Process ids come round again: the start time tells the new holder from the old one."""
    runtime = SystemRuntime()
    assert runtime.is_gone(replace(runtime.process, started="1"))


def test_a_process_elsewhere_is_never_declared_gone() -> None:
    """Another host and another process namespace can't be looked into: only their silence counts."""
    runtime = SystemRuntime()
    stranger = replace(runtime.process, pid=1, started="1")
    assert not runtime.is_gone(replace(stranger, host="elsewhere"))
    assert not runtime.is_gone(replace(stranger, pid_namespace="pid:[1]"))


def test_a_process_from_before_the_last_boot_is_gone_where_the_machine_is_surely_this_one() -> None:
    """Cloned machines share their name: the boot of another one says nothing of its processes."""
    runtime = SystemRuntime()
    runtime._identified = replace(runtime.process, boot_id="this:now")  # noqa: SLF001 - whatever machine the test runs on
    for boot, gone in {"this:earlier": True, "other:earlier": False, ":earlier": False, "this:": False}.items():
        assert runtime.is_gone(replace(runtime.process, boot_id=boot)) is gone
    runtime._identified = replace(runtime.process, boot_id=":now")  # noqa: SLF001 - as above
    assert not runtime.is_gone(replace(runtime.process, boot_id=":earlier"))


def test_a_machine_is_known_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "machine-id").write_text("4f1c\n")
    assert len(machine_id(tmp_path / "machine-id")) == 8
    assert machine_id(tmp_path / "no such file") == ""


@pytest.mark.parametrize(
    ("script", "known"),
    [('[ "$*" = "-n kern.bootsessionuuid" ] && echo 8D2E', "8D2E"), ("echo unknown oid; exit 1", ""), (None, "")],
)
def test_where_there_is_no_proc_the_boot_session_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, known: str
) -> None:
    """As on macOS; where nothing is known, nobody is taken for gone by his boot."""
    if script is not None:
        program = tmp_path / "sysctl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if script is not None else str(tmp_path))
    assert boot_id(tmp_path / "no such file") == known
    runtime = SystemRuntime()
    assert not runtime.is_gone(replace(runtime.process, boot_id=""))


def test_ids_sort_by_the_time_they_were_made() -> None:
    class Clock:
        now = 1_000

        def now_ms(self) -> int:
            self.now += 1
            return self.now

        def boot_ms(self) -> int:
            return self.now

        async def sleep(self, seconds: float) -> None:
            raise AssertionError(seconds)

    clock, entropy = Clock(), SystemRuntime().entropy
    made = [sortable_id(clock, entropy) for _ in range(300)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_beat_goes_on_beside_the_caller_until_it_is_stopped() -> None:
    beats, reached = [], threading.Event()

    def action() -> None:
        beats.append(threading.current_thread())
        if len(beats) == 3:
            reached.set()

    beat = SystemRuntime().beat("test", 0.001, action)
    assert reached.wait(30)
    beat.stop()
    counted = len(beats)
    beat.stop()
    assert len(beats) == counted
    assert threading.current_thread() not in beats


def test_a_beat_may_stop_itself() -> None:
    stopped = threading.Event()

    def action() -> None:
        beat.stop()
        stopped.set()

    beat = SystemRuntime().beat("test", 0.001, action)
    assert stopped.wait(30)


def test_the_process_identity_names_this_process() -> None:
    identity = SystemRuntime().process
    assert identity.pid == os.getpid()
    assert identity.started
