from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "transactions.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs_and_loads_no_other_driver(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = f"{example}\nimport sys\nassert not {{'sqlalchemy', 'psycopg'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("SELECT number FROM orders").fetchall() == [(7,)]
        assert connection.execute("SELECT payload FROM kizami_jobs").fetchall() == [('{"order":7}',)]
