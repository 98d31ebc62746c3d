"""A job declared apart from its handler: two code bases that share a name and types, and no code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from fencerow import App, Contract, Fail, Job, JobFailed, contract
from fencerow.errors import DeclarationError, InvalidArguments, WrongCall


class Summary(msgspec.Struct):
    pages: int


@contract(queue="documents", attempts_max=2, args_version=2)
def extract(path: str, pages: int = 1) -> Summary:
    raise NotImplementedError


@contract
async def plain(n: int) -> int:
    raise NotImplementedError


@pytest.fixture
async def web(url: str) -> AsyncIterator[App]:
    """The code base that submits, on the same database as `app`, which runs."""
    async with App(url, actor="web") as made:
        yield made


async def test_one_code_base_submits_and_another_runs(app: App, web: App) -> None:
    submitted = web.declare(extract)
    handle = await submitted.asubmit("a.pdf", pages=3)

    @app.handles(extract)
    async def run(job: Job, path: str, pages: int = 7) -> Summary:
        assert (job.name, job.queue, path) == ("extract", "documents", "a.pdf")
        return Summary(pages)

    async with app.worker():
        assert await handle.aresult(60) == Summary(3)
        assert await (await submitted.asubmit("a.pdf")).aresult(60) == Summary(7), (
            "defaults are the handler's"
        )
    assert (await handle.arefresh()).attempts_max == 2


async def test_the_handlers_own_rule_holds(app: App, web: App) -> None:
    handle = await web.declare(plain).asubmit(1)

    @app.handles(plain, fail_on=(TimeoutError,))
    def run(n: int) -> int:
        raise TimeoutError

    async with app.worker():
        with pytest.raises(JobFailed):
            await handle.aresult(60)
    assert (await handle.arefresh()).attempt == 1


async def test_a_worker_leaves_alone_what_it_only_submits(app: App, web: App) -> None:
    handle = await web.declare(plain).asubmit(1)
    own = web.job(name="own")(lambda: None)

    async with web.worker():
        await (await own.asubmit()).aresult(60)
        assert await handle.astatus() == "queued"


async def test_an_app_may_declare_and_then_handle(app: App) -> None:
    declared = app.declare(plain)

    @app.handles(plain)
    def run(n: int) -> int:
        if n < 0:
            raise Fail("negative")
        return n + 1

    async with app.worker():
        assert await (await declared.asubmit(1)).aresult(60) == 2
    assert run(1) == 2, "a handler stays callable"


def test_what_is_declared_only_cannot_be_called(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="declared apart"):
        lite_app.declare(plain)(1)


def test_an_app_that_only_declares_has_no_worker(lite_app: App) -> None:
    lite_app.declare(plain)
    with pytest.raises(DeclarationError, match="no handler for any job"):
        lite_app.worker()


def test_arguments_are_checked_where_they_are_submitted(lite_app: App) -> None:
    with pytest.raises(InvalidArguments):
        lite_app.declare(plain).call("one")  # type: ignore[arg-type]


def other_name(m: int) -> int:
    raise NotImplementedError


def other_type(n: str) -> int:
    raise NotImplementedError


def other_result(n: int) -> str:
    raise NotImplementedError


def more(n: int, m: int) -> int:
    raise NotImplementedError


def optional(n: int = 1) -> int:
    raise NotImplementedError


def keyword_only(*, n: int) -> int:
    raise NotImplementedError


@pytest.mark.parametrize(
    "handler",
    [other_name, other_type, other_result, more, optional, keyword_only],
    ids=lambda each: each.__name__,
)
def test_a_handler_of_other_types_is_refused(lite_app: App, handler: Callable[..., Any]) -> None:
    with pytest.raises(DeclarationError, match="does not fit its contract"):
        lite_app.handles(plain)(handler)
    assert lite_app.handlers == {}


def test_a_contract_is_handled_once(lite_app: App) -> None:
    def one(n: int) -> int:
        return n

    lite_app.handles(plain)(one)
    with pytest.raises(DeclarationError, match="taken"):
        lite_app.handles(plain)(one)
    with pytest.raises(DeclarationError, match="taken"):
        lite_app.declare(plain)


def taking_a_job(job: Job, n: int) -> int:
    raise NotImplementedError


def generating(n: int) -> Any:
    yield n


@pytest.mark.parametrize("function", [taking_a_job, generating])
def test_what_cannot_be_a_contract_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(DeclarationError):
        contract(function)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"retry_on": ()}, WrongCall, r"@app\.handles\("),
        ({"attempts_max": 0}, DeclarationError, "attempts_max"),
        ({"queu": "a"}, WrongCall, "did you mean queue"),
    ],
)
def test_a_contract_takes_only_what_a_submit_needs(options: dict[str, Any], kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says):
        contract(**options)


def test_only_a_contract_is_taken_as_one(lite_app: App) -> None:
    wrong: Any = other_name
    for take in (lite_app.declare, lite_app.handles):
        with pytest.raises(DeclarationError, match="a contract is expected"):
            take(wrong)


@pytest.mark.parametrize("wrong", [5, "extract"])
def test_what_is_no_function_is_refused(lite_app: App, wrong: Any) -> None:
    for decorate in (contract, lite_app.handles(plain)):
        with pytest.raises(DeclarationError, match="it decorates a function"):
            decorate(wrong)


def test_a_contract_without_a_name_is_refused() -> None:
    with pytest.raises(DeclarationError, match="has no name"):
        contract(lambda n: n)


def test_it_shows_its_name() -> None:
    assert repr(extract) == "<Contract extract>"
    assert isinstance(extract, Contract)
