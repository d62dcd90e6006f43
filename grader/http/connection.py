"""A connection to a service, and what can be told from an answer that is none.

Redirects are not followed: a token goes to the address it was made for and nowhere else. Certificates are checked
against the machine's authorities or those of GRADER_CA_FILE.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from grader import __version__
from grader.errors import UsageError
from grader.http.address import service_address
from grader.settings import settings

_API = "/api/v1"


def connection(url: str, token: str, timeout: httpx.Timeout) -> httpx.Client:
    """A client for the programming interface of the service at this address; `token` "": nobody's.

    Raises:
        UsageError: GRADER_CA_FILE names no certificates.
    """
    headers = {"User-Agent": f"grader/{__version__}", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return httpx.Client(base_url=url + _API, headers=headers, timeout=timeout, verify=authorities())


def worker_connection(server: str, token: str, timeout: httpx.Timeout) -> tuple[str, httpx.Client]:
    """The address of a service, and a client that shows it the token of a worker.

    Raises:
        UsageError: that is no address, its token would be read on the way, or there is none.
    """
    if not token:
        raise UsageError(
            "--server takes the token of a worker in GRADER_WORKER_TOKEN or GRADER_WORKER_TOKEN_FILE"
        )
    url = service_address(server)
    return url, connection(url, token, timeout)


def authorities() -> ssl.SSLContext | bool:
    """Whom to believe a certificate: those of GRADER_CA_FILE, or (True) the machine's own.

    Raises:
        UsageError: GRADER_CA_FILE names no certificates.
    """
    ca_file = settings().ca_file
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"GRADER_CA_FILE={ca_file} cannot be read as certificates: {error}") from None


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the service asks for, as a number or a date."""
    told = response.headers.get("retry-after", "")
    if told.isdigit():
        return float(told)
    try:
        moment = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds()) if moment.tzinfo else None


def is_hopeless(error: httpx.TransportError) -> bool:
    """Whether it is a name or a certificate that is wrong, and stays wrong."""
    words = str(error).lower()
    return "certificate" in words or "name or service not known" in words or "nodename" in words


def reason_of(error: Exception) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0] or type(error).__name__
