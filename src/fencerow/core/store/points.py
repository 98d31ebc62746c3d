"""The points of the core's statements at which wings have a say: `-- at: when jobs have ended` in a wing's file.

What all bring to a point is written out there when the queries are loaded, the core's own first and then the wings' in
their order. So it is one statement, or one script, under the guard of the whole: it happens with it or not at all.
A plan, an explorer and a test read one text. No program of ours composes SQL while it runs.

What may be brought to a point of each kind is said in `db/query_files.py`. It may use the core's fragments. It costs
every job that comes there, so where its own table is empty, one probe must be all.
"""

from __future__ import annotations

from fencerow.db.query_files import Points

POINTS = Points(
    # `ended`: the jobs that leave the live ones, all columns as they end. `revived`: the finished jobs that go back,
    # all columns as they had ended. `moved`: live jobs that may have another state now; on SQLite only their ids. Those
    # of them that are `waiting` wait for something, and may have given up what they had.
    lists=(
        "when jobs have ended",
        "when jobs are revived",
        "when jobs wait again",
        "when attempts have failed",  # of `moved`: on PostgreSQL those that say so (has_failed), on SQLite all
        # Both stand on PostgreSQL: for those of `ended` that succeeded, and for all others. With :alone the statement
        # is a transaction of its own: so it may lock a job that waits (behind `stamped`, and passing over what is
        # locked), and queue it.
        "when attempts have succeeded",
        "when other ends are moved",
    ),
    conditions=(
        "whose end is awaited",  # of one of `ended`: somebody besides a caller waits for its end
        "whose wait is over",  # of `job`, which is suspended: what it waited for has come, so it is to be woken
        "whose turn is over",  # of `job`, whose attempt is over: it gives up what let it run, and waits for that again
        "who needs a turn",  # of the row alone, by names of columns: others may go once it does not run
    ),
    values=(
        "where it waits first",  # the place at which `job` waits before it may run; NULL: it waits for nobody
        # The id of a job that must end before `job`, which has ended, is queued again; NULL: none. What is revived in
        # the same statement (:ids) counts. On PostgreSQL it locks what tells it, so that the next statement knows.
        "what must end before it is revived",
    ),
    # The columns of a job that are a wing's, by their names alone. What a statement reads of `job` has that name.
    items=(
        "columns of wings",  # all of them
        "columns that a submit writes",  # which a revive keeps; but for where it waits
        "values that a submit writes",  # of `job` and `alike`, in the order of these columns
        "what a template says",  # of `given`: what these values read of `alike`
        "fields of a template",  # the same with types, on PostgreSQL
        "columns of a queued submit",  # those of these columns that a job may have which waits for nobody
        "values of a queued submit",  # of `clock`, in the order of these columns
        "what a replaced job begins with",  # as `column = value`, where a wing lets a submit replace it
        "what a claim writes of a given job",  # as `column = value`: of `job` on PostgreSQL, one that waited at a place
        "columns of the moved",  # those that its parts read where jobs wait again or attempts have failed
        "told of a claimed job",  # and read by the worker behind all that is the core's but the lane
        "told of successes",  # of all that an end of attempts queued: JSON, in the first row, of `Requeued` as arrays
        "fields of wings",  # of `job`, as name and value of a JSON object: what is shown of them
    ),
    singles=(
        "where it waits",  # the column of a job that says at which place it waits; NULL: it is suspended
        "where the lanes in turn begin",  # all whose names come behind this: a look tells of them as of one
        "where the lanes in turn end",  # and before this
        "lane it came from",  # of `job`, which was claimed just now: where it stood until then
        # A join: `known`, which has the weight of the lane of `ring`, in the queue :queue.
        "weights of lanes in turn",
    ),
    parameters={  # of the statements in which a point stands
        "weights of lanes in turn": {":queue"},
        "what must end before it is revived": {":ids"},
        "when attempts have succeeded": {":alone"},
    },
)
