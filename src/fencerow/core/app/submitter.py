"""What can be submitted, and an app's submitter, through which each call goes: with its middleware, into its client."""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

from fencerow.core.app.calls import Call, achunks, checked, chunks, connection_of, under
from fencerow.core.app.handlers import encode_json_data
from fencerow.core.app.options import SubmitOptions
from fencerow.core.app.submission import Declaration, Draft, Layers, Recipe, SubmitMiddleware, with_labels
from fencerow.core.client.client import JobsClient
from fencerow.core.client.handle import Handle
from fencerow.core.errors import InvalidInput
from fencerow.core.model.habits import no_attribute
from fencerow.core.model.ids import new_id, new_ids
from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.submission import PreparedCall, Submission, SubmitResult
from fencerow.core.telemetry import Fact, Telemetry

P = ParamSpec("P")  # the parameters of a submit: those of the function without `job`
R = TypeVar("R")  # what the job results in
LATER: Final = b"null"  # the arguments of what only stands for calls to come
NO_COLUMNS: Final[dict[str, Any]] = {}
R_co = TypeVar("R_co", covariant=True)


Ahead = tuple[str, bytes]  # the id of a job, and its arguments as they are stored with it


class Submitter:
    """Turns calls into stored jobs and handles, in the name of one app.

    `open_client` makes the app's client where there is none; the app notes it as `client`, and forgets it when it is
    closed.
    """

    def __init__(
        self,
        open_client: Callable[[], JobsClient],
        layers: Layers,
        actor: str | None,
        telemetry: Telemetry,
    ) -> None:
        self.client: JobsClient | None = None
        self.middleware: list[SubmitMiddleware] = []
        self.layers = layers
        self._open_client = open_client
        self._actor = actor
        self._telemetry = telemetry

    def named(self, actor: str) -> Submitter:
        """The same in the name of somebody else: who submitted a job is theirs, all other things are the app's."""
        made = Submitter(self._open_client, self.layers, actor, self._telemetry)
        made.client, made.middleware = self.client, self.middleware
        return made

    def submit(self, call: Call[R]) -> Handle[R]:
        """Submit one call."""
        client, connection = self.client or self._open_client(), call.recipe.options.connection
        if self.middleware:
            with self._in_middleware([call]) as submissions:
                (answer,) = client.submit(submissions, connection=connection)
        else:
            (answer,) = client.submit([self._submission(call)], connection=connection)
        return _handle(client, call, answer)

    async def asubmit(self, call: Call[R]) -> Handle[R]:
        """`submit` for async code."""
        client, connection = self.client or self._open_client(), call.recipe.options.connection
        if call.recipe.is_bare and connection is None and not self.middleware:  # nearly always
            submission = self._submission(call)
            await client.gathered(submission)
            return Handle(client, submission.job.id, call.recipe.decode)
        ahead = await _packed(call) if _waits(call) else None
        if self.middleware:
            with self._in_middleware([call], [ahead]) as submissions:
                (answer,) = await client.asubmit(submissions, connection=connection)
        else:
            (answer,) = await client.asubmit([self._submission(call, ahead=ahead)], connection=connection)
        return _handle(client, call, answer)

    def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit calls chunk by chunk; each chunk is atomic."""
        client = self.client or self._open_client()
        handles: list[Handle[R]] = []
        for chunk in chunks(calls):
            with self._drafted(chunk) as submissions:
                answers = client.submit(submissions, connection=connection_of(chunk))
            handles += map(partial(_handle, client), chunk, answers)
        return handles

    async def asubmit_many(self, calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> list[Handle[R]]:
        """`submit_many` for async code; takes an async iterable too."""
        client = self.client or self._open_client()
        handles: list[Handle[R]] = []
        async for chunk in achunks(calls):
            with self._drafted(chunk, await self._packed_ahead(chunk)) as submissions:
                answers = await client.asubmit(submissions, connection=connection_of(chunk))
            handles += map(partial(_handle, client), chunk, answers)
        return handles

    def as_stored(self, call: Call[Any]) -> NewJob:
        """What a submit of this call would store, for a schedule: without an id, and without what submit middleware
        adds.

        Raises:
            InvalidInput: the job would expire before it is due.
        """
        stored = call.args if call.args is LATER else call.recipe.packed_inside("", call.args)
        return self._submission(call, ahead=("", stored)).job

    def as_follow_up(self, call: PreparedCall) -> Submission:
        """What is stored of a handler's follow-up, with what submit middleware adds.

        Raises:
            InvalidInput: it was not made by `job.call(...)`, or names a connection.
        """
        prepared: Call[Any] = checked(cast("Call[Any]", call))
        if prepared.recipe.options.connection is not None:
            raise InvalidInput(
                "a follow-up names a connection",
                "it is stored in the transaction of the job's own success",
                "leave connection= out, or submit it in your transaction",
            )
        # In its row, however large: a handler that submits what follows it must not wait for a store.
        ahead = _packed_inside(prepared) if _waits(prepared) else None
        with self._drafted([prepared], [ahead]) as submissions:
            return submissions[0]

    def as_stored_under(self, ids: Sequence[str], calls: Sequence[Call[Any]]) -> list[Submission]:
        """What is stored of calls under these new ids, with what submit middleware adds; in their rows, however large.

        Raises:
            InvalidInput: a job would expire before it is due.
        """
        ahead = [
            (job_id, call.recipe.packed_inside(job_id, call.args))
            for job_id, call in zip(ids, calls, strict=True)
        ]
        with self._drafted(calls, ahead) as submissions:
            return submissions

    def _drafted(
        self, calls: Sequence[Call[Any]], ahead: Sequence[Ahead | None] = ()
    ) -> AbstractContextManager[list[Submission]]:
        """The rows of the calls, inside the middleware around their submit."""
        made = ahead or [None] * len(calls)
        if self.middleware:
            return self._in_middleware(calls, made)
        return nullcontext(list(map(self._submission, calls, new_ids(len(calls)), made)))

    async def _packed_ahead(self, calls: Sequence[Call[Any]]) -> list[Ahead | None]:
        """Of calls whose arguments may go to a store, the id and what is stored."""
        return [await _packed(each) if _waits(each) else None for each in calls]

    def _submission(self, call: Call[Any], new: str | None = None, ahead: Ahead | None = None) -> Submission:
        """The row of a call: under the caller's own id, or this new one, or one made here; or as it was made ahead.

        Raises:
            InvalidInput: the job would expire before it is due.
        """
        recipe, args = call.recipe, call.args
        made = recipe.made
        template = made[1] if made is not None and made[0] is self.layers else self._template_of(recipe)
        if recipe.is_bare and ahead is None:
            return Submission(NewJob(new or new_id(), args.decode(), len(args), template))
        columns = NO_COLUMNS if not recipe.columns or args is LATER else recipe.columns_of(args)
        terms = None if not recipe.agreed or args is LATER else recipe.terms_of(args)
        if ahead is not None:
            job_id, stored = ahead
        else:
            job_id = recipe.options.id or new or new_id()
            stored = args if args is LATER else recipe.packed(job_id, args)
        job = NewJob(job_id, stored.decode(), len(stored), template, terms=terms, **columns)
        if recipe.is_plain and not recipe.settles:
            return Submission(job)
        claim = recipe.key_claim(job.id, args, self.layers)
        settled = recipe.settles and terms is not None and stored is not args
        pack = partial(recipe.packed_inside, args=args) if settled else None
        return Submission(job, claim, recipe.options.id is not None, pack)

    def _template_of(self, recipe: Recipe) -> Template:
        try:
            return recipe.template_for(self.layers, self._actor)
        except InvalidInput as error:
            self._telemetry.emit(Fact.REFUSED, code=error.code)
            raise

    @contextmanager
    def _in_middleware(
        self, calls: Sequence[Call[Any]], ahead: Sequence[Ahead | None] = ()
    ) -> Iterator[list[Submission]]:
        # An id is made before the middleware runs, once, so that a repeat names the same job.
        made = ahead or [None] * len(calls)
        drafts = [
            call.recipe.draft(call.recipe.options.id or new_id() if each is None else each[0])
            for call, each in zip(calls, made, strict=True)
        ]
        with ExitStack() as around:
            for draft in drafts:
                for middleware in self.middleware:
                    around.enter_context(middleware(draft))
            yield list(map(self._of_draft, calls, drafts, made))

    def _of_draft(self, call: Call[Any], draft: Draft, ahead: Ahead | None) -> Submission:
        plain = self._submission(call, draft.id, ahead)
        try:
            return with_labels(plain, draft)
        except InvalidInput as error:
            self._telemetry.emit(Fact.REFUSED, code=error.code)
            raise


class Submittable(Generic[P, R]):
    """What can be submitted: a declared job, with the options of `using` or without."""

    def __init__(self, submitter: Submitter, declaration: Declaration, options: SubmitOptions) -> None:
        self._submitter = submitter
        self._declaration = declaration
        self._recipe = Recipe(declaration, options)
        self._encode = declaration.handler.arguments.encode

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store the job and return its handle. Once it has returned, the job will run.

        Raises:
            InvalidInput: arguments or options cannot be kept; see its subclasses. Nothing is stored.
            KeyConflict: the key belongs to another payload.
            Unavailable, Busy, ReadOnly, StorageFull: nothing is stored; repeat when the cause is gone.
            OutcomeUnknown: the answer was lost. `job_ids` holds the id: look, or `using(id=...)` again.
        """
        return self._submitter.submit(Call(self._recipe, self._encode(args, kwargs)))

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """`submit` for async code. Concurrent submits go into one insert. Cancelling the caller does not take
        the submit back."""
        return await self._submitter.asubmit(Call(self._recipe, self._encode(args, kwargs)))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check and encode a call without submitting it, for `submit_many`.

        Raises:
            InvalidInput: the arguments do not fit or cannot be kept.
        """
        return Call(self._recipe, self._encode(args, kwargs))

    def call_later(self) -> Call[R]:
        """A call without arguments, for what only stands for calls to come: it must never be submitted."""
        return Call(self._recipe, LATER)

    def call_with(self, arguments: Mapping[str, Any], options: SubmitOptions) -> Call[R]:
        """Like `call`, with arguments by name that are JSON data from outside, such as a date as text.

        Raises:
            InvalidArguments: they do not fit the job's parameters.
        """
        encoded = encode_json_data(self._declaration.handler.arguments, arguments)
        return Call(Recipe(self._declaration, options), encoded)

    def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit many calls, each made by `call`: see `App.submit_many`.

        Options of `using` hold for all of them, also for those that were made by the job without any.

        Raises:
            InvalidInput: a call is of another job, or was made with other options than those of `using`. See
                `App.submit_many`, also for others.
        """
        return self._submitter.submit_many(under(self._recipe, each) for each in calls)

    async def asubmit_many(self, calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> list[Handle[R]]:
        """`submit_many` for async code; takes an async iterable too."""
        if isinstance(calls, Iterable):
            return await self._submitter.asubmit_many(under(self._recipe, each) for each in calls)
        return await self._submitter.asubmit_many(under(self._recipe, each) async for each in calls)

    if not TYPE_CHECKING:  # for a type checker such an attribute is missing, as it is

        def __getattr__(self, name):
            raise no_attribute(self, "job", self.__dict__.get("__name__", "job"), name)


def _waits(call: Call[Any]) -> bool:
    return call.args is not LATER and call.recipe.declaration.handler.packing.waits


async def _packed(call: Call[Any]) -> Ahead:
    job_id = call.recipe.options.id or new_id()
    return job_id, await call.recipe.apacked(job_id, call.args)


def _packed_inside(call: Call[Any]) -> Ahead:
    job_id = call.recipe.options.id or new_id()
    return job_id, call.recipe.packed_inside(job_id, call.args)


def _handle(client: JobsClient, call: Call[R], answer: SubmitResult) -> Handle[R]:
    recipe = call.recipe
    existed = recipe.options.connection is None
    return Handle(client, answer.id, recipe.decode, answer.replay, existed, answer.replaced)
