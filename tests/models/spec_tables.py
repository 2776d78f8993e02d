"""The tables of spec 01 and 12, transcribed by hand from its text, not from the models.

Added to it since, where a goal of speed asked for it: `previous_day` of the thread rollup with its index, `histograms`
of a rollup's day, and the indexes of lists by `updated_at`, of decisions, and of what a quota sums; the key of a
message of a personal agent, and the indexes that an erasure finds those by.

A line is a column (`name type`, `?` = may be NULL) or a key: `pk`, `unique`, `index`, `fk column -> table`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

AGENT = """
agent_thread
    id id; external_id ref?; actor_ref ref; tenant_ref ref?; title char255; transient bool; active_run_id id?
    default_agent name?; model name?; persona name?; queue_pause json?; last_seq int
    created_at ts; updated_at ts; deleted_at ts?
    pk id; unique actor_ref external_id
    index actor_ref updated_at; index tenant_ref updated_at; index active_run_id
    index updated_at id
agent_message
    id id; thread_id id; seq int; role word; content text; tool_calls json?; tool_results json?; attachments json?
    follow_ups json?; usage json?; agent_name name?; persona name?; run_id id?; reasoning text?; reasoning_ms int?
    ui json?; provider_state text?; feedback json?; action_proposal_outcome json?; created_at ts
    pk id; fk thread_id -> agent_thread; unique thread_id seq; index thread_id role seq; index run_id
agent_tool_call
    id id; provider_call_id ref; message_id id; thread_id id; run_id id?; actor_ref ref; tenant_ref ref?
    agent_name name?; tool_name name; tool_type word; input json; output json?; status word; decision word?
    decided_at ts?; decided_via char64?; decision_reason text?; answers json?; executed_by_ref ref?; approver ref?
    four_eyes bool; confirmation json?; expires_at ts?; remember bool; proposal_id ref?; parent_call_id id?
    origin_call_id id?; execution_ms int?; error text?; created_at ts; executed_at ts?; settled_at ts?
    pk id; fk message_id -> agent_message; fk thread_id -> agent_thread; unique run_id provider_call_id
    index message_id; index thread_id created_at; index status created_at; index status expires_at
    index run_id status; index tool_name created_at; index created_at; index settled_at; index decided_at id
agent_thread_summary
    id id; thread_id id; up_to_seq int; text text; policy_fingerprint hash; model_id name; created_at ts; updated_at ts
    pk id; fk thread_id -> agent_thread; unique thread_id policy_fingerprint
agent_queued_message
    id id; thread_id id; actor_ref ref; actor json; content text; attachments json?; agent_name name?; persona name?
    model name?; page_context json?; ui_capabilities json?; host_context json?; interrupt bool; position int
    created_at ts; updated_at ts
    pk id; fk thread_id -> agent_thread; index thread_id position
agent_idempotency_key
    id id; actor_ref ref; key ref; fingerprint hash; thread_id id?; run_id id?; message_id id?; outcome json
    created_at ts
    pk id; unique actor_ref key
agent_run
    id id; thread_id id; actor_ref ref; tenant_ref ref?; actor json; agent_name name?; model_id name?; persona name?
    status word; trigger word; input json; parent_run_id id?; parent_call_id id?; stream_run_id id; frame_base int
    depth int; lease_owner ref?; lease_expires_at ts?; attempt int; recoveries int; dispatched_at ts?
    effect_position int?; effect_name name?; cancel_requested_at ts?; prompt_hash hash?; retries int; created_at ts
    started_at ts?; settled_at ts?; duration_ms bigint?; active_ms bigint; error_code char64?; error_message text?
    pk id; index status lease_expires_at; index started_at; index settled_at; index thread_id started_at
    index actor_ref started_at; index tenant_ref started_at; index parent_run_id; index agent_name started_at
agent_run_step
    id serial; run_id id; position int; name name; payload text; created_at ts
    pk id; fk run_id -> agent_run; unique run_id position
agent_stream_frame
    id serial; run_id id; seq int; frame text?; error text?; created_at_ms ms
    pk id; unique run_id seq; index created_at_ms
agent_token_usage
    id serial; thread_id id; run_id id?; message_id id?; actor_ref ref; tenant_ref ref?; agent_name name?
    model_id name; purpose word; step_key name?; input_tokens count; output_tokens count; cache_write_tokens count?
    cache_read_tokens count?; cache_write_1h_tokens count?; tokens_source word; reported_cost_nanos nanos?
    estimated_cost_nanos nanos?; price_id id?; cost_nanos nanos?; created_at ts
    pk id; fk price_id -> agent_model_price; unique run_id step_key
    index created_at; index actor_ref created_at; index tenant_ref created_at; index thread_id created_at
    index model_id created_at; index run_id; index cost_nanos created_at
    index actor_ref created_at cost_nanos input_tokens output_tokens
agent_model_price
    id id; model_id name; input_per_million_nanos nanos; output_per_million_nanos nanos
    cache_write_per_million_nanos nanos?; cache_read_per_million_nanos nanos?; cache_write_1h_per_million_nanos nanos?
    tiers json?; effective_from ts; source char128; created_by_ref ref?; note text?; created_at ts
    pk id; unique model_id effective_from
agent_action_proposal
    id hash; scope_key hash; create_fingerprint text; proposal text; version int; decision word; execution_status word?
    lease_expires_at_ms ms?; proposal_expires_at_ms ms?; discovery_index_version smallint; delivery_status word?
    delivery_lease_expires_at_ms ms?; outcome_id_key hash?; replacement_group_key hash?; pending_group_key hash?
    tenant_ref ref?; actor_ref ref; thread_ref ref; run_ref ref?; tool_name name; agent_name name?; approver ref
    created_at_ms ms
    pk id; unique outcome_id_key; unique pending_group_key
    index discovery_index_version execution_status lease_expires_at_ms created_at_ms
    index discovery_index_version decision proposal_expires_at_ms created_at_ms
    index scope_key created_at_ms id; index delivery_status delivery_lease_expires_at_ms
    index decision created_at_ms; index replacement_group_key
agent_confirm_token
    hash hash; actor_ref ref; tool name; expires_at_ms ms; created_at_ms ms
    pk hash; index expires_at_ms
agent_memory
    id id; scope char300; key name; text text; origin_author word; origin_thread_id id?; origin_run_id id?
    origin_actor_ref ref?; pinned bool; created_at ts; updated_at ts
    pk id; unique scope key
agent_staged_attachment
    id id; actor_ref ref; tenant_ref ref?; name char255; content_type char127; size bigint; file char512; status word
    declared_size bigint?; created_at ts; staged_at ts?
    pk id; index actor_ref staged_at
agent_pap_conversation
    id id; client_id ref; user_id ref; account_ref ref?; agent_name name; thread_id id?; parent_id id?
    open_direct_id id?; status word; responder name?; context json; active_run_id id?; turn_seq bigint
    grant_info json?; reader_holder ref?; reader_until_ms ms?; pruned_seq bigint; created_at ts; updated_at ts
    pk id; index client_id user_id updated_at; index thread_id; index user_id
agent_pap_event
    id id; conversation_id id; seq bigint; type name; event json; event_key ref?; created_at ts
    pk id; fk conversation_id -> agent_pap_conversation; unique conversation_id seq; unique conversation_id event_key
agent_pap_message
    id id; owner ref; message_id ref; fingerprint hash; conversation_id id?; response json?; created_at ts
    pk id; unique owner message_id; index conversation_id
agent_pap_connection
    id id; client_id ref; user_id ref; account_ref ref?; status word; scopes json; token_hash hash?
    token_expires_at ts?; metadata json?; created_at ts; updated_at ts; last_used_at ts?
    pk id; unique client_id user_id; unique token_hash; index user_id
"""

GOVERNANCE = """
governance_usage_rollup
    id serial; day date; key hash; tenant_ref ref?; actor_ref ref; agent_name name?; model_id name; purpose word
    requests count; input_tokens count; output_tokens count; cache_write_tokens count; cache_read_tokens count
    cost_nanos nanos; reported_requests count; reported_cost_nanos nanos; estimated_requests count
    estimated_cost_nanos nanos; unpriced_requests count; unpriced_tokens count
    pk id; unique day key; index day; index actor_ref day; index model_id day; index tenant_ref day
governance_usage_day_rollup
    id serial; day date; key hash; tenant_ref ref?; agent_name name?; model_id name; purpose word; actors count
    requests count; input_tokens count; output_tokens count; cache_write_tokens count; cache_read_tokens count
    cost_nanos nanos; reported_requests count; reported_cost_nanos nanos; estimated_requests count
    estimated_cost_nanos nanos; unpriced_requests count; unpriced_tokens count
    pk id; unique day key; index day
governance_thread_usage_rollup
    id serial; day date; key hash; thread_id id; tenant_ref ref?; actor_ref ref; previous_day date?
    requests count; input_tokens count; output_tokens count; cost_nanos nanos; unpriced_requests count
    unpriced_tokens count
    pk id; unique day key; index day; index thread_id day
governance_run_rollup
    id serial; day date; key hash; tenant_ref ref?; agent_name name?; status word; error_code char64?; runs count
    retries count; duration_histogram json; active_histogram json
    pk id; unique day key; index day
governance_tool_rollup
    id serial; day date; key hash; tenant_ref ref?; agent_name name?; tool_name name; tool_type word; status word
    calls count; execution_histogram json
    pk id; unique day key; index day
governance_rollup_day
    id serial; kind word; day date; state word; cut ts?; source_rows count; built_at ts?; time_zone char64?
    histograms json?
    pk id; unique kind day; index day
governance_reprice_audit
    id id; actor_ref ref; reason text; from_at ts?; to_at ts?; model_id name?; include_estimated bool
    rows_priced count; nanos_before nanos; nanos_after nanos; created_at ts
    pk id
governance_digest_mark
    actor_ref ref; told_until ts
    pk actor_ref
"""

# Text columns that are not compared exactly: they are text for people.
FREE_TEXT = {
    ("agent_thread", "title"),
    ("agent_staged_attachment", "name"),
    ("agent_staged_attachment", "content_type"),
    ("agent_staged_attachment", "file"),
}


@dataclass(slots=True)
class Table:
    name: str
    columns: dict[str, tuple[str, bool]] = field(default_factory=dict)  # name -> type, may be NULL
    keys: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)  # pk, unique or index -> columns
    references: dict[str, str] = field(default_factory=dict)  # column -> table


def tables() -> list[Table]:
    read: list[Table] = []
    for line in filter(None, (AGENT + GOVERNANCE).splitlines()):
        if not line.startswith(" "):
            read.append(Table(line))
            continue
        for fact in line.split(";"):
            _note(read[-1], fact.split())
    return read


def _note(table: Table, words: list[str]) -> None:
    if words[0] in {"pk", "unique", "index"}:
        table.keys.add((words[0], tuple(words[1:])))
    elif words[0] == "fk":
        table.references[words[1]] = words[3]
    else:
        name, kind = words
        table.columns[name] = (kind.removesuffix("?"), kind.endswith("?"))
