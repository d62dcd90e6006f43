"""The file of providers: what is wrong with it is said at start, with its line, and never with a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.store.tables.person import Role
from grader.web.sign_on.provider_file import load_sign_on

GOOD = """\
local_passwords = false
[[provider]]
id = "uni"
title = "University account"
issuer = "https://login.uni.example"
client_id = "grader"
client_secret = "s3cr3t"
"""


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "sign_on.toml"
    path.write_text(text)
    return load_sign_on(path)


def test_all_of_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "lab").write_text("of a file\n")
    path = tmp_path / "sign_on.toml"
    path.write_text(
        GOOD
        + """
[[provider]]
id = "lab"
title = "Lab"
issuer = "https://login.lab.example/realms/lab"
client_id = "grader"
client_secret_file = "secrets/lab"
token_endpoint_auth_method = "client_secret_post"
scopes = ["openid", "email"]
groups_claim = "groups"
link_by_address = true
trusts_addresses = true
open_accounts = true
domains = ["Lab.Example"]
[provider.roles]
"grader admins" = "admin"
[[provider.enrolments]]
group = "g"
course = "ddp"
role = "assistant"
section = "Monday"
"""
    )
    found = load_sign_on(path)
    uni, lab = found.providers
    assert (found.local_passwords, uni.client_secret, lab.client_secret) == (False, "s3cr3t", "of a file")
    assert "s3cr3t" not in repr(found)
    assert lab.admits("a@lab.example")
    assert not lab.admits("a@b.lab.example")
    assert not lab.admits(None)
    given = lab.roles_of(["grader admins", "g"])
    assert given.site is Role.ADMIN
    assert [(one.course, one.role, one.section) for one in given.courses] == [
        ("ddp", Role.ASSISTANT, "Monday")
    ]
    assert load_sign_on(None).local_passwords


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local_passwords = false\n", ":1: local_passwords: nobody could sign in"),
        (GOOD.replace('"uni"', '"Uni/x"'), ":3: provider[0].id: 'Uni/x' is not spelled"),
        (GOOD.replace("https://", "http://"), ":5: provider[0].issuer: over plain http"),
        (GOOD.replace("https://login.uni.example", "uni"), ":5: provider[0].issuer: this is no issuer"),
        (GOOD + "issuers = 1\n", ":8: provider[0].issuers: there is no such key. Write `issuer`."),
        (GOOD + 'scopes = ["email"]\n', ':8: provider[0].scopes: the list has to hold "openid"'),
        (
            GOOD + 'client_secret_file = "x"\n',
            "provider[0].client_secret_file: there is a client_secret, too",
        ),
        (
            GOOD.replace('client_secret = "s3cr3t"', 'client_secret_file = "gone"'),
            "gone cannot be read: No such",
        ),
        (GOOD + '[provider.roles]\n"a" = "admin"\n', "no claim names them"),
        (GOOD + 'groups_claim = "g"\n[provider.roles]\n"a" = "boss"\n', "'boss' should be 'admin' or"),
        (GOOD + GOOD.partition("\n")[2], "provider[1].id: another provider has this already"),
        (GOOD.replace('"s3cr3t"', "73"), ":7: provider[0].client_secret: must be a text"),
        (GOOD.replace('"s3cr3t"', '"s3cr3t'), ":7: this is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        load(tmp_path, text)
    assert said in str(raised.value)
    assert "s3cr3t" not in str(raised.value)
    assert " 73 " not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"GRADER_SIGN_ON=.*cannot be read"):
        load_sign_on(tmp_path / "none.toml")
