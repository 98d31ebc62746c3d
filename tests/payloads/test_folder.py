"""The folder of large payloads: who may read what lies in it, and what its URL says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencerow.payloads import FolderStore
from fencerow.payloads.outside.places import store_at


@pytest.fixture(params=["wide", "narrow"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(0o000 if request.param == "wide" else 0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("folder", [None, 0o700, 0o750, 0o2770], ids=str)
def test_what_lies_in_a_folder_is_as_readable_as_the_folder(tmp_path: Path, folder: int | None) -> None:
    root = tmp_path / "deep" / "large"
    if folder is not None:
        root.mkdir(parents=True)
        root.chmod(folder)
    FolderStore(root).put("owner/job/arguments-1", b"secret")
    rights = 0o700 if folder is None else folder & 0o777
    found = {each.name: each.stat().st_mode & 0o777 for each in (root, *root.rglob("*"))}
    assert found == {"large": rights, "owner": rights, "job": rights, "arguments-1": rights & 0o666}


def test_a_url_may_name_a_folder_with_any_letters(tmp_path: Path) -> None:
    assert repr(store_at(f"{(tmp_path / 'my jobs').as_uri()}")) == f"<FolderStore {tmp_path}/my jobs>"


def test_a_list_reads_each_folder_once_and_no_further_than_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store has millions: neither all names at once, nor all of them again for each page."""
    store, read = FolderStore(tmp_path), []
    for number in range(40):
        store.put(f"owner/job{number}/arguments-1", b"x")
    real = os.scandir

    def scandir(path: Path) -> Any:
        read.append(str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    listed = store.list("owner/")
    assert next(iter(listed)).name.startswith("owner/job")
    assert len(read) == 2
    assert len(list(listed)) == 39
    assert len(read) == len(set(read)) == 41
