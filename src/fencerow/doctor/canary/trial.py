"""What a canary has measured: its steps, and how they compare with what is promised. Pure."""

from __future__ import annotations

import msgspec

# Between the end of a lease and its row lie two statements, which a busy database lets wait.
SLACK_S = 2.0


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One canary, as far as it came. Instants are microseconds since 1970 by the database's clock; None: not reached.

    `reclaimed_by`: the worker whose sweep took it back. `lease_s`, `sweep_s`: the settings that promise the bound.
    `trouble`: why it came no further.
    """

    job_id: str
    lease_s: float
    sweep_s: float
    sent_us: int
    claimed_us: int | None = None
    killed_us: int | None = None
    reclaimed_us: int | None = None
    reclaimed_by: str | None = None
    taken_us: int | None = None
    done_us: int | None = None
    trouble: str | None = None

    @property
    def bound_s(self) -> float:
        """Within what time the work of a dead worker is promised to be back."""
        return self.lease_s + self.sweep_s

    @property
    def recovery_s(self) -> float | None:
        """How long it took from the kill until the job could be claimed again."""
        if self.killed_us is None or self.reclaimed_us is None:
            return None
        return (self.reclaimed_us - self.killed_us) / 1e6

    @property
    def holds(self) -> bool:
        """Whether it came back within the bound, and ended."""
        came = self.recovery_s
        return self.done_us is not None and came is not None and came <= self.bound_s + SLACK_S

    @property
    def steps(self) -> list[tuple[str, int, str]]:
        """The steps that it has reached: what, when, and what there is to say of it."""
        by = f"by {self.reclaimed_by}" if self.reclaimed_by else ""
        reached = (
            ("sent", self.sent_us, ""),
            ("claimed", self.claimed_us, "by a worker process of its own"),
            ("killed", self.killed_us, "that process, by SIGKILL"),
            ("reclaimed", self.reclaimed_us, by),
            ("claimed again", self.taken_us, "by the next process of its own"),
            ("done", self.done_us, ""),
        )
        return [(name, at_us, note) for name, at_us, note in reached if at_us is not None]

    @property
    def told(self) -> str:
        """The measured bound beside the promised one, in a sentence."""
        promised = f"promised are {self.bound_s:g} s (lease_s {self.lease_s:g} + sweep_s {self.sweep_s:g})"
        if self.recovery_s is None:
            return f"not measured: {self.trouble or 'it is under way'}; {promised}"
        whole_s = (self.done_us - self.sent_us) / 1e6 if self.done_us is not None else None
        whole = f", {whole_s:.1f} s from the submit to its end" if whole_s is not None else ""
        return f"{self.recovery_s:.1f} s from the kill to the reclaim{whole}; {promised}"
