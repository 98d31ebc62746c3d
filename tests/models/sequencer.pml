/*
 * The places of events, which are given after the commit.
 *
 * Of what: `append_events` (events/postgres/outbox.sql), `read_settled`, `sequence_events`, `settle_events` (sequencer.sql),
 * `remembered` (events/sequencer.py), `read_events` (consumers.sql).
 *
 * Writers publish one event each, in transactions that commit or roll back. The first two publish under one key, and lock the
 * key's row before they publish (with -DNO_KEY nobody does); the third does not. Two sequencers give places, each by its own memory, and may
 * forget it. A reader goes by the places.
 *
 * Shown: 1. When all is quiet, each event that was committed has a place, and was read.
 *        2. No place is given twice. 3. Events of the key have their places in the order of the commits.
 *
 * A gap is kept as its single ids; that many gaps become one is left out, and so is SQLite, where the id is the place.
 */

#define WRITERS 3
#ifndef LIMIT
#define LIMIT 2 /* events in one look */
#endif
#ifndef SEQUENCERS
#define SEQUENCERS 2
#endif
#define LOOKS (2 - SEQUENCERS) /* of each, beyond those after a commit or a rollback */

mtype = { none, open, committed, aborted };

/* By writer, from 1. Ids are given by a sequence, which no rollback takes back; so are the numbers of transactions. */
mtype is[WRITERS + 1] = none;
byte number[WRITERS + 1] = 0, order[WRITERS + 1] = 0;
byte ids = 0, numbers = 0, commits = 0;
/* By id, from 1: its writer, its place (0: none). */
byte writer_of[WRITERS + 1] = 0, seq[WRITERS + 1] = 0;
byte settled = 0;
bool key_locked = false, sequencing = false;
byte changes = 0;

#if defined(NO_KEY) || defined(NO_KEY_LOCK) /* control: writers of a key do not wait for each other */
#define has_key false
#else
#define has_key (w <= 2)
#endif

inline take_number() { numbers++; number[w] = numbers }
inline take_id() { ids++; writer_of[ids] = w }

active [WRITERS] proctype writer() {
    byte w = _pid + 1;
    atomic {
        !(has_key && key_locked) ->
        is[w] = open;
        if :: has_key -> key_locked = true :: else fi
    }
#ifdef NUMBER_AFTER_ID /* control: an id is taken before the number of the transaction is */
    take_id();
    atomic { take_number() };
#else
    atomic { take_number() };
    atomic { take_id() };
#endif
    atomic {
        if
        :: is[w] = committed; commits++; order[w] = commits
        :: is[w] = aborted
        fi;
        if :: has_key -> key_locked = false :: else fi;
        changes++
    }
}

/* Whether a snapshot that is taken now shows this id. */
#define shown(i) (writer_of[i] > 0 && is[writer_of[i]] == committed)

/* 2. and 3., whenever places were given. `first` and `second` are the ids of the key. */
inline right_places() {
    i = 1;
    do
    :: i <= WRITERS ->
        first = (writer_of[i] == 1 && shown(i) -> i : first);
        second = (writer_of[i] == 2 && shown(i) -> i : second);
        j = i + 1;
        do
        :: j <= WRITERS -> assert(seq[i] == 0 || seq[i] != seq[j]); j++
        :: else -> break
        od;
        i++
    :: else -> break
    od;
#ifndef NO_KEY
    if
    :: first > 0 && second > 0 && order[1] < order[2] ->
        assert(seq[second] == 0 || (seq[first] > 0 && seq[first] < seq[second]))
    :: first > 0 && second > 0 && order[2] < order[1] ->
        assert(seq[first] == 0 || (seq[second] > 0 && seq[second] < seq[first]))
    :: else
    fi;
#endif
    first = 0; second = 0; j = 0
}

#ifdef NO_LOCK /* control: sequencers do not take turns */
#define may_look true
#else
#define may_look (!sequencing)
#endif

active [SEQUENCERS] proctype sequencer() {
    byte mark = 0, gap[WRITERS + 1]; /* the memory. gap: until which number an id is missing; 0: it is no gap */
    bool found[WRITERS + 1], missing[WRITERS + 1];
    byte head, oldest, count, late, last, mine, i, j, first, second, known = 0, looks = LOOKS;
    do
    :: atomic { /* take_lock, a statement of its own; read_settled where there is no memory */
        may_look && (known < changes || looks > 0) ->
        sequencing = true;
        if :: known < changes -> known = changes :: looks > 0 -> looks-- fi;
        if
        :: true
        :: mark > settled ->
            i = 1;
            do :: i <= WRITERS -> gap[i] = 0; i++ :: else -> break od;
            mark = settled
        fi
       }
#ifdef NUMBER_BEFORE_LOOK /* control: the sequencer's own number is taken before its snapshot */
       numbers++; mine = numbers;
#endif
       d_step { /* sequence_events: what its snapshot shows */
        head = 0; count = 0; late = 0; last = 0; oldest = numbers + 1;
        i = 1;
        do
        :: i <= WRITERS ->
            found[i] = false; missing[i] = false;
            head = (seq[i] > head -> seq[i] : head);
            oldest = (is[i] == open && number[i] > 0 && number[i] < oldest -> number[i] : oldest);
            if
#ifndef NO_GAPS /* control: only what lies behind the mark is looked at */
            :: i <= mark && gap[i] > 0 && shown(i) && seq[i] == 0 && count < LIMIT ->
                found[i] = true; count++; late++
#endif
            :: i > mark && shown(i) && seq[i] == 0 && count < LIMIT -> found[i] = true; count++; last = i
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = mark + 1;
        do
        :: i < last -> missing[i] = !shown(i); i++
        :: else -> break
        od
       }
       d_step { /* its change, and the commit */
#ifndef NUMBER_BEFORE_LOOK
        if :: count > 0 -> numbers++; mine = numbers :: else fi;
#endif
        i = 1; count = 0;
        do
        :: i <= WRITERS ->
            if
            :: found[i] -> count++; if :: seq[i] == 0 -> seq[i] = head + count :: else fi
            :: else
            fi;
            i++
        :: else -> break
        od;
        right_places();
        /* remembered */
#ifndef FULL_LOOK_CLOSES /* control: gaps are closed though not all that came in them was placed */
        oldest = (late >= LIMIT -> 0 : oldest);
#endif
        i = 1;
        do
        :: i <= WRITERS ->
            gap[i] = (found[i] || gap[i] <= oldest -> 0 : gap[i]);
            gap[i] = (missing[i] -> mine : gap[i]);
            i++
        :: else -> break
        od;
        mark = (last > mark -> last : mark);
        /* settle_events: up to the first gap */
        i = 1;
        do :: i <= mark && gap[i] == 0 -> i++ :: else -> break od;
        settled = (i - 1 > settled -> i - 1 : settled);
        known = (count >= LIMIT && known > 0 -> known - 1 : known); /* there may be more */
        sequencing = false;
        mine = 0; count = 0; late = 0; last = 0; oldest = 0; head = 0; i = 0
       }
    od
}

#ifdef READER
#ifdef BY_ID /* control: a reader goes by the ids */
#define place(i) (shown(i) -> i : 0)
#else
#define place(i) seq[i]
#endif
#define is_done(i) (seq[i] > 0 && was_read[i])

bool was_read[WRITERS + 1];

active proctype reader() {
    byte cursor = 0, next, i;
    do
    :: d_step { /* read_events: the next place after the cursor */
        place(1) > cursor || place(2) > cursor || place(3) > cursor ->
        next = 0;
        i = 1;
        do
        :: i <= WRITERS ->
            next = (place(i) > cursor && (next == 0 || place(i) < place(next)) -> i : next);
            i++
        :: else -> break
        od;
        cursor = place(next); was_read[next] = true; next = 0; i = 0
       }
    od
}
#else
#define is_done(i) (seq[i] > 0)
#endif

/* 1. */
active proctype end() {
    byte i = 1;
    timeout;
    do
    :: i <= WRITERS -> assert(!shown(i) || is_done(i)); i++
    :: else -> break
    od
}
