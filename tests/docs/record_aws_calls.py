"""Record which AWS calls a fleet's life makes: `python -m tests.docs.record_aws_calls`.

Terraform with the real provider rents, changes and gives up two fleets on an emulated account, one
with every setting and one with functions; its log names each call, and its state what was made by
ARN. What `reconcile` and `certs publish` ask is seen in botocore. The result is
tests/data/aws/terraform_calls.json.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from spotwright.cli.entry import main as run_command
from tests.cli.command import spotwright_here
from tests.moto_server import MotoServer, moto_server
from tests.terraform.fleets import fleet, pool
from tests.terraform_tool import MODULE, run_terraform

RECORDED = Path(__file__).parents[1] / "data" / "aws" / "terraform_calls.json"
_SERVERLESS = MODULE.parent / "tests/terraform/golden/mobilenet-serverless.tfvars.json"
_METHOD = re.compile(r"rpc\.method=(\w+)")
_SERVICE = re.compile(r'rpc\.service=("[^"]+"|\w+)')
_KIND = re.compile(r'^(?:resource|data) "(aws_\w+)"', re.MULTILINE)
_OF_ONE_RUN = re.compile(
    r"\d{18,}|(?<=[/-])[0-9a-f]{8,}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_PREFIX = {  # of a service's actions
    "Auto Scaling": "autoscaling",
    "CloudWatch Logs": "logs",
    "EC2": "ec2",
    "IAM": "iam",
    "Lambda": "lambda",
    "S3": "s3",
    "STS": "sts",
}
_SERVER = pool("m5.xlarge", "use1-az4", 1, role="ps", market="on-demand")
_LIFE = (  # made, counts changed, a pool of another type, and without the server
    fleet(pool("g5.xlarge", "use1-az4", 2), _SERVER),
    fleet(pool("g5.xlarge", "use1-az4", 3), _SERVER, plan_id="p-2"),
    fleet(pool("g5.2xlarge", "use1-az4", 1), _SERVER, plan_id="p-3"),
    fleet(pool("g5.2xlarge", "use1-az4", 1), plan_id="p-4"),
)


class _Root:
    """A Terraform root of our own that logs every call."""

    def __init__(self, folder: Path, moto: MotoServer) -> None:
        self.folder, self.log = folder, folder / "calls.log"
        self.made: dict[str, set[str]] = {}  # ARNs by kind
        self.environment = moto.environment() | {
            "TF_LOG_PROVIDER": "debug",
            "TF_LOG_PATH": str(self.log),
        }

    def run(self, *arguments: str) -> None:
        done = run_terraform(self.folder, *arguments, environment=self.environment, timeout_s=600.0)
        assert done.returncode == 0, done.stdout + done.stderr

    def apply(self, variables: dict[str, Any]) -> None:
        (self.folder / "fleet.auto.tfvars.json").write_text(json.dumps(variables))
        self.run("apply", "-auto-approve", "-input=false")
        for resource in json.loads((self.folder / "terraform.tfstate").read_text())["resources"]:
            for instance in resource["instances"]:
                arn = instance["attributes"].get("arn")
                if arn and resource["mode"] == "managed":
                    same = _OF_ONE_RUN.sub("0", arn)  # in every recording
                    self.made.setdefault(resource["type"], set()).add(same)

    def calls(self) -> set[str]:
        calls = set()
        for line in self.log.read_text().splitlines():
            service, call = _SERVICE.search(line), _METHOD.search(line)
            if service and call:
                prefix = _PREFIX[service[1].strip('"')]
                calls.add(f"{prefix}:{call[1]}")
        return calls


def main() -> None:
    """Record, and write what was found."""
    with tempfile.TemporaryDirectory() as scratch, moto_server() as moto:
        modules, tls = Path(scratch) / "terraform", Path(scratch) / "tls"
        left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", "tests")
        shutil.copytree(MODULE, modules, ignore=left_out)
        assert spotwright_here("certs", "init", "--dir", tls).returncode == 0
        fleets = _Root(modules / "examples" / "complete", moto)
        asked = _live_as_fleet(fleets, moto, tls)
        functions = _Root(modules / "examples" / "serverless", moto)
        _live_as_functions(functions)
        recorded = _told(fleets, functions, asked)
    RECORDED.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")


def _told(fleets: _Root, functions: _Root, asked: set[str]) -> dict[str, Any]:
    return {
        "made by": "python -m tests.docs.record_aws_calls; moto, AWS provider 5.100.0",
        "kinds": kinds_of_resources(),
        "calls": sorted(fleets.calls() | functions.calls() | asked),
        "made": {
            kind: sorted(fleets.made.get(kind, set()) | functions.made.get(kind, set()))
            for kind in sorted({*fleets.made, *functions.made})
        },
    }


def kinds_of_resources() -> list[str]:
    """Return what the module and the one for functions make or look up."""
    texts = [path.read_text() for path in (*MODULE.glob("*.tf"), *MODULE.glob("modules/*/*.tf"))]
    return sorted({kind for text in texts for kind in _KIND.findall(text)})


def _live_as_fleet(root: _Root, moto: MotoServer, tls: Path) -> set[str]:
    """Rent, change and give up; return what was asked beside Terraform."""
    folder, main_file = root.folder, root.folder / "main.tf"
    text = re.sub(r".*(cluster_placement_group|ami_names) .*\n", "", main_file.read_text())
    main_file.write_text(text)  # moto has no placement groups, and images by other names
    settings = {
        "daemon_address": "gpu-head.internal:7443",
        "ca_file": str(tls / "ca.crt"),
        "subnet_ids": {"use1-az4": _subnet(moto, "use1-az4")},
    }
    (folder / "more.auto.tfvars.json").write_text(json.dumps(settings))
    root.run("init", "-input=false")
    for variables in _LIFE:
        root.apply(variables)
    main_file.write_text(
        text.replace("CostCentre", "Centre").replace("= 14", "= 30").replace("= 2 #", "= 1 #")
    )
    root.apply(_LIFE[0])
    asked = _asked_calls(moto, folder, tls)
    root.run("destroy", "-auto-approve", "-input=false")
    return asked


def _live_as_functions(root: _Root) -> None:
    folder = root.folder
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training"
    (folder / "more.auto.tfvars.json").write_text(json.dumps({"image_uri": f"{image}:v1"}))
    root.run("init", "-input=false")
    variables = json.loads(_SERVERLESS.read_text())
    root.apply(variables)
    (folder / "more.auto.tfvars.json").write_text(json.dumps({"image_uri": f"{image}:v2"}))
    functions = {"memory_mb": 256, "function_count": 20}
    root.apply(variables | {"plan_id": "p-2", "functions": functions})
    root.run("destroy", "-auto-approve", "-input=false")


def _subnet(moto: MotoServer, zone_id: str) -> str:
    filters = [{"Name": "availability-zone-id", "Values": [zone_id]}]
    return str(moto.client("ec2").describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"])


def _asked_calls(moto: MotoServer, folder: Path, tls: Path) -> set[str]:
    """Publish, renew and remove certificates in both stores, and compare once."""
    calls: set[str] = set()
    with _recorded(calls), patch.dict(os.environ, moto.environment(), clear=True):
        for store in ("ssm", "secretsmanager"):
            publish = ["certs", "publish", "--fleet-dir", str(folder), "--store", store]
            _command(*publish, "--dir", str(tls))
            other = tls.with_name(f"other-{store}")  # another authority: all are renewed
            _command("certs", "init", "--dir", str(other))
            moto.client("ec2").terminate_instances(
                InstanceIds=[moto.instances("resnet50")[0]["InstanceId"]]
            )
            _command(*publish, "--dir", str(other))
        _command("reconcile", "--dir", str(folder), "--no-drift")
    return calls - {"ec2:TerminateInstances"}


def _command(*arguments: str) -> None:
    with patch.object(sys, "argv", ["spotwright", *arguments]), suppress(SystemExit):
        run_command()


@contextmanager
def _recorded(calls: set[str]) -> Iterator[None]:
    made = BaseClient._make_api_call  # type: ignore[attr-defined]

    def noted(client: Any, operation: str, parameters: Any) -> Any:
        calls.add(f"{client.meta.service_model.service_name}:{operation}")
        return made(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", noted):
        yield


if __name__ == "__main__":
    main()
