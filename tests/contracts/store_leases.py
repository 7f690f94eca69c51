"""What every store must do with leases."""

import time

from spotwright.usecases.store_ports import Store
from tests.contracts.store_values import in_threads, unused


class LeaseStoreContract:
    """Tests that a subclass inherits."""

    def test_a_lease_has_one_owner_who_can_renew_it(self, store: Store, other: Store) -> None:
        name = unused("lease")

        assert store.lease_owner(name) is None
        assert store.acquire_lease(name, "a", ttl_s=60.0)
        assert not other.acquire_lease(name, "b", ttl_s=60.0)
        assert store.acquire_lease(name, "a", ttl_s=60.0)
        assert other.lease_owner(name) == "a"

    def test_a_lease_that_ran_out_is_free(self, store: Store) -> None:
        name = unused("lease")
        store.acquire_lease(name, "a", ttl_s=0.05)

        deadline_s = time.monotonic() + 10.0
        while not store.acquire_lease(name, "b", ttl_s=60.0):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

        assert store.lease_owner(name) == "b"
        assert not store.acquire_lease(name, "a", ttl_s=60.0)

    def test_a_lease_that_ran_out_has_no_owner(self, store: Store) -> None:
        name = unused("lease")

        assert store.acquire_lease(name, "a", ttl_s=-1.0)

        assert store.lease_owner(name) is None

    def test_only_its_owner_gives_a_lease_back(self, store: Store) -> None:
        name = unused("lease")
        store.acquire_lease(name, "a", ttl_s=60.0)

        store.release_lease(name, "b")
        assert store.lease_owner(name) == "a"
        store.release_lease(name, "a")
        assert store.lease_owner(name) is None
        assert store.acquire_lease(name, "b", ttl_s=60.0)

    def test_of_many_who_want_a_lease_at_once_one_gets_it(self, store: Store, other: Store) -> None:
        name = unused("lease")

        got = in_threads(
            8, lambda i: (store, other)[i % 2].acquire_lease(name, f"owner-{i}", ttl_s=60.0)
        )

        assert sum(got) == 1
        assert store.lease_owner(name) == f"owner-{got.index(True)}"
