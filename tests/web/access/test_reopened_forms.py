"""An address that a form was sent to, opened again: it leads to the page with the form, for those who may see it."""

from __future__ import annotations

from tests.web.conftest import School


def test_addresses_of_forms_lead_back_to_their_pages(school: School) -> None:
    attempt, anna_id = school.judge("anna"), school.people["anna"]
    at = f"/courses/{school.course}"
    anna, ines, ada = school.client("anna"), school.client("ines"), school.client("ada")
    for browser, sent_to, page in (
        (anna, f"/attempts/{attempt}/cancel", f"/attempts/{attempt}"),
        (ines, f"/attempts/{attempt}/override", f"/attempts/{attempt}/review"),
        (ines, f"/attempts/{attempt}/decide", f"/attempts/{attempt}/review"),
        (ines, f"{at}/people/import/take-over", f"{at}/people"),
        (ines, f"{at}/people/{anna_id}/role", f"{at}/people/{anna_id}"),
        (ada, f"/admin/people/{anna_id}/role", f"/admin/people/{anna_id}"),
    ):
        answer = browser.get(sent_to)
        assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert anna.get(f"/attempts/{attempt}/override").status_code == 404


def test_what_only_takes_forms_says_so(school: School) -> None:
    answer = school.client("anna").get("/sign-out")
    assert answer.status_code == 405
    assert "only takes what a form sends" in answer.text
