"""Pages of stored samples. A page may begin in the middle of a batch."""

from typing import NamedTuple

from spotwright.adapters.grpc.messages.telemetry import corrected_samples
from spotwright.adapters.grpc.pages import bad_token, place_of, token_of
from spotwright.usecases.store_ports import TelemetryStore
from spotwright.v1 import telemetry_pb2 as v1

_BATCHES_AT_ONCE = 100
LONGEST_NUMBER = 18  # digits that 64 bits take
_MAX_PAGE_BYTES = 2 * 1024 * 1024  # clients take messages of 4 MiB


class Window(NamedTuple):
    """Which samples are asked for."""

    agent_id: str
    start_unix_ms: int
    end_unix_ms: int


class _Place(NamedTuple):
    """Where a page begins: so many samples into the batch after row `after`."""

    after: int = 0
    skip: int = 0


def sample_page(
    store: TelemetryStore, window: Window, *, page_token: str, page_size: int
) -> v1.ListSamplesResponse:
    """Return the samples of a window from a page token on."""
    response, room_bytes = v1.ListSamplesResponse(), _MAX_PAGE_BYTES
    place = _place(page_token)
    while rows := store.batches(**window._asdict(), after=place.after, limit=_BATCHES_AT_ONCE):
        for row, batch in rows:
            samples = corrected_samples(batch)
            for position in range(place.skip, len(samples)):
                sample = samples[position]
                if not window.start_unix_ms <= sample.time_unix_ms < window.end_unix_ms:
                    continue
                if len(response.samples) >= page_size or room_bytes <= 0:
                    response.next_page_token = token_of(f"{place.after}:{position}")
                    return response
                response.samples.append(sample)
                room_bytes -= sample.ByteSize()
            place = _Place(after=row)
    return response


def _place(page_token: str) -> _Place:
    if not page_token:
        return _Place()
    after, _, skip = place_of(page_token).partition(":")
    if not (after.isdecimal() and skip.isdecimal()) or len(after) > LONGEST_NUMBER:
        raise bad_token(page_token)
    return _Place(int(after), int(skip))
