"""Predictions once half of the scenarios were measured, held against the other half.

For each strategy by itself three factors are fitted under priors that are centred on 1, by the fit
that `spotwright calibrate` uses: on the rates of links, on what an exchange takes beyond its bytes,
and on how much steps spread. Every second scenario is fitted and the others are predicted, then the
other way round; which are which follows from the files, not from figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from lab.predict import Predicted, predict
from lab.profile import Profile
from lab.scenario import Scenario
from lab.speed import Compared
from spotwright.perfmodel.calibration.map_fit import Parameter, fit_map

_FACTORS = (
    Parameter(name="links", centre=1.0, log_sd=0.1),
    Parameter(name="overhead", centre=1.0, log_sd=0.7),
    Parameter(name="spread", centre=1.0, log_sd=0.5),
)


def predict_other_half(rows: Sequence[Compared], profile: Profile) -> list[Compared]:
    """Return every scenario as predicted from the half that it does not belong to."""
    found: list[Compared] = []
    for _, group in groupby(rows, key=lambda row: row.scenario.strategy):
        mine = list(group)
        for known, asked in ((mine[::2], mine[1::2]), (mine[1::2], mine[::2])):
            if known:
                factors = _fitted(known, profile)
                found += [
                    replace(row, predicted=_predict(row.scenario, profile, factors))
                    for row in asked
                ]
    return found


def _fitted(rows: Sequence[Compared], profile: Profile) -> Mapping[str, float]:
    def log_steps(factors: Mapping[str, float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        found = (_predict(row.scenario, profile, factors) for row in rows)
        return np.log([predicted.iteration_s.mid for predicted in found])

    return fit_map(_FACTORS, log_steps, np.log([row.measured_s for row in rows])).values


def _predict(scenario: Scenario, profile: Profile, factors: Mapping[str, float]) -> Predicted:
    known = profile.models[scenario.model]
    model = replace(known, overhead_s=known.overhead_s * factors["overhead"])
    devices = {
        name: replace(device, relative_sd=(device.relative_sd or 0.0) * factors["spread"])
        for name, device in profile.devices.items()
    }
    changed = Profile(devices=devices, models={**profile.models, scenario.model: model})
    workers = tuple(replace(w, mbps=w.mbps * factors["links"]) for w in scenario.workers)
    faster = replace(scenario, workers=workers, server_mbps=scenario.server_mbps * factors["links"])
    return predict(faster, changed)
