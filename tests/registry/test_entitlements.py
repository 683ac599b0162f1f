"""Which subscriptions may be given events now."""

from __future__ import annotations

import msgspec
import pytest

from tests.builders import a_name, a_subscription, a_topic, an_approval, an_exposure
from tests.registry.worlds import a_world
from tidings.registry.model import NamespaceSource, Scope
from tidings.registry.port import Document
from tidings.registry.rules.entitlements import Entitlement, entitlement

MANUAL = an_exposure(approval="manual")


def found(*documents: Document) -> Entitlement:
    snapshot = a_world(*documents).snapshot
    return entitlement(snapshot, snapshot.subscriptions[a_name("billing")])


def test_a_topic_without_an_exposure_is_open() -> None:
    assert found(a_topic(), a_subscription()).bar == ""


@pytest.mark.parametrize(("decision", "state"), [("granted", "active"), ("pending", "pending"), ("rejected", "rejected")])
def test_the_approval_decides(decision: str, state: str) -> None:
    assert found(a_topic(), MANUAL, a_subscription(), an_approval(state=decision)).state == state


def test_the_reason_is_told() -> None:
    rejected = msgspec.structs.replace(an_approval(state="rejected"), reason="not you")
    assert found(a_topic(), MANUAL, a_subscription(), rejected).bar == "rejected: not you"


def test_what_is_blocked_is_barred_whatever_was_granted() -> None:
    assert found(a_topic(), an_exposure(), a_subscription(blocked="another zone")).bar == "blocked: another zone"


def test_who_is_not_listed_any_more_is_barred() -> None:
    documents = (a_topic(), an_exposure(), a_subscription(owner="crm"))
    assert found(*documents).bar == ""
    assert found(*documents, an_exposure(subscribers=("billing",))).bar == "blocked: crm may not subscribe to orders"


def test_a_scope_that_is_gone_bars() -> None:
    scoped = (a_topic(), an_exposure(scopes={"small": Scope()}), a_subscription(scopes=("small",)))
    assert found(*scoped).bar == ""
    assert found(*scoped, an_exposure()).state == "blocked"


def test_one_topic_is_enough() -> None:
    two = (a_topic(), a_topic("invoices"), MANUAL, a_subscription("billing", "orders", "invoices"))
    assert found(*two).bar == ""
    both = (*two[:3], an_exposure("invoices", approval="manual"), two[3])
    assert found(*both).state == "pending"
    assert found(*both, an_approval(topic="invoices")).bar == ""


def test_a_namespace_with_an_open_topic_is_open() -> None:
    wide = a_subscription(source=NamespaceSource("default"))
    assert found(a_topic(), MANUAL, wide).state == "pending"
    assert found(a_topic(), a_topic("invoices"), MANUAL, wide).bar == ""
