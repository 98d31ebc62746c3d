"""Pictures of one job's life and of a schedule's fires: what they are drawn from."""

from __future__ import annotations

from datetime import UTC, date, datetime

from jinja2 import Environment

from fencerow import App
from fencerow.core.model.job import Happening
from fencerow.web.dashboard.calendar import SHOWN, FireMark, calendar_of
from fencerow.web.dashboard.life import LEAST, WIDTH, life_of
from fencerow.web.dashboard.pages import Pages
from fencerow.web.dashboard.statics import Statics
from tests.web.dashboard.visiting import Reader, Visits

S = 1_000_000
DAY_US = 86_400 * S
NOW_US = int(datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp()) * S  # a Wednesday


def happened(at_s: float, kind: str, attempt: int = 0) -> Happening:
    return Happening(at_us=NOW_US + int(at_s * S), kind=kind, attempt=attempt)


KILLED = (
    happened(0, "submitted"), happened(2, "claimed", 1), happened(5, "reclaimed", 1), happened(5.5, "changed", 1),
    happened(6, "claimed", 2), happened(10, "succeeded", 2),
)  # fmt: skip


def test_a_life_is_told_by_how_long_it_stood_in_which_state() -> None:
    life = life_of(KILLED, until_us=NOW_US + 99 * S)

    assert [(each.state, each.seconds) for each in life.stretches] == [
        ("queued", 2), ("running", 3), ("queued", 1), ("running", 4),
    ]  # fmt: skip
    assert (life.state, life.seconds("running"), life.seconds("queued")) == ("succeeded", 7, 3)
    assert [each.x for each in life.stretches] == [0, 200, 500, 600]
    assert life.stretches[-1].x + life.stretches[-1].width == WIDTH


def test_what_goes_on_is_drawn_until_now_and_what_is_short_is_seen() -> None:
    life = life_of(KILLED[:2], until_us=NOW_US + 10_000 * S)
    waits = life_of(KILLED[:1], until_us=NOW_US + S, waits=True)

    assert [(each.state, each.width) for each in life.stretches] == [("queued", LEAST), ("running", 999.8)]
    assert [each.state for each in waits.stretches] == ["waiting"]


def test_a_life_is_a_picture_with_its_words() -> None:
    pages = Pages([], Statics())
    environment: Environment = pages._environment  # pyright: ignore[reportPrivateUsage]
    template = environment.from_string('{% import "pictures.html" as own %}{{ own.life(life, 0) }}')
    page = Reader(template.render(life=life_of(KILLED, until_us=NOW_US)))

    assert "succeeded" in page.text
    (said,) = [found["aria-label"] for tag, found in page.tags if tag == "svg" and "aria-label" in found]
    assert said == "3.0 s queued, 7.0 s running; now succeeded"


def test_fires_stand_on_their_days_and_many_of_one_day_are_counted() -> None:
    coming = [FireMark(NOW_US + DAY_US, None, coming=True)] * (SHOWN + 3)
    weeks = calendar_of([*coming, FireMark(NOW_US - 60 * DAY_US, "succeeded", coming=False)], NOW_US)
    days = {each.day: each for week in weeks for each in week}

    assert [week[0].day for week in weeks][:2] == [date(2026, 11, 16), date(2026, 11, 23)]
    assert {len(week) for week in weeks} == {7} and len(weeks) == 5
    assert [each.day for each in days.values() if each.is_today] == [date(2026, 11, 25)]
    found = days[date(2026, 11, 26)]
    assert (len(found.shown), found.left_out) == (SHOWN, 3)
    assert sum(len(each.marks) for each in days.values()) == SHOWN + 3


async def test_a_schedule_shows_its_fires_on_a_calendar(lite_app: App, visits_lite: Visits) -> None:
    await lite_app.schedules.aput("nightly", lite_app.jobs["pages"].call("a.pdf"), cron="0 3 * * *")
    page = await visits_lite.see("/schedules/one?name=nightly")

    assert [found["aria-current"] for tag, found in page.tags if tag == "td" and "aria-current" in found] == [
        "date"
    ]
    assert page.text.count("03:00 to come") >= 14
