"""Markdown as HTML, for everything that is written in it: statements, rule pages and messages.

Statements and rule pages are CommonMark with tables, by a kept library. Messages may name what a learner wrote, so of
Markdown they have only code, bold, emphasis and links to web pages. Raw HTML is text everywhere. Never used for what a
learner's script printed; knows no task and reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from grader.report.html.highlight import highlighted
from grader.report.safe_text import visible

_FIGURE = re.compile(r"(?:\./)?(?:figures/)?([A-Za-z0-9_-]+\.(?:svg|png))")
_CODE = re.compile(r"[A-Z]{2,5}\d{3}")
_LOWEST = 6


def inline_html(text: str) -> Markup:
    """One message: code between backquotes, bold, emphasis, links to web pages; everything else escaped."""
    return Markup(_message_parser().renderInline(visible(text)))


@lru_cache(maxsize=256)
def page_html(text: str, *, top: int) -> Markup:
    """A page of ours, such as a rule's; its `## ` headings become `<h{top}>`, because they stand below others."""
    return _rendered(_page_parser(), _page_parser().parse(visible(text)), top)


@lru_cache(maxsize=128)
def statement_html(text: str, figures: str = "", rules: str = "") -> Markup:
    """A task's statement, to stand below a page's own title.

    Args:
        text: Markdown; its first heading is left out, because the page's own title says it.
        figures: address below which `figures/NAME.svg` and `.png` are served; "": figures are shown by their text.
        rules: address below which rule pages lie; "": codes are plain.
    """
    tokens = _statement_parser().parse(_without_title(visible(text)))
    for child in (child for token in tokens for child in token.children or ()):
        if child.type == "image":
            name = _FIGURE.fullmatch(str(child.attrGet("src") or ""))
            child.attrSet("src", f"{figures}/{name[1]}" if name and figures else "")
        elif child.type == "code_inline" and rules and _CODE.fullmatch(child.content):
            child.meta["rule"] = f"{rules}/{child.content}"
    return _rendered(_statement_parser(), tokens, 2)


def _without_title(text: str) -> str:
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("# ") else text


def _rendered(parser: MarkdownIt, tokens: list[Token], top: int) -> Markup:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_LOWEST, max(top, int(token.tag[1]) + top - 2))}"
        elif token.type in ("th_open", "td_open") and token.attrGet("style"):
            # Styles inside pages are refused by the policy that they are served with.
            token.attrs = {"class": "num"} if "right" in str(token.attrGet("style")) else {}
    return Markup(parser.renderer.render(_with_named_rows(tokens), parser.options, {}))


def _with_named_rows(tokens: list[Token]) -> list[Token]:
    """Where no column of a table has a name, its empty head is left out; a first cell with words names its row."""
    kept: list[Token] = []
    named = False
    for number, token in enumerate(tokens):
        kept.append(token)
        if token.type == "thead_close":
            start = max(place for place, one in enumerate(kept) if one.type == "thead_open")
            named = not any(one.content for one in kept[start:])
            if named:
                del kept[start:]
        elif named and token.type == "td_open" and kept[-2].type == "tr_open" and tokens[number + 1].content:
            token.tag, token.attrs = "th", {"scope": "row"}
        elif named and token.type == "td_close" and kept[-3].tag == "th":
            token.tag = "th"
    return kept


class _Renderer(RendererHTML):
    """HTML with our classes and what a keyboard and a phone need; called by the names of tokens."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Code between fences, Python with its colours."""
        text = tokens[idx].content.rstrip("\n")
        shown: Markup | str = text
        if tokens[idx].info.strip() == "python":
            shown = Markup("\n").join(highlighted(text.split("\n")))
        return str(Markup('<pre class="code-block" tabindex="0"><code>{}</code></pre>\n').format(shown))

    code_block = fence

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A word of code; that of a rule leads to its page."""
        code = Markup("<code>{}</code>").format(tokens[idx].content)
        rule = tokens[idx].meta.get("rule")
        return str(Markup('<a href="{}">{}</a>').format(rule, code) if rule else code)

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A link that tells its target nothing of the page it stands on."""
        address = tokens[idx].attrGet("href")
        return str(Markup('<a href="{}" rel="noreferrer noopener">').format(address))

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A figure of the task's, or its text."""
        source, text = tokens[idx].attrGet("src"), tokens[idx].content
        if not source:
            return str(Markup("<em>{}</em>").format(text))
        return str(Markup('<img src="{}" alt="{}" loading="lazy">').format(source, text))

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A table scrolls by itself where the page is narrow."""
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The end of what `table_open` began."""
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The head of a column; a corner without words is none, and would be read out as one."""
        return self.renderToken(tokens, idx, options, env) if tokens[idx + 1].content else "<td>"

    def th_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The end of what `th_open` began."""
        return "</th>\n" if tokens[idx - 1].content else "</td>\n"


class _WebLinks(MarkdownIt):
    """Markdown whose links lead to web pages and nowhere else: a report is one file, nothing lies beside it."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's own name
        return url.lower().startswith(("https://", "http://"))


@cache
def _statement_parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return made.enable(["table", "strikethrough"])


@cache
def _page_parser() -> MarkdownIt:
    return _WebLinks("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table").disable("image")


@cache
def _message_parser() -> MarkdownIt:
    made = _WebLinks("zero", {"html": False}, renderer_cls=_Renderer)
    made.enable(["backticks", "emphasis", "link", "balance_pairs"])
    made.inline.ruler.at("emphasis", _between_stars)
    return made


def _between_stars(state: StateInline, silent: bool) -> bool:
    """Stars around words set them apart; `__init__`, `2*3*4` and `**kwargs` are names and sums."""
    if state.src[state.pos] != "*":
        return False
    around = state.src[state.pos - 1 : state.pos], state.src[state.pos : state.posMax].lstrip("*")[:1]
    if all(letter.isalnum() for letter in around):
        return False
    return emphasis.tokenize(state, silent)
