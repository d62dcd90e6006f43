"""A mail as it is sent: subject, plain text and HTML from one template, and the headers that programs go by.

No header can be ended by what somebody is called or wrote: the library refuses line ends, and names come without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from grader.delivery.mail.letters import moment
from grader.report.html.markdown_html import page_html
from grader.report.html.page_engine import page_engine
from grader.report.safe_text import cut, one_line, visible
from grader.translation import current_language
from grader.translation.templates import translate_templates

_TEMPLATES = Path(__file__).parent.parent / "templates" / "mail"
_MOST_NAME, _MOST_SUBJECT = 100, 150


@dataclass(frozen=True, slots=True)
class Envelope:
    """Who gets a mail from whom, and what identifies it.

    Attributes:
        name: of the receiver, "" where nobody knows; sender: as it stands in `From`; reply_to: "": none.
        off_url: where one asks for no more of its kind; "": it is sent because somebody asked for it.
    """

    address: str
    name: str
    sender: str
    reply_to: str
    delivery_id: int
    queued_at: datetime
    sent_at: datetime
    off_url: str = ""


def make_message(envelope: Envelope, template: str, facts: Mapping[str, Any]) -> EmailMessage:
    """A mail in the present language; what is sent twice has the same `Message-ID`, and programs show it once."""
    words = {**facts, "name": one_line(envelope.name), "off_url": envelope.off_url}
    plain, rich = _engine(False), _engine(True)
    subject = _subject(plain, template, words)
    message = EmailMessage(policy=SMTP)
    message["From"] = envelope.sender
    message["To"] = Address(display_name=cut(one_line(envelope.name), _MOST_NAME), addr_spec=envelope.address)
    if envelope.reply_to:
        message["Reply-To"] = envelope.reply_to
    message["Subject"] = subject
    message["Date"] = envelope.sent_at
    domain = parseaddr(envelope.sender)[1].rpartition("@")[2]
    message["Message-ID"] = f"<grader.{envelope.delivery_id}.{envelope.queued_at:%Y%m%d%H%M%S}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    if envelope.off_url:
        message["List-Unsubscribe"] = f"<{envelope.off_url}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(_rendered(plain, template, "letter.txt.j2", words))
    html = _rendered(rich, template, "letter.html.j2", {**words, "subject": subject})
    message.add_alternative(html, subtype="html")
    message["Content-Language"] = current_language()
    return message


def _rendered(engine: Environment, template: str, layout: str, words: Mapping[str, Any]) -> str:
    parts = engine.get_template("html.j2" if engine.autoescape else "plain.j2").module
    text = engine.get_template(f"{template}.j2").render(layout=layout, m=parts, **words)
    return text if engine.autoescape else re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _subject(engine: Environment, template: str, words: Mapping[str, Any]) -> str:
    found = engine.get_template(f"{template}.j2")
    text = "".join(found.blocks["subject"](found.new_context(dict(words))))
    return cut(one_line(" ".join(text.split())), _MOST_SUBJECT)


@cache
def _engine(html: bool) -> Environment:
    made = page_engine(_TEMPLATES)
    made.autoescape = html
    translate_templates(made)
    made.filters |= {"moment": moment, "markdown": _rich, "visible": visible, "quoted": _quoted}
    return made


def _rich(text: str) -> str:
    return page_html(text, top=3)


def _quoted(text: str) -> str:
    return "\n".join(f"  > {line}" for line in text.splitlines())
