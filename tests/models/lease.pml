/*
 * The lease of a worker, and who may declare it dead.
 *
 * Of what: `renew` (core/store/postgres/workers.sql), `die` (reap.sql), `WorkerLease` (core/worker/lease.py), `Reaper`
 * (core/background/reaper.py), `Executor.refused_start` (core/worker/executor.py).
 *
 * A worker, the holder, renews its lease in the database. Another, the judge, renews its own, and declares the holder
 * dead when its row is late. The judge may be paused between any two steps, and each of its statements and answers may
 * be held up. The database's clock jumps ahead once, by more than a lease.
 *
 * Two properties, each with a holder that makes it hardest:
 *   -DBUSY  The holder is late as it likes. While it believes in its lease, and so may start a job, nobody has declared it
 *           dead.
 *   else    The holder renews as soon as the database answers, which goes away and comes back. Nobody declares it dead.
 *
 * Time is in steps of some seconds. A moment of the past is kept as its age, one to come as what is left of it; what is old
 * enough gets no older. So there are few states. A clock that goes back is not modelled, and no worker registers: see
 * tests/core/worker/test_burying.py. The look of `die` at the judge's own row adds nothing here to the end of the verdict:
 * tests/proof/race/test_reap.py takes out each alone.
 */

#define LEASE    3 /* lease_s, as short as the configuration lets it be: one renewal each step */
#ifdef LONG_GAP    /* control: a judge overlooks an outage of 2.5 renew_s */
#define GAP      2
#else
#define GAP      1 /* half a lease: a renewal that is later ends the gapless run */
#endif
#define MARGIN   1 /* margin_of(lease_s), and more */
#define DEADLINE (LEASE - MARGIN)
#define OLD      (LEASE + 1) /* nothing gets older than this */

mtype = { resting, sent, written }; /* of a renewal: none, on its way, its answer on its way */

bool up = true, was_up = true; /* the database answers; it did at some moment of this step */
bool jumped = false;

/* The holder. `missed`: steps in which the database answered, since the last renewal was written. */
bool dead = false;
short row_left = LEASE; /* lease_until, by the database's clock */
byte missed = 0;
byte believed = 0;      /* since that renewal was sent that was answered last */
byte asked = 0;         /* since the one under way was sent */
mtype holder_is = resting;

#ifdef NO_DEADLINE /* control: it relies on its lease until it is told otherwise */
#define believes true
#else
#define believes (believed < DEADLINE)
#endif

/* The judge: `_renewed_at`, `_gapless_since`, `_renewed_us` of its Lease, and its renewal under way. */
byte renewed = 0;
short gapless = 0;      /* below 0: it begins in the future */
byte renewed_us = 0;    /* by the database's clock */
byte replied = 0;       /* since the last answer; fixed when a renewal is sent */
byte judge_asked = 0, passed = 0, written_us = 0;
bool broken = false;    /* the renewal under way will end the gapless run */
mtype judge_is = resting;

bool verdict = false;   /* `die` is on its way */
short until = -1;       /* its end, by the database's clock */

#define longer(age, by) age = (age + by < OLD -> age + by : OLD)
#define less(left, by)  left = (left - by > -1 -> left - by : -1)
#define later(age)      longer(age, 1)

inline database_clock(by) {
    less(row_left, by);
    less(until, by);
    longer(renewed_us, by);
    if :: judge_is == written -> longer(written_us, by) :: else fi
}

inline rest() { judge_is = resting; judge_asked = 0; passed = 0; written_us = 0; broken = false; replied = 0 }

active proctype world() {
    do
    :: d_step { /* time goes on */
        missed = (was_up && missed < 2 -> missed + 1 : missed);
        was_up = up;
        believed = (believed < DEADLINE -> believed + 1 : DEADLINE);
        if :: holder_is != resting -> later(asked) :: else fi;
        later(renewed);
        if :: judge_is == resting -> later(replied) :: else -> later(judge_asked) fi;
        gapless = (gapless < LEASE -> gapless + 1 : LEASE);
        database_clock(1)
       }
    :: d_step { !jumped -> jumped = true; database_clock(OLD) }
#ifndef BUSY
    :: d_step { up -> up = false }
    :: d_step { !up -> up = true; was_up = true }
#endif
    od
}

active proctype holder() {
    do
#ifdef BUSY
    :: d_step { holder_is == resting && !dead -> holder_is = sent }
    :: d_step { /* renew. Guard: alive */
        holder_is == sent && !dead -> row_left = LEASE; holder_is = written
       }
    :: d_step { /* the answer: Lease.renewed */
        holder_is == written ->
#ifdef BELIEF_FROM_ANSWER /* control: the lease counts from the answer */
        believed = 0;
#else
        believed = (asked < DEADLINE -> asked : DEADLINE);
#endif
        asked = 0; holder_is = resting;
        assert(!(dead && believes))
       }
    :: d_step { holder_is != resting -> holder_is = resting; asked = 0 } /* no answer */
#else
    :: d_step { up && !dead && (missed > 0 || row_left < LEASE) -> row_left = LEASE; missed = 0 }
#endif
    od
}

active proctype judge() {
    do
    :: d_step { /* the gap between this renewal and the last shows when it is sent */
        judge_is == resting ->
        judge_is = sent;
#ifndef NO_GAP  /* control: a renewal may be as late as it likes */
        broken = renewed > GAP
#endif
       }
    :: d_step {
        judge_is == sent && up ->
        judge_is = written; passed = renewed_us;
#ifndef NO_LOOK /* control: nobody compares the clocks, _may_have_jumped */
        broken = broken || passed - replied > MARGIN
#endif
       }
    :: d_step { /* the answer: Lease.renewed */
        judge_is == written ->
#ifndef NO_LOOK
        broken = broken || renewed - passed > MARGIN;
#endif
        if
        :: broken ->
#ifdef GAPLESS_FROM_SENT /* control: the run counts from before the renewal was sent that found the gap */
            gapless = (judge_asked < LEASE -> judge_asked : LEASE)
#else
            gapless = 0
#endif
        :: else
        fi;
        renewed = judge_asked; renewed_us = written_us; rest()
       }
    :: d_step { /* no answer: Lease.stumbled */
        judge_is != resting -> gapless = -GAP; rest()
       }
    od
}

#ifdef NO_RUN /* control: one renewal that went well is enough */
#define may_judge (renewed < DEADLINE)
#else
#define may_judge (renewed < DEADLINE && gapless >= LEASE)
#endif

active proctype reaper() {
    do
    :: d_step { /* Lease.warrant: for a margin from now on, and no longer than without a gap */
        !verdict && may_judge && !dead ->
        verdict = true;
        until = (renewed + MARGIN < GAP -> renewed + MARGIN : GAP) - renewed_us;
        until = (until < 0 -> -1 : until)
       }
    :: d_step { /* die. Guard: past its lease, and the verdict has not ended */
        verdict && up ->
        if
#ifdef NO_END /* control: a verdict holds for ever */
        :: row_left < 0 ->
#else
        :: row_left < 0 && until > 0 ->
#endif
            dead = true;
#ifdef BUSY
            assert(!believes)
#else
            assert(missed > 1)
#endif
        :: else
        fi;
        verdict = false; until = -1
       }
    od
}
