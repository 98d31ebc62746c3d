/*
 * A job, the attempts that run it, and the death of their workers.
 *
 * Of what: `claim`, `succeed`, `fail`, `requeue` with their fence (core/store/postgres/claim.sql, finish.sql), `reclaim`,
 * `dead_holders`, `lost_holders`, `adopt`, `time_out` (reap.sql), `forget_workers` (retention.sql), `holdings` (workers.sql), what a worker does
 * with a claim and with its list of holdings (`Life.claimed` in core/worker/life.py, `Control._compare` in core/worker/control.py).
 *
 * Two workers claim one job and run it. Any worker may be declared dead at any moment, whether it lives or not: when that
 * may happen is the model of the lease. An attempt runs in a process of its own, so it may be paused and write late,
 * also after the same worker has claimed the job anew. Answers are lost, attempts are called overdue, rows of the dead are
 * forgotten, and once the database loses what it had confirmed since the job was accepted.
 *
 * Shown: 1. What is written is the outcome of the attempt that holds the job; nobody else's changes anything.
 *        2. The job ends once. 3. Two runs never share one fence. 4. However it goes, the job ends.
 *
 * Time is left out: whatever may happen later may happen now. So are cancels, snoozes, several jobs, and the turn or the
 * label for which a job waits before it is queued or claimed again.
 */

#ifndef FAULTS
#define FAULTS 3 /* how many of them in one run; one outcome may fail besides */
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#define ROWS (1 + 2 * WORKERS + FAULTS)
#define FAILURES 2 /* attempts_max */

mtype = { queued, running, succeeded, failed };
mtype = { none, alive, dead };

mtype job = queued;
byte attempt = 0, holder = 0, failures = 0, ends = 0;
mtype row[ROWS] = none; /* of workers, by the id of their registration; 0 is nobody's */
byte registered = 0;
byte faults = FAULTS;
bool halted = false, gone_back = false, announced = false;
bool under_way[ROWS * 5] = false;

#define place(h, a) ((h) * 5 + (a))

#ifdef NO_ATTEMPT /* control: the fence names the worker alone */
#define held_by(h, a) (job == running && holder == h)
#elif defined(NO_HOLDER) /* control: it names the attempt alone */
#define held_by(h, a) (job == running && attempt == a)
#else
#define held_by(h, a) (job == running && holder == h && attempt == a)
#endif

#ifdef SWEPT_ONCE /* control: a reaper looks for what the dead hold when one has died, and not at every sweep */
#define swept announced
#else
#define swept true
#endif

#define is_truly(h, a) (job == running && holder == h && attempt == a)
#define is_over (job == succeeded || job == failed)

inline give_back() { job = queued; holder = 0 }

inline finish(how) { job = how; ends++; assert(ends == 1) /* 2. */ }

/* One attempt in its worker: it runs, ends, and writes; with a lost answer it writes again. */
proctype run_of(byte h; byte a) {
    do
    :: atomic {
        if
        :: held_by(h, a) ->
            assert(is_truly(h, a)); /* 1. */
            if
            :: finish(succeeded)
            :: failures + 1 >= FAILURES -> failures++; finish(failed)
            :: failures + 1 < FAILURES -> failures++; give_back()
            fi
        :: else
        fi;
        if
        :: under_way[place(h, a)] = false; break
        :: faults > 0 -> faults-- /* the answer is lost */
        fi
       }
    od
}

active [WORKERS] proctype worker() {
    byte me = 0, stranger = 0;
    bool claiming = false;
    do
    :: halted -> break
    :: atomic { /* register: at the start, and when a renewal was refused */
        row[me] != alive && !claiming && !is_over -> registered++; me = registered; row[me] = alive; stranger = 0
       }
    :: atomic { /* claim: the rows of workers are seen as they were when the statement began */
        job == queued && row[me] == alive && !claiming -> claiming = true
       }
    :: atomic {
        claiming ->
        claiming = false;
        if
        :: job == queued ->
            job = running; attempt++; holder = me;
            if
            :: faults > 0 -> faults-- /* its answer is lost */
            :: true ->
                if
#ifdef NO_TWICE /* control: whatever a claim brings is run */
                :: true ->
#else
                :: !under_way[place(me, attempt)] ->
#endif
                    assert(!under_way[place(me, attempt)]); /* 3. */
                    under_way[place(me, attempt)] = true;
                    run run_of(me, attempt)
                :: else /* the database has gone back: what runs goes on, it is the holder again */
                fi
            fi
        :: else
        fi
       }
#ifndef NO_COMPARE /* control: nobody compares what a worker holds with what it knows */
    :: atomic { /* holdings, after a renewal */
        stranger == 0 && !claiming && row[me] == alive && job == running && holder == me &&
        !under_way[place(me, attempt)] -> stranger = attempt
       }
    :: atomic { /* requeue, under the fence */
        stranger > 0 ->
        if
        :: held_by(me, stranger) -> assert(is_truly(me, stranger)); give_back()
        :: else
        fi;
        stranger = 0
       }
#endif
    od
}

active proctype reaper() {
    byte found = 0, overdue_h = 0, overdue_a = 0;
#ifdef ANTI_JOIN
    byte each = 0;
    bool living[ROWS] = false;
#endif
    do
    :: halted -> break
    :: atomic { /* dead_holders, at every sweep */
        found == 0 && job == running && row[holder] == dead && swept -> found = holder; announced = false;
#ifdef ANTI_JOIN
        do
        :: each < ROWS -> living[each] = (row[each] == alive); each++
        :: else -> each = 0; break
        od
#endif
       }
    :: atomic { /* reclaim. Guard: running under this holder, named by value */
        found > 0 ->
        if
#ifdef ANTI_JOIN /* control: under a holder that is not among the living, as they were when the statement began */
        :: job == running && !living[holder] ->
#else
        :: job == running && holder == found ->
#endif
            assert(row[holder] != alive);
            give_back()
        :: else
        fi;
        found = 0
       }
#ifndef NO_ADOPT /* control: a holder without a row is nobody's business */
    :: atomic { job == running && row[holder] == none -> row[holder] = dead }
#endif
    :: atomic { /* a worker calls an attempt overdue with its renewal */
        faults > 0 && overdue_h == 0 && job == running && row[holder] == alive ->
        faults--; overdue_h = holder; overdue_a = attempt
       }
    :: atomic { /* time_out. Guard: the holder is alive, and the fence */
        overdue_h > 0 ->
        if
        :: row[overdue_h] == alive && held_by(overdue_h, overdue_a) ->
            assert(is_truly(overdue_h, overdue_a)); give_back()
        :: else
        fi;
        overdue_h = 0; overdue_a = 0
       }
    od
}

active proctype world() {
    byte each = 1;
    do
    :: halted -> break
    :: atomic { /* die: somebody; forget_workers: somebody who holds nothing */
        faults > 0 && registered > 0 ->
        each = 1;
        do
        :: each < registered -> each++
        :: break
        od;
        if
        :: row[each] == alive -> row[each] = dead; announced = true; faults--
        :: row[each] == dead && !(job == running && holder == each) -> row[each] = none
        :: else -> faults--
        fi;
        each = 1
       }
    :: faults > 0 -> faults = 0 /* that was all */
    :: atomic { /* a standby is promoted that knows of no claim, and perhaps of no worker */
        faults > 0 && !gone_back ->
        gone_back = true; faults--;
        job = queued; attempt = 0; holder = 0; failures = 0; ends = 0;
        if
        :: true
        :: each = 1;
           do
           :: each < ROWS -> row[each] = none; each++
           :: else -> each = 1; break
           od
        fi
       }
    od
}

/* When nothing more can happen, the job has ended. That something stops happening is shown by the search for cycles. */
active proctype end() {
    timeout -> assert(is_over);
    halted = true
}
