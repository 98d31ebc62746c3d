"""Headers from strangers: what is taken, what is left out, what is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.web.errors import InvalidRequest, RequestTooLarge
from fencerow.web.reading import headers as read
from fencerow.web.reading.traces import trace_of
from fencerow.web.settings import WebSettings

BROKEN = ["\0", "a\0b", "a\r\nX: y", "a\nb", "a\rb", "\x1b[31m", "a\x7f", "\x85a", "a\xa0b", "é", "\u2028", "\ud800",
          "a\tb"]  # fmt: skip
SETTINGS = WebSettings(web_headers_bytes_max=4096)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"order-17"', "order-17"), ("order-17", "order-17"), (' "a" ', "a"), ('"a b"', "a b"), (r'"a\"b\\"', 'a"b\\'),
        ("8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"),
        ('"' + "k" * 256 + '"', "k" * 256),
        ("k" * 256, "k" * 256), ("a;b='c'", "a;b='c'"), ('"a,b"', "a,b"), ('"' + '\\"' * 256 + '"', '"' * 256),
    ],
)  # fmt: skip
def test_an_idempotency_key_is_quoted_or_bare(value: str, key: str) -> None:
    assert read.idempotency_key_of([value]) == key


@pytest.mark.parametrize(
    "value",
    [
        "", " ", '""', '"', '"a', 'a"', '"a"b', '"a";x=1', '"a", "b"', "a,b", "a b", '" "', r'"a\b"', "k" * 257,
        '"' + "k" * 257 + '"', '"' + "k" * 100_000, "\\" * 100_000, *BROKEN, *(f'"{each}"' for each in BROKEN),
    ],
    ids=lambda value: ascii(value)[:30],
)  # fmt: skip
def test_another_idempotency_key_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read.idempotency_key_of([value])
    assert refused.value.status == 400 and len(str(refused.value)) < 700 and "\r" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "wait_s"),
    [
        ((), 0), (("wait=30",), 30), (("wait=0",), 0), (("WAIT=5",), 5), (('wait="7"',), 7),
        (("respond-async, wait=9",), 9),
        (("respond-async", "wait=9"), 9), (("a=\"x, wait=1\", wait=2",), 2), ((' wait = 3 ; x=y',), 3),
        (("wait=1, wait=2",), 1),
        (('a="\\", wait=1", wait=4',), 4), (("wait=x, wait=6",), 6), (("wait=999999999",), 86400), (("wait",), 0),
        *(((f"wait={each}",), 0) for each in ("-1", "1.5", "1e3", "", "0x1", "9" * 30, "1 2", '"5', "٣", "nan",
        "inf", "1_0")),
        (("x" * 100_000 + ",wait=1",), 0), ((",".join(["a"] * 40 + ["wait=1"]),), 0), (('"' * 2000,), 0),
        (("await=1",), 0),
        *(((f"{each},wait=2",), 2) for each in BROKEN),
    ],
    ids=lambda part: ascii(part)[:30],
)  # fmt: skip
def test_a_preference_to_wait_is_found_among_others(values: tuple[str, ...], wait_s: float) -> None:
    assert read.wait_of(values) == wait_s


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("parent", "carried"),
    [
        (f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01"), (f" 00-{TRACE}-{SPAN}-00\t", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-ff"), (f"cc-{TRACE}-{SPAN}-03", f"00-{TRACE}-{SPAN}-01"),
        (f"01-{TRACE}-{SPAN}-00-what-will-be", f"00-{TRACE}-{SPAN}-00"),
    ],
)  # fmt: skip
def test_a_valid_trace_is_carried_on(parent: str, carried: str) -> None:
    trace = trace_of([parent], ["a=1", "b@c=2 x"])
    assert (trace.traceparent, trace.tracestate, trace.begun) == (carried, "a=1,b@c=2 x", False)


@pytest.mark.parametrize(
    "parents",
    [
        (), ("",), (f"00-{TRACE}-{SPAN}-01",) * 2, (f"ff-{TRACE}-{SPAN}-01",), (f"00-{TRACE}-{SPAN}-01-x",),
        (f"00-{TRACE}-{SPAN}",), (f"00-{'0' * 32}-{SPAN}-01",), (f"00-{TRACE}-{'0' * 16}-01",),
        (f"00-{TRACE.upper()}-{SPAN}-01",),
        (f"00-{TRACE}-{SPAN}-0",), (f"00-{TRACE[1:]}-{SPAN}-01",), (f"0-{TRACE}-{SPAN}-01",),
        (f"00_{TRACE}_{SPAN}_01",),
        (f"01-{TRACE}-{SPAN}-01x",), (f"01-{TRACE}-{SPAN}-01-" + "x" * 99_999,), (f"00-{TRACE}-{SPAN}-01\n",),
        (f"01-{TRACE}-{SPAN}-01-a\r\nb",), ("٠٠" + f"-{TRACE}-{SPAN}-01",), *((each,) for each in BROKEN),
    ],
    ids=lambda parents: ascii(parents)[:40],
)  # fmt: skip
def test_an_invalid_trace_is_dropped_with_its_state_and_a_new_one_begun(parents: tuple[str, ...]) -> None:
    one, other = trace_of(parents, ["a=1"]), trace_of(parents, ["a=1"])
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", one.traceparent)
    assert one.begun and one.tracestate is None and one.traceparent != other.traceparent


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        ((), None), (("",), None), ((",, ,",), None), (("a=1,,b=2",), "a=1,b=2"), (("a=1, b=2",), "a=1,b=2"),
        (("a=",), None),
        (("a=1,a=2",), None), (("A=1",), None), (("a",), None), (("a=b=c",), None), (("1t@sys=x",), "1t@sys=x"),
        (("1t=x",), None),
        ((",".join(f"k{at}=v" for at in range(32)),), ",".join(f"k{at}=v" for at in range(32))),
        ((",".join(f"k{at}=v" for at in range(33)),), None), ((f"a={'x' * 256}",), f"a={'x' * 256}"),
        ((f"a={'x' * 257}",), None),
        ((f"a=1,b={'x' * 249},c={'x' * 250},d=4",), f"a=1,b={'x' * 249},c={'x' * 250},d=4"),
        ((f"a=1,b={'x' * 250},c={'x' * 255},d=4",), "a=1,d=4"),
        ((",".join(f"k{at}={'v' * 96}" for at in range(6)),), ",".join(f"k{at}={'v' * 96}" for at in range(5))),
        ((",".join(f"k{at}=v" for at in range(99_999)),), None), *(((f"a={each}",), None) for each in BROKEN),
    ],
    ids=lambda part: ascii(part)[:30],
)  # fmt: skip
def test_a_trace_state_is_kept_whole_or_not_at_all(states: tuple[str, ...], kept: str | None) -> None:
    assert trace_of([f"00-{TRACE}-{SPAN}-01"], states).tracestate == kept


@pytest.mark.parametrize("value", ["a", "8e03978e-40d5-43e8-bc93-6894a57f9324", "x" * 128, "!~"])
def test_a_plain_correlation_id_is_taken(value: str) -> None:
    assert read.correlation_of([value]) == value
    assert read.correlation_of([value, value]) is None


@pytest.mark.parametrize("value", ["", " ", "a b", "x" * 129, *BROKEN], ids=ascii)
def test_another_correlation_id_is_left_out(value: str) -> None:
    assert read.correlation_of([value]) is None


def test_where_a_stream_goes_on() -> None:
    assert [read.last_event_id_of(values) for values in ([], [""], ["17"], ["a:3"])] == [
        None,
        None,
        "17",
        "a:3",
    ]
    for values in (["1", "1"], ["x" * 65], ["a b"], *([each] for each in BROKEN)):
        with pytest.raises(InvalidRequest):
            read.last_event_id_of(values)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", "abc"), ("bearer  a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="), ("BEARER x ", "x"), ("Bearer", None),
        ("Bearer ", None), ("Basic abc", None), ("abc", None), ("Bearer a b", None), ("Bearer a,b", None),
        ("Bearer =", None),
        ("Bearera", None), ("Bearer " + "x" * 505, "x" * 505), ("Bearer " + "x" * 506, None), ("Bearer a=b", None),
        ("", None),
        *((f"Bearer {each}", None) for each in BROKEN), ("Bearer\tx", None),
    ],
    ids=lambda part: ascii(part)[:30],
)  # fmt: skip
def test_one_bearer_token_is_read(value: str, token: str | None) -> None:
    assert read.bearer_of([value]) == token
    with pytest.raises(InvalidRequest, match="came 2 times") as refused:
        read.bearer_of([value, "Bearer s3cret"])
    assert "s3cret" not in str(refused.value)


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(codec="latin-1") | st.sampled_from('",=;\\ \r\n\0'), max_size=40), max_size=3
    )
)
def test_no_line_break_and_no_nul_comes_through(values: list[str]) -> None:
    for reader in (read.idempotency_key_of, read.correlation_of, read.last_event_id_of, read.bearer_of):
        try:
            found = reader(values) or ""
        except InvalidRequest as error:
            found = "".join(error.lines())
        assert found.isascii() and not set(found) & set("\r\n\0")
    trace = trace_of(values, values)
    assert trace.traceparent.isprintable() and (trace.tracestate or "").isprintable()
    assert read.wait_of(values) >= 0


LONG = (b"a" * 100, b"b" * 900)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ([(b"host", b"x"), (b"a", b"b\tc\xff")], 200), ([(b"a", b"")] * 100, 200), ([(b"a", b"")] * 101, 431),
        ([LONG] * 4, 200),
        ([LONG] * 5, 431), ([(b"a", b"x" * 10**6)], 431), ([(b"a" * 5000, b"")], 431),
        *(([(b"a", b"x" + bytes([each]) + b"y")], 400) for each in (0, 10, 13, 27, 127)), ([(b"a\nb", b"x")], 400),
    ],
    ids=lambda part: ascii(part)[:30],
)  # fmt: skip
def test_headers_are_bounded_and_whole_lines(raw: list[tuple[bytes, bytes]], status: int) -> None:
    if status == 200:
        read.check_headers(raw, SETTINGS)
        return
    kind = RequestTooLarge if status == 431 else InvalidRequest
    with pytest.raises(kind) as refused:
        read.check_headers(raw, SETTINGS)
    assert status == getattr(refused.value, "status", None)
