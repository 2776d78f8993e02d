"""The console: ten screens in any admin site, each an entry of its index (`governance.admin.register` adds them)."""

from __future__ import annotations

from django.db import models

from governance.admin.console.approvals import ApprovalsScreen
from governance.admin.console.base import Screen
from governance.admin.console.live import LiveScreen
from governance.admin.console.model_spend import ModelsScreen
from governance.admin.console.people import PeopleScreen
from governance.admin.console.prices import PricesScreen
from governance.admin.console.runs import RunsScreen
from governance.admin.console.spend import SpendScreen
from governance.admin.console.threads import ThreadsScreen
from governance.admin.console.tools import ToolsScreen
from governance.admin.console.usage import UsageScreen
from governance.screens import Approvals, Live, Models, People, Prices, Runs, Spend, Threads, Tools, Usage

CONSOLE: dict[type[models.Model], type[Screen]] = {
    Spend: SpendScreen,
    Usage: UsageScreen,
    Models: ModelsScreen,
    People: PeopleScreen,
    Threads: ThreadsScreen,
    Runs: RunsScreen,
    Approvals: ApprovalsScreen,
    Tools: ToolsScreen,
    Prices: PricesScreen,
    Live: LiveScreen,
}
