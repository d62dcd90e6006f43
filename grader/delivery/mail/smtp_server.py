"""The mail server that this site hands its mail to: its address, a connection, and what its answers mean.

An answer about one mailbox is about that mail alone; a server that is away, or refuses us, is so for all.
"""

from __future__ import annotations

import contextlib
import re
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import unquote, urlsplit

from grader.delivery.failures import ChannelAwayError, DeliveryFailedError, DeliveryRefusedError
from grader.errors import UsageError

TIMEOUT_S = 20.0
_PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ENHANCED = re.compile(r"\s*([245])\.(\d{1,3})\.(\d{1,3})\b")
# Of the mailbox itself (5.1.x, 5.2.1); all else may be mended: a full mailbox, or a server that does not want us.
_NO_MAILBOX = {(1, 0), (1, 1), (1, 2), (1, 3), (1, 6), (1, 10), (2, 1)}
_NO_MAILBOX_CODES = (550, 551, 553)
_MAILBOX = re.compile(r"<?(?<![^\s<>])[^\s<>]+@[^\s<>]+>?")
_MOST_ANSWER = 300


class MailboxRefusedError(DeliveryRefusedError):
    """There is no such mailbox: nothing is to be sent there any more."""


@dataclass(frozen=True, slots=True)
class SmtpAddress:
    """Where a mail server is, and as whom to sign in; `user` "": as nobody."""

    scheme: str
    host: str
    port: int
    user: str


def parse_smtp_url(text: str, password: str) -> SmtpAddress:
    """The address of a mail server.

    Raises:
        UsageError: it is none, or a password would travel where others can read it.
    """
    shape = "GRADER_SMTP_URL looks like smtp+starttls://user@host:587, smtps://user@host or smtp://host"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise UsageError(shape) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise UsageError(shape)
    if parts.password is not None:
        raise UsageError("GRADER_SMTP_URL holds a password: give it as GRADER_SMTP_PASSWORD")
    user = unquote(parts.username or "")
    if bool(user) != bool(password):
        raise UsageError(
            "GRADER_SMTP_URL names a user and GRADER_SMTP_PASSWORD their password: both or neither"
        )
    if user and parts.scheme == "smtp" and parts.hostname not in _LOOPBACK:
        raise UsageError("smtp:// would send the password in the clear: use smtps:// or smtp+starttls://")
    return SmtpAddress(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user)


class SmtpServer:
    """An open connection, signed in; `close` it. After any exception open another one."""

    def __init__(self, address: SmtpAddress, password: str, ca_file: Path | None = None) -> None:
        """Connect.

        Raises:
            ChannelAwayError: it does not answer, or does not let us in.
        """
        try:
            self._smtp = self._connected(address, password, ca_file)
        except (OSError, smtplib.SMTPException) as error:
            raise ChannelAwayError(f"the mail server does not take us: {_words(error)}") from None

    def _connected(self, address: SmtpAddress, password: str, ca_file: Path | None) -> smtplib.SMTP:
        smtp: smtplib.SMTP
        if address.scheme == "smtps":
            smtp = smtplib.SMTP_SSL(
                address.host, address.port, timeout=TIMEOUT_S, context=_certificates(ca_file)
            )
        else:
            smtp = smtplib.SMTP(address.host, address.port, timeout=TIMEOUT_S)
        try:
            if address.scheme == "smtp+starttls":
                smtp.starttls(context=_certificates(ca_file))
            if address.user:
                smtp.login(address.user, password)
            smtp.ehlo_or_helo_if_needed()
        except BaseException:
            smtp.close()
            raise
        return smtp

    @property
    def alive(self) -> bool:
        """Whether it still listens; servers hang up on those who have said nothing for a while."""
        try:
            return self._smtp.noop()[0] == 250
        except (OSError, smtplib.SMTPException):
            return False

    def send(self, message: EmailMessage) -> str:
        """Hand a mail over; returns what the server answered.

        Raises:
            MailboxRefusedError: there is no such mailbox.
            DeliveryRefusedError: it never takes this mail.
            DeliveryFailedError: not now.
            ChannelAwayError: it takes none of us.
        """
        try:
            sender, receiver = parseaddr(str(message["From"]))[1], parseaddr(str(message["To"]))[1]
            code, answer = self._smtp.mail(sender)
            if code != 250:
                raise (DeliveryFailedError if _busy(code) else ChannelAwayError)(
                    f"the mail server refuses the sender: {_answer(code, answer)}"
                )
            code, answer = self._smtp.rcpt(receiver)
            if code not in (250, 251):
                raise self._refusal(code, answer)
            code, answer = self._smtp.data(message.as_bytes())
            if code != 250:
                raise (DeliveryFailedError if _temporary(code) else DeliveryRefusedError)(
                    _answer(code, answer)
                )
            return _answer(code, answer)
        except smtplib.SMTPDataError as error:
            kind = DeliveryFailedError if _temporary(error.smtp_code) else DeliveryRefusedError
            raise kind(_words(error)) from None
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryFailedError(f"the mail server went away: {_words(error)}") from None

    def close(self) -> None:
        """Say good-bye where it listens."""
        with contextlib.suppress(OSError, smtplib.SMTPException):
            if self._smtp.sock is not None:
                self._smtp.sock.settimeout(2.0)
            self._smtp.quit()
        self._smtp.close()

    def _refusal(self, code: int, answer: bytes) -> DeliveryFailedError | DeliveryRefusedError:
        told = _answer(code, answer)
        if _temporary(code):
            return DeliveryFailedError(told)
        found = _ENHANCED.match(answer.decode("utf-8", "replace"))
        if found is not None:
            gone = (int(found[2]), int(found[3])) in _NO_MAILBOX
        else:
            gone = code in _NO_MAILBOX_CODES
        return MailboxRefusedError(told) if gone else DeliveryFailedError(told)


def _certificates(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def _temporary(code: int) -> bool:
    return not 500 <= code < 600


def _busy(code: int) -> bool:
    return 400 <= code < 500


def _answer(code: int, answer: bytes) -> str:
    text = " ".join(answer.decode("utf-8", "replace").split())
    # Addresses are somebody's own: what stands in logs does without them.
    return f"{code} {_MAILBOX.sub('<…>', text)}"[:_MOST_ANSWER]


def _words(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        answer = error.smtp_error
        return _answer(error.smtp_code, answer if isinstance(answer, bytes) else str(answer).encode())
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:_MOST_ANSWER]
