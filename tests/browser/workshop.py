"""A site as an institution has it, of real parts, and its people.

Web, worker and relay are processes of their own, and so is a certified provider of sign-on; a mail server and a
learning platform stand beside them.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from aiosmtpd.controller import Controller
from sqlalchemy import update

from grader.store.clock import database_now
from grader.store.people import people
from grader.store.tables import DeliveryRow
from grader.store.tables.person import Role
from tests.browser.conftest import Window
from tests.delivery.conftest import Inbox, plain
from tests.ports import free_port
from tests.sign_on.provider import SECRET, be, run_provider, sign_on
from tests.web.conftest import PASSWORD
from tests.web.learning_platform import ROLE, TestPlatform, address, running_platform
from tests.worker.rig import Rig, wait_until

LEARNERS = [f"learner{number:02}" for number in range(1, 21)]
TEACHER, ASSISTANT, ADMIN = "ines", "asta", "ada"
SIGN_ON = """
[[provider]]
id = "uni"
title = "University account"
issuer = "{issuer}"
client_id = "grader client_secret_basic"
client_secret = "{secret}"
scopes = ["openid", "profile", "email", "groups"]
groups_claim = "groups"
link_by_address = true
open_accounts = true
[provider.roles]
teachers = "instructor"
"""


def section_of(login: str) -> str:
    """Half of the learners are in each of two sections."""
    return "Monday" if LEARNERS.index(login) < 10 else "Friday"


def roster() -> str:
    """The list of people as the institution has it."""
    lines = [f"{one},{one.title()},{section_of(one)},s-{one},{one}@uni.example,learner" for one in LEARNERS]
    lines.append(f"{ASSISTANT},Asta Assistant,Monday,s-asta,{ASSISTANT}@uni.example,assistant")
    return "\n".join(["login,name,section,id,email,role", *lines]) + "\n"


@dataclass
class Workshop:
    """The site and what stands around it; `issuer`: of the provider of sign-on."""

    rig: Rig
    url: str
    issuer: str
    inbox: Inbox
    platform: TestPlatform
    opened: ExitStack

    def sign_on(self, window: Window, login: str) -> None:
        """Be somebody, by the pages of the institution's sign-on, of which we may not say what they ask for."""
        window.page.goto("/account")
        ours = list(window.trouble)
        window.page.click("text=Sign in with University account")
        be(window.page, login)
        window.page.wait_for_url(f"{self.url}/account")
        window.trouble[:] = ours

    def program(self, login: str) -> httpx.Client:
        """A client of the programming interface that somebody signed on with."""
        client = self.opened.enter_context(httpx.Client(base_url=self.url, timeout=60, follow_redirects=True))
        page = sign_on(client, client.get("/sign-on/uni?next=/account"), login)
        found = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert found is not None, page.text
        client.headers["X-CSRF-Token"] = found[1]
        return client

    def launch(self, window: Window, subject: str, role: str) -> None:
        """Open a link to the grader that stands in the learning platform's course."""
        window.page.goto(address("/lti/login", **self.platform.login(login_hint=f"{subject}/{role}")))

    def mailed(self, login: str, says: str) -> str:
        """The text of the mail to somebody that says this, once it is there; none waits for others of its kind."""

        def there() -> str:
            with self.rig.store.write() as connection:
                connection.execute(
                    update(DeliveryRow)
                    .where(DeliveryRow.channel == "mail", DeliveryRow.due_at > database_now())
                    .values(due_at=database_now(-1.0))
                )
            texts = [plain(one) for one in self.inbox.mails if f"{login}@uni.example" in one["To"]]
            return next((text for text in texts if says in " ".join(text.split())), "")

        found: str = wait_until(there, f"a mail to {login} that says “{says}”")
        return found

    def trouble(self, window: Window) -> list[str]:
        """What our pages complained about; that a page of a course is refused is the browser's own word."""
        refused = re.compile(rf"status of 40[34] .* {re.escape(self.url)}/(courses|attempts)/\S+")
        return [
            text
            for text in window.trouble
            if self.issuer not in text and self.platform.url not in text and not refused.search(text)
        ]


@contextmanager
def open_workshop(folder: Path, data: Path, node_modules: Path) -> Iterator[Workshop]:
    """Start all of it; every process ends with the block."""
    port, provider_port, mail_port = free_port(), free_port(), free_port()
    url, issuer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{provider_port}"
    folder.mkdir(exist_ok=True)
    (folder / "sign_on.toml").write_text(SIGN_ON.format(issuer=issuer, secret=SECRET))
    settings = {
        "GRADER_LEASE_S": "30",
        "GRADER_PUBLIC_URL": url,
        "GRADER_SIGN_ON": str(folder / "sign_on.toml"),
        "GRADER_SMTP_URL": f"smtp://127.0.0.1:{mail_port}",
        "GRADER_MAIL_FROM": "Grader <grader@uni.example>",
    }
    inbox = Inbox()
    mail_server = Controller(inbox, hostname="127.0.0.1", port=mail_port)
    mail_server.start()
    rig = Rig(folder, data, f"sqlite:///{folder / 'grader.db'}", settings=settings)
    provider = run_provider(node_modules, provider_port, url, _known_there())
    try:
        people.add_person(rig.store, ADMIN, "Ada Admin", Role.ADMIN, password=PASSWORD)
        rig.relay()
        rig.worker()
        rig.start("web", "web", "--host", "127.0.0.1", "--port", str(port))
        with running_platform(lambda: _json(f"{url}/lti/keys")) as platform, ExitStack() as opened:
            platform.tool, platform.page = url, 8
            platform.members = [_member("ines", "Instructor"), *(_member(one) for one in LEARNERS)]
            wait_until(lambda: _answers(f"{url}/sign-in"), "the site answers")
            yield Workshop(rig, url, issuer, inbox, platform, opened)
    finally:
        rig.close()
        provider.kill()
        provider.wait(30)
        mail_server.stop()


def _known_there() -> dict[str, dict[str, Any]]:
    """People as the provider of sign-on tells of them."""
    return {
        login: {
            "name": login.title(),
            "preferred_username": f"{login}@uni.example",
            "email": f"{login}@uni.example",
            "email_verified": True,
            "groups": ["teachers"] if login == TEACHER else [],
        }
        for login in (TEACHER, ASSISTANT, *LEARNERS)
    }


def _member(login: str, role: str = "Learner") -> dict[str, Any]:
    """Somebody on the platform's list."""
    return {
        "user_id": login,
        "name": login.title(),
        "email": f"{login}@uni.example",
        "roles": [f"{ROLE}{role}"],
        "status": "Active",
    }


def _json(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False
