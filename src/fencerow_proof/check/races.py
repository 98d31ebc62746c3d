"""Two runs side by side, in every order of the actions that touch a common table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow_proof.check.desk import HOLDERS
from fencerow_proof.check.findings import (
    Findings,
    call_action,
    call_differences,
    fault_of,
    names_one,
    readers,
    writers,
)
from fencerow_proof.check.ground import Clean, Ground, Outcome, back_in_s, succeeded
from fencerow_proof.check.kinds import Action
from fencerow_proof.check.process import Process
from fencerow_proof.check.replace import replaced
from fencerow_proof.check.report import Fault, Finding
from fencerow_proof.check.runner import Runner, all_of
from fencerow_proof.check.side_by_side import SideBySide
from fencerow_proof.check.trials import TIMES, run_fails
from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.orders import Choose, Counted, OrderImpossible, play_reduced, play_sample
from fencerow_proof.explorer.playing import play

STORY_MAX = 24


@dataclass
class Race:
    """Two attempts of one job, one of which was thought dead; or, with `two_jobs`, two jobs with the same arguments."""

    ground: Ground
    clean: Clean
    wanted: Sequence[Outcome]  # each is right in the end
    findings: Findings
    two_jobs: bool = False

    def play_all(self, limit: int) -> Counted:
        """Play every order that matters, or a sample of so many."""
        try:
            whole = play_reduced(self._play, limit=limit)
        except OrderImpossible:
            whole = None  # who may go next depends on timing here, so that no order can be taken up again
        if whole is not None:
            return Counted(whole, whole, reduced=True)
        return play_sample(self._play, limit=max(1, limit // 2), seed=self.ground.options.seed)

    def _play(self, choose: Choose) -> list[str]:
        ground = self.ground
        ground.fresh()
        first = Runner("1st run", ground, HOLDERS[0], ground.first())
        second = (
            Runner("2nd run", ground, HOLDERS[0], ground.first(1), job=1)
            if self.two_jobs
            else Runner("2nd run", ground, HOLDERS[1], None)
        )
        order: list[str] = []
        story: list[str] = []
        common = all_of(self.clean.trace)
        common = Footprint(common.reads, common.writes | {ground.jobs_table})
        try:
            play(SideBySide(ground, first, second, common, story), choose, order)
            more = self._finish_left(story)
            processes = [each for each in (first.process, second.process) if each is not None]
            if more is not None:
                processes += more
                self._judge(processes, story)
        finally:
            for runner in (first, second):
                if runner.process is not None:
                    runner.process.kill()
        return order

    def _finish_left(self, story: list[str]) -> list[Process] | None:
        """What is not done when both are over is tried again, as a worker would; None when that fails as well."""
        found: list[Process] = []
        dead = [HOLDERS[0], HOLDERS[1]]
        failures = 0
        for holder in HOLDERS[2:]:
            left = next(filter(None, (self.ground.again(each, holder) for each in dead)), None)
            if left is None:
                return found
            process, claimed = left
            self.ground.director.run(self.ground.scratch, process)
            self.ground.bury(process)
            found.append(process)
            dead.append(holder)
            if succeeded(process):
                story.append("next run: succeeds")
                self.ground.acknowledge(process, claimed, holder)
                continue
            waits_s = back_in_s(process)
            if waits_s is not None:
                story.append(f"next run: puts the job back for {waits_s:g} s")
                self.ground.pass_time(waits_s)
                continue
            failures += 1
            if failures > 1:
                run_fails(process, self.findings, _short(story))
                return None
        return found

    def _judge(self, processes: list[Process], story: list[str]) -> None:
        found = self.ground.outcome(processes)
        wanted = min(self.wanted, key=lambda each: self._distance(each, found))
        actions = [action for process in processes for action in process.trace]
        for difference in self.ground.differences(wanted, found):
            to_blame = writers(difference, actions, self.ground.jobs_table) or writers(
                difference, self.clean.trace, self.ground.jobs_table
            )
            action = to_blame[-1] if to_blame else None
            read = readers(actions, action) if action else []
            deleted = [
                action
                for name, action in replaced(self.clean.trace).items()
                if names_one(difference.table, [name])
            ]
            self.findings.add(
                Finding(
                    Fault.REPLACE_RACES if deleted else Fault.RACE,
                    action.place if action else "?",
                    action.line if action else "",
                    f"{difference.table}: side by side, {TIMES[fault_of(difference)]}",
                    table=difference.table,
                    related=_places([*deleted, *read], action),
                    story=_short(story),
                    rows=tuple(difference.lines()),
                )
            )
        for fault, name in call_differences(wanted.calls, found.calls):
            call = call_action(name, actions, self.clean.trace)
            what = (
                "side by side the call is made more often"
                if fault is Fault.CALLED_TWICE
                else "the call is not made"
            )
            self.findings.add(Finding(fault, call.place if call else "?", name, what, story=_short(story)))

    def _distance(self, wanted: Outcome, found: Outcome) -> int:
        return len(self.ground.differences(wanted, found)) + len(
            list(call_differences(wanted.calls, found.calls))
        )


def _places(actions: list[Action], but: Action | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.place for each in actions if but is None or each.place != but.place))


def _short(story: list[str]) -> tuple[str, ...]:
    if len(story) <= STORY_MAX:
        return tuple(story)
    return (*story[:STORY_MAX], f"and {len(story) - STORY_MAX} more moves")
