"""Why a sign-on came to nothing: words for the person who tried, and a reason for the log with nothing secret."""

from __future__ import annotations

from collections.abc import Sequence

from grader.store.people.sign_ons import SignOnRefusal
from grader.translation import gettext


class SignOnError(Exception):
    """A sign-on that ends on a page which says what to do.

    Attributes:
        status: of that page; title, text: what it says.
        reason: for the log: what was wrong, never what was sent.
    """

    def __init__(self, status: int, title: str, text: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.title, self.text, self.reason = status, title, text, reason


def unreachable(provider: str, reason: str) -> SignOnError:
    """The provider is down, slow or broken."""
    return SignOnError(
        503,
        gettext("{provider} does not answer").format(provider=provider),
        gettext(
            "Signing on takes an answer of {provider}, and none came that could be used. Nothing is lost; wait a "
            "minute and try again. If it stays like this, tell those who run this grader."
        ).format(provider=provider),
        reason,
    )


def not_believed(provider: str, reason: str) -> SignOnError:
    """The provider, or somebody in its name, said something that must not be believed."""
    return SignOnError(
        502,
        gettext("{provider} was not believed").format(provider=provider),
        gettext(
            "The answer that came from {provider} does not hold what it must, so nobody was signed in. Try once more. "
            "If it stays like this, tell those who run this grader: its log has the reason."
        ).format(provider=provider),
        reason,
    )


def not_set_up(provider: str, reason: str) -> SignOnError:
    """The provider does not take us for a client of its own."""
    return SignOnError(
        502,
        gettext("{provider} does not know this grader").format(provider=provider),
        gettext(
            "Either side has to be set up differently, and you can do nothing about it: tell those who run this "
            "grader, whose log has the reason."
        ),
        reason,
    )


def refused_there(provider: str, reason: str) -> SignOnError:
    """The person, or the provider, said no."""
    return SignOnError(
        403,
        gettext("You were not signed in"),
        gettext(
            "{provider} let nobody in: you stopped there, or your account there may not be used here. Try again, or "
            "choose another way in."
        ).format(provider=provider),
        reason,
    )


def begin_again(reason: str) -> SignOnError:
    """It took too long, was used already, or began in another browser."""
    return SignOnError(
        400,
        gettext("Begin once more"),
        gettext(
            "This sign-on took too long, was used already, or began in another browser. Nothing has happened; begin "
            "again here, in this browser, with cookies allowed."
        ),
        reason,
    )


def not_admitted(provider_id: str, provider: str, domains: Sequence[str]) -> SignOnError:
    """Only addresses of some domains may come in."""
    return SignOnError(
        403,
        gettext("This account may not come in"),
        gettext(
            "It takes an account of {provider} with a verified address of {domains}. If you have another one there, "
            "sign out there and choose it."
        ).format(provider=provider, domains=gettext(" or ").join(domains)),
        f"{provider_id}: no verified address of its domains",
    )


def refused_here(provider: str, why: SignOnRefusal) -> SignOnError:
    """The provider vouched for somebody, and nothing of ours opens to them."""
    titles = {
        SignOnRefusal.CLOSED: gettext("Your account is closed"),
        SignOnRefusal.ADDRESS_IN_USE: gettext("Link your account first"),
        SignOnRefusal.NO_ACCOUNT: gettext("You have no account here yet"),
    }
    texts = {
        SignOnRefusal.CLOSED: gettext(
            "Somebody has closed your account here. If that is a mistake, ask your instructor or an administrator."
        ),
        SignOnRefusal.ADDRESS_IN_USE: gettext(
            "An account with your address is here already, and an address alone does not open it. Sign in to it as "
            "before, and add {provider} on its account page. If you cannot sign in to it, ask an administrator."
        ),
        SignOnRefusal.NO_ACCOUNT: gettext(
            "{provider} knows you, and this grader does not. Ask your instructor for the code of the course, or to put "
            "you on its list with the address that you have there. If you have a password here, sign in with it and "
            "add {provider} on your account page."
        ),
    }
    return SignOnError(403, titles[why], texts[why].format(provider=provider), f"{provider}: {why}")
