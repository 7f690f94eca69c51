"""Files of variables for tests of the module, and a folder that rents by them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.moto_server import MotoServer
from tests.terraform_tool import MODULE, run_terraform


def pool(
    instance_type: str,
    zone_id: str,
    node_count: int,
    *,
    role: str = "worker",
    market: str = "spot",
    efa_interfaces: int = 0,
) -> dict[str, dict[str, Any]]:
    """Return one pool under its key."""
    key = f"{role}-{instance_type.replace('.', '-')}-{zone_id}-{market}"
    return {
        key: {
            "role": role,
            "instance_type": instance_type,
            "zone_id": zone_id,
            "market": market,
            "node_count": node_count,
            "max_price_usd_per_hour": "0.52",
            "efa_interfaces": efa_interfaces,
        }
    }


def fleet(*pools: Mapping[str, Any], name: str = "resnet50", **changes: Any) -> dict[str, Any]:
    """Return variables as a plan writes them."""
    return {
        "schema_version": 1,
        "fleet_name": name,
        "plan_id": "p-1",
        "region": "us-east-1",
        "cost_usd_low": 31.0,
        "cost_usd_high": 38.5,
        "pools": {key: value for each in pools for key, value in each.items()},
    } | changes


class Root:
    """A copy of examples/minimal and the module around it, initialised."""

    def __init__(self, folder: Path, moto: MotoServer) -> None:
        self.moto, self.environment = moto, moto.environment()
        left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", "tests")
        shutil.copytree(MODULE, folder / "terraform", ignore=left_out)
        self.folder = folder / "terraform" / "examples" / "minimal"
        self.must("init", "-input=false")

    def write(self, variables: Mapping[str, Any]) -> None:
        (self.folder / "fleet.auto.tfvars.json").write_text(json.dumps(variables))

    def set(self, **settings: str) -> None:
        """Give the module these settings and no others, each as Terraform writes its value."""
        example = MODULE / "examples" / "minimal" / "main.tf"
        lines = "".join(f"  {name} = {value}\n" for name, value in settings.items())
        text = example.read_text().rstrip().removesuffix("}") + lines + "}\n"
        (self.folder / "main.tf").write_text(text)

    def run(self, *arguments: str, **changes: str) -> tuple[int, str]:
        """Run a command; return its exit code and all that it said."""
        done = run_terraform(self.folder, *arguments, environment=self.environment | changes)
        return done.returncode, done.stdout + done.stderr

    def must(self, *arguments: str) -> str:
        code, said = self.run(*arguments)
        assert code == 0, said
        return said

    def apply(self, variables: Mapping[str, Any]) -> str:
        self.write(variables)
        return self.must("apply", "-auto-approve", "-input=false")

    def is_settled(self) -> bool:
        """Tell whether a plan has nothing to do."""
        code, said = self.run("plan", "-detailed-exitcode", "-input=false")
        assert code in (0, 2), said
        return code == 0

    def counts(self, name: str = "resnet50") -> dict[str, int]:
        """Return how many instances run, by the pool that they are tagged with."""
        counts: dict[str, int] = {}
        for instance in self.moto.instances(name):
            tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
            counts[tags["Pool"]] = counts.get(tags["Pool"], 0) + 1
        return counts


def wanted_counts(variables: Mapping[str, Any]) -> dict[str, int]:
    return {key: each["node_count"] for key, each in variables["pools"].items()}


def left_behind(moto: MotoServer, fleet_name: str = "resnet50") -> dict[str, int]:
    """Count what the module can make, in an account where only it makes things."""
    ec2, iam = moto.client("ec2"), moto.client("iam")
    scaling = moto.client("autoscaling")
    groups = ec2.describe_security_groups()["SecurityGroups"]
    return {
        "instances": len(moto.instances(fleet_name)),
        "groups": len(scaling.describe_auto_scaling_groups()["AutoScalingGroups"]),
        "templates": len(ec2.describe_launch_templates()["LaunchTemplates"]),
        "security groups": len([g for g in groups if g["GroupName"] != "default"]),
        "roles": len(iam.list_roles()["Roles"]),
        "profiles": len(iam.list_instance_profiles()["InstanceProfiles"]),
        "functions": len(moto.client("lambda").list_functions()["Functions"]),
        "log groups": len(moto.client("logs").describe_log_groups()["logGroups"]),
        "buckets": len(moto.client("s3").list_buckets()["Buckets"]),
    }
