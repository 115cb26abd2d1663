from __future__ import annotations

import subprocess
import sys

_HEAVY = frozenset(
    {
        "aiohttp",
        "fastapi",
        "httpx",
        "jinja2",
        "jsonschema",
        "rich",
        "slack_sdk",
        "sqlalchemy",
        "starlette",
        "typer",
        "uvicorn",
    }
)


def test_importing_kizami_loads_no_extra() -> None:
    """A script that only enqueues must not pay for web frameworks, terminal libraries and Slack clients."""
    assert _loaded_by("import kizami") & _HEAVY == frozenset()


def test_a_heavy_import_would_be_seen() -> None:
    assert _loaded_by("import rich, httpx") & _HEAVY == {"rich", "httpx"}


def _loaded_by(statement: str) -> frozenset[str]:
    """Return the top-level packages that a fresh interpreter holds after the statement."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    return frozenset(subprocess.check_output([sys.executable, "-c", program], text=True).split())
