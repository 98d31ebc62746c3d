"""What a running job is given for durable steps: steps, sleeps, waits for signals and people, and `patched`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from fencerow.core.answering import answer
from fencerow.core.errors import InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.control import check_delay
from fencerow.core.model.instants import instant_us
from fencerow.core.model.seconds import Seconds
from fencerow.db.text import check_text, shown
from fencerow.steps.performing import Performs

if TYPE_CHECKING:
    from fencerow.steps.approvals import Approval
    from fencerow.steps.asking import ApprovalAnswer, Question
    from fencerow.steps.memory import Beside

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

RETRIES_MAX = 1_000
STEP_BACKOFF = Backoff(base_s=1.0, cap_s=60.0)


@answer
class StepVerbs(Performs):
    """A running job that remembers.

    In a plain `def` handler a verb returns its value; in an `async def` handler it is awaited. A handler runs again
    from its top after a retry, a crash or a wait: steps that are done answer from memory, and what stands between them
    runs again. So effects belong into steps, and the code between them must come to the same in every run.
    """

    __slots__ = ()

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
    ) -> Awaitable[T]: ...

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], T],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
    ) -> T: ...

    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Any],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
    ) -> Any:
        """The result of `fn(*args)`, remembered across retries and crashes of the job.

            paid = await job.step("charge", charge, order.id)      # in a plain handler without await

        What is remembered is returned without a call. A crash between the end of `fn` and its memory lets it run once
        more, so give other systems an idempotency key, such as `job.id` with the step's name. The result is kept as
        JSON by the type that `fn` declares, and the first run gets it as all later ones do. An error of `fn` is not
        remembered: the next attempt calls it again. `retries`: so often it is called again at once in this attempt,
        with `backoff` between, after errors that may pass. A plain function in an async handler:
        `await job.step("read", asyncio.to_thread, read, path)`.

        Raises:
            StepTwice: this run has asked for a step of this name before.
            StepNotPossible: the job is ephemeral, `job.transaction()` is open, or `fn` is of the wrong kind.
            HistoryMismatch: the job's history has another step at this place.
            StepsSpent: the job remembers 1,000 steps, or 4 MiB of results, already (`steps_max`, `steps_bytes_max`).
            InvalidInput: no step can have such a name; or the result cannot be kept as JSON. Nothing was stored.
            LeaseLost: this attempt no longer holds the job, and nothing was remembered. Stop working on it.
        """
        return self._step(name, fn, args, retries, backoff)

    def _step(
        self,
        name: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        retries: int,
        backoff: Backoff,
        beside: Beside | None = None,
    ) -> Any:
        """`beside`: what is written in the transaction that remembers the step."""
        run = self._run_of(f"job.step({shown(name)})")
        self._check_kind(name, fn)
        if type(retries) is not int or not 0 <= retries <= RETRIES_MAX:
            raise InvalidInput(
                f"retries is {shown(retries)}", f"0 to {RETRIES_MAX} are possible", "correct retries"
            )
        return self._said(lambda history: run.step(history, name, fn, args, retries, backoff, beside))

    @overload
    def step_in_transaction(
        self, name: str, fn: Callable[[Any, *Ts], Awaitable[T]], *args: *Ts
    ) -> Awaitable[T]: ...

    @overload
    def step_in_transaction(self, name: str, fn: Callable[[Any, *Ts], T], *args: *Ts) -> T: ...

    def step_in_transaction(self, name: str, fn: Callable[[Any, *Ts], Any], *args: *Ts) -> Any:
        """A step whose effects on the job's own database and whose memory are one commit: both once, or neither.

            async def book(connection, order): ...      # the driver's own connection: psycopg, or sqlite3

            await job.step_in_transaction("book", book, order.id)

        `fn(connection, *args)` writes on that connection, and neither commits nor rolls back. The job's row is locked
        against a newer attempt meanwhile. On SQLite it holds the file's one write lock, so be quick, and write nothing
        of the job (`job.log` and the like) before it has returned.

        Raises:
            LeaseLost: this attempt no longer holds the job; everything was rolled back. And as `step`.
        """
        return self._step_in_transaction(name, fn, args)

    def _step_in_transaction(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], beside: Beside | None = None
    ) -> Any:
        """`beside`: what is written in that transaction, too."""
        run = self._run_of(f"job.step_in_transaction({shown(name)})")
        self._check_kind(name, fn)
        return self._said(lambda history: run.step_in_transaction(history, name, fn, args, beside))

    def sleep(self, seconds: Seconds, *, name: str = "sleep") -> Awaitable[None]:
        """Sleep without a slot, a lease or a turn: the attempt ends here, and the job goes on in another one.

        The time runs from the first attempt that came here. A further sleep of the same name gets a number: "sleep 2".
        Nothing is spent of attempts and snoozes.

        Raises:
            InvalidInput: it is no number of seconds above 0, up to a year. And as `step`.
        """
        delay_s = check_delay(seconds, "job.sleep(seconds)", zero=False)
        slept: Awaitable[None] = self._wait(name, {"delay_s": delay_s}, f"sleep of {delay_s:g} s")
        return slept

    def sleep_until(self, instant: datetime, *, name: str = "sleep") -> Awaitable[None]:
        """`sleep` until an instant, an aware datetime. One that has passed is no sleep.

        Raises:
            InvalidInput: it has no time zone. And as `step`.
        """
        until_us = instant_us(instant, "job.sleep_until(instant)")
        slept: Awaitable[None] = self._wait(name, {"until_us": until_us}, "sleep")
        return slept

    def wait_for(self, signal: str, timeout_s: Seconds | None = None, *, name: str | None = None) -> Any:
        """The data of a signal, `client.signal(job_id, signal, data)`: of the first that no wait has taken.

        If none is there, the attempt ends here and the job waits without a slot, a lease or a turn, `timeout_s` seconds
        at most. What came is remembered as a step is. A further wait for the same signal takes the next one.

        Raises:
            SignalTimeout: none came in time. This is remembered, too.
            InvalidInput: no signal can have such a name, or `timeout_s` is no number of seconds up to a year. And as
                `step`.
        """
        from fencerow.steps.model import SIGNAL_LENGTH_MAX  # who waits for none never loads it

        check_text(signal, "the name of a signal", SIGNAL_LENGTH_MAX)
        delay_s = None if timeout_s is None else check_delay(timeout_s, "job.wait_for(timeout_s)", zero=False)
        return self._wait(
            f"signal {signal}" if name is None else name,
            {"signal": signal, "delay_s": delay_s},
            f"signal {shown(signal)}",
        )

    def wait_for_approval(
        self,
        asks: str,
        tell: Callable[[Approval], Any],
        *,
        base_url: str,
        timeout_s: Seconds = 7 * 24 * 3600.0,
        name: str = "approval",
    ) -> Any:
        """Ask a person, and wait for the answer without a slot: an `ApprovalAnswer` with `yes`, `by` and `comment`.

            async def tell(asked: Approval) -> None:
                await mail("ada@example.com", asked.address)

            answer = await job.wait_for_approval("Pay 500 EUR?", tell, base_url="https://jobs.example.com")
            if answer.yes: ...

        It is a step, "ask approval", which makes an address below that of a gateway and calls `tell` with it, and then
        a wait for the signal `name`. After a crash `tell` may be called once more, with another address: one answer
        counts. The address is remembered nowhere. It answers for `timeout_s` at most, and no longer than the job waits:
        an answer that a person was told to be taken is the one that the job gets. Each question of a job needs a `name`
        of its own.

        Raises:
            SignalTimeout: nobody answered in time. This is remembered, and the address answers no more.
            StepTwice: the run has asked under this name before.
            InvalidInput: what is asked, the address, the name or `timeout_s` cannot be used; or another signal of that
                name came. And as `step`.
        """
        from fencerow.steps.asking import Question, answer_of  # who asks nobody never loads it
        from fencerow.steps.model import SIGNAL_LENGTH_MAX

        self._run_of("job.wait_for_approval")
        self._check_kind(f"ask {name}", tell)
        check_text(name, "the name of a signal", SIGNAL_LENGTH_MAX)
        expires_s = check_delay(timeout_s, "job.wait_for_approval(timeout_s)", zero=False)
        question = Question(self._engine, self.id, name, asks, base_url, expires_s, tell)
        if self._on_loop():
            return self._aapproved(question)
        self._step(f"ask {name}", question.put, (), 0, STEP_BACKOFF)
        return answer_of(self.wait_for(name, expires_s), name)

    async def _aapproved(self, question: Question) -> ApprovalAnswer:
        from fencerow.steps.asking import answer_of

        await self._step(f"ask {question.name}", question.aput, (), 0, STEP_BACKOFF)
        return answer_of(await self.wait_for(question.name, question.expires_s), question.name)

    def patched(self, name: str) -> Any:
        """Whether this job takes the new branch of code that was changed while jobs were on their way.

            if await job.patched("two signatures"):
                await job.step("sign again", sign)

        True for a job that has not come further yet, and then for ever: it is remembered as a step is. False for one
        that an earlier run by the code of before has brought further: it goes on as it began.

        Raises: as `step`.
        """
        run = self._run_of(f"job.patched({shown(name)})")
        return self._said(lambda history: run.patched(history, name))

    def _wait(self, name: str, waiting: dict[str, Any], what: str) -> Any:
        run = self._run_of(f"job.{'sleep' if 'signal' not in waiting else 'wait_for'}")
        return self._said(lambda history: run.wait(history, history.numbered(name), waiting, what))
