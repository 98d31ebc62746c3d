/*
 * Who is suspect when a worker dies.
 *
 * Of what: `StartLimit` (core/worker/roster.py), `Control.stated`, `Control.on_renewed` (core/worker/control.py), `renew`
 * (core/store/postgres/workers.sql), `reclaim` (reap.sql), `lock_suspects` and `claim_suspect` (claim.sql).
 *
 * A worker claims the jobs of one lane and starts them in that order, no more at once than its row says. Each renewal states
 * the limit, and its answer grants a higher one. The answer to a claim may be lost: then the worker holds what it does not know.
 * It dies at any moment. Its jobs are taken back one after the other, and then tried by another worker, in which two
 * claimers look for suspects.
 *
 * Shown: 1. Each job that may have begun is a suspect.
 *        2. There are no more suspects than the row says may have begun.
 *        3. The next worker holds no more suspects at once than it may.
 *
 * Left out: the database's clock, which may put claims in another order; lanes, names and time limits (there is one of
 * each); what becomes of a suspect, see tests/core/worker/test_suspects.py.
 */

#define JOBS    4
#define AT_MOST 1 /* suspects at once, at first */
#define NOTHING 0 /* what a row states that says nothing: all may have begun */

mtype = { queued, running, ended };

/* By job, from 1, which is also the order of their claims. */
mtype job[JOBS + 1] = queued;
bool known[JOBS + 1] = false, begun[JOBS + 1] = false, suspect[JOBS + 1] = false, held[JOBS + 1] = false;

byte row = 1;              /* begun_max, on the worker's row */
byte granted = 1, wanted = 1;
byte stated;               /* by the renewal under way */
byte doubts = 0;
bool withheld = false, renewing = false, written = false, compared = false;
bool dead = false;
byte lost = 1;             /* answers that may be lost */
bool locked = false;       /* by a claimer of suspects */
bool taken_back = false;

#define started(i) (begun[i] && job[i] == running -> 1 : 0)
#define count (started(1) + started(2) + started(3) + started(4))
#define unknown(i) (job[i] == running && !known[i])
#define any_unknown (unknown(1) || unknown(2) || unknown(3) || unknown(4))

#ifdef NO_DOUBT   /* control: a lost answer is no reason to wait */
#define waits false
#else
#define waits withheld
#endif

active proctype worker() {
    byte i;
    do
    :: dead -> break
    :: atomic { /* claim: the next of the lane */
        !dead && (job[1] == queued || job[2] == queued || job[3] == queued || job[4] == queued) ->
        i = 1;
        do :: job[i] != queued -> i++ :: else -> break od;
        job[i] = running;
        if
        :: known[i] = true
        :: lost > 0 -> lost--; doubts = 2; withheld = true
        fi;
        i = 0
       }
    :: atomic { /* a slot takes the first that waits: StartLimit.room */
        !dead && !waits && count < granted &&
        ((known[1] && !begun[1]) || (known[2] && !begun[2]) || (known[3] && !begun[3]) || (known[4] && !begun[4])) ->
        i = 1;
        do :: !known[i] || begun[i] -> i++ :: else -> break od;
        begun[i] = true;
        i = 0
       }
    :: atomic { /* one ends, and that is confirmed */
        !dead && count > 0 ->
        i = 1;
        do :: started(i) == 0 -> i++ :: else -> break od;
        do
        :: i < JOBS -> i++
        :: started(i) == 1 -> job[i] = ended; break
        :: started(i) == 0 && i == JOBS -> break
        od;
        i = 0
       }
    :: atomic { /* there is no room: a higher limit is wanted */
        !dead && count >= granted && wanted == granted && granted < 2 -> wanted = 2;
#ifdef GRANTED_AT_ONCE /* control: a higher limit holds before the row has it */
        granted = 2
#endif
       }
    :: atomic { /* far away: a lower one holds before the row has it */
        !dead && granted == wanted && granted > 1 && count == 0 -> granted = 1; wanted = 1
       }
    od
}

active proctype keeper() {
    byte i;
    do
    :: dead -> break
    :: atomic { /* a renewal is sent */
        !dead && !renewing -> renewing = true; stated = (doubts > 0 || withheld -> NOTHING : wanted)
       }
    :: atomic { renewing && !written && !dead -> row = stated; written = true }
    :: atomic { /* StartLimit.confirmed */
        written && !dead ->
        if
        :: stated == NOTHING -> withheld = false
        :: stated > granted && stated <= wanted -> granted = stated
        :: else
        fi;
        renewing = false; written = false; compared = false
       }
    :: atomic { /* holdings: what is unknown is let go, what is not lets the doubt sink */
        !dead && !compared && doubts > 0 ->
        compared = true;
        if
        :: any_unknown ->
            doubts = 2;
            i = 1;
            do
            :: i <= JOBS -> job[i] = (unknown(i) -> ended : job[i]); i++ /* it is another's */
            :: else -> break
            od;
            i = 0
        :: else -> doubts--
        fi
       }
    od
}

#define in_line(i, me) (i <= me && job[i] == running -> 1 : 0)
#define position(me) (in_line(1, me) + in_line(2, me) + in_line(3, me) + in_line(4, me))
#define waited(i) (job[i] == running && row != NOTHING && position(i) > row)
#define any_waited (waited(1) || waited(2) || waited(3) || waited(4))
#define any_left (job[1] == running || job[2] == running || job[3] == running || job[4] == running)

#ifdef FRONT_FIRST /* control: a batch takes the first of the line, and the others move up */
#define comes_first(i) (job[i] == running)
#else
#define comes_first(i) (job[i] == running && (waited(i) || !any_waited))
#endif

active proctype reaper() {
    byte i, suspects = 0;
    dead = true;
    do
    :: atomic { /* reclaim, in batches of one */
        any_left ->
        i = 1;
        do :: !comes_first(i) -> i++ :: else -> break od;
        assert(!(begun[i] && waited(i))); /* 1. */
        suspects = suspects + (waited(i) -> 0 : 1);
        suspect[i] = !waited(i);
        assert(row == NOTHING || suspects <= row); /* 2. */
        job[i] = queued; known[i] = false;
        i = 0
       }
    :: !any_left -> break
    od;
    taken_back = true
}

#ifdef NO_TURNS /* control: the claims of suspects do not take turns */
#define my_turn true
#else
#define my_turn (!locked)
#endif
#define is_held(i) (held[i] -> 1 : 0)
#define all_held (is_held(1) + is_held(2) + is_held(3) + is_held(4))
#define waiting(i) (suspect[i] && job[i] == queued)

active [2] proctype claimer() {
    byte i, counted;
    taken_back;
    do
    :: atomic { /* lock_suspects, a statement of its own */
        my_turn && (waiting(1) || waiting(2) || waiting(3) || waiting(4)) -> locked = true
       }
       counted = all_held; /* claim_suspect looks */
       atomic { /* and takes */
        i = 1;
        do :: i <= JOBS && !waiting(i) -> i++ :: else -> break od;
        if
        :: i <= JOBS && counted < AT_MOST -> job[i] = running; held[i] = true
        :: else
        fi;
        locked = false; i = 0; counted = 0;
        assert(all_held <= AT_MOST) /* 3. */
       }
    :: atomic { /* one that is held has ended */
        all_held > 0 ->
        i = 1;
        do :: !held[i] -> i++ :: else -> break od;
        held[i] = false; job[i] = ended; i = 0
       }
    od
}
