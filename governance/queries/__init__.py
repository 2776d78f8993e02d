"""Every figure of the console, the CSV files and the JSON API (spec 08 §7): one layer, and no page does arithmetic.

A query takes a `Selection` (days, filters, tenants, whether text may be read) and answers frozen rows.
"""

from governance.queries.compare import Change, Saving, cache_savings, compare, moved
from governance.queries.decisions import decisions_page
from governance.queries.details import run_detail
from governance.queries.paging import Ask
from governance.queries.runs import (
    recent_runs,
    reliability,
    run_errors,
    run_metrics,
    run_trend,
    runs_by_agent,
    runs_page,
)
from governance.queries.selection import NONE, Selection
from governance.queries.spend import (
    spend_by_actor,
    spend_by_agent,
    spend_by_model,
    spend_by_purpose,
    spend_by_tenant,
    spend_by_thread,
    spend_overview,
    spend_summary,
    usage_trend,
)
from governance.queries.threads import recent_threads, thread_detail, threads_page
from governance.queries.tools import recent_tool_calls, tool_calls_page, tool_stats
from governance.queries.usage import usage_page
from governance.queries.values import Page
from governance.queries.waiting import approvals_page, pending_approvals

__all__ = [
    "NONE",
    "Ask",
    "Change",
    "Page",
    "Saving",
    "Selection",
    "approvals_page",
    "cache_savings",
    "compare",
    "decisions_page",
    "moved",
    "pending_approvals",
    "recent_runs",
    "recent_threads",
    "recent_tool_calls",
    "reliability",
    "run_detail",
    "run_errors",
    "run_metrics",
    "run_trend",
    "runs_by_agent",
    "runs_page",
    "spend_by_actor",
    "spend_by_agent",
    "spend_by_model",
    "spend_by_purpose",
    "spend_by_tenant",
    "spend_by_thread",
    "spend_overview",
    "spend_summary",
    "thread_detail",
    "threads_page",
    "tool_calls_page",
    "tool_stats",
    "usage_page",
    "usage_trend",
]
