"""A job that loses spot nodes, from the cloud's notice to another fleet that is rented."""

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from spotwright.client import Client
from spotwright.domain.job_run import Steer
from tests.daemon_process import running_daemon
from tests.e2e.renting import FLEET, job
from tests.e2e.steered_job import event_of, planned_job, rented_hosts, started_job, until
from tests.moto_server import MotoServer, moto

__all__ = ["job", "moto"]  # fixtures, used by their names

pytestmark = pytest.mark.timeout(500)


def _types(moto: MotoServer) -> Counter[str]:
    return Counter(instance["InstanceType"] for instance in moto.instances(FLEET))


def test_a_job_that_loses_a_spot_node_ends_in_another_fleet_that_is_rented(
    job: Path, moto: MotoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in moto.environment().items():
        monkeypatch.setenv(name, value)
    fleets = tmp_path / "fleets"
    with ExitStack() as stack:
        daemon = stack.enter_context(running_daemon(tmp_path, "--fleets", str(fleets)))
        client = stack.enter_context(Client(daemon.address))
        planned = planned_job(client, job)
        (group,) = planned.plan.prediction.fleet.workers
        job_id = started_job(client, planned, Steer.APPLY)
        flags = ["--daemon", daemon.address, "--job-id", job_id]
        hosts = rented_hosts(stack, tmp_path, planned, flags)
        until(lambda: event_of(client, job_id, "applied"))
        assert _types(moto) == {group.instance_type.name: group.node_count}
        until(lambda: len(client.list_agents(job_id=job_id).agents) == len(hosts))

        hosts[0].cloud.interrupt(seconds=120)
        replanned = until(lambda: event_of(client, job_id, "replanned"))
        until(lambda: event_of(client, job_id, "applied", after=replanned.sequence))

        variables = json.loads((fleets / job_id / "fleet.auto.tfvars.json").read_text())
        wanted = Counter[str]()
        for pool in variables["pools"].values():
            wanted[pool["instance_type"]] += pool["node_count"]
        assert _types(moto) == wanted
        assert wanted != {group.instance_type.name: group.node_count}
        now = client.get_job(job_id)
        assert now.plan_id == variables["plan_id"] == replanned.facts["plan_id"]
        assert now.first_plan_id == planned.plan_id
        assert now.course.forecast is not None
        kept, _ = client.get_plan(now.plan_id)
        assert kept.plan.prediction.fleet.workers
        assert (hosts[0].agent.runtime_dir / "checkpoint.json").exists()  # training was told
        kinds = [event.kind for event in client.list_job_events(job_id, page_size=1000)]
        assert kinds.count("apply-started") == kinds.count("applied") == 2
