"""What befalls a PostgreSQL while workers are killed: connections ended by an administrator, and a loss of power."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import psycopg

from tests.own_postgres import OwnPostgres

_OTHERS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid"
)


@dataclass(slots=True)
class Chaos:
    """Ends random connections after every few kills, and stops the server hard and starts it again now and then."""

    server: OwnPostgres
    cut_every: int
    restart_every: int
    cuts: int = 0
    restarts: int = 0

    def __call__(self, number: int, chance: Random) -> None:
        if number % self.restart_every == 0:
            self.server.control("stop")
            self.server.control("start")
            self.restarts += 1
        elif number % self.cut_every == 0:
            self._cut(chance)

    def _cut(self, chance: Random) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            pids = [row[0] for row in connection.execute(_OTHERS)]
            for pid in chance.sample(pids, min(3, len(pids))):
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                self.cuts += 1
