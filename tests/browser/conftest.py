"""A real browser, a real server, and for whole journeys a real worker: every process ends with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from grader.store.people import people
from tests.ports import free_port
from tests.web.conftest import (
    PASSWORD,
    School,
    Served,
    _quick_passwords,  # noqa: F401 - a fixture
    furnished,  # noqa: F401 - a fixture
    school,  # noqa: F401 - a fixture
    served,  # noqa: F401 - a fixture
)
from tests.worker.conftest import data  # noqa: F401 - a fixture
from tests.worker.rig import Rig, wait_until

SIZES = {"phone": (375, 700), "desk": (1280, 900)}
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """Chromium, without a window; for one module, because its driver keeps an event loop running in this thread."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield started
        started.close()


class Window:
    """A browser window with a cookie jar of its own; `trouble` is whatever a page complained about."""

    def __init__(
        self, browser: Any, url: str, size: str = "desk", scheme: str = "light", **options: Any
    ) -> None:
        width, height = SIZES[size]
        self.url, self.width = url, width
        self.context = browser.new_context(
            base_url=url, viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        self.context.set_default_timeout(60_000)
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda said: self.trouble.append(f"{said.text} {said.location['url']}"))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._asked)

    def _dismiss(self, dialog: Any) -> None:
        self.trouble.append(dialog.message)
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.trouble.append(f"asked for {request.url}")

    def sign_in(self, login: str, password: str = PASSWORD) -> None:
        self.page.goto("/sign-in")
        self.page.fill("#login", login)
        self.page.fill("#password", password)
        self.page.click("main button")
        self.page.wait_for_selector(".who")

    def enter(self, there: School, login: str) -> None:
        """Be signed in, without the form."""
        cookies = dict(there.client(login).cookies)
        self.context.add_cookies(
            [{"name": key, "value": value, "url": self.url} for key, value in cookies.items()]
        )


Windows = Callable[..., Window]


@pytest.fixture
def windows(browser: Any) -> Iterator[Windows]:
    """Opens windows; all are closed in the end."""
    opened: list[Window] = []

    def open_window(url: str, *args: Any, **options: Any) -> Window:
        opened.append(Window(browser, url, *args, **options))
        return opened[-1]

    yield open_window
    for window in opened:
        window.context.close()


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[tuple[Rig, str]]:  # noqa: F811
    """A site as `grader serve` runs it: web, worker and relay as processes of their own. And its address."""
    folder = tmp_path_factory.mktemp("campus")
    rig = Rig(folder, data, f"sqlite:///{folder / 'grader.db'}", settings={"GRADER_LEASE_S": "30"})
    people.set_password(rig.store, rig.anna, PASSWORD, must_change=False, actor_id=None)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    rig.relay()
    rig.worker()
    rig.start("web", "web", "--host", "127.0.0.1", "--port", str(port))

    def answers() -> bool:
        try:
            with urlopen(f"{url}/sign-in", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    wait_until(answers, "the site answers")
    yield rig, url
    rig.close()


__all__ = ["School", "Served", "Window", "Windows"]
