"""Typed clients of the daemon: `Client` waits for each answer, `AioClient` is awaited.

    with Client("127.0.0.1:7443") as client:
        answer = client.predict(JobDocument(text=job_yaml), "g5.xlarge*3/spot")

They need the base install only.
"""

from spotwright.client.aio import AioClient
from spotwright.client.client import Client

__all__ = ["AioClient", "Client"]
