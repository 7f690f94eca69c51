import pytest

from spotwright.adapters.webhook.posting import Webhook
from spotwright.domain.job_run import NewEvent
from tests.adapters.webhook.taker import listening
from tests.usecases.example_job_run import START

EVENT = NewEvent(time=START, kind="replanned", text="g5.xlarge*2", facts={"plan_id": "p-1"})


@pytest.mark.parametrize("failures", [0, 2])
def test_an_event_is_posted_once_it_is_taken(failures: int) -> None:
    with listening(failures=failures) as (url, taken):
        webhook = Webhook(url, sleep=lambda _: None)
        webhook.tell("job-1", EVENT)
        webhook.close()

    assert taken == [
        {
            "job_id": "job-1",
            "time": START.isoformat(),
            "kind": "replanned",
            "text": "g5.xlarge*2",
            "facts": {"plan_id": "p-1"},
        }
    ]


def test_an_address_that_never_answers_is_told_in_the_log_and_keeps_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    webhook = Webhook("http://127.0.0.1:1/", sleep=lambda _: None)
    webhook.tell("job-1", EVENT)
    webhook.close()

    assert "the webhook did not take an event" in caplog.text
