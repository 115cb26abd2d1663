"""The page on the mirror: its example of a user's table runs as it stands there."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.cli.waiting import wait_for_end
from kizami.core.states import JobState
from kizami.sandbox.server import Sandbox

PAGE = Path(__file__).parents[2] / "docs" / "mirror.md"
EXAMPLE = re.compile(r"^```python\n((?:(?!^```).)*UserTable.*?)^```", re.DOTALL | re.MULTILINE)


async def test_the_example_of_a_users_table_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE_URL", f"sqlite:///{tmp_path / 'shop.db'}")
    monkeypatch.setenv("KIZAMI_DATABASE_URL", f"sqlite:///{tmp_path / 'kizami.db'}")
    (example,) = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    slack = Sandbox()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, ships_on DATE, slack_ts TEXT)")
        shop.execute("INSERT INTO orders VALUES (7, 'Sato', date('now', '-1 day'), NULL)")
        shop.commit()
        async with slack.serving() as url:
            monkeypatch.setenv("SLACK_API_URL", url)
            names: dict[str, object] = {"__name__": "example"}
            exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102 - our own page
            app = names["app"]
            assert isinstance(app, Kizami)
            async with app.running():
                record = await app.schedules.trigger("orders", by="test")
                assert record.job_id is not None
                job = await wait_for_end(app, record.job_id, 60)
        assert job is not None
        assert (job.state, job.error) == (JobState.COMPLETED, None)
        (post,) = slack.log.posts("C0ALERTS")
        assert post.text == "Order 7 for Sato ships today"
        assert shop.execute("SELECT slack_ts FROM orders").fetchall() == [(post.ts,)]
