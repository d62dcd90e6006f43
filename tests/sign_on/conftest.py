"""A certified provider of OpenID Connect, run for real on loopback, and a school that people come to by it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.web.app import create_app
from tests.ports import free_port
from tests.sign_on.provider import PROVIDER, SECRET, run_provider
from tests.web.conftest import (
    Furniture,
    School,
    _open,
    _quick_passwords,  # noqa: F401 - a fixture
    furnished,  # noqa: F401 - a fixture
    serving,
)

PEOPLE = {
    "eve": {
        "name": "Eve Ekberg",
        "preferred_username": "eve@uni.example",
        "email": "eve@uni.example",
        "email_verified": True,
        "groups": ["teachers", "ddp"],
    },
    "anna-there": {"name": "Anna", "email": "anna@uni.example", "email_verified": True, "groups": []},
    "ines-there": {"name": "Ines", "email": "ines@uni.example", "email_verified": True, "groups": []},
}


@dataclass
class Site:
    """A served school, and the provider's issuer; `use` chooses the client that we are there."""

    school: School
    url: str
    issuer: str
    folder: Path
    furniture: Furniture

    def use(self, client: str) -> School:
        """Be that client from now on, with a new database."""
        folder, store = Path(tempfile.mkdtemp(dir=self.folder)), self.school.store
        shutil.copytree(self.folder / "furnished", folder, dirs_exist_ok=True)
        service = _open(folder / "grader.db", folder, sign_on=_file(folder, self.issuer, client))
        self.school.app.state.service = service
        self.school = School(service, self.school.app, *self.furniture)
        store.close()
        return self.school


def _file(folder: Path, issuer: str, client: str) -> Path:
    secret = (
        "" if client == "none" else f'client_secret = "{SECRET}"\ntoken_endpoint_auth_method = "{client}"'
    )
    path = folder / "sign_on.toml"
    path.write_text(f"""
[[provider]]
id = "uni"
title = "University account"
issuer = "{issuer}"
client_id = "grader {client}"
{secret}
scopes = ["openid", "profile", "email", "groups"]
groups_claim = "groups"
link_by_address = true
open_accounts = true
[provider.roles]
teachers = "instructor"
[[provider.enrolments]]
group = "ddp"
course = "ddp"
role = "instructor"
""")
    return path


@pytest.fixture(scope="session")
def node_modules(repository: Path) -> Path:
    """Folder with the provider and all that it needs, as the lock file says; kept for the next run."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("no Node.js found; `apt-get install nodejs npm` brings it")
    digest = hashlib.sha256((PROVIDER / "package-lock.json").read_bytes()).hexdigest()[:16]
    kept = repository / "build" / f"oidc_provider-{digest}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=kept.parent))
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PROVIDER / name, made)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        try:
            made.rename(kept)
        except OSError:
            # Another run was quicker.
            shutil.rmtree(made)
    return kept


@pytest.fixture(scope="module")
def site(
    furnished: tuple[Path, Furniture],  # noqa: F811 - the fixture
    node_modules: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder, (state, furniture) = tmp_path_factory.mktemp("sign-on"), furnished
    shutil.copytree(state, folder / "furnished")
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    first = folder / "first"
    shutil.copytree(state, first)
    service = _open(first / "grader.db", first, sign_on=_file(first, issuer, "none"))
    app = create_app(service)
    with serving(app) as url:
        process = run_provider(node_modules, port, url, PEOPLE)
        made = Site(School(service, app, *furniture), url, issuer, folder, furniture)
        try:
            yield made
        finally:
            process.kill()
            process.wait(30)
            made.school.store.close()
