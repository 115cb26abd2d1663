"""Starts child processes: each leads a process group of its own from its first moment, and has a line to its worker."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe, spawn
from typing import TYPE_CHECKING, Final

from kizami.core.errors import ConfigurationError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

STARTING: Final = "KIZAMI_CHILD_STARTING"
"""Set in a child process while it imports the program's main module, in which no worker may start then."""
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kizami.engine.child_process import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Spawned:
    """A started child, seen from its worker. `life` is a pipe's end: the child's group dies when nobody has it open."""

    process: subprocess.Popen[bytes]
    line: Connection
    life: int

    def kill_group(self) -> None:
        """Kill the child with what it started. Not once it is buried: its number may be somebody else's by then."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def is_dead(self) -> bool:
        """Tell whether the process has ended; it stays unburied, so that nobody else gets its group's number."""
        if not hasattr(os, "waitid"):
            return False
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self) -> None:
        """Close the worker's ends, once."""
        if not self.line.closed:
            self.line.close()
            os.close(self.life)

    def abandon(self) -> None:
        """End what nobody holds any more."""
        self.kill_group()
        self.close()


def refuse_in_a_starting_child() -> None:
    """Raise ConfigurationError in a child process that is still importing the program's main module."""
    if STARTING in os.environ:
        raise ConfigurationError(
            "A worker can't start while a child process imports the program's main module.",
            remedy='Start it under `if __name__ == "__main__":`.',
        )


def start(log_level: int) -> Spawned:
    """Start a child process, with what it needs to import the program's main module. Raises OSError."""
    preparation = spawn.get_preparation_data("kizami-child")
    preparation["authkey"] = bytes(
        preparation["authkey"]
    )  # as itself it can only go to multiprocessing's own processes
    ours, theirs = Pipe()
    alive, life = os.pipe()
    try:
        process = _popen(json.dumps(preparation["sys_path"]), theirs.fileno(), alive)
    except BaseException:
        ours.close()
        os.close(life)
        raise
    finally:
        theirs.close()  # the child's own end is then the only one: when it dies, ours tells
        os.close(alive)
    spawned = Spawned(process, ours, life)
    with suppress(OSError):  # it died at once: whoever listens learns of it
        ours.send_bytes(pickle.dumps((preparation, log_level)))
    return spawned


def _popen(path: str, line: int, alive: int) -> subprocess.Popen[bytes]:
    """Start the interpreter as this one was started, deaf to the service's signals until it ignores them itself."""
    command = spawn.get_command_line()
    command = [*command[: command.index("-c") + 1], _PROGRAM, path, str(line), str(alive)]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return subprocess.Popen(  # noqa: S603 - this very interpreter
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=(line, alive),
            start_new_session=True,
            env={**os.environ, STARTING: "1"},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
