"""Fleets, to and from planner.proto."""

from spotwright.adapters.grpc.messages.catalog import (
    instance_type_from_proto,
    instance_type_to_proto,
    offer_from_proto,
    offer_to_proto,
)
from spotwright.adapters.grpc.messages.enums import EnumPairs
from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.v1 import planner_pb2 as pb

ROLES = EnumPairs("role", {Role.WORKER: pb.ROLE_WORKER, Role.PS: pb.ROLE_PS})


def group_to_proto(group: NodeGroup) -> pb.NodeGroup:
    """Return equal nodes as a message."""
    return pb.NodeGroup(
        role=ROLES.to_proto(group.role),
        instance_type=instance_type_to_proto(group.instance_type),
        node_count=group.node_count,
        gpus_per_node=group.gpus_per_node,
        offer=offer_to_proto(group.offer) if group.offer else None,
    )


def group_from_proto(message: pb.NodeGroup) -> NodeGroup:
    """Return equal nodes of a message."""
    instance_type = instance_type_from_proto(message.instance_type)
    offered = message.HasField("offer")
    return NodeGroup(
        role=ROLES.from_proto(message.role),
        instance_type=instance_type,
        node_count=message.node_count,
        gpus_per_node=message.gpus_per_node,
        offer=offer_from_proto(message.offer, instance_type) if offered else None,
    )


def fleet_to_proto(fleet: Fleet) -> pb.Fleet:
    """Return a fleet as a message."""
    functions = fleet.functions
    return pb.Fleet(
        nodes=[group_to_proto(group) for group in fleet.nodes],
        functions=pb.FunctionGroup(
            memory_mb=functions.memory_mb, function_count=functions.function_count
        )
        if functions
        else None,
    )


def fleet_from_proto(message: pb.Fleet) -> Fleet:
    """Return a fleet of a message."""
    functions = message.functions
    return Fleet(
        nodes=tuple(group_from_proto(group) for group in message.nodes),
        functions=FunctionGroup(
            memory_mb=functions.memory_mb, function_count=functions.function_count
        )
        if message.HasField("functions")
        else None,
    )
