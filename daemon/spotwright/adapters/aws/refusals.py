"""What AWS said no to, put as what was asked, what was answered and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's, the base of "endpoint unreachable"
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from spotwright.domain.errors import CredentialsError, OutsideWorldError

_TRY_LATER = "try again later"
_CHECK_CREDENTIALS = (
    "check the credentials, the system clock and that the account has this region enabled"
)
_SIGN_IN_AGAIN = "the credentials have expired: sign in again (`aws sso login`) or renew them"
_SLOW_DOWN = "AWS limits the request rate: wait a minute, or refresh fewer regions at a time"
_GIVE_CREDENTIALS = (
    "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws configure`"
)
_CHECK_NETWORK = "check the network, the region's name and AWS_ENDPOINT_URL if it is set"

_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_WAY_OUT_BY_CODE = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "RequestExpired"), _SIGN_IN_AGAIN),
    **dict.fromkeys(
        (
            "AuthFailure",
            "IncompleteSignature",
            "InvalidClientTokenId",
            "OptInRequired",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ),
        _CHECK_CREDENTIALS,
    ),
    **dict.fromkeys(
        ("RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"),
        _SLOW_DOWN,
    ),
}
_ACCESS_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")
_LONGEST_QUOTE = 300


@contextmanager
def asking(action: str, *, region: str) -> Iterator[None]:
    """Turn a failed call, or an answer that cannot be read, into an OutsideWorldError.

    Args:
        action: the IAM action, such as `ec2:DescribeInstanceTypes`.
        region: where it is asked.

    Raises:
        CredentialsError: whoever asks is not known to AWS, or may not.
        OutsideWorldError: anything else.
    """
    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        problem = f"{_said(error)}; {_way_out(error, action)}"
        kind = CredentialsError if _is_about_credentials(error) else OutsideWorldError
        raise kind(f"asked AWS for {action} in {region}: {problem}") from error
    except (LookupError, TypeError, ValueError) as error:
        raise OutsideWorldError(
            f"asked AWS for {action} in {region}: the answer is not in the published shape "
            f"({type(error).__name__}: {_quoted(str(error))}); update boto3 and spotwright, "
            f"and check AWS_ENDPOINT_URL if it is set"
        ) from error


def _said(error: Exception) -> str:
    if isinstance(error, ClientError):
        return _quoted(f"{_code(error)}: {error.response['Error'].get('Message', '')}")
    return _quoted(str(error))


def _quoted(text: str) -> str:
    """Keep the first line, without access keys: AWS may quote the signed request after it."""
    first_line = text.strip().partition("\n")[0]
    return _ACCESS_KEY_ID.sub("[access key]", first_line)[:_LONGEST_QUOTE].rstrip(" .:")


def _way_out(error: Exception, action: str) -> str:
    if isinstance(error, ClientError):
        if _code(error) in _DENIED_CODES:
            return f"allow the IAM action {action} for these credentials"
        return _WAY_OUT_BY_CODE.get(_code(error), _TRY_LATER)
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return _GIVE_CREDENTIALS
    if isinstance(error, (ConnectionError, HTTPClientError)):
        return _CHECK_NETWORK
    if isinstance(error, ResponseParserError):
        return f"it was not AWS that answered, or not in full: {_CHECK_NETWORK}"
    return "check the AWS configuration of this machine (profile, region, credentials)"


def _is_about_credentials(error: Exception) -> bool:
    if isinstance(error, ClientError):
        about = (_SIGN_IN_AGAIN, _CHECK_CREDENTIALS)
        return _code(error) in _DENIED_CODES or _WAY_OUT_BY_CODE.get(_code(error)) in about
    return isinstance(error, (NoCredentialsError, PartialCredentialsError))


def _code(error: ClientError) -> str:
    return error.response["Error"].get("Code", "unknown")
