"""Where batches come from: items kept near, asked of peers, and prepared once for a whole host."""

from spotwright.train.data.kept_items import KeptItems
from spotwright.train.data.partitioned_items import ItemPeer, PartitionedItems
from spotwright.train.data.shared_batches import BatchPreparer, shared_batches

__all__ = ["BatchPreparer", "ItemPeer", "KeptItems", "PartitionedItems", "shared_batches"]
