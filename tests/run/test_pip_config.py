"""A build reaches the index that this machine reaches, by files that exist inside it, and writes no address down."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from grader.run.pip_config import PipConfig, read_pip_config

INDEX = "https://learner:secret@packages.example/all"


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration but what a test sets."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_FIND_LINKS", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)


def options(config: PipConfig) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    parser.read_string(config.text)
    return dict(parser["global"])


def test_without_configuration_the_build_has_none_either() -> None:
    assert not options(read_pip_config("/ca"))


def test_addresses_pass_and_folders_of_this_machine_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", INDEX)
    monkeypatch.setenv("PIP_FIND_LINKS", "/opt/wheels file:///opt/more https://wheels.example/ours")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    found = options(read_pip_config("/ca"))
    assert found == {"index_url": INDEX, "find_links": "https://wheels.example/ours"}


def test_certificates_come_along_under_the_build_s_own_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "authorities.pem"
    bundle.write_text("certificates")
    monkeypatch.setenv("PIP_CERT", str(bundle))
    config = read_pip_config("/run/secrets/ca")
    assert config.certificates == bundle
    assert options(config) == {"cert": "/run/secrets/ca"}


def test_a_bundle_for_all_programs_counts_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "authorities.pem"
    bundle.write_text("certificates")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert read_pip_config("/ca").certificates == bundle


def test_a_variable_beats_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex_url = https://packages.example/file\ntimeout = 7\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_INDEX_URL", INDEX)
    # The machine's own file counts, too, as it does for pip.
    found = options(read_pip_config("/ca"))
    assert (found["index_url"], found["timeout"]) == (INDEX, "7")
