"""The demo under another admin theme, whose inline scripts no strict policy allows, and without the site's own head."""

from typing import Any

from project.settings import *  # noqa: F403
from project.settings import BASE_DIR, INSTALLED_APPS, MIDDLEWARE, TEMPLATES

INSTALLED_APPS = ["unfold", *INSTALLED_APPS]
MIDDLEWARE = [name for name in MIDDLEWARE if "csp" not in name]
_engine: dict[str, Any] = TEMPLATES[0]
TEMPLATES = [{**_engine, "DIRS": [BASE_DIR / "tests" / "browser" / "templates", *_engine["DIRS"]]}]
