"""A job of the laboratory's daemon, planned and started as anybody's, and the hosts it has.

The plan is for the fleet that a scenario begins with, from a profile of one worker. Hosts work for
the job once their agents are started again with its name, as on machines that were rented for it.
"""

import time
from collections import Counter
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace

from lab.catalog import REGION, pool_of, server_type
from lab.hosts import HostProcess
from lab.laboratory import start_agent
from lab.predict import job_of
from lab.profile import Profile
from lab.scenario import Fault, FaultKind, Scenario
from lab.setting import Setting
from spotwright.adapters.jobfile.write import job_text
from spotwright.domain.errors import JobEndedError, OutsideWorldError
from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.job_run import Event, Forecast, JobRun, Steer
from spotwright.domain.offer import Market, Pool
from spotwright.domain.questions import JobDocument, NoFleet, PlannedFleet

_PATIENCE_S = 60.0
_NO_FLAGS: tuple[str, ...] = ()


def plan_job(setting: Setting, job: JobSpec) -> PlannedFleet:
    """Have the daemon plan a job.

    Raises:
        OutsideWorldError: there is no such fleet.
    """
    document = JobDocument(text=job_text({job.name: job}), name=f"{job.name}.yaml")
    found = setting.client.create_plan(document)
    if isinstance(found, NoFleet):
        raise OutsideWorldError(f"{job.name}: the daemon has no plan: {found.error}")
    return found


def job_for_fleet(scenario: Scenario, profile: Profile, *, steps: int) -> JobSpec:
    """Return a job of so many updates, for just the fleet that a scenario begins with."""
    counts = Counter(pool_of(w.device.name, w.mbps) for w in scenario.starters)
    job = job_of(scenario, profile)
    serving = job.workload.parameter_serving
    if serving is not None:
        server = server_type(scenario.server_mbps).name
        serving = replace(serving, default_type=server, default_count=scenario.server_count)
    return replace(
        job,
        workload=replace(job.workload, parameter_serving=serving),
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=float(steps))),
        limits=Limits(
            regions=frozenset({REGION}),
            instance_types=frozenset(pool.instance_type for pool in counts),
            min_count_by_pool=dict(counts),
            max_nodes=counts.total() + scenario.server_count,
            max_parameter_servers=max(1, scenario.server_count),
            parameter_server_types=frozenset({serving.default_type} if serving else ()),
        ),
    )


@dataclass(slots=True, kw_only=True)
class FollowedJob:
    """A job, and which hosts work for it."""

    setting: Setting
    job_id: str
    planned: PlannedFleet
    pools: MutableMapping[str, Pool]  # of each host that may work for it
    attached: set[str]

    @classmethod
    def start(
        cls,
        setting: Setting,
        scenario: Scenario,
        job: JobSpec,
        *,
        steer: Steer = Steer.OFF,
        market: Market = Market.ON_DEMAND,
    ) -> "FollowedJob":
        """Plan a job, have the daemon follow it, and let those hosts work for it that begin."""
        planned = plan_job(setting, job)
        started = setting.client.create_job(planned.plan_id, steer=steer)
        pools = {w.name: pool_of(w.device.name, w.mbps, market) for w in scenario.workers}
        found = cls(
            setting=setting, job_id=started.job_id, planned=planned, pools=pools, attached=set()
        )
        found.attach(*(worker.name for worker in scenario.starters))
        found.until_heard(len(scenario.starters))
        return found

    def attach(self, *names: str) -> None:
        """Let hosts work for the job from now on, as if they had just been rented for it."""
        for name in names:
            pool = self.pools[name]
            flags = {
                "--job-id": self.job_id,
                "--instance-type": pool.instance_type,
                "--zone": pool.zone,
                "--market": str(pool.market),
            }
            self._start_agent(name, tuple(word for pair in flags.items() for word in pair))
            self.attached.add(name)

    def happened(self, fault: Fault, name: str) -> None:
        """Have the daemon see what happened to a host, as far as its agent does."""
        if name in self.pools and fault.kind is FaultKind.KILL:
            self.lose(name)
        elif name in self.pools and fault.kind is FaultKind.START:
            self.attach(name)

    def lose(self, *names: str) -> None:
        """Let hosts be gone: their agents, which say no word of it."""
        for name in names:
            self.setting.agents[name].kill()
            self.attached.discard(name)

    def release(self) -> None:
        """End the job, and let all hosts work for nobody again."""
        with suppress(JobEndedError):
            self.setting.client.stop_job(self.job_id, reason="the experiment is over")
        for name in self.pools:
            self._start_agent(name, _NO_FLAGS)
        self.attached.clear()

    @property
    def run(self) -> JobRun:
        """The job as the daemon tells it."""
        return self.setting.client.get_job(self.job_id)

    @property
    def forecast(self) -> Forecast | None:
        """What the daemon expects of it."""
        return self.run.course.forecast

    @property
    def events(self) -> list[Event]:
        """What the daemon has logged about it, oldest first."""
        found: list[Event] = []
        while True:
            last = found[-1].sequence if found else 0
            page = self.setting.client.list_job_events(self.job_id, after_sequence=last)
            if not page:
                return found
            found += page

    def until_heard(self, count: int) -> None:
        """Wait until the daemon hears so many hosts of the job.

        Raises:
            OutsideWorldError: it does not.
        """
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            agents = self.setting.client.list_agents(job_id=self.job_id).agents
            if sum(agent.connected for agent in agents) >= count:
                return
            time.sleep(0.2)
        raise OutsideWorldError(f"the daemon does not hear {count} hosts of {self.job_id}")

    def _start_agent(self, name: str, flags: tuple[str, ...]) -> None:
        agents: MutableMapping[str, HostProcess] = self.setting.agents
        agents[name].kill()
        agents[name] = start_agent(self.setting.lab, name, *flags)
