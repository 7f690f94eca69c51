from dataclasses import fields
from types import NoneType
from typing import get_args

import pytest

from spotwright.adapters.grpc.messages.accounting import accounts_from_proto, accounts_to_proto
from spotwright.adapters.grpc.messages.job import report_from_proto, report_to_proto
from spotwright.domain.accounts import (
    EventCount,
    EventMark,
    JobAccounts,
    NodeSpan,
    PoolAccount,
    ProgressPoint,
)
from spotwright.domain.ledger import RentedPool
from spotwright.usecases.job_report import JobReport
from spotwright.v1 import accounting_pb2
from tests.usecases.example_fleet import SPOT
from tests.usecases.example_job_run import after, job_run

FULL = JobAccounts(
    until=after(3600.123456),
    pools=(
        PoolAccount(
            instance_type="g5.xlarge",
            zone="use1-az4",
            market="spot",
            planned_market="spot",
            role="worker",
            planned_node_count=4,
            price_usd_per_hour=0.5,
            planned_usd=0.0,
            granted_node_hours=3.25,
            actual_usd=0.0,
            interruption_count=2,
            below_planned_fraction=0.0,
        ),
        PoolAccount(
            instance_type="",
            zone="",
            market="",
            planned_market=None,
            role="",
            planned_node_count=0,
            price_usd_per_hour=None,
            planned_usd=None,
            granted_node_hours=0.0,
            actual_usd=None,
            interruption_count=0,
            below_planned_fraction=None,
        ),
    ),
    timeline=(
        NodeSpan(
            agent_id="a",
            instance_id="i-1",
            pool=SPOT,
            start_time=after(0),
            end_time=after(60.5),
            price_usd_per_hour=0.5,
            is_running=True,
        ),
        NodeSpan(
            agent_id="b",
            instance_id="",
            pool=RentedPool("", "", ""),
            start_time=after(1),
            end_time=after(1),
            price_usd_per_hour=None,
            is_running=False,
        ),
    ),
    event_counts=(EventCount(kind="agent-silent", event_count=3),),
    marks=(EventMark(time=after(7), kind="agent-silent", text="agent a has sent nothing"),),
    progress=(ProgressPoint(time=after(0), fraction=0.0), ProgressPoint(time=after(9), fraction=1)),
    priced_usd=1.625,
    unpriced_node_hours=0.25,
)


@pytest.mark.parametrize("accounts", [FULL, JobAccounts(until=after(0))])
def test_accounts_come_back_as_they_were_and_nothing_unknown_becomes_zero(
    accounts: JobAccounts,
) -> None:
    assert accounts_from_proto(accounts_to_proto(accounts)) == accounts


@pytest.mark.parametrize("accounts", [FULL, None])
def test_a_report_brings_its_accounts_and_that_of_an_older_daemon_has_none(
    accounts: JobAccounts | None,
) -> None:
    report = JobReport(job=job_run(), lines=(), accounts=accounts)

    assert report_from_proto(report_to_proto(report)) == report


def test_of_a_pool_what_may_be_unknown_may_be_absent_and_nothing_else() -> None:
    message = accounting_pb2.PoolAccount.DESCRIPTOR
    may_be_none = {field.name for field in fields(PoolAccount) if NoneType in get_args(field.type)}

    assert [field.name for field in message.fields] == [f.name for f in fields(PoolAccount)]
    assert {field.name for field in message.fields if field.has_presence} == may_be_none
