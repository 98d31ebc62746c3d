"""Runs that are disturbed: killed before and after each action, and with each action failing once."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow_proof.check.desk import HOLDERS
from fencerow_proof.check.findings import (
    Findings,
    call_action,
    call_differences,
    fault_of,
    shown,
    writers,
)
from fencerow_proof.check.ground import Clean, Ground, Outcome, back_in_s, succeeded
from fencerow_proof.check.kinds import UNDECLARED, Action, Kind
from fencerow_proof.check.places import AT_ITS_END
from fencerow_proof.check.process import Process
from fencerow_proof.check.replace import Watch
from fencerow_proof.check.report import Fault, Finding

UNFAILING = UNDECLARED | {Kind.BEGIN, Kind.ROLLBACK}
LEAVE_NOTHING = (Kind.BEGIN, Kind.READ, Kind.LOCK)
TIMES = {
    Fault.INSERTED_TWICE: "rows are there that one clean run does not make",
    Fault.CHANGED_TWICE: "rows differ from those of one clean run",
    Fault.LEFT_UNDONE: "rows are missing that one clean run makes",
    Fault.RESULT_DIFFERS: "those who wait for it get another one than that of one clean run",
}


def kill_everywhere(ground: Ground, clean: Clean, findings: Findings, watch: Watch) -> int:
    """Kill a run before its first action, between any two, and after its last; run again, and compare.

    After one action is before the next: between them nothing happens that outlives the process. Nor does an action that
    only begins, reads or locks leave anything, so being killed after it is being killed before it.
    """
    points = [number for number in range(len(clean.trace) + 1) if not _comes_to_the_same(clean.trace, number)]
    for number in points:
        ground.say(f"killed before action {number + 1} of {len(clean.trace)}")
        ground.fresh()
        first = ground.first()
        ground.director.run(ground.scratch, first, until=number)
        stopped = _stopped(first, clean)
        ground.bury(first)
        _run_again(ground, clean, findings, first, stopped, watch if number == len(clean.trace) else None)
    return len(clean.trace) + 1


def fail_everywhere(ground: Ground, clean: Clean, findings: Findings) -> int:
    """Let each action fail once: the handler must say so, and its next run must mend it."""
    tried = 0
    for number, action in enumerate(clean.trace):
        if action.kind in UNFAILING or _is_ours([action]):
            continue
        ground.say(f"action {number + 1} of {len(clean.trace)} fails")
        tried += 1
        ground.fresh()
        first = ground.first()
        ground.director.run(ground.scratch, first, until=number)
        if first.pending is not None:
            first.fail()
        ground.director.run(ground.scratch, first)
        ground.bury(first)
        if succeeded(first):
            ground.acknowledge(first, ground.claimed[0], HOLDERS[0])
            _judge_success(ground, clean, findings, first, action)
        else:
            _run_again(ground, clean, findings, first, f"it failed at {shown(action)}", None)
    return tried


def compare(
    ground: Ground,
    clean: Clean,
    found: Outcome,
    findings: Findings,
    actions: Sequence[Action],
    story: Sequence[str],
) -> None:
    """Report what differs, each difference at the statement that brought it about."""
    for difference in ground.differences(clean.outcome, found):
        fault = fault_of(difference)
        to_blame = writers(difference, actions, ground.jobs_table) or writers(
            difference, clean.trace, ground.jobs_table
        )
        action = to_blame[-1] if to_blame else None
        findings.add(
            Finding(
                fault,
                action.place if action else "?",
                action.line if action else "",
                f"{difference.table}: {TIMES[fault]}",
                table=difference.table,
                story=tuple(story),
                rows=tuple(difference.lines()),
            )
        )
    for fault, name in call_differences(clean.outcome.calls, found.calls):
        call = call_action(name, actions, clean.trace)
        what = (
            "the call was made again; give it an idempotency key, such as the job's id, and declare it; "
            "or declare it repeatable, if to make it again does no harm"
            if fault is Fault.CALLED_TWICE
            else "the call was never made, although the job succeeded"
        )
        findings.add(Finding(fault, call.place if call else "?", name, what, story=tuple(story)))


def run_fails(process: Process, findings: Findings, story: Sequence[str]) -> None:
    """The next attempt does not succeed either: the job never will."""
    ended = process.ended
    last = process.trace[-1] if process.trace else None
    findings.add(
        Finding(
            Fault.SECOND_RUN_FAILS,
            (ended.place if ended else None) or (last.place if last else "?"),
            last.line if last else "",
            f"the next attempt fails: {ended.error if ended else 'its process died'}",
            story=tuple(story),
        )
    )


def _run_again(
    ground: Ground, clean: Clean, findings: Findings, first: Process, stopped: str, watch: Watch | None
) -> None:
    processes, story, dead = [first], [f"1st run: {stopped}"], HOLDERS[0]
    for holder in HOLDERS[1:]:
        found = ground.again(dead, holder)
        if found is None:
            break
        process, claimed = found
        processes.append(process)
        if watch is None:
            ground.director.run(ground.scratch, process)
        else:
            watch.run(ground, process)
        ground.bury(process)
        if succeeded(process):
            story.append("next run: to its end")
            ground.acknowledge(process, claimed, holder)
            break
        waits_s = back_in_s(process)
        if waits_s is None or holder == HOLDERS[-1]:
            run_fails(process, findings, story)
            return
        story.append(f"next run: puts the job back for {waits_s:g} s")
        ground.pass_time(waits_s)
        dead = holder
    actions = [*first.trace, *(action for process in processes[1:] for action in process.trace)]
    # Whoever wrote in the first run is to blame before whoever wrote in the second: they are the same lines.
    compare(ground, clean, ground.outcome(processes), findings, actions, story)


def _judge_success(ground: Ground, clean: Clean, findings: Findings, first: Process, action: Action) -> None:
    """A success although something failed is right only if the end is that of a clean run."""
    found = ground.outcome([first])
    differences = ground.differences(clean.outcome, found)
    calls = call_differences(clean.outcome.calls, found.calls)
    if not differences and not calls:
        return
    findings.add(
        Finding(
            Fault.SWALLOWED,
            action.place,
            action.line,
            "it failed, but the job succeeded without what one clean run does",
            story=(f"1st run: failed at {shown(action)}, and ended as a success",),
            rows=tuple(line for each in differences for line in (f"in {each.table}:", *each.lines())),
        )
    )


def _is_ours(actions: Sequence[Action]) -> bool:
    """The statements of a success, which come after the handler and before its COMMIT: they are not its own."""
    return any(action.place == AT_ITS_END and action.kind is not Kind.COMMIT for action in actions)


def _comes_to_the_same(trace: Sequence[Action], number: int) -> bool:
    """Whether a kill before this action leaves what an earlier one does."""
    after_nothing = number > 0 and trace[number - 1].kind in LEAVE_NOTHING
    return (after_nothing and number < len(trace)) or _is_ours(trace[number : number + 1])


def _stopped(process: Process, clean: Clean) -> str:
    if process.pending is not None:
        return f"killed before {shown(process.pending)}"
    if process.is_over:
        return "killed after it had returned, before its success was stored"
    return f"killed after action {len(clean.trace)}"
