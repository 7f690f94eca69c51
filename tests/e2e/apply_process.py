"""A daemon's part that rents, as a process to be killed: FOLDER JOB_ID, variables on stdin."""

import os
import sys
from pathlib import Path

from spotwright.adapters.terraform.job_fleets import JobFleets
from spotwright.cli.rented import open_rented

if __name__ == "__main__":
    fleets = JobFleets(Path(sys.argv[1]), environment=os.environ, open_rented=open_rented)
    fleets.apply(sys.argv[2], sys.stdin.read(), is_wanted=lambda: True)
