"""What every store must do with plans."""

from dataclasses import replace

import pytest

from spotwright.domain.errors import BadInputError, NotFoundError
from spotwright.usecases.store_ports import PageStart, Store
from tests.contracts.store_values import in_threads, new_plan, unused


class PlanStoreContract:
    """Tests that a subclass inherits."""

    def test_a_plan_comes_back_as_it_was_kept(self, store: Store) -> None:
        plan = new_plan()

        assert store.add_plan(plan) == plan
        assert store.plan(plan.plan_id) == plan

    def test_a_plan_nobody_made_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no plan 'plan-0'"):
            store.plan("plan-0")

    def test_the_same_request_makes_one_plan(self, store: Store) -> None:
        request_id, first, second = unused("request"), new_plan(), new_plan()

        assert store.plan_of_request(request_id) is None
        assert store.add_plan(first, request_id=request_id) == first
        assert store.add_plan(second, request_id=request_id) == first
        assert store.plan_of_request(request_id) == first
        with pytest.raises(NotFoundError):
            store.plan(second.plan_id)

    def test_plans_without_a_request_id_are_all_kept(self, store: Store) -> None:
        first, second = store.add_plan(new_plan()), store.add_plan(new_plan())

        assert store.plan(first.plan_id) != store.plan(second.plan_id)

    def test_one_request_made_at_once_by_many_makes_one_plan(
        self, store: Store, other: Store
    ) -> None:
        request_id = unused("request")

        made = in_threads(
            8, lambda i: (store, other)[i % 2].add_plan(new_plan(), request_id=request_id)
        )

        assert len({plan.plan_id for plan in made}) == 1

    def test_adding_a_plan_again_keeps_the_first(self, store: Store) -> None:
        plan = new_plan()
        store.add_plan(plan)

        assert store.add_plan(plan) == plan

    def test_pages_of_plans_hold_each_once_newest_first_with_ties_by_name(
        self, store: Store
    ) -> None:
        job_name = unused("name")
        made = [new_plan(job_name=job_name, minutes=minutes) for minutes in (1, 2, 2, 2, 3)]
        for plan in [*made, new_plan(minutes=4)]:
            store.add_plan(plan)

        pages, after = [], None
        while page := store.plans(job_name=job_name, after=after, limit=2):
            pages.append(page)
            after = PageStart(page[-1].create_time, page[-1].plan_id)

        expected = sorted(made, key=lambda plan: (-plan.create_time.timestamp(), plan.plan_id))
        assert [len(page) for page in pages] == [2, 2, 1]
        listed = [replace(plan, document=b"") for page in pages for plan in page]
        assert listed == [replace(plan, document=b"") for plan in expected]

    def test_text_that_cannot_be_stored_is_bad_input_or_kept(self, store: Store) -> None:
        plan = replace(new_plan(), job_text="name: \x00")

        try:
            assert store.add_plan(plan) == plan
        except BadInputError as error:
            assert "NUL" in str(error)  # noqa: PT017 - either is right
