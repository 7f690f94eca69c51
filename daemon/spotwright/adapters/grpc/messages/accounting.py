"""Accounts of a job, to and from accounting.proto."""

from dataclasses import asdict

from spotwright.adapters.grpc.messages.scalars import (
    by_name,
    optional,
    time_from_proto,
    time_to_proto,
)
from spotwright.domain.accounts import (
    EventCount,
    EventMark,
    JobAccounts,
    NodeSpan,
    PoolAccount,
    ProgressPoint,
)
from spotwright.domain.ledger import RentedPool
from spotwright.v1 import accounting_pb2 as pb


def accounts_to_proto(accounts: JobAccounts) -> pb.JobAccounts:
    """Return accounts as a message."""
    return pb.JobAccounts(
        until_time=time_to_proto(accounts.until),
        pools=[pb.PoolAccount(**asdict(pool)) for pool in accounts.pools],
        timeline=[_span_to_proto(span) for span in accounts.timeline],
        event_counts=[pb.EventCount(**asdict(count)) for count in accounts.event_counts],
        marks=[
            pb.EventMark(event_time=time_to_proto(mark.time), kind=mark.kind, text=mark.text)
            for mark in accounts.marks
        ],
        progress=[
            pb.ProgressPoint(point_time=time_to_proto(point.time), fraction=point.fraction)
            for point in accounts.progress
        ],
        priced_usd=accounts.priced_usd,
        unpriced_node_hours=accounts.unpriced_node_hours,
    )


def accounts_from_proto(message: pb.JobAccounts) -> JobAccounts:
    """Return the accounts of a message."""
    return JobAccounts(
        until=time_from_proto(message.until_time),
        pools=tuple(PoolAccount(**by_name(pool)) for pool in message.pools),
        timeline=tuple(_span_from_proto(span) for span in message.timeline),
        event_counts=tuple(EventCount(**by_name(count)) for count in message.event_counts),
        marks=tuple(
            EventMark(time=time_from_proto(mark.event_time), kind=mark.kind, text=mark.text)
            for mark in message.marks
        ),
        progress=tuple(
            ProgressPoint(time=time_from_proto(point.point_time), fraction=point.fraction)
            for point in message.progress
        ),
        priced_usd=message.priced_usd,
        unpriced_node_hours=message.unpriced_node_hours,
    )


def _span_to_proto(span: NodeSpan) -> pb.NodeSpan:
    return pb.NodeSpan(
        agent_id=span.agent_id,
        instance_id=span.instance_id,
        **span.pool._asdict(),
        start_time=time_to_proto(span.start_time),
        end_time=time_to_proto(span.end_time),
        price_usd_per_hour=span.price_usd_per_hour,
        is_running=span.is_running,
    )


def _span_from_proto(message: pb.NodeSpan) -> NodeSpan:
    return NodeSpan(
        agent_id=message.agent_id,
        instance_id=message.instance_id,
        pool=RentedPool(message.instance_type, message.zone, message.market),
        start_time=time_from_proto(message.start_time),
        end_time=time_from_proto(message.end_time),
        price_usd_per_hour=optional(message, "price_usd_per_hour"),
        is_running=message.is_running,
    )
