"""How much of a thread a turn reads: only what its history policy can see or has to fold (spec 04 §7)."""

from __future__ import annotations

from dataclasses import replace

from agent.domain import transcript
from agent.domain.history import HistoryPolicy, read_limit, summarizes
from agent.domain.snapshots import ThreadDetail, ThreadPage, TurnMessage
from agent.domain.windows import Window
from agent.errors import NotFound
from agent.store.base import AgentStore

CHUNK = 100  # messages of one read of a thread whose end alone is needed, newest first
OF_A_TURN = 16  # more than most turns add: a summarizing window finds what is new to fold in its first chunk


def read_bounded(
    store: AgentStore, policy: HistoryPolicy, thread_id: str, *, watermark: int | None = None, chunk: int = CHUNK
) -> ThreadPage:
    """The end of a thread as the policy needs it, repaired: a choice from it is the choice from the whole thread.

    `watermark` is how far the stored summary of the policy reaches, if there is one.
    """
    pages = _Pages(store, thread_id)
    if isinstance(policy, Window) and _ends_early(policy, watermark):
        return _in_chunks(pages, policy, watermark, chunk)
    page = pages.read(read_limit(policy))
    return replace(page, messages=pages.repaired(page))


def title_of(store: AgentStore, thread_id: str) -> str | None:
    """A thread's title; None when it is not there any more."""
    try:
        return _Pages(store, thread_id).read(0).title
    except NotFound:
        return None


def _ends_early(window: Window, watermark: int | None) -> bool:
    """Whether what was read tells such a window that the rest need not be."""
    if summarizes(window):
        return watermark is not None and (window.max_messages or window.max_tokens) is not None
    return window.max_messages is None and window.max_tokens is not None


def _in_chunks(pages: _Pages, window: Window, watermark: int | None, chunk: int) -> ThreadPage:
    first = chunk if window.max_messages is None else min(chunk, window.max_messages + OF_A_TURN)
    page = newest = pages.read(first)
    messages = pages.repaired(page)
    tokens = sum(map(window.estimate, messages))
    while page.has_more and not (_is_passed(watermark, page) and window.is_met(len(messages), tokens)):
        page = pages.read(chunk, below=page.messages[0].seq)
        older = pages.repaired(page)
        messages = (*older, *messages)
        tokens += sum(map(window.estimate, older))
    return replace(newest, has_more=page.has_more, messages=messages)


def _is_passed(watermark: int | None, page: ThreadPage) -> bool:
    return watermark is None or page.messages[0].seq <= watermark + 1


class _Pages:
    """Reads of one thread; a store without `turn_reader` reads it whole, once, and gives the same pages."""

    def __init__(self, store: AgentStore, thread_id: str) -> None:
        self._store, self._thread_id = store, thread_id
        self._whole: ThreadDetail | None = None

    def read(self, limit: int | None, below: int | None = None) -> ThreadPage:
        """The newest messages below a number, oldest first."""
        if "turn_reader" in self._store.capabilities:
            page = self._store.load_thread_for_turn(self._thread_id, message_limit=limit, before_seq=below)
        else:
            self._whole = self._whole or self._store.get_thread(self._thread_id)
            page = None if self._whole is None else page_of(self._whole, limit, below)
        if page is None:
            raise NotFound
        return page

    def repaired(self, page: ThreadPage) -> tuple[TurnMessage, ...]:
        """Its messages, each call with its one result: the window measures what the model will be shown."""
        dangling = transcript.dangling_calls(page.messages)
        outcomes = self._store.tool_call_outcomes(dangling) if dangling else {}
        return tuple(transcript.repair(page.messages, outcomes))


def page_of(detail: ThreadDetail, limit: int | None, before_seq: int | None = None) -> ThreadPage:
    """The page of a whole thread: what `load_thread_for_turn` would have answered."""
    told = [
        message
        for message in detail.messages
        if message.role != "assistant" or message.content.strip() or message.tool_calls
    ]
    below = [message for message in told if before_seq is None or message.seq < before_seq]
    kept = below if limit is None else below[max(0, len(below) - max(0, limit)) :]
    return ThreadPage(
        title=detail.summary.title,
        default_agent=detail.summary.default_agent,
        has_assistant_message=any(message.role == "assistant" for message in told),
        has_more=len(kept) < len(below),
        messages=tuple(
            TurnMessage(
                id=message.id,
                seq=message.seq,
                role=message.role,
                content=message.content,
                created_at=message.created_at,
                agent_name=message.agent_name,
                tool_calls=message.tool_calls,
                tool_results=message.tool_results,
                attachments=message.attachments,
            )
            for message in kept
        ),
    )
