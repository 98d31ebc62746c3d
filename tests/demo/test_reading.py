"""Pages one by one, and files that are not what they claim to be."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pypdfium2
import pytest

import fencerow.demo
from fencerow.demo import pdfium
from fencerow.demo.fields import (
    DocumentError,
    Limits,
    PageFields,
    combine,
    extract,
    page_count,
    page_fields,
    read_pages,
)
from tests.demo.ink import Ink
from tests.demo.pdfs import LOCKED, pdf, text

SAMPLES = Path(fencerow.demo.__file__).parent / "samples"
REPORT = SAMPLES / "annual_report.pdf"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.pdf"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"Dear all, please find attached nothing.\n" * 50, "not-a-pdf"),
        (REPORT.read_bytes()[:600], "damaged"),
        (b"%PDF-1.7\n" + b"\0" * 5000, "damaged"),
        (pdf(text("secret"), trailer=LOCKED), "encrypted"),
        (pdf("", count=0), "damaged"),
        (pdf("") + b" " * 10_000, "too-large"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(file: Path, data: bytes, reason: str) -> None:
    file.write_bytes(data)
    for refuse in (extract, page_count):
        with pytest.raises(DocumentError) as caught:
            refuse(file, Limits(bytes=8000))
        assert caught.value.reason == reason


def test_a_missing_file_is_unreadable(file: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        extract(file)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.reason, str(again)) == ("unreadable", "unreadable: No such file or directory")


def test_random_damage_never_raises_anything_else(file: Path) -> None:
    chance = random.Random(7)
    whole = (SAMPLES / "letter_cropped.pdf").read_bytes()
    for _ in range(60):
        data = bytearray(whole[: chance.randrange(1, len(whole))] if chance.random() < 0.4 else whole)
        for _ in range(chance.randrange(40)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        with suppress(DocumentError):
            msgspec.json.encode(extract(file))


def test_a_scan_has_no_words_and_says_so(file: Path) -> None:
    file.write_bytes(pdf("10 10 300 200 re f"))
    result = extract(file)
    assert (result.pages, result.words, result.fields) == (1, 0, [])
    assert result.note == "no text: the pages are probably scanned images"


def test_pages_past_the_limit_are_left_out_with_a_note(file: Path) -> None:
    file.write_bytes(pdf(text("Total due 12.50 EUR"), count=5))
    result = extract(file, Limits(pages=3))
    assert (page_count(file, Limits(pages=3)), result.pages, result.note) == (3, 3, "read 3 of 5 pages")


def test_characters_past_the_limit_are_left_out_with_a_note(file: Path) -> None:
    file.write_bytes(pdf(text("abc def ghi")))
    result = extract(file, Limits(characters=7))
    assert (result.words, result.note) == (2, "page 1: read 7 characters")


def test_reading_resumes_at_any_page_from_kept_parts() -> None:
    begun = [page_fields(page) for page, _ in zip(read_pages(REPORT), range(5), strict=False)]
    kept = msgspec.json.decode(msgspec.json.encode(begun), type=list[PageFields])
    rest = [page_fields(page) for page in read_pages(REPORT, first=6)]
    assert combine(rest + kept) == extract(REPORT)


def test_pages_know_their_number_and_how_many_there_are() -> None:
    assert [(p.number, p.of) for p in read_pages(REPORT)] == [(n, 12) for n in range(1, 13)]
    assert page_count(REPORT) == 12


def test_a_file_may_go_once_its_first_page_is_read(file: Path) -> None:
    file.write_bytes(REPORT.read_bytes())
    pages = read_pages(file)
    next(pages)
    file.unlink()
    assert len(list(pages)) == 11


def test_threads_may_read_at_once() -> None:
    paths = sorted(SAMPLES.glob("*.pdf"))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(extract, paths)) == [extract(path) for path in paths]


def test_pdfium_is_only_called_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, bool] = {}

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            held[name] = pdfium.LOCK._is_owned() and held.get(name, True)  # type: ignore[attr-defined]
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    calls = ((pypdfium2, "PdfDocument"), (pypdfium2.PdfPage, "get_textpage"), (pypdfium2.PdfPage, "close"))
    document = ((pypdfium2.PdfDocument, name) for name in ("get_page", "close", "__len__"))
    for owner, name in (*document, *calls):
        watch(owner, name)
    extract(REPORT)
    page_count(REPORT)
    assert set(held.values()) == {True} and len(held) == 5


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_word_boxes_hold_ink_however_the_page_is_turned(file: Path, turn: int) -> None:
    with pypdfium2.PdfDocument(SAMPLES / "letter_cropped.pdf") as document:
        document[0].set_rotation(turn)
        document.save(file)
    ink = Ink(file)
    words = [word for page in read_pages(file) for line in page.lines for word in line.words]
    assert len(words) > 80
    for word in words:
        left, top, right, bottom = ink.extent(word.box)
        box = word.box
        assert max(abs(left - box.left), abs(top - box.top)) <= 1, word.text
        assert max(abs(right - box.right), abs(bottom - box.bottom)) <= 1, word.text
