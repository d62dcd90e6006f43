"""The file that GRADER_SIGN_ON names: its format, and everything that is wrong with it, with line and key.

    local_passwords = true                  false: passwords of our own open nothing any more

    [[provider]]                            one for each; the sign-in page shows them in this order
    id = "university"                       part of our addresses, for the provider to send people back to
    title = "University account"            what people know it as
    issuer = "https://login.example.edu"    as the provider spells it
    client_id = "grader"
    client_secret_file = "university"       beside this file, or client_secret = "…"

Everything else is left out where it is not needed; `ProviderTable` has all of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from grader.catalog.formats.problems import Problem, listed, not_toml, shaped, spelled
from grader.catalog.formats.toml_lines import Key, line_of, lines_of
from grader.errors import UsageError
from grader.store.people.group_roles import CourseRole
from grader.store.tables.person import Role
from grader.web.sign_on.provider import AuthMethod, Provider, SignOnSettings

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Text = Annotated[str, Field(min_length=1, max_length=255)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EnrolmentTable(_Table):
    """`[[provider.enrolments]]`: a group whose members take part in a course."""

    group: Annotated[Text, Field(examples=["ddp-2026"])]
    course: Annotated[Text, Field(examples=["data-parallelism"])]
    role: Annotated[
        Literal["learner", "assistant", "observer", "instructor"], Field(examples=["learner"])
    ] = "learner"
    section: Annotated[Text, Field(max_length=120, examples=["Monday"])] | None = None


class ProviderTable(_Table):
    """`[[provider]]`: who vouches for people, and what that opens here."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$", examples=["university"])]
    title: Annotated[str, Field(min_length=1, max_length=60, examples=["University account"])]
    issuer: Annotated[Text, Field(examples=["https://login.example.edu"])]
    client_id: Annotated[Text, Field(examples=["grader"])]
    client_secret: Annotated[str, Field(examples=["…"])] | None = None
    client_secret_file: Annotated[Text, Field(examples=["university-secret"])] | None = None
    token_endpoint_auth_method: Annotated[AuthMethod, Field(examples=["client_secret_basic"])] = (
        "client_secret_basic"
    )
    scopes: Annotated[list[Text], Field(examples=[["openid", "profile", "email"]])] = [
        "openid",
        "profile",
        "email",
    ]
    groups_claim: Annotated[Text, Field(examples=["groups"])] | None = None
    roles: dict[str, Annotated[Literal["admin", "instructor"], Field(examples=["instructor"])]] = {}
    enrolments: list[EnrolmentTable] = []
    link_by_address: Annotated[bool, Field(examples=[True])] = False
    trusts_addresses: Annotated[bool, Field(examples=[True])] = False
    open_accounts: Annotated[bool, Field(examples=[True])] = False
    domains: Annotated[list[Text], Field(examples=[["example.edu"]])] = []


class SignOnTable(_Table):
    """The whole file."""

    local_passwords: Annotated[bool, Field(examples=[True])] = True
    provider: list[ProviderTable] = []


def load_sign_on(path: Path | None) -> SignOnSettings:
    """What the file says; None: nobody but ourselves vouches for anybody.

    Raises:
        UsageError: it cannot be read, or names everything that has to be mended, with its line.
    """
    if path is None:
        return SignOnSettings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"GRADER_SIGN_ON={path} cannot be read: {error}") from None
    problems: list[Problem] = []
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Without the line itself, which may be the secret's.
        problems = [Problem(not_toml(error, text).line, "this is not TOML; nothing after it was read.")]
        raise UsageError(listed("GRADER_SIGN_ON", str(path), problems)) from None
    lines = lines_of(text)
    # What is wrong with a secret is told without it.
    secrets = [_take_secret(raw, number) for number in range(len(_tables(raw)))]
    parsed, problems = shaped(SignOnTable, raw, lines)
    problems += [
        Problem(line_of(lines, key), f"{spelled(key)}: {said}") for key, said in _meaning(raw, secrets, path)
    ]
    if problems or parsed is None:
        problems.sort(key=lambda problem: problem.line)
        raise UsageError(listed("GRADER_SIGN_ON", str(path), problems))
    providers = tuple(
        _provider(table, _secret(table, secret, path))
        for table, secret in zip(parsed.provider, secrets, strict=True)
    )
    return SignOnSettings(providers, parsed.local_passwords)


def _provider(table: ProviderTable, secret: str) -> Provider:
    return Provider(
        id=table.id,
        title=table.title,
        issuer=table.issuer,
        client_id=table.client_id,
        client_secret=secret,
        auth_method=table.token_endpoint_auth_method,
        scopes=tuple(table.scopes),
        groups_claim=table.groups_claim or "",
        site_roles={group: Role(role) for group, role in table.roles.items()},
        course_roles=tuple(
            (one.group, CourseRole(one.course, Role(one.role), one.section)) for one in table.enrolments
        ),
        link_by_address=table.link_by_address,
        trusts_addresses=table.trusts_addresses,
        open_accounts=table.open_accounts,
        domains=tuple(domain.lower().lstrip("@") for domain in table.domains),
    )


def _tables(raw: dict[str, Any]) -> list[dict[str, Any]]:
    found = raw.get("provider")
    return [one if isinstance(one, dict) else {} for one in found] if isinstance(found, list) else []


def _take_secret(raw: dict[str, Any], number: int) -> object:
    table = raw["provider"][number]
    return table.pop("client_secret", None) if isinstance(table, dict) else None


def _secret(table: ProviderTable, secret: object, path: Path) -> str:
    if table.client_secret_file is not None:
        return (path.parent / table.client_secret_file).read_text(encoding="utf-8").strip()
    return "" if secret is None else str(secret)


def _meaning(raw: dict[str, Any], secrets: list[object], path: Path) -> Iterator[tuple[Key, str]]:
    """What no shape can say. Runs on the raw values, so that one wrong shape does not hide the rest."""
    tables = _tables(raw)
    if raw.get("local_passwords") is False and not tables:
        yield (
            ("local_passwords",),
            "nobody could sign in without passwords and without a provider; add [[provider]].",
        )
    for number, table in enumerate(tables):
        key: Key = ("provider", number)
        for name in ("id", "issuer"):
            if table.get(name) in [one.get(name) for one in tables[:number] if one.get(name) is not None]:
                yield (*key, name), "another provider has this already; each has its own."
        issuer = table.get("issuer")
        if isinstance(issuer, str) and (trouble := _address_trouble(issuer)):
            yield (*key, "issuer"), trouble
        if isinstance(table.get("scopes"), list) and "openid" not in table["scopes"]:
            yield (*key, "scopes"), 'the list has to hold "openid".'
        if (table.get("roles") or table.get("enrolments")) and not table.get("groups_claim"):
            yield key, 'groups are given roles, and no claim names them; add `groups_claim = "groups"`.'
        yield from _secret_trouble(key, table, secrets[number], path)


def _secret_trouble(key: Key, table: dict[str, Any], secret: object, path: Path) -> Iterator[tuple[Key, str]]:
    file = table.get("client_secret_file")
    if secret is not None and (not isinstance(secret, str) or not secret):
        yield (*key, "client_secret"), "must be a text, in quotation marks, that is not empty."
    if secret is not None and file is not None:
        yield (*key, "client_secret_file"), "there is a client_secret, too; leave one of them out."
    elif isinstance(file, str) and file:
        try:
            if not (path.parent / file).read_text(encoding="utf-8").strip():
                yield (*key, "client_secret_file"), f"{path.parent / file} is empty; put the secret in it."
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            yield (*key, "client_secret_file"), f"{path.parent / file} cannot be read: {reason}."


def _address_trouble(issuer: str) -> str:
    try:
        parts = urlsplit(issuer)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment or parts.username:
        return "this is no issuer; write its address, such as https://login.example.edu, as it spells it."
    if parts.scheme == "http" and host not in _LOOPBACK:
        return "over plain http anybody on the way could vouch for anybody; write https://."
    return ""
