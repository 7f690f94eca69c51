"""The least role that each call needs: one table. A method that is not in it is refused."""

from collections.abc import Mapping

from spotwright.domain.access import AccessRole, Principal

_AGENT, _VIEWER, _PLANNER = AccessRole.AGENT, AccessRole.VIEWER, AccessRole.PLANNER
_ADMIN = AccessRole.ADMIN
_REFLECTION = ("grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection")

LEAST_ROLES: Mapping[str, AccessRole] = {
    "/spotwright.v1.CatalogService/GetCatalog": _VIEWER,
    "/spotwright.v1.CatalogService/ListOffers": _VIEWER,
    "/spotwright.v1.CatalogService/ListInstanceTypes": _VIEWER,
    "/spotwright.v1.CatalogService/GetInstanceType": _VIEWER,
    "/spotwright.v1.CatalogService/ListGpus": _VIEWER,
    "/spotwright.v1.CatalogService/GetGpu": _VIEWER,
    "/spotwright.v1.PlannerService/Predict": _VIEWER,
    "/spotwright.v1.PlannerService/PredictConfigurations": _VIEWER,
    "/spotwright.v1.PlannerService/CompareFleets": _VIEWER,
    "/spotwright.v1.PlannerService/CreatePlan": _PLANNER,
    "/spotwright.v1.PlannerService/GetPlan": _VIEWER,
    "/spotwright.v1.PlannerService/ListPlans": _VIEWER,
    "/spotwright.v1.PlannerService/RenderTfvars": _VIEWER,
    "/spotwright.v1.JobService/CreateJob": _PLANNER,
    "/spotwright.v1.JobService/GetJob": _VIEWER,
    "/spotwright.v1.JobService/ListJobs": _VIEWER,
    "/spotwright.v1.JobService/ListJobEvents": _VIEWER,
    "/spotwright.v1.JobService/WatchJob": _VIEWER,
    "/spotwright.v1.JobService/ReportProgress": _PLANNER,
    "/spotwright.v1.JobService/StopJob": _PLANNER,
    "/spotwright.v1.JobService/GetJobReport": _VIEWER,
    "/spotwright.v1.TelemetryService/Session": _AGENT,
    "/spotwright.v1.TelemetryService/ListAgents": _VIEWER,
    "/spotwright.v1.TelemetryService/WatchAgents": _VIEWER,
    "/spotwright.v1.TelemetryService/ListSamples": _VIEWER,
    "/spotwright.v1.TelemetryService/ListRollups": _VIEWER,
    "/spotwright.v1.TelemetryService/SendCommand": _PLANNER,
} | {f"/{service}/ServerReflectionInfo": _ADMIN for service in _REFLECTION}

AGENT_METHODS = frozenset(
    {"/spotwright.v1.TelemetryService/Session", "/spotwright.v1.JobService/ReportProgress"}
)
# A load balancer has a certificate and no token.
OPEN_METHODS = frozenset(f"/grpc.health.v1.Health/{name}" for name in ("Check", "List", "Watch"))

_RANKS = {_VIEWER: 1, _PLANNER: 2, _ADMIN: 3}


def is_allowed(principal: Principal, method: str) -> bool:
    """Tell whether someone may call a method.

    A session is an agent's alone, whatever role a token has: its figures are stored under the name
    that stands in the certificate.
    """
    if method in OPEN_METHODS:
        return True
    if principal.role is _AGENT:
        return method in AGENT_METHODS
    least = LEAST_ROLES.get(method)
    return least in _RANKS and _RANKS[principal.role] >= _RANKS[least]
