"""What a cloud takes away is posted to the address that `serve --webhook` names."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from spotwright.client import Client
from spotwright.domain.job_run import Steer
from tests.adapters.webhook.taker import listening
from tests.cli.small_job import small_job
from tests.daemon_process import running_daemon
from tests.e2e.steered_job import one_host, planned_job, started_job, until

pytestmark = pytest.mark.timeout(180)


def test_a_notice_and_what_is_decided_about_it_are_posted(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url, taken = stack.enter_context(listening())
        daemon = stack.enter_context(running_daemon(tmp_path, "--webhook", url))
        client = stack.enter_context(Client(daemon.address))
        planned = planned_job(client, small_job(tmp_path))
        job_id = started_job(client, planned, Steer.ANNOUNCE)
        flags = ["--daemon", daemon.address, "--job-id", job_id]
        host = one_host(stack, tmp_path, planned, flags)
        until(lambda: client.list_agents(job_id=job_id).agents)

        host.cloud.interrupt(seconds=120)
        until(lambda: "replanned" in [event["kind"] for event in taken])

    posted = {event["kind"]: event for event in taken}
    assert {event["job_id"] for event in taken} == {job_id}
    assert posted["interruption-notice"]["facts"]["agent_ids"] == host.name
    assert "interruption-notice" in posted["replanned"]["facts"]["triggers"]
