"""What a failed Terraform run means for the user, and the way out.

Terraform wraps its errors at 78 columns, so patterns are looked for in one long line. The first
that fits explains; where none does, Terraform's own first error is quoted whole.
"""

import re
import signal
from collections.abc import Sequence

_PREAMBLE = "Terraform encountered problems during initialisation"
_GOES_ON = (
    "run `spotwright apply` again, or `spotwright destroy`: each takes in what was left, and goes "
    "on from there"
)
_TAIL = 20  # lines to quote where Terraform ended without an error of its own

# Pattern and explanation; {0} is the first group of the pattern.
_KNOWN: Sequence[tuple[str, str]] = (
    (
        r"Saved plan is stale",
        "the state changed after this plan was made, so nothing was done; run the command again to "
        "plan from what is there now",
    ),
    (
        r"Unsupported state file format: (.*?created by Terraform [\d.]*\d)",
        "{0}; use that version or a newer one (--terraform PATH)",
    ),
    (
        r"Unsupported state file format: (The state file could not be parsed .*?)\.(?: |$)",
        "the state is damaged: {0}; bring back the last whole one (terraform.tfstate.backup in the "
        "folder, or an older version in the backend)",
    ),
    (
        r"state snapshot was created by Terraform v([\w.-]*\w)",
        "the state was written by Terraform {0}; use that version or a newer one "
        "(--terraform PATH)",
    ),
    (
        r"Error acquiring the state lock.*?Error message: (?!.*Lock Info)(.*?) Terraform acquires",
        "cannot lock the state: {0}; check that the folder can be written and that its backend "
        "answers",
    ),
    (
        r"No value for required variable.*?input variable \"(\w+)\" is not set",
        "the folder needs a value for {0}; put `{0} = ...` into its terraform.tfvars",
    ),
    (
        # By itself it is one of several errors, of which the first would be about a subnet.
        r"The plan rents in (\S+) and the AWS provider is set to (\S+): ",
        "the plan rents in {0} and the folder's AWS provider is set to {1}; write "
        "`region = var.region` into its provider block",
    ),
    (
        r"No valid credential sources found",
        "AWS credentials were not found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or run `aws configure`",
    ),
    (
        r"api error (?:ExpiredToken\w*|RequestExpired): |SSO .*?(?:token|session).*?expired",
        "the AWS credentials have expired; get new ones (`aws sso login`, or a new session token) "
        "and run the command again",
    ),
    (
        r"api error (InvalidClientTokenId|AuthFailure|SignatureDoesNotMatch"
        r"|UnrecognizedClientException)",
        "AWS does not accept these credentials ({0}); check AWS_PROFILE or AWS_ACCESS_KEY_ID, its "
        "secret and session token, and this machine's clock",
    ),
    (
        r"api error \w+: (?:(?!api error ).)*?not authorized to perform: ([\w-]+:\w+)",
        "AWS does not allow these credentials {0}; add that action to their policy, or use others",
    ),
    (
        r"operation error ([\w ]+: \w+), (?:(?!operation error ).)*?api error "
        r"(?:UnauthorizedOperation|AccessDenied\w*)",
        "AWS does not allow these credentials {0}; add that action to their policy, or use others",
    ),
    (
        r"(?:invalid AWS Region|Invalid region value)[:\s]+\"?([\w-]+)",
        "there is no AWS region {0}; change the job's limits.regions and plan again",
    ),
    (
        r"api error (?:OptInRequired|UnauthorizedRegion\w*)",
        "this AWS account has not enabled the region; enable it in the account's settings, or "
        "change the job's limits.regions and plan again",
    ),
    (
        r"InsufficientInstanceCapacity",
        "AWS has no capacity left for one of the pools; try again later, or put that pool into the "
        "job's limits.exclude_pools and plan again",
    ),
    (
        r"MaxSpotInstanceCountExceeded",
        "the fleet needs more spot instances than the account's quota; raise it in Service Quotas, "
        "or state it in the job's limits.max_vcpus and plan again",
    ),
    (
        r"VcpuLimitExceeded|InstanceLimitExceeded",
        "the fleet needs more vCPUs than the account's quota; raise it in Service Quotas, or state "
        "it in the job's limits.max_vcpus and plan again",
    ),
    (
        r"SpotMaxPriceTooLow",
        "the spot price has risen above a pool's ceiling; plan again with fresh prices "
        "(`spotwright catalog refresh`), or raise limits.max_price of the job and plan again",
    ),
    (
        r"(provider \S+ was not found in any of the search locations"
        r"|could not connect to registry\.[\w.]*\w)",
        "the AWS provider cannot be had: {0}; connect to the registry, or set TF_PLUGIN_DIR to a "
        "mirror (`terraform providers mirror DIR` writes one where there is a connection)",
    ),
    (
        r"doesn't match any of the checksums previously recorded",
        "the provider found here is not the one in .terraform.lock.hcl, perhaps written on another "
        "platform; `terraform providers lock` adds this one, or delete the file if you "
        "trust the provider",
    ),
    (
        r"(locked provider .*? does not match configured version constraint [^;]*)",
        "{0}; run `terraform init -upgrade` in the folder",
    ),
    (
        r"Unreadable module directory",
        "the configuration calls a module that is not there; --upgrade-module puts "
        "spotwright-module back",
    ),
    (
        r"(Module not installed|Inconsistent dependency lock file|Backend initialization required"
        r"|Required plugins are not installed|Backend configuration changed)",
        "the folder has to be initialised again ({0}); run the command again",
    ),
    (
        r"request send failed, \w+ \"([^\"]*)\": (?:dial \w+ ?[^:]*:\d*:?|dial \w+:)? ?(.*?) with ",
        "AWS cannot be reached at {0}: {1}; check the connection, the region and AWS_ENDPOINT_URL",
    ),
    (
        r"request send failed, \w+ \"([^\"]*)\"",
        "AWS cannot be reached at {0}; check the connection, the region and AWS_ENDPOINT_URL",
    ),
)


def explain(output: str, *, doing: str, exit_code: int = 1) -> str:
    """Return what went wrong in a run that failed, and what to do.

    Args:
        output: what Terraform printed.
        doing: the command, for example `terraform apply`.
        exit_code: how it ended; a signal that ended it is negative.
    """
    errors = _error_blocks(output)
    held = _lock_holder(output, program=doing.partition(" ")[0])
    if held is not None:
        return f"{doing}: {held}"
    for block in errors or [output]:  # `state` has errors that do not begin with the word
        flat = " ".join(block.split())
        for pattern, explanation in _KNOWN:
            found = re.search(pattern, flat)
            if found is not None:
                return f"{doing}: {explanation.format(*found.groups())}{_place(block)}"
    if not errors:
        last_lines = "\n".join(output.splitlines()[-_TAIL:])
        return f"{doing} {_end(exit_code)}; its last words:\n{last_lines or '(none)'}"
    more = f"\n(and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{doing} failed:\n{errors[0]}{more}"


def interrupted(doing: str, *, stop_count: int) -> str:
    """Return what a run that was asked to stop has left behind."""
    if doing.partition(" ")[2] != "apply":
        return f"interrupted: {doing} has stopped, and nothing was rented or given up"
    if stop_count > 1:
        return (
            f"interrupted: {doing} stopped at once, and what it was making may not be in the "
            f"state; {_GOES_ON}"
        )
    return (
        f"interrupted: {doing} has stopped. The AWS provider breaks off the calls at hand, so that "
        f"nodes may run that the state does not hold; {_GOES_ON}"
    )


def _end(exit_code: int) -> str:
    """Return how a run ended that did not say why."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:  # one that has no name, as real-time signals have none
        return f"was ended by signal {-exit_code}"


def _error_blocks(output: str) -> list[str]:
    """Return Terraform's errors: each from its `Error:` to the next one or the end."""
    parts = re.split(r"^(?=(?:Error|Warning): )", output, flags=re.MULTILINE)
    blocks = [part.strip() for part in parts if part.startswith("Error: ")]
    return [block for block in blocks if _PREAMBLE not in " ".join(block.split())]


def _lock_holder(output: str, *, program: str) -> str | None:
    """Return who holds the state, if that is why Terraform did nothing."""
    if "Error acquiring the state lock" not in output or "Lock Info:" not in output:
        return None
    told = dict(re.findall(r"^ +(ID|Who|Operation|Created): +(.+?) *$", output, re.MULTILINE))
    since = told.get("Created", "an unknown time").partition(".")[0]
    what = told.get("Operation", "").removeprefix("OperationType").lower() or "a command"
    return (
        f"{told.get('Who', 'somebody')} has locked the state since {since} ({what}); wait until "
        f"that has ended. Only if nobody runs it any more: `{program} force-unlock "
        f"{told.get('ID', 'ID')}`"
    )


def _place(block: str) -> str:
    """Return which resource an error is about, where Terraform says it."""
    found = re.search(r"^ +with ((?!provider).+),$", block, re.MULTILINE)
    return f" (at {found[1]})" if found else ""
