"""The elastic trainer: parameter servers and workers of PyTorch modules; needs the extra `train`.

ParameterServer(model, optimizer)    one process for each shard
Worker(model, servers)               joins, trains, leaves at any time
"""

from spotwright.train.parameter_server import ParameterServer, ServerSettings
from spotwright.train.updates import Update
from spotwright.train.worker import Exchange, Worker

__all__ = ["Exchange", "ParameterServer", "ServerSettings", "Update", "Worker"]
