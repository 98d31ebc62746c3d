"""Two calls of a folder at once: one removes the last file of a job's folder while the other puts one there."""

from __future__ import annotations

from pathlib import Path

from fencerow.payloads import FolderStore


class Removing(FolderStore):
    """Another call removes the only file of the folder, and the folder, once the put has found it there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.removes = ""

    def _made(self, folder: Path) -> list[Path]:
        made = super()._made(folder)
        if self.removes:
            name, self.removes = self.removes, ""
            self.delete(name)
        return made


def test_a_put_is_kept_where_its_folder_is_removed_meanwhile(tmp_path: Path) -> None:
    store = Removing(tmp_path)
    store.put("job/old", b"1")
    store.removes = "job/old"

    store.put("job/new", b"2")

    assert store.get("job/new", 10) == b"2"
    assert [each.name for each in store.list("")] == ["job/new"]
