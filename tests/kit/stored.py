"""Rows in every table that statements look through: thousands beside a few that are named, all under one id each.

The n-th job has the id `nth(n)`, and what is stored about it has that id too, or the key `n`. Of the live ones a third
each runs, is queued and waits.
"""

from __future__ import annotations

MANY = 500  # of each state; what is stored about jobs is four times as many rows


def nth(number: int) -> str:
    return f"{number:032x}"


ENDED = 10_000  # behind this number are the finished ones
NAMED = [first + at for first in (200, 700, 1_200, 10_200) for at in range(5)]  # of each state five
HOLDER = nth(7)
ID = "CAST(lpad(to_hex(n), 32, '0') AS uuid)"
LIVE = f"FROM generate_series(1, {3 * MANY}) AS n"
FEW = f"FROM generate_series(1, {MANY}) AS n"
FINISHED = f"FROM generate_series({ENDED + 1}, {ENDED + MANY}) AS n"
ALL = f"FROM (SELECT * FROM generate_series(1, {3 * MANY}) UNION ALL SELECT n {FINISHED}) AS stored (n)"
FILL = (
    f"""INSERT INTO fencerow.jobs (id, queue, name, state, run_at, attempt, attempts_max, crashes_max,
        snoozes_max, submitted_at, args_bytes, args, holder, claimed_at, deadline_at, exclusive, limits,
        gate, affinity, affinity_wait_s, expires_at, scope, key) SELECT {ID}, 'mail', 'send', CASE WHEN n <=
        {MANY} THEN 'running' WHEN n <= {2 * MANY} THEN 'queued' ELSE 'waiting' END, now(), 1, 3, 3, 48,
        now(), 2, '{{}}', CASE WHEN n <= {MANY} THEN '{HOLDER}'::uuid END, CASE WHEN n <= {MANY} THEN now()
        END, CASE WHEN n <= {MANY} THEN now() END, CASE WHEN n%4<>0 THEN n::text END, CASE WHEN n%4 = 0 THEN
        ARRAY[n::text] END, CASE WHEN n > {2 * MANY} AND n % 5 <> 0 THEN 'key:' || n END, CASE WHEN n % 7 = 0
        THEN 'gpu' END, CASE WHEN n % 7 = 0 THEN 0 END, now() + INTERVAL '1 hour', 's', n::text {LIVE}""",
    f"""INSERT INTO fencerow.finished_jobs (id, queue, name, state, run_at, attempt, attempts_max,
        crashes_max, snoozes_max, submitted_at, args_bytes, args, ended_at, period, scope, key) SELECT {ID},
        'mail', 'send', 'failed', now(), 1, 3, 3, 48, now(), 2, '{{}}', now(), 0, 's', n::text FROM
        generate_series(10001, {10000 + MANY}) AS n""",
    f"""INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at, state, ended_at,
        held_until, confirmed_at) SELECT {ID}, 'bot', n, 9, 'send', now(), CASE WHEN n%3>0 THEN 'failed'
        END, CASE WHEN n%3>0 THEN now() END, CASE WHEN n%3>0 THEN now() END, CASE WHEN n%3=2 THEN now() END
        {ALL}""",
    f"""INSERT INTO fencerow.webhook_endpoints (id, name, url, secret, events, with_result, in_order,
        timeout_s, attempts_max, state, created_at, changed_at) SELECT {ID}, n::text, 'u', 's', '[]', false,
        'none', 5, 5, 'enabled', now(), now() {FEW}""",
    f"""INSERT INTO fencerow.webhook_deliveries (endpoint_id, event_id, webhook_id, topic, ended_id, body,
        job_id, created_at, delivered_at) SELECT '{nth(NAMED[0])}', n, 'w', 't', {ID}, '', {ID}, now(), CASE
        WHEN n%2=0 THEN now() END {ALL}""",
    f"""INSERT INTO fencerow.webhook_attempts (endpoint_id, event_id, number, at, took_s) SELECT
        '{nth(NAMED[0])}', n, 1, now(), 1 {ALL}""",
    f"""INSERT INTO fencerow.job_waits (job_id, name, attempt, until, look_at, since, signal) SELECT {ID},
        'send', 1, now(), now(), now(), 'w' {ALL}""",
    f"""INSERT INTO fencerow.job_signals (id, job_id, name, data, sent_at) SELECT {ID}, {ID}, 'w', '1',
        now() {ALL}""",
    f"""INSERT INTO fencerow.job_approvals (id, job_id, signal, asks, digest, made_at, expires_at) SELECT
        {ID}, {ID}, 'w', 'a', n::text, now(), now() {ALL}""",
    f"""INSERT INTO fencerow.job_steps (job_id, name, kind, seq, result, attempt, at) SELECT {ID}, 'send',
        'step', 1, '1', 1, now() {ALL}""",
    f"""INSERT INTO fencerow.worked_attempts (job_id, attempt, digest, sent_at, failures, until, give_up_at,
        silent_s, look_at) SELECT {ID}, 1, 'd', now(), 0, now(), now(), 1, now() {ALL}""",
    f"""INSERT INTO fencerow.schedules (name, entity, kind, job, origin, owner, definition, digest, next_at,
        changed_at, last_job_id) SELECT 'send', n::text, 'entity', 'send', 'code', 'o', '{{}}', 'd', now(),
        now(), {ID} {ALL}""",
    f"""INSERT INTO fencerow.schedule_ticks (name, entity, fire_at, made, job_id, at) SELECT 'send',
        n::text, now(), 'job', {ID}, now() {ALL}""",
    f"""INSERT INTO fencerow.flows (id, name, digest, submit_id, jobs, queues, submitted_at) SELECT {ID},
        n::text, 'd', {ID}, 2, '{{mail}}', now() {ALL}""",
    f"""INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read,
        state, ended_at) SELECT {ID}, {ID}, 'send', 'send', 0, 0, false, false, CASE WHEN n%2=0 THEN
        'failed' END, CASE WHEN n%2=0 THEN now() END {ALL}""",
    f"""INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy, state) SELECT {ID},
        CAST(lpad(to_hex(n+1), 32, '0') AS uuid), {ID}, 'needs', CASE WHEN n%2=0 THEN 'failed' END {ALL}""",
    f"""INSERT INTO fencerow.flow_callbacks (job_id, flow_id, outcome, job) SELECT {ID}, {ID}, 'done',
        '{{}}' {ALL}""",
    f"""INSERT INTO fencerow.flow_waits (job_id, attempt, flow_id) SELECT {ID}, 1, {ID} {ALL}""",
    f"""INSERT INTO fencerow.sagas (undo_id, job_id, job, since) SELECT {ID}, {ID}, '{{}}', now() {ALL}""",
    f"""INSERT INTO fencerow.saga_steps (undo_id, name, seq, undo, result) SELECT {ID}, 'send', 1, 'u', '1'
        {ALL}""",
    f"""INSERT INTO fencerow.unique_jobs (scope, key, job_id, first_at, until_at) SELECT 's', n::text, {ID},
        now(), now() {ALL}""",
    f"""INSERT INTO fencerow.job_output (job_id, last, attempt, chunks, bytes, data, at) SELECT {ID},
        1000001, 1, 1, 1, '[1]', now() {ALL}""",
    f"""INSERT INTO fencerow.keys (scope, key, job_id, fingerprint, lifetime_s, created_at, expires_at)
        SELECT 's', n::text, {ID}, 'f', 1, now(), now() {ALL}""",
    f"""INSERT INTO fencerow.job_events (job_id, attempt, at, kind, detail) SELECT {ID}, 1, now(),
        'replaced', '{{"submit": "x"}}' {ALL}""",
    f"""INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message) SELECT {ID}, 1, now(), 'info',
        'm' {ALL}""",
    f"""INSERT INTO fencerow.job_progress (job_id, attempt, percent, at) SELECT {ID}, 1, 1, now() {ALL}""",
    f"""INSERT INTO fencerow.workers (id, state, name, host, pid, lease_s, registered_at, renewed_at,
        lease_until, info) SELECT {ID}, CASE WHEN n%3=0 THEN 'alive' ELSE 'dead' END, 'send', 'h', 1, 30,
        now(), now(), now()+INTERVAL '1 min', '{{}}' {FEW}""",
    f"""INSERT INTO fencerow.spent_ids SELECT {ID}, 1, now() {ALL}""",
    f"""INSERT INTO fencerow.repeated_ids SELECT {ID}, now() {ALL}""",
    f"""INSERT INTO fencerow.gates (name, next_at) SELECT 'key:'||n, now() {ALL}""",
    f"""INSERT INTO fencerow.gate_arrivals (gate) SELECT 'key:'||n {ALL}""",
    f"""INSERT INTO fencerow.passed_queues SELECT 'key:'||n, 'mail', now(), now() {ALL}""",
    f"""INSERT INTO fencerow.limits (name, definition, set_at) SELECT n::text, '{{}}', now() FROM
        generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.limit_states (name, state, changed_at) SELECT n::text, '{{}}', now() {ALL}""",
    f"""INSERT INTO fencerow.limit_failures (name, at) SELECT n::text, now() {ALL}""",
    f"""INSERT INTO fencerow.mutexes (key, token, stale_s, since, until, host, pid, job_id, attempt) SELECT
        n::text, 1, 9, now(), now(), 'h', 1, {ID}, 1 {ALL}""",
    f"""INSERT INTO fencerow.mutex_deferrals SELECT {ID}, n::text, 1, 1, now() {ALL}""",
    f"""INSERT INTO fencerow.once_keys (scope, key, owner, attempt, token, fingerprint, reserved_at, until,
        expires_at) SELECT 's', n::text, {ID}::text, 1, {ID}, 'f', now(), now(), now() {ALL}""",
    f"""INSERT INTO fencerow.dedupe_windows SELECT 'send', n::text, 'v', {ID}, now() {ALL}""",
    f"""INSERT INTO fencerow.sources (target, source, number, touched_at, until, token, row_count) SELECT
        't', n::text, 1, now(), now(), {ID}, 0 {ALL}""",
    f"""INSERT INTO fencerow.row_leases SELECT 't', 's', n::text, 1, {ID}, 1, now() {ALL}""",
    f"""INSERT INTO fencerow.events (seq, topic, key, bucket, data, bytes, published_at) SELECT CASE WHEN
        n%2=0 THEN n END, 't', n::text, n%256, '1', 1, now() {ALL}""",
    f"""INSERT INTO fencerow.event_groups (name, topics, partitions, outcomes, created_at) SELECT n::text,
        '[]', 4, false, now() {FEW}""",
    f"""INSERT INTO fencerow.event_cursors (grp, part, cursor) SELECT n::text, 0, 1 {ALL}""",
    f"""INSERT INTO fencerow.event_drainers SELECT n::text, {ID}, 'x', now() {ALL}""",
    f"""INSERT INTO fencerow.event_asides (grp, part, seq, event_id, key, deliveries, due_at, parked_at)
        SELECT '{NAMED[0]}', 0, n, n, n::text, 1, now(), CASE WHEN n%2=0 THEN now() END {ALL}""",
    f"""INSERT INTO fencerow.audit (at, person, via, kind, verb, target, detail) SELECT now(), 'p', 'http',
        'job', 'x', n::text, '{{}}' {ALL}""",
    f"""INSERT INTO fencerow.relays SELECT n::text, 'in', 'p', NULL, NULL, now() FROM generate_series(1,
        {MANY}) AS n""",
    f"""INSERT INTO fencerow.relay_parts (relay, part, position) SELECT n::text, 0, '1' {ALL}""",
    f"""INSERT INTO fencerow.relay_readers SELECT n::text, {ID}, 'x', now() {ALL}""",
    f"""INSERT INTO fencerow.relay_unread (relay, part, position, generation, raw, bytes, error, at) SELECT
        '{NAMED[0]}', 0, n::text, 0, 'r', 1, 'e', now() {ALL}""",
    f"""INSERT INTO fencerow.shares SELECT 'mail', n::text, 1, now() {FEW}""",
    f"""INSERT INTO fencerow.queues (name) SELECT n::text {FEW}""",
    f"""INSERT INTO fencerow.api_tokens (id, name, hash, scopes, created_at) SELECT {ID}, n::text,
        lpad(to_hex(n), 64, '0'), '{{read}}', now() {FEW}""",
    f"""INSERT INTO fencerow.hook_tallies (hook, received, repeated, refused) SELECT n::text, 1, 1, 1 FROM
        generate_series(1, {MANY}) AS n""",
)
