"""What the service refuses, as errors of ours: whose fault it is, in its own words, and when it will be otherwise."""

from __future__ import annotations

import re
from typing import Any

import httpx

from grader.errors import GraderError, InfraError, UsageError

_ATTEMPT = re.compile(r"/attempts/(\d+)(?:/|$)")


def refusal(url: str, response: httpx.Response) -> GraderError:
    """The error that an answer stands for; never holds anything that was sent.

    When it will be otherwise the message says itself; `lifted_at` is for programs.
    """
    status = response.status_code
    said = _said(response)
    message = str(said.get("message") or f"{url} answered {status}")
    if status == 401:
        again = (
            "" if response.request.url.path.endswith("/tokens") else f" `grader login {url}` signs in anew."
        )
        return UsageError(message + again)
    if 300 <= status < 400:
        return UsageError(
            f"{url} leads elsewhere, to {response.headers.get('location', 'nowhere')}: sign in there"
        )
    wanted = _ATTEMPT.search(response.request.url.path)
    if status == 404 and said and wanted is not None:
        return UsageError(f"{url} has no attempt {wanted[1]} that you may see: `grader status` lists yours")
    if status == 404 and not said:
        return UsageError(f"{url} answers, but is no grader of this version")
    if status >= 500:
        return InfraError(message)
    if status == 429 and "retry-after" in response.headers:
        message += f" ({url} asks to wait {response.headers['retry-after']} s.)"
    return UsageError(message)


def _said(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    said = answer.get("error") if isinstance(answer, dict) else None
    return said if isinstance(said, dict) else {}
