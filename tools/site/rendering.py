"""A page of Markdown as HTML: anchors as the usual sites make them, code in colours, links as they are in the site."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from tools.site.addresses import address, pointed_at, relative

IMAGE = re.compile(r'(src|srcset)="([^"]+)"')
COMMANDS = re.compile(r"^(fencerow|pip|python3|curl|export|createdb) ", re.MULTILINE)
PLAIN = {"console": "sh", "text": "", "mermaid": ""}
COLOURED = HtmlFormatter(nowrap=True)


@dataclass(frozen=True)
class Heading:
    """A heading of a page: its level, its anchor, and its words."""

    level: int
    anchor: str
    text: str


@dataclass
class Page:
    """A page as the site shows it, and what it needs: the files to which it leads."""

    path: Path
    body: str = ""
    headings: list[Heading] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # below each heading, for the search
    leads_to: set[Path] = field(default_factory=set)

    @property
    def title(self) -> str:
        return self.headings[0].text if self.headings else self.path.name


def rendered(path: Path, text: str, *, colours: bool = True) -> Page:
    """The page at `path` with its body as HTML. Colours take most of the time, and a check can do without."""
    page = Page(path)
    tokens = PARSER.parse(text)
    _anchored(page, tokens)
    for token in _all(tokens):
        _led(page, token)
    page.body = PARSER.renderer.render(tokens, PARSER.options, {"colours": colours})
    return page


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it: links to parts of pages then work in both places."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def coloured(code: str, language: str, *, colours: bool = True) -> str:
    """Code as HTML whose words have classes; the style sheet has their colours. An unknown language is an error."""
    lexer = _lexer(language) if language else None
    if lexer is None or not colours:
        return html.escape(code, quote=False)
    made: str = highlight(code, lexer, COLOURED)
    return made


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False)


def _all(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _anchored(page: Page, tokens: Sequence[Token]) -> None:
    """Give headings their anchors, and gather the words below each."""
    taken: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            words = _words(tokens[at + 1])
            anchor = slug(words)
            seen = taken[anchor] = taken.get(anchor, -1) + 1
            token.attrSet("id", anchor := f"{anchor}-{seen}" if seen else anchor)
            page.headings.append(Heading(int(token.tag[1]), anchor, words))
            page.texts.append("")
        elif (
            page.texts
            and token.type in ("inline", "fence", "code_block")
            and tokens[at - 1].type != "heading_open"
        ):
            page.texts[-1] += " " + (_words(token) if token.type == "inline" else token.content)


def _words(inline: Token) -> str:
    parts = (
        each.content if each.content else " " if each.type == "softbreak" else ""
        for each in inline.children or ()
    )
    return re.sub(r"<[^>]+>", "", "".join(parts))


def _led(page: Page, token: Token) -> None:
    """Turn what a token points at into an address of the site."""

    def there(link: str) -> str:
        target, mark, part = link.partition("#")
        if not target or not (path := pointed_at(target, by=page.path)):
            return link
        page.leads_to.add(path)
        return relative(address(path), seen_from=address(page.path)) + mark + part

    if token.type == "link_open":
        token.attrSet("href", there(str(token.attrGet("href"))))
    elif token.type == "image":
        token.attrSet("src", there(str(token.attrGet("src"))))
    elif token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", None)):
        token.attrSet("class", str(style).rpartition(":")[2])  # an inline style would need a weaker policy
    elif token.type in ("html_block", "html_inline"):
        token.content = IMAGE.sub(lambda found: f'{found[1]}="{there(found[2])}"', token.content)


def _fence(
    _renderer: object, tokens: Sequence[Token], at: int, _options: object, env: Mapping[str, bool]
) -> str:
    language = tokens[at].info.partition(" ")[0]
    return _code(tokens[at].content, PLAIN.get(language, language), env)


def _indented(
    _renderer: object, tokens: Sequence[Token], at: int, _options: object, env: Mapping[str, bool]
) -> str:
    text = tokens[at].content
    return _code(text, "sh" if COMMANDS.match(text) else "", env)


def _code(text: str, language: str, env: Mapping[str, bool]) -> str:
    return f'<pre tabindex="0"><code>{coloured(text, language, colours=env["colours"])}</code></pre>\n'


def _wrapped(tag: str) -> Callable[..., str]:
    return lambda *_: tag


PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PARSER.add_render_rule("fence", _fence)
PARSER.add_render_rule("code_block", _indented)
PARSER.add_render_rule("table_open", _wrapped('<div class="table" tabindex="0"><table>\n'))
PARSER.add_render_rule("table_close", _wrapped("</table></div>\n"))
