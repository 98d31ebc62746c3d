"""What looks like a mistake in a declaration or at a worker's door is said there, with what to write instead."""

from __future__ import annotations

import logging
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Defaults, Job, contract
from fencerow.app import UntypedParameters
from fencerow.errors import DeclarationError, InvalidInput, UnknownVerb, UnusableConnection, WrongCall
from fencerow.events import consumer, publish


class Mailer:
    """A class whose methods somebody wants to run as jobs."""

    def send(self, to: str) -> str:
        return f"sent to {to}"

    @classmethod
    def sweep(cls, to: str) -> None: ...

    @staticmethod
    def plain(to: str) -> str:
        return to


# --- methods and classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Mailer.send, Mailer.__dict__["sweep"]])
def test_a_method_is_no_job(lite_app: App, method: Any) -> None:
    with pytest.raises(DeclarationError, match="is a method") as refused:
        lite_app.job(method)

    assert "outside of the class" in refused.value.fix
    assert not lite_app.jobs


def test_nor_is_it_a_contract_or_a_consumer(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="is a method"):
        contract(Mailer.send)
    with pytest.raises(DeclarationError, match="is a method"):
        consumer(lite_app, group="g", topics=["a.b"])(Mailer.send)  # type: ignore[type-var]  # pyright: ignore


def test_a_class_is_no_job(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="was given the class Mailer"):
        lite_app.job(Mailer)


def test_what_needs_no_object_of_the_class_may_stand_in_it(lite_app: App) -> None:
    declared = lite_app.job(Mailer.plain)
    bound = lite_app.job(Mailer().send)

    assert (declared("ada"), bound("ada")) == ("ada", "sent to ada")


def test_a_function_may_call_its_first_parameter_self(lite_app: App) -> None:
    @lite_app.job
    def greet(self: str) -> str:
        return self

    assert greet("ada") == "ada"


# --- parameters without annotations ------------------------------------------------------------------------


def test_parameters_without_annotations_are_told_once_at_their_function(lite_app: App) -> None:
    def send(to, at=None):  # type: ignore[no-untyped-def]
        ...

    with pytest.warns(UntypedParameters) as told:
        lite_app.job(send)  # pyright: ignore[reportUnknownArgumentType]

    (only,) = told
    assert "to, at have no annotation" in str(only.message)
    assert "a datetime arrives as text" in str(only.message)
    assert (only.filename, only.lineno) == (__file__, send.__code__.co_firstlineno)


def test_a_forgotten_annotation_of_the_job_is_told(lite_app: App) -> None:
    def send(job, to: str) -> None:  # type: ignore[no-untyped-def]
        ...

    with pytest.warns(UntypedParameters, match=r"Only `job: Job` gets the running job"):
        lite_app.job(send)  # pyright: ignore[reportUnknownArgumentType]


def test_who_says_that_he_wants_json_data_is_left_alone(lite_app: App) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @lite_app.job
        def send(job: Job, to: str, more: Any = None) -> None: ...

    assert send.name == "send"


# --- verbs of other systems --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "instead"),
    [
        ("delay", "send.submit(...), or in async code await send.asubmit(...)"),
        ("send", "send.submit(...)"),
        ("enqueue", "send.submit(...)"),
        ("perform_async", "send.submit(...)"),
        ("apply_async", "send.using("),
        ("perform_in", "delay_s="),
        ("apply", "call send(...)"),
        ("retry", "raise Retry("),
    ],
)
def test_a_verb_of_another_system_says_what_to_write(lite_app: App, verb: str, instead: str) -> None:
    @lite_app.job
    def send(to: str) -> None: ...

    with pytest.raises(UnknownVerb, match="FR-210") as told:
        getattr(send, verb)

    assert instead in told.value.fix
    assert not hasattr(send, verb), "for programs it is a missing attribute"


def test_so_it_does_behind_using_and_on_the_app(lite_app: App) -> None:
    @lite_app.job
    def send(to: str) -> None: ...

    with pytest.raises(UnknownVerb, match=r"job\.submit"):
        send.using(priority=1).delay  # type: ignore[attr-defined]  # pyright: ignore  # noqa: B018
    with pytest.raises(UnknownVerb, match=r"@app\.job"):
        lite_app.task  # type: ignore[attr-defined]  # pyright: ignore  # noqa: B018


@pytest.mark.parametrize(
    ("option", "ours"),
    [("countdown", "delay_s"), ("eta", "run_at"), ("task_id", "key"), ("ttl", "expires_s")],
)
def test_an_option_of_another_system_says_what_to_write(lite_app: App, option: str, ours: str) -> None:
    @lite_app.job
    def greet(name: str) -> str:
        return name

    given: dict[str, Any] = {option: 5}
    with pytest.raises(WrongCall) as refused:
        greet.using(**given)

    assert refused.value.fix == f"write {ours}="


def test_any_other_missing_attribute_is_plainly_missing(lite_app: App) -> None:
    @lite_app.job
    def send(to: str) -> None: ...

    for owner in (send, lite_app):
        with pytest.raises(AttributeError, match="object has no attribute 'nonsense'") as plain:
            owner.nonsense  # type: ignore[union-attr]  # pyright: ignore  # noqa: B018
        assert not isinstance(plain.value, UnknownVerb)


# --- a connection without a transaction --------------------------------------------------------------------


def test_neither_a_submit_nor_an_event_takes_a_connection_in_autocommit(
    lite_app: App, sqlite_path: Path
) -> None:
    @lite_app.job
    def send(to: str) -> None: ...

    lite_app.check_or_create()
    mine = sqlite3.connect(sqlite_path, isolation_level=None)

    with pytest.raises(UnusableConnection, match="in autocommit"):
        send.using(connection=mine).submit("ada")
    with pytest.raises(UnusableConnection, match="in autocommit"):
        publish(lite_app, "mail.sent", {}, connection=mine)

    assert lite_app.client.list_jobs() == []
    mine.close()
    lite_app.close()


# --- what a worker is asked to serve -----------------------------------------------------------------------


def declare_mail(app: App) -> None:
    @app.job(queue="mail")
    def send() -> None: ...


def warned(app: App, caplog: pytest.LogCaptureFixture, *queues: str) -> str:
    with caplog.at_level(logging.WARNING, "fencerow.worker"):
        app.worker(list(queues))
    app.close()
    return caplog.text


def test_a_queue_that_no_job_goes_to_is_told_with_the_closest(
    lite_app: App, caplog: pytest.LogCaptureFixture
) -> None:
    declare_mail(lite_app)

    told = warned(lite_app, caplog, "mail", "mial")

    assert "goes to queue mial by itself: did you mean mail?" in told
    assert told.count("WARNING") == 1


def test_a_queue_that_only_submits_choose_is_named_in_the_app(
    sqlite_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(f"sqlite:///{sqlite_path}", queues={"bulk": Defaults(priority=-10)})
    declare_mail(app)

    assert warned(app, caplog, "bulk", "mail") == ""


def test_slots_are_given_once(lite_app: App) -> None:
    declare_mail(lite_app)

    with pytest.raises(InvalidInput, match="slots were given twice: 20 for all, and mail:5"):
        lite_app.worker({"mail": 5}, slots=20)

    lite_app.worker(["mail"], slots=20)
    lite_app.close()
