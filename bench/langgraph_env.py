"""LangGraph beside us: its own environment, made at the first use, and its process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from bench.children import Child, child

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".venv-langgraph"
REQUIREMENTS = ("langgraph", "langgraph-checkpoint-postgres", "psycopg[binary]")
INSTALLED = ENVIRONMENT / ".installed"  # what was asked for, once it is there


def installed() -> Path:
    """The interpreter of an environment that has LangGraph; the newest versions when it is made."""
    python = ENVIRONMENT / "bin" / "python"
    wanted = "\n".join(REQUIREMENTS)
    if not INSTALLED.exists() or INSTALLED.read_text() != wanted:
        print(f"installing {', '.join(REQUIREMENTS)} into {ENVIRONMENT} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS], check=True)
        INSTALLED.write_text(wanted)
    return python


def langgraph(url: str) -> AbstractContextManager[Child]:
    """Its process on this PostgreSQL; -P keeps our modules out of its imports."""
    return child([str(installed()), "-P", str(HERE / "langgraph_turn.py"), url])
