"""A learner's way through a course, in a real browser over the real service: nothing here is pretended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.store.people import invitations
from tests import promised
from tests.browser.conftest import SIZES, Windows
from tests.worker.rig import SLOW, Rig

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG_MS = 180_000
CODE = "GRAD002"
WORDS = "four quite random words"


def flawed_text(remark: str = "") -> str:
    """A script that trains past its wrapper, so that nothing averages its gradients."""
    return f"{promised.text('ddp-toy', 'rejected/bypasses_wrapper')}\n# {remark}\n"


def test_from_a_code_by_a_flawed_script_to_the_certificate(
    campus: tuple[Rig, str], windows: Windows, tmp_path: Path
) -> None:
    rig, url = campus
    window = windows(url)
    page = window.page
    code = invitations.invite(rig.store, rig.course, actor_id=None)

    page.goto(f"/join/{code}")
    page.fill("#name", "Eve Learner")
    page.fill("#login", "eve")
    page.fill("#password", WORDS)
    page.click("text=Join the course")
    page.click("text=Toy")

    with page.expect_download() as download:
        page.click("text=Download the skeleton")
    assert Path(download.value.path()).read_text() == (load_task("ddp-toy").skeleton / "train.py").read_text()

    # The text alone gives it away, before anything was handed in.
    flawed = tmp_path / "my first try.py"
    flawed.write_text(flawed_text())
    page.set_input_files("#files", flawed)
    page.wait_for_selector("#found .card")
    assert CODE in page.inner_text("#found")
    assert page.url.endswith(f"/tasks/{rig.course_task}")

    page.click("main button:has-text('Hand in')")
    page.wait_for_url("**/attempts/*")
    attempt = page.url.rpartition("/")[2]
    page.wait_for_selector("[data-step=queue]")
    assert CODE in page.inner_text("main"), "the findings are there while it waits"

    # It goes on and ends in the report without anybody doing anything; a reload on the way changes nothing.
    page.wait_for_selector("[data-step=run].now, #findings-title, .hero", timeout=LONG_MS)
    page.reload()
    page.wait_for_selector(".hero h1", timeout=LONG_MS)
    assert page.inner_text(".hero h1").startswith("Not accepted yet: ")
    assert CODE in page.inner_text("#fix")
    page.click("#fix .quote figcaption a >> nth=0")
    assert page.evaluate("document.querySelector(':target').id").startswith("line-0-")

    # Mended, and pasted this time.
    page.click("text=Hand in again")
    page.click("text=Paste the script instead")
    page.fill("#text", promised.text("ddp-toy", "accepted/flat_script"))
    page.click("main button:has-text('Hand in')")
    page.wait_for_url(lambda where: "/attempts/" in where and not where.endswith(f"/{attempt}"))
    page.wait_for_selector(".hero h1", timeout=LONG_MS)
    assert page.inner_text(".hero h1") == "Accepted: 100 of 100"

    page.click("text=Distributed training")
    page.click("text=Get the certificate")
    page.wait_for_selector(".certificate")
    assert "Eve Learner" in page.inner_text(".certificate")
    page.emulate_media(media="print")
    assert not page.is_visible("header.site")
    assert page.is_visible(".certificate .qr svg")
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) == 1, "it fits on one sheet"

    # Anybody can check it, with nothing but its address.
    guest = windows(url)
    guest.page.goto(page.url)
    assert "This certificate holds" in guest.page.inner_text("main")
    assert window.trouble == []
    assert guest.trouble == []


def test_without_a_script_the_page_goes_on_by_itself(campus: tuple[Rig, str], windows: Windows) -> None:
    rig, url = campus
    window = windows(url, "phone", java_script_enabled=False)
    page = window.page
    window.sign_in("anna")
    page.goto(f"/courses/{rig.course}/tasks/{rig.course_task}")
    page.set_input_files(
        "#files", {"name": "train.py", "mimeType": "text/x-python", "buffer": flawed_text().encode()}
    )
    page.click("text=Check only")
    assert CODE in page.inner_text("#found")
    once_more = flawed_text("once more").encode()
    page.set_input_files("#files", {"name": "train.py", "mimeType": "text/x-python", "buffer": once_more})
    page.click("main button:has-text('Hand in')")
    page.wait_for_url("**/attempts/*")
    page.wait_for_selector(".hero h1", timeout=LONG_MS)
    assert page.inner_text(".hero h1").startswith("Not accepted yet: ")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]


def test_a_script_that_is_chosen_before_the_page_is_ready_is_read_all_the_same(
    campus: tuple[Rig, str], windows: Windows, tmp_path: Path
) -> None:
    rig, url = campus
    window = windows(url)
    window.sign_in("anna")
    page = window.page
    slow: list[Any] = []
    page.route("**/upload.js", lambda route: slow.append(route))  # noqa: PLW0108  a built-in tells no arguments
    with page.expect_request("**/upload.js"):
        page.goto(f"/courses/{rig.course}/tasks/{rig.course_task}", wait_until="commit")
    page.set_input_files("#files", promised.script("ddp-toy", "rejected/bypasses_wrapper", tmp_path))
    assert page.inner_text("#found") == ""
    slow[0].continue_()
    page.wait_for_selector("#found .card")
    assert CODE in page.inner_text("#found")
    assert window.trouble == []


def test_a_run_that_is_cancelled_ends_on_the_page(campus: tuple[Rig, str], windows: Windows) -> None:
    rig, url = campus
    window = windows(url)
    page = window.page
    window.sign_in("anna")
    attempt = rig.hand_in(rig.script(SLOW))
    page.goto(f"/attempts/{attempt}")
    page.wait_for_selector("[data-rank='1'] pre:has-text('step 3')", timeout=LONG_MS)
    page.click("text=Cancel")
    page.click("button:has-text('Cancel it')")
    page.wait_for_selector("h1:has-text('Cancelled')", timeout=LONG_MS)
    assert window.trouble == []
