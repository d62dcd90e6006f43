"""The keys by which platforms know the grader: made once, kept to ourselves, replaced without a gap."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from grader.errors import UsageError
from grader.lti.tool_keys import tool_keys


def pem(bits: int = 2048) -> str:
    return RSAKey.generate_key(bits).as_pem(private=True).decode()


def test_a_key_is_made_once_and_readable_for_us_alone(tmp_path: Path) -> None:
    first, second = tool_keys("", tmp_path / "state"), tool_keys("", tmp_path / "state")
    assert first.public() == second.public()
    assert stat.S_IMODE((tmp_path / "state" / "lti_key.pem").stat().st_mode) == 0o600


def test_of_two_keys_the_first_signs_and_both_are_known(tmp_path: Path) -> None:
    old, new = pem(), pem()
    before, both = tool_keys(old, tmp_path), tool_keys(f"{new}\n{old}", tmp_path)
    published = KeySet.import_key_set(both.public())  # type: ignore[arg-type]
    for signed in (before.sign({"iss": "us"}), both.sign({"iss": "us"})):
        claims = jwt.decode(signed, published, algorithms=["RS256"]).claims
        assert claims["exp"] - claims["iat"] == 300
    assert jws.extract_compact(both.sign({}).encode()).headers()["kid"] == both.keys[0].kid
    assert not list(tmp_path.iterdir()), "a key was made though one was given"
    assert all(set(one) <= {"kty", "n", "e", "kid", "use", "alg"} for one in both.public()["keys"])


@pytest.mark.filterwarnings("ignore:Key size")
def test_what_is_no_good_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    short = _short_rsa().decode()
    elliptic = ECKey.generate_key("P-256").as_pem(private=True).decode()
    for given, said in (("not a key", "no private key"), (short, "1024 bits"), (elliptic, "no RSA key")):
        with pytest.raises(UsageError, match=said) as caught:
            tool_keys(given, tmp_path)
        assert "PRIVATE" not in str(caught.value)


def _short_rsa() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(65537, 1024)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
