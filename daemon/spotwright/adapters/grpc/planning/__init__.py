"""PlannerService and CatalogService: computed in worker processes."""
