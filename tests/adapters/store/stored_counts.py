"""What a store holds of an agent, for tests that compare it with what was acknowledged."""

from spotwright.usecases.store_ports import Store


def stored_sequences(store: Store, agent_id: str) -> list[int]:
    sequences, after = [], 0
    while page := store.batches(
        agent_id, start_unix_ms=0, end_unix_ms=2**52, after=after, limit=1000
    ):
        sequences += [batch.key.sequence for _, batch in page]
        after = page[-1][0]
    return sequences


def rolled_up_counts(store: Store, agent_id: str) -> dict[int, int]:
    """Return how many host samples the rollups of each resolution count."""
    return {
        resolution_s: sum(
            part.host_sample_count
            for part in store.rollups(
                agent_id,
                resolution_s=resolution_s,
                start_unix_s=0,
                end_unix_s=2**40,
                limit=100_000,
            )
        )
        for resolution_s in (10, 60)
    }
