"""The callback in a real Trainer, with a model made from a configuration."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from spotwright_agent.training import StepReporter
from tests.agent.step_agent import listening_agent, short_path, wait_for


@pytest.fixture
def path() -> Iterator[Path]:
    with short_path() as found:
        yield found


def train(folder: Path, callback: Any, *, steps: int = 8) -> Any:
    from transformers import (  # noqa: PLC0415
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainingArguments,
    )

    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=16, intermediate_size=8, **sizes)
    rows = [{"input_ids": torch.tensor([1, 2, 3]), "labels": torch.tensor(0)}] * 64
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=steps,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=rows,
        callbacks=[callback],
    )
    trainer.train()
    return trainer


def saved(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.glob("checkpoint-*"))


@pytest.fixture
def callback_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from spotwright_agent.training.huggingface import SpotwrightCallback  # noqa: PLC0415

    return SpotwrightCallback


def test_steps_are_told_with_samples_wait_and_the_loss_that_was_logged(
    path: Path, tmp_path: Path, callback_of: Any
) -> None:
    with listening_agent(path) as agent:
        callback = callback_of(StepReporter(str(path)))
        train(tmp_path, callback)
        callback.reporter.close()
        wait_for(lambda: len(agent.steps) == 8)

    assert [step.step for step in agent.steps] == list(range(1, 9))
    assert all(step.samples == 4 for step in agent.steps)
    assert all(0 < (step.data_wait_s or 0) < step.step_s for step in agent.steps)
    assert [step.loss is not None for step in agent.steps] == [False, False, True, False] + [
        True,
        False,
    ] * 2
    assert saved(tmp_path) == []


@pytest.mark.parametrize(("stops", "last_step"), [(False, 8), (True, 1)])
def test_a_warning_saves_once_and_stops_if_asked(
    path: Path, tmp_path: Path, callback_of: Any, stops: bool, last_step: int
) -> None:
    document = json.dumps({"kind": "interruption", "seconds_left": 100}).encode()
    with listening_agent(path, standing=document):
        reporter = StepReporter(str(path))
        assert reporter.wait_for_warning(20) is not None
        trainer = train(tmp_path, callback_of(reporter, stop_on_interruption=stops))
        reporter.close()

    assert trainer.state.global_step == last_step
    assert saved(tmp_path) == ["checkpoint-1"]


def test_one_request_makes_one_checkpoint(path: Path, tmp_path: Path, callback_of: Any) -> None:
    reporter = StepReporter(str(path))
    path.with_name("checkpoint.json").write_text('{"kind":"checkpoint","time_unix_ms":1}')
    train(tmp_path, callback_of(reporter))
    reporter.close()

    assert saved(tmp_path) == ["checkpoint-1"]


def test_what_breaks_in_the_callback_is_told_and_not_raised(path: Path, callback_of: Any) -> None:
    callback = callback_of(StepReporter(str(path)))
    callback.on_train_begin()
    callback.on_step_end(None, None, None)
    callback.reporter.close()

    assert "step is not told" in callback.problem


def test_a_hint_that_was_withdrawn_saves_nothing(
    path: Path, tmp_path: Path, callback_of: Any
) -> None:
    with listening_agent(path, standing=b'{"kind":"hint"}') as agent:
        reporter = StepReporter(str(path))
        assert reporter.wait_for_warning(20) is not None
        agent.socket.send(b'{"kind":"withdrawn"}')
        train(tmp_path, callback_of(reporter))
        reporter.close()

    assert saved(tmp_path) == []
