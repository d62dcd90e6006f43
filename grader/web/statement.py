"""A task's statement as HTML: CommonMark with tables, by a kept library, with raw HTML off.

Headings start below the page's own; code takes colours from the page's style sheet; figures are served by the task's
page. Knows no task and reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from grader.report.highlight import highlighted
from grader.report.safe_text import visible

_FIGURE = re.compile(r"(?:\./)?(?:figures/)?([A-Za-z0-9_-]+\.(?:svg|png))")
_CODE = re.compile(r"[A-Z]{2,5}\d{3}")


@lru_cache(maxsize=128)
def page(text: str, figures: str = "", rules: str = "") -> Markup:
    """HTML of a statement.

    Args:
        text: Markdown; its first heading is left out, because the page's own title says it.
        figures: address below which `figures/NAME.svg` and `.png` are served; "": figures are shown by their text.
        rules: address below which rule pages lie; "": codes are plain.
    """
    tokens = _parser().parse(_without_title(visible(text)))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The page has its own h1.
            token.tag = f"h{max(2, int(token.tag[1]))}"
        if token.type in ("th_open", "td_open") and token.attrGet("style"):
            # Styles inside pages are refused by our own policy.
            token.attrs = {"class": "num"} if "right" in str(token.attrGet("style")) else {}
        for child in token.children or ():
            if child.type == "image":
                _place(child, figures)
            elif child.type == "code_inline" and rules and _CODE.fullmatch(child.content):
                child.meta["rule"] = f"{rules}/{child.content}"
    return Markup(_parser().renderer.render(tokens, _parser().options, {}))


def _without_title(text: str) -> str:
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("# ") else text


def _place(image: Token, figures: str) -> None:
    name = _FIGURE.fullmatch(str(image.attrGet("src") or ""))
    image.attrSet("src", f"{figures}/{name[1]}" if name and figures else "")


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

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A figure of the task's, or its text."""
        source, text = tokens[idx].attrGet("src"), tokens[idx].content
        if not source:
            return str(Markup("<em>{}</em>").format(text))
        return str(Markup('<img src="{}" alt="{}" loading="lazy">').format(source, text))

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A table scrolls by itself where the page is narrow."""
        return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The end of what `table_open` began."""
        return "</table></div>\n"


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return made.enable(["table", "strikethrough"])
