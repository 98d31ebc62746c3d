"""What the site of the documentation is made of, and what its build does not let through."""

from __future__ import annotations

from pathlib import Path

from tests.house.tree import ROOT
from tools.site import checking
from tools.site.addresses import address, relative
from tools.site.llms import moved
from tools.site.rendering import rendered

PAGE = ROOT / "docs" / "guide" / "limits.md"


def faults(folder: Path, **pages: str) -> list[str]:
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<h1 id=top>{name}</h1>{body}", "utf-8")
    return list(checking.faults(folder))


def test_what_leads_nowhere_is_a_fault(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        one='<a href="two.html#top">good</a> <a href="two.html#gone">x</a> <a href="three.html">x</a>',
        two="",
    )

    assert found == [
        "one.html: its link to two.html#gone leads to no part of that page",
        "one.html: its link to three.html leads nowhere",
    ]


def test_what_asks_another_host_or_needs_a_weaker_policy_is_a_fault(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        one='<a href="https://example.org/">a link may</a><img alt="x" src="https://example.org/x.png">'
        '<p style="color: red"><script>1</script><button onclick="1">',
    )

    assert [fault.partition(": ")[2] for fault in found] == [
        "<img> asks another host: https://example.org/x.png",
        "<p> has a style or a script of its own, which its policy forbids",
        "a script stands in the page, which its policy forbids",
        "<button> has a style or a script of its own, which its policy forbids",
    ]


def test_addresses_follow_from_paths_alone() -> None:
    found = {
        name: address(ROOT / name)
        for name in ("README.md", "docs/README.md", "docs/guide.md", "examples/README.md")
    }

    assert found == {
        "README.md": "index.html",
        "docs/README.md": "pages.html",
        "docs/guide.md": "guide.html",
        "examples/README.md": "examples/index.html",
    }
    assert address(PAGE) == "guide/limits.html"
    assert address(ROOT / "docs" / "decisions") == "decisions/index.html"
    assert address(ROOT / "dev.py") == "files/dev.py.html"
    assert relative("errors.html", seen_from="guide/limits.html") == "../errors.html"


def test_links_lead_to_the_same_pages_in_the_site_and_in_its_markdown() -> None:
    text = "# A `title` [here](../errors.md#fr-203)\n\n[code](../../dev.py) [out](https://example.org/a.md)\n"

    page = rendered(PAGE, text)

    assert page.headings[0].text == "A title here"
    assert page.headings[0].anchor == "a-title-here"
    for link in ("../errors.html#fr-203", "../files/dev.py.html", "https://example.org/a.md"):
        assert f'href="{link}"' in page.body
    told = moved(PAGE, text, as_seen_from="llms-full.txt")
    assert "(errors.md#fr-203)" in told
    assert "(files/dev.py.html)" in told


def test_code_has_colours_and_words_for_the_search() -> None:
    page = rendered(PAGE, "# A\n\n## B\n\nwords\n\n```python\nimport fencerow\n```\n\n|a|\n|-:|\n|1|\n")

    assert '<span class="kn">import</span>' in page.body
    assert 'class="right"' in page.body
    assert "style=" not in page.body
    assert page.texts == ["", " words import fencerow\n a 1"]
