import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from spotwright.domain.access import AccessRole
from spotwright.domain.errors import BadInputError, NotFoundError
from spotwright.usecases.tokens import create_token, list_tokens, read_token, revoke_token
from tests.fakes.memory_token_store import MemoryTokenStore

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def test_a_new_token_is_recognised_by_its_record_and_no_other() -> None:
    store = MemoryTokenStore()
    mine, other = (
        create_token(store, name=name, role=AccessRole.PLANNER, valid_s=None, now=NOW)
        for name in ("ci", "anna")
    )

    presented = read_token(mine.text)

    assert presented is not None
    assert presented.token_id == mine.record.token_id
    assert presented.fits(mine.record)
    assert not presented.fits(other.record)


def test_only_the_sha256_of_256_random_bits_is_kept() -> None:
    store = MemoryTokenStore()

    made = create_token(store, name="ci", role=AccessRole.VIEWER, valid_s=None, now=NOW)

    secret = made.text.split("_", 2)[2]
    [kept] = list_tokens(store)
    assert len(secret) * 6 >= 256  # base64: six bits a letter
    assert kept.secret_hash == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(kept)


def test_no_two_tokens_are_alike() -> None:
    store = MemoryTokenStore()

    texts = {
        create_token(store, name="ci", role=AccessRole.VIEWER, valid_s=None, now=NOW).text
        for _ in range(100)
    }

    assert len(texts) == len(store.records) == 100


def test_a_secret_is_in_no_printed_form_of_what_holds_it() -> None:
    made = create_token(
        MemoryTokenStore(), name="ci", role=AccessRole.VIEWER, valid_s=None, now=NOW
    )
    secret = made.text.split("_", 2)[2]

    presented = read_token(made.text)

    assert secret not in f"{made!r} {made} {presented!r} {presented}"


def test_a_token_is_valid_until_it_expires_and_no_longer() -> None:
    made = create_token(
        MemoryTokenStore(), name="ci", role=AccessRole.VIEWER, valid_s=3600.0, now=NOW
    )

    assert made.record.is_valid(NOW + timedelta(seconds=3599))
    assert not made.record.is_valid(NOW + timedelta(seconds=3600))


def test_a_revoked_token_is_valid_no_more_and_still_listed() -> None:
    store = MemoryTokenStore()
    made = create_token(store, name="ci", role=AccessRole.VIEWER, valid_s=None, now=NOW)

    revoke_token(store, made.record.token_id, now=NOW)

    [kept] = list_tokens(store)
    assert not kept.is_valid(NOW)


def test_revoking_what_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no token 'abc'"):
        revoke_token(MemoryTokenStore(), "abc", now=NOW)


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "a\nb", "ä", "x" * 64])
def test_a_name_that_could_confuse_a_log_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="cannot be the name of a token"):
        create_token(MemoryTokenStore(), name=name, role=AccessRole.VIEWER, valid_s=None, now=NOW)


def test_an_agent_is_sent_to_its_certificate() -> None:
    with pytest.raises(BadInputError, match="certs issue"):
        create_token(MemoryTokenStore(), name="gpu-7", role=AccessRole.AGENT, valid_s=None, now=NOW)


def test_an_end_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(BadInputError, match="beyond the calendar"):
        create_token(MemoryTokenStore(), name="ci", role=AccessRole.VIEWER, valid_s=1e300, now=NOW)


@pytest.mark.parametrize(
    "text",
    ["", "sw", "sw_", "sw__", "sw_0123456789ab_", "sw_0123456789ab_short", "x" * 60,
     f"sw_0123456789AB_{'a' * 43}", f"sw_0123456789ab_{'a' * 44}", f"sw_0123456789ab_{'ä' * 43}",
     f"SW_0123456789ab_{'a' * 43}", f"sw_0123456789ab_{'a' * 43}\n"],
)  # fmt: skip
def test_what_is_not_formed_like_a_token_is_none(text: str) -> None:
    assert read_token(text) is None
