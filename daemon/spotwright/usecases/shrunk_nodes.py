"""The workers of a fleet that have become less, from what their hosts told."""

from collections.abc import Mapping

from spotwright.domain.shrunk import Part, Resource, Shrinkage, ShrunkHost, ShrunkNode
from spotwright.usecases.view_job import Seen


def shrunk_nodes(seen: Seen, shrunk: Mapping[Part, ShrunkHost]) -> tuple[ShrunkNode, ...]:
    """Return those of the nodes that are wanted."""
    hosts = {host.node_id: host for host in seen.hosts}
    found = []
    for node in seen.view.nodes:
        names = {agent.facts.agent_id for agent in hosts[node.node_id].agents}
        parts = [host for part, host in sorted(shrunk.items()) if part.agent_id in names]
        if parts:
            slowed = [p.slowed for p in parts if p.part.resource is Resource.CPU]
            reached = [p.now for p in parts if p.part.resource is Resource.NETWORK]
            found.append(
                ShrunkNode(
                    node_id=node.node_id,
                    pool=node.pool,
                    shrinkage=Shrinkage(
                        compute_factor=max(slowed, default=1.0),
                        network_mbps=min(reached, default=None),
                    ),
                    text=", ".join(part.text for part in parts),
                )
            )
    return tuple(found)
