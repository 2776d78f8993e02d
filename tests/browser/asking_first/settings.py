"""The demo with an agent that asks first, and its page with that agent."""

from pathlib import Path
from typing import Any

from project.settings import *  # noqa: F403
from project.settings import AGENT, INSTALLED_APPS, TEMPLATES

INSTALLED_APPS = [*INSTALLED_APPS, "tests.browser.asking_first"]
AGENT = {**AGENT, "PROVIDERS": {"scripted": "tests.browser.asking_first.agents.model"}}
_engine: dict[str, Any] = TEMPLATES[0]
TEMPLATES = [{**_engine, "DIRS": [Path(__file__).parent / "templates", *_engine["DIRS"]]}]
