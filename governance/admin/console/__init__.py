"""The console: ten screens in any admin site, each an entry of its index (`governance.admin.register` adds them)."""

from __future__ import annotations

from django.db import models

from governance.admin.console.base import Screen
from governance.admin.console.model_spend import ModelsScreen
from governance.admin.console.people import PeopleScreen
from governance.admin.console.prices import PricesScreen
from governance.admin.console.spend import SpendScreen
from governance.screens import Models, People, Prices, Spend

CONSOLE: dict[type[models.Model], type[Screen]] = {
    Spend: SpendScreen,
    Models: ModelsScreen,
    People: PeopleScreen,
    Prices: PricesScreen,
}
