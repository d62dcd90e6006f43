"""The provider as a process, and ways to be one of its people: with a client of HTTP, or in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

PROVIDER = Path(__file__).parent / "oidc_provider"
SECRET = "a secret with %, + and & in it"
CLIENTS = {
    "client_secret_basic": {"id_token_signed_response_alg": "RS256"},
    "client_secret_post": {"id_token_signed_response_alg": "PS256"},
    "none": {"id_token_signed_response_alg": "ES256"},
}
"""How a client shows itself → what else is asked of the provider for it."""


def run_provider(
    node_modules: Path, port: int, url: str, people: dict[str, dict[str, Any]]
) -> subprocess.Popen[bytes]:
    """Start it for the site at `url`; whoever types a login of `people` at its form is that person."""
    clients: list[dict[str, Any]] = [
        {
            "client_id": f"grader {method}",
            "token_endpoint_auth_method": method,
            "redirect_uris": [f"{url}/sign-on/uni/callback"],
            "post_logout_redirect_uris": [f"{url}/sign-in"],
            "scope": "openid profile email groups",
            **({} if method == "none" else {"client_secret": SECRET}),
            **more,
        }
        for method, more in CLIENTS.items()
    ]
    shutil.copy(PROVIDER / "provider.mjs", node_modules)
    command = ["node", "provider.mjs", json.dumps({"port": port, "clients": clients, "people": people})]
    log = node_modules / f"log-{port}"
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=node_modules, stdout=said, stderr=said)
    until = time.monotonic() + 60
    while "\nready\n" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)
    log.unlink()
    return process


def submit(browser: httpx.Client, page: httpx.Response, **typed: str) -> httpx.Response:
    """Send a page's last form, filled in."""
    form = page.text.rpartition("<form")[2].partition("</form>")[0]
    action = re.search(r'action="([^"]*)"', form)
    assert action is not None, page.text
    fields = {}
    for tag in re.findall(r"<input[^>]+>", form):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name is not None:
            fields[name[1]] = unescape(value[1]) if value is not None else ""
    return browser.post(urljoin(str(page.url), unescape(action[1])), data={**fields, **typed})


def sign_on(browser: httpx.Client, page: httpx.Response, login: str) -> httpx.Response:
    """Be that person at the provider, and let the grader know."""
    page = submit(browser, page, login=login, password="anything")
    return submit(browser, page) if "prompt" in page.text else page


def be(page: Any, login: str) -> None:
    """Sign in at the provider, and agree."""
    page.fill("input[name=login]", login)
    page.fill("input[name=password]", "anything")
    page.click("button[type=submit]")
    page.click("button[type=submit]")
