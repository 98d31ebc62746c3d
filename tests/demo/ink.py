"""Where a page is really dark: boxes judged by pixels, not by what the reader computed."""

from __future__ import annotations

from pathlib import Path

import pypdfium2

from fencerow.demo.fields import Box

SCALE = 3


class Ink:
    """A file's pages as grey pixels, as a viewer shows them."""

    def __init__(self, path: Path) -> None:
        self._rows: dict[int, list[bytes]] = {}
        with pypdfium2.PdfDocument(path) as document:
            for number, page in enumerate(document, 1):
                bitmap = page.render(scale=SCALE, grayscale=True)
                data = bytes(bitmap.buffer)
                step, width = bitmap.stride, bitmap.width
                self._rows[number] = [data[y * step : y * step + width] for y in range(bitmap.height)]
                page.close()

    def extent(self, box: Box) -> tuple[float, float, float, float]:
        """The smallest left, top, right, bottom that hold every dark pixel in `box`."""
        left, top = int(box.left * SCALE), int(box.top * SCALE)
        right, bottom = int(box.right * SCALE) + 1, int(box.bottom * SCALE) + 1
        rows = [row[left:right] for row in self._rows[box.page][top:bottom]]
        dark_rows = [y for y, row in enumerate(rows) if min(row, default=255) < 200]
        dark = [x for x in range(right - left) if any(x < len(row) and row[x] < 200 for row in rows)]
        if not dark or not dark_rows:
            return (0.0, 0.0, 0.0, 0.0)
        return (
            (left + dark[0]) / SCALE,
            (top + dark_rows[0]) / SCALE,
            (left + dark[-1] + 1) / SCALE,
            (top + dark_rows[-1] + 1) / SCALE,
        )
