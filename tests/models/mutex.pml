/*
 * A mutex: its token, its lease, its guarded writes, and a key that is forgotten.
 *
 * Of what: `take_mutex`, `make_mutex`, `lift_mutex`, `renew_mutex`, `release_mutex`, `guard_mutex`, `purge_mutexes`,
 * `raise_mutex_floor` (guards/mutex/postgres/mutexes.sql), `taking` (guards/mutex/taking.py),
 * `Belief` (db/leases.py), `Hold` (guards/mutex/hold.py).
 *
 * Users take one mutex, each take under an id of its own, rely on it, write under its guard, renew it and give it back.
 * Each may stop between any two steps, or for ever, and any answer may be late. The row is forgotten when it is old.
 *
 * Shown: 1. While a user relies on its take, nobody else has taken the mutex.
 *        2. Tokens never go back, though the row was forgotten.
 *        3. A guarded write never comes after one of a higher token, nor is it committed after the next take.
 *
 * Time is in steps, as in lease.pml. A jump of the database's clock is left out: the docs say that mutexes go by it alone, and
 * 2. and 3. hold there too, since nothing that they rest on looks at a clock. So are jobs, waiting and an operator's release.
 */

#define STALE    3 /* stale_s */
#define MARGIN   1 /* margin_of(stale_s), and more */
#define DEADLINE (STALE - MARGIN)
#define TAKES    3 /* in one run */

/* The row. A guarded transaction locks it FOR KEY SHARE, and a take passes over it then. */
bool there = false;
byte token = 0, holder = 0; /* holder: the id of a take, 0 for nobody */
short left = -1;            /* until, by the database's clock */
byte shares = 0;
byte floor = 0;

byte takes = 0;
byte highest = 0;           /* of the tokens that were given out */
byte last = 0;              /* the token of the last guarded write that was committed */

/* What the users believe: since their take or renewal was sent that went well; and what is under way. */
byte believed[2] = DEADLINE, asked[2] = DEADLINE;

#define relies(u) (believed[u] < DEADLINE)
#define older(age) age = (age < DEADLINE -> age + 1 : DEADLINE)

#ifdef NO_STALE  /* control: whoever comes may take it */
#define may_take (!locked)
#else
#define may_take (!locked && (holder == 0 || left <= 0))
#endif
#ifdef NO_SHARE  /* control: a guard looks at the token and locks nothing */
#define locked false
#else
#define locked (shares > 0)
#endif
#ifdef NO_TOKEN  /* control: a guard looks whether anybody holds it */
#define guarded(mine) (holder != 0)
#else
#define guarded(mine) (holder != 0 && token == mine)
#endif
#ifdef BY_KEY    /* control: a release or a renewal names the key alone */
#define holds(me, mine) there
#else
#define holds(me, mine) (there && holder == me && token == mine)
#endif

active proctype world() {
    do
    :: d_step { /* time goes on */
        left = (left > -1 -> left - 1 : -1);
        older(believed[0]); older(believed[1]); older(asked[0]); older(asked[1])
       }
    :: d_step { /* purge_mutexes and raise_mutex_floor, one transaction */
        there && left < 0 && !locked ->
        there = false;
#ifndef NO_FLOOR /* control: what was forgotten leaves nothing behind */
        floor = (token > floor -> token : floor);
#endif
        token = 0; holder = 0; left = -1
       }
    od
}

inline given() {
    holder = me; left = STALE; mine = token;
    assert(token > highest);     /* 2. */
    assert(!relies(1 - u));      /* 1. */
    highest = token
}

inline answered() {
#ifdef BELIEF_FROM_ANSWER /* control: the lease counts from the answer */
    believed[u] = 0;
#else
    believed[u] = asked[u];
#endif
    assert(!relies(u) || mine == highest) /* 1. */
}

active [2] proctype user() {
    byte u = _pid - 1, me, mine, seen;
again:
    atomic { takes < TAKES -> takes++; me = takes; mine = 0; asked[u] = 0 }
    do
    :: atomic { /* take_mutex */
        there && may_take -> token++; given()
       } -> break
    :: !there -> seen = floor; /* make_mutex: its snapshot */
       atomic {
        if
        :: !there ->
            there = true; token = seen + 1;
#ifndef NO_LIFT /* control: the token stands as the making saw the floor */
            if :: token <= floor -> token = floor + 1 :: else fi; /* lift_mutex, a later statement */
#endif
            seen = 0; given(); goto taken
        :: else -> seen = 0
        fi
       }
    od;
taken:
    atomic { answered() }
    do
    :: asked[u] = 0; /* renew_mutex is sent */
       if
       :: d_step { holds(me, mine) -> left = STALE }
          atomic { answered() }
       :: !holds(me, mine) -> believed[u] = DEADLINE /* it is told */
       fi
    :: d_step { guarded(mine) -> shares++ } /* guard_mutex, in the user's transaction */
       d_step { /* which commits */
        assert(mine >= last && mine == highest); /* 3. */
        last = mine; shares--
       }
    :: d_step { believed[u] = DEADLINE } /* the block is left, and then release_mutex */
       d_step {
        if
        :: holds(me, mine) -> holder = 0; left = 0
        :: else
        fi
       }
       goto again
    :: goto gone /* it never comes back */
    od;
gone:
    skip
}
