"""A process that commits batches of one agent and says so after each commit.

python -m tests.adapters.store.batch_writer URL AGENT_ID
"""

import itertools
import sys

from spotwright.adapters.store.sql_store import open_store
from tests.contracts.store_values import new_agent, new_batch


def main() -> None:
    url, agent_id = sys.argv[1:]
    store, facts = open_store(url), new_agent(agent_id=agent_id)
    last = store.open_session(facts, session_id="session", replica="writer").last_sequence
    for first in itertools.count(last + 1, 5):
        batches = [new_batch(facts, first + i, at_s=(first + i) / 10) for i in range(5)]
        new = store.commit_batches(batches)
        print(*sorted(key.sequence for key in new), flush=True)


if __name__ == "__main__":
    main()
