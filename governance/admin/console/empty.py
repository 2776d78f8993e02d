"""What a page says where there is nothing."""

from __future__ import annotations

from django.utils import formats
from django.utils.translation import gettext

from governance.admin.console.asked import FROM, TO
from governance.admin.console.base import Visit
from governance.admin.console.parts import Empty, Said
from governance.queries.changes import newest_use


def nothing_used(visit: Visit) -> Empty:
    """No usage in these days, and where there is some."""
    day = newest_use(visit.selection)
    if day is None:
        return Empty(
            why=gettext("No usage yet: the ledger gets a row with every call of a model."),
            then=Said(text=gettext("To see the console with invented rows, where no real ones are kept:")),
            command="python manage.py agent_demo_data",
        )
    near = visit.asked.query(**{FROM: day.replace(day=1).isoformat(), TO: day.isoformat()})
    told = gettext("The newest row is of %(day)s: show that month") % {"day": formats.date_format(day)}
    return Empty(why=gettext("No usage in this range."), then=Said(text=told, href=near))
