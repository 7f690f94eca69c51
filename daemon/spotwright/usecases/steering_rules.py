"""The rules that a controller steers by; each can be switched off to see what it is worth."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringRules:
    """Which rules hold, and their figures."""

    keep_survivors: bool = True  # nodes that still run count as paid: others must be cheaper by
    # what it costs to start them
    cool_down: bool = True  # a pool that failed is left alone for a while, longer each time
    pace: bool = True  # wait for spot capacity while the deadline allows; else replace at once
    give_back: bool = True  # leave on-demand nodes when spot capacity is back and it pays
    safety_net: bool = True  # keep the time that a fleet without spot nodes needs
    learn: bool = True  # count losses and returns, and rather rent where they were few
    savings_threshold: bool = True  # change what works only where it saves enough
    save_on_notice: bool = True  # ask training to save its state when a notice comes

    least_saving_fraction: float = 0.05  # of what is left to pay
    calm_s: float = 900.0  # between two changes that nothing forces
    look_around_s: float = 7200.0  # until what runs is held against the whole market again
    first_cool_down_s: float = 600.0  # doubles with each failure of a pool
    longest_cool_down_s: float = 7200.0
    forget_failures_s: float = 14400.0  # after so long without one
    grant_timeout_s: float = 300.0  # until nodes that were asked for and did not come count as none
    price_change_fraction: float = 0.10
    drift_after_s: float = 600.0  # outside the plan's interval for so long
    pace_interval: tuple[float, float] = (0.85, 1.15)  # of measured over predicted speed
    margin_s: float = 60.0  # before the last moment for the sure fleet
    patience_factor: float = 2.0  # times the planned duration, where there is no deadline
    least_pace: float = 0.25  # measured over predicted speed: what stands still counts with so much
    farewell_s: float = (
        180.0  # for which the budget keeps the rent: to save, and to give nodes back
    )
