"""Texts that would do something in a page that is not careful, and how it is seen that they did not."""

from __future__ import annotations

from tests.web.dashboard.visiting import Reader

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "` onfocus=`alert(1)` autofocus=`",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<base href=//evil.example/>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<form action=//evil.example><button>x</button></form>",
    "<a href=javascript:alert(1)>x</a>",
    "<details open ontoggle=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "<math><mtext><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    "<!--<script>alert(1)</script>-->",
    "--><script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "{{ 7777*7777 }}{% if 1 %}x{% endif %}",
    "{{ config }}${7777*7777}#{7777*7777}",
    "<div hx-get=//evil.example hx-trigger=load>",
    "<div hx-on:load=alert(1)>",
    "<div sse-connect=//evil.example>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\u202e<script>alert(1)</script>",
    "<scr\u200bipt>alert(1)</scr\u200bipt>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "<a href=//evil.example target=_blank>x</a>",
)


def is_inert(page: Reader, where: str) -> None:
    """No tag and no attribute of the page comes from such a text. `Visits.see` has looked for what browsers run."""
    names = {name for name, _ in page.tags}
    assert not names & {"img", "math", "textarea", "object", "embed", "base", "style", "iframe"}, where
    assert [tag for name, tag in page.tags if name == "meta" and "http-equiv" in tag] == [], where
    assert not [
        tag for _, tag in page.tags if tag.get("href", "").lower().startswith(("javascript:", "data:", "//"))
    ]
    assert "60481729" not in page.text, where
