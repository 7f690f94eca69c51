"""A planner to ask: the one in this process, or a daemon's."""

from collections.abc import Sequence
from typing import Protocol

from spotwright.domain.hardware import Cloud
from spotwright.domain.questions import (
    Comparison,
    JobDocument,
    NoFleet,
    PlannedFleet,
    PlanQuestion,
    PredictedFleet,
    PredictedTable,
)
from spotwright.usecases.ports import OfferSource


class Planner(Protocol):
    """Answers questions about jobs; a job that cannot be used raises BadInputError."""

    def predict(self, job: JobDocument, fleet: str) -> PredictedFleet:
        """Predict what a fleet, written as an expression, does with a job."""

    def predict_configurations(
        self, job: JobDocument, csv: str, *, csv_name: str
    ) -> PredictedTable:
        """Predict each row of a measurements file, given as its text and name."""

    def compare_fleets(self, job: JobDocument, fleets: Sequence[str]) -> Comparison:
        """Predict several fleets and tell which of them will do."""

    def create_plan(self, job: JobDocument, question: PlanQuestion) -> PlannedFleet | NoFleet:
        """Find the fleet to rent.

        Raises:
            SolverGaveUpError: the search was ended before it found a fleet or a proof.
        """

    def render_tfvars(self, plan_id: str) -> str:
        """Return the Terraform variables that rent the fleet of a plan made here."""

    def catalog(self, cloud: Cloud) -> OfferSource:
        """Return the offers that it plans with."""
