"""What a history policy promises by declaring `max_messages`, and by being a policy at all."""

from __future__ import annotations

from collections.abc import Sequence

from agent.domain.actor import Actor
from agent.domain.history import HistoryPolicy, HistoryPolicyContext, HistorySelection, select_history
from agent.domain.snapshots import TurnMessage
from agent.errors import RunFailed

CONTEXT = HistoryPolicyContext(thread_id="thread", actor=Actor("tester"), agent_name=None)


def assert_policy_promise(
    policy: HistoryPolicy, messages: Sequence[TurnMessage], *, context: HistoryPolicyContext = CONTEXT
) -> None:
    """Raise `AssertionError` unless the policy chooses lawfully from every beginning of these messages, oldest first.

    Lawfully: the same choice twice, each message at most once and none but the given ones, both halves oldest first.
    With `max_messages` declared also: no more than that are kept, and the choice from the newest so many is the choice
    from all of them.
    """
    bound: int | None = getattr(policy, "max_messages", None)
    _expect(bound is None or (type(bound) is int and bound > 0), f"max_messages is {bound!r}")
    for count in range(1, len(messages) + 1):
        given = messages[:count]
        selection = _chosen(policy, given, context)
        _expect(
            _chosen(policy, given, context) == selection, f"of {count} messages it chose otherwise when asked again"
        )
        for half in (selection.keep, selection.drop):
            seqs = [message.seq for message in half]
            _expect(seqs == sorted(seqs), f"of {count} messages it gave {seqs}: oldest first is the order")
        if bound is not None:
            _hold_to_bound(policy, given, context, selection, bound)


def _hold_to_bound(
    policy: HistoryPolicy,
    given: Sequence[TurnMessage],
    context: HistoryPolicyContext,
    selection: HistorySelection,
    bound: int,
) -> None:
    kept = [message.seq for message in selection.keep]
    newest = given[max(0, len(given) - bound) :]
    _expect(len(kept) <= bound, f"of {len(given)} messages it kept {len(kept)}: {kept}")
    older = sorted(set(kept) - {message.seq for message in newest})
    _expect(not older, f"of {len(given)} messages it kept {older}, which a read of {bound} does not hold")
    from_read = [message.seq for message in _chosen(policy, newest, context).keep]
    _expect(from_read == kept, f"of {len(given)} messages it kept {kept}, and of their newest {bound} {from_read}")


def _chosen(policy: HistoryPolicy, given: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
    try:
        return select_history(policy, tuple(given), context)
    except RunFailed as error:
        raise AssertionError(error.message) from error


def _expect(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(what)
