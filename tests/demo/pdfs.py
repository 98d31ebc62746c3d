"""PDFs made by hand, as small as can be."""

from __future__ import annotations

PAGE = (
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Contents 4 0 R"
    " /Resources << /Font << /F 5 0 R >> >> {} >>"
)
FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf(content: str, *, page: str = "", trailer: str = "", count: int = 1) -> bytes:
    """One page drawn by `content`, listed `count` times."""
    kids = " ".join(["3 0 R"] * count)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{kids}] >>",
        PAGE.format(page),
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        FONT,
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    rows = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    return (
        out
        + (
            f"xref\n0 6\n0000000000 65535 f \n{rows}trailer\n<< /Size 6 /Root 1 0 R {trailer} >>\n"
            f"startxref\n{len(out)}\n%%EOF\n"
        ).encode()
    )


def text(*lines: str) -> str:
    """Content that sets lines of Helvetica 12 from the top left."""
    rows = [f"BT /F 12 Tf 30 {260 - 20 * n} Td ({line}) Tj ET" for n, line in enumerate(lines)]
    return "\n".join(rows)


# Nobody knows the password, not even us: the key entries are made up.
LOCKED = f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'ab' * 32}> /U <{'cd' * 32}> >> /ID [<00> <00>]"
