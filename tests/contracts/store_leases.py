"""What every store must do with leases."""

import time
from collections.abc import Set

from spotwright.usecases.store_ports import Store
from tests.contracts.store_values import in_threads, unused


class LeaseStoreContract:
    """Tests that a subclass inherits."""

    def test_a_lease_has_one_owner_who_can_renew_it(self, store: Store, other: Store) -> None:
        name = unused("lease")

        assert store.acquire_lease(name, "a", ttl_s=60.0)
        assert not other.acquire_lease(name, "b", ttl_s=60.0)
        assert store.acquire_lease(name, "a", ttl_s=60.0)
        assert not other.acquire_lease(name, "b", ttl_s=60.0)

    def test_a_lease_that_ran_out_is_free(self, store: Store) -> None:
        name = unused("lease")
        store.acquire_lease(name, "a", ttl_s=0.05)

        deadline_s = time.monotonic() + 10.0
        while not store.acquire_lease(name, "b", ttl_s=60.0):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

        assert not store.acquire_lease(name, "a", ttl_s=60.0)

    def test_only_its_owner_gives_a_lease_back(self, store: Store) -> None:
        name = unused("lease")
        store.acquire_lease(name, "a", ttl_s=60.0)

        store.release_lease(name, "b")
        assert not store.acquire_lease(name, "b", ttl_s=60.0)
        store.release_lease(name, "a")
        assert store.acquire_lease(name, "b", ttl_s=60.0)

    def test_many_leases_are_taken_renewed_and_given_back_in_one_step(
        self, store: Store, other: Store
    ) -> None:
        names = [unused(f"lease-{i}") for i in range(2_500)]
        theirs = set(names[:2_000:2])

        assert other.acquire_leases(theirs, "b", ttl_s=60.0) == theirs
        mine = store.acquire_leases([*names, *names], "a", ttl_s=60.0)
        assert mine == set(names) - theirs
        assert store.acquire_leases(mine, "a", ttl_s=60.0) == mine
        store.release_leases(names, "a")
        assert other.acquire_leases(names, "b", ttl_s=60.0) == set(names)
        assert store.acquire_leases([], "a", ttl_s=60.0) == set()

    def test_many_who_want_many_leases_at_once_never_share_one(
        self, store: Store, other: Store
    ) -> None:
        names = [unused(f"lease-{i}") for i in range(50)]

        def take(i: int) -> Set[str]:
            wanted = names if i % 2 else names[::-1]
            return (store, other)[i % 2].acquire_leases(wanted, f"owner-{i}", ttl_s=60.0)

        got = in_threads(8, take)

        assert sorted(name for each in got for name in each) == sorted(names)

    def test_of_many_who_want_a_lease_at_once_one_gets_it(self, store: Store, other: Store) -> None:
        name = unused("lease")

        got = in_threads(
            8, lambda i: (store, other)[i % 2].acquire_lease(name, f"owner-{i}", ttl_s=60.0)
        )

        assert sum(got) == 1
        assert store.acquire_lease(name, f"owner-{got.index(True)}", ttl_s=60.0)
