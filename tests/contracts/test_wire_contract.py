"""The wire contract against the domain: what one can say, so can the other."""

from dataclasses import fields
from types import NoneType
from typing import get_args

import pytest
from google.protobuf.message import Message

from spotwright.domain.hardware import Gpu, InstanceType
from spotwright.domain.offer import Offer, OfferQuery
from spotwright.v1 import catalog_pb2 as pb

PAIRS: list[tuple[type, type[Message]]] = [
    (InstanceType, pb.InstanceType),
    (Gpu, pb.Gpu),
    (Offer, pb.Offer),
    (OfferQuery, pb.OfferFilter),
]
PAIR_NAMES = [kind.__name__ for kind, _ in PAIRS]


@pytest.mark.parametrize(("kind", "message"), PAIRS, ids=PAIR_NAMES)
def test_a_message_has_the_fields_of_its_value_in_the_same_order(
    kind: type, message: type[Message]
) -> None:
    by_number = {field.number: field.name for field in message.DESCRIPTOR.fields}

    assert [by_number[n] for n in sorted(by_number)] == [field.name for field in fields(kind)]


@pytest.mark.parametrize(("kind", "message"), PAIRS, ids=PAIR_NAMES)
def test_what_may_be_unknown_may_be_absent_and_nothing_else(
    kind: type, message: type[Message]
) -> None:
    may_be_none = {field.name for field in fields(kind) if NoneType in get_args(field.type)}

    assert {field.name for field in message.DESCRIPTOR.fields if field.has_presence} == may_be_none
