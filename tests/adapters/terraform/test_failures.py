"""outputs/ holds what Terraform 1.11 and the AWS provider 5.100 printed when they failed so."""

from pathlib import Path

import pytest

from spotwright.adapters.terraform.failures import explain, interrupted

OUTPUTS = Path(__file__).parent / "outputs"


def explained(name: str) -> str:
    output = (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")
    return explain(output, doing="terraform apply")


@pytest.mark.parametrize(
    ("output", "facts"),
    [
        ("stale", ["the state changed", "run the command again"]),
        ("lock", ["ann@laptop", "since 2026-11-18 07:35:03", "force-unlock 021507da-2724-"]),
        ("no_value", ["needs a value for image_uri", "terraform.tfvars"]),
        ("no_credentials", ["were not found", "AWS_PROFILE"]),
        ("expired", ["have expired", "aws sso login"]),
        ("invalid", ["does not accept", "InvalidClientTokenId"]),
        ("denied", ["ec2:CreateSecurityGroup", "policy", "(at aws_security_group.a)"]),
        ("refused", ["http://127.0.0.1:18479/", "connection refused", "AWS_ENDPOINT_URL"]),
        ("no_host", ["https://sts.us-east-1.amazonaws.com/", "no such host"]),
        ("provider_region", ["rents in us-east-1 and", "set to eu-west-1", "region = var.region"]),
        ("region", ["no AWS region us-west-9", "limits.regions"]),
        ("no_registry", ["could not connect to registry.terraform.io", "TF_PLUGIN_DIR"]),
        ("no_mirror", ["was not found in any of the search locations", "TF_PLUGIN_DIR"]),
        ("checksum", [".terraform.lock.hcl", "terraform providers lock"]),
        ("no_module", ["--upgrade-module"]),
        ("newer_state", ["created by Terraform 1.99.0", "--terraform"]),
    ],
)
def test_a_failure_is_explained_with_its_facts_and_a_way_out(output: str, facts: list[str]) -> None:
    text = explained(output)

    assert [fact for fact in facts if fact not in text] == []
    assert text.count("\n") == 0


def test_a_variable_that_fails_its_check_is_quoted_with_the_pool() -> None:
    text = explained("validation")

    assert "Invalid value for variable" in text
    assert "Wrong: worker-g5-xlarge-use1-az4-spot." in text


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("InsufficientInstanceCapacity", "limits.exclude_pools"),
        ("MaxSpotInstanceCountExceeded", "Service Quotas"),
        ("VcpuLimitExceeded", "Service Quotas"),
        ("SpotMaxPriceTooLow", "limits.max_price"),
        ("ExpiredTokenException", "aws sso login"),
    ],
)
def test_what_aws_refuses_is_told_with_the_resource(code: str, way_out: str) -> None:
    output = (
        f"\nError: creating EC2 Instance: operation error EC2: RunInstances, https response error "
        f"StatusCode: 400, RequestID: 1, api error {code}: No.\n\n"
        '  with module.fleet.aws_instance.ps["a"],\n  on main.tf line 1\n'
    )

    text = explain(output, doing="terraform apply")

    assert way_out in text
    assert text.endswith('(at module.fleet.aws_instance.ps["a"])')


def test_an_unknown_error_is_quoted_whole_without_the_warning_before_it() -> None:
    output = (
        "Warning: Old\n\nnever mind\n\nError: Odd\n\n  on a.tf line 1\n\nVery odd.\n\nError: B\n"
    )

    text = explain(output, doing="tofu plan")

    assert text == "tofu plan failed:\nError: Odd\n\n  on a.tf line 1\n\nVery odd.\n(and 1 more)"


@pytest.mark.parametrize(
    ("exit_code", "end"),
    [(2, "ended with exit code 2"), (-9, "was ended by SIGKILL"), (-40, "was ended by signal 40")],
)
def test_an_end_without_an_error_is_told_with_the_last_lines(exit_code: int, end: str) -> None:
    text = explain("panic: oh\ngoroutine 1\n", doing="terraform apply", exit_code=exit_code)

    assert text == f"terraform apply {end}; its last words:\npanic: oh\ngoroutine 1"


def test_an_end_without_a_word_is_told() -> None:
    text = explain("", doing="terraform plan", exit_code=-9)

    assert text == "terraform plan was ended by SIGKILL; its last words:\n(none)"


def test_a_hard_stop_does_not_promise_that_the_state_is_whole() -> None:
    assert "takes in what was left" in interrupted("terraform apply", stop_count=1)
    assert "may not be in the state" in interrupted("terraform apply", stop_count=2)


@pytest.mark.parametrize("doing", ["terraform init", "terraform plan", "tofu state list"])
@pytest.mark.parametrize("stop_count", [1, 2])
def test_a_command_that_makes_nothing_is_not_said_to_have_made_something(
    doing: str, stop_count: int
) -> None:
    text = interrupted(doing, stop_count=stop_count)

    assert text == f"interrupted: {doing} has stopped, and nothing was rented or given up"
