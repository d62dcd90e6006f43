"""An invitation is mailed to addresses: to all of them or, where one is none, to nobody."""

from __future__ import annotations

from sqlalchemy import select

from grader.store.delivery.delivery_channels import note_channel
from grader.store.people import invitations
from grader.store.tables import DeliveryRow
from tests.web.conftest import School


def receivers(school: School) -> list[str]:
    with school.store.read() as connection:
        return list(connection.execute(select(DeliveryRow.receiver).order_by(DeliveryRow.id)).scalars())


def test_an_invitation_is_mailed(school: School) -> None:
    note_channel(school.store, "mail", set_up=True, problem=None)
    code = invitations.invite(school.store, school.course, actor_id=None)
    here, ines = f"/courses/{school.course}/invitations/{code}/mail", school.client("ines")
    assert here in ines.get(f"/courses/{school.course}/invitations").text
    wrong = ines.post(here, data={"addresses": "a@example.org, nobody, b@example.org"})
    assert wrong.status_code == 422
    assert "No mail address: nobody. Nobody was mailed." in wrong.text
    assert "a@example.org" in wrong.text, "what was typed is there"
    assert receivers(school) == []
    ines.post(here, data={"addresses": "a@example.org\nA@example.org; b@example.org"})
    assert receivers(school) == ["address:a@example.org", "address:b@example.org"]
    ines.post(here, data={"addresses": "b@example.org c@example.org"})
    assert (
        "It is on its way to 1. 1 had it already." in ines.get(f"/courses/{school.course}/invitations").text
    )


def test_a_site_without_mail_says_so_before_and_after(school: School) -> None:
    code = invitations.invite(school.store, school.course, actor_id=None)
    here, ines = f"/courses/{school.course}/invitations/{code}/mail", school.client("ines")
    assert "This site sends no mail" in ines.get(here).text
    assert ines.post(here, data={"addresses": "a@example.org"}).status_code == 422
    assert receivers(school) == []
