"""Odd requests to every path of the door: each is refused with a documented status, none is a mistake of the hub."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import quote

from tests.api_process import an_api
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, an_entry, exposing

WORDS = ["x", "%00", "é", " ", "..", "a" * 300, "null", "🙂", "'\"", "horizon/x:y", "00000000-0000-4000-8000-000000000000"]
KNOWN = ["playground", "orders.v1", "bill", "Rover"]
BODIES = [
    b"",
    b"{",
    b"null",
    b"5",
    b"\xff\xfe",
    b"a: &a [*a]",
    b'{"decision":5}',
    b'{"ids":[1]}',
    b'{"status":["FAILED"],"from":"x"}',
    b'{"kind":"Rover","apiVersion":"tcp.ei.telekom.de/v1","metadata":5,"spec":[]}',
    b'{"kind":"Rover","apiVersion":"tcp.ei.telekom.de/v1","metadata":{"name":{}},"spec":{"zone":5,"exposures":[null,'
    b'{"eventType":{}}],"subscriptions":[{"eventType":[],"deliveryType":[],"trigger":[],"scopes":{},"deliveryPolicy":5}]}}',
    b'{"kind":"EventSpecification","apiVersion":"tcp.ei.telekom.de/v1","metadata":{},"spec":{"type":5,"specification":[]}}',
    b'{"kind":{},"apiVersion":[]}',
]
QUERIES = ["", "?limit=0", "?cursor=99999999999999999999", "?status=DROPPED", "?from=9999-12-31T23:59:59Z", "?to=x", "?team=--"]
PATHS = [
    ("POST", "/horizon/rover/v1/{}/apply"),
    ("GET", "/horizon/rover/v1/{}/{}/{}"),
    ("DELETE", "/horizon/rover/v1/{}/EventSpecification/{}"),
    ("GET", "/horizon/schemas/{}.json"),
    ("POST", "/horizon/v1/{}/events"),
    ("GET", "/horizon/v1/{}/subscriptions/{}"),
    ("POST", "/horizon/v1/{}/subscriptions/{}/approval"),
    ("GET", "/horizon/v1/{}/subscriptions/{}/events"),
    ("GET", "/horizon/v1/{}/subscriptions/{}/events/{}"),
    ("POST", "/horizon/v1/{}/subscriptions/{}/redeliver"),
    ("PUT", "/horizon/api/v1/circuit-breakers/close/{}"),
    ("GET", "/horizon/v1/{}/approvals"),
    ("GET", "/horizon/v1/{}/event-types/{}/events"),
    ("GET", "/horizon/v1/{}/data/{}/{}"),
]
EXPECTED = {200, 202, 204, 400, 403, 404, 405, 409, 413, 415}


def test_nothing_that_is_asked_for_is_a_mistake_of_the_hub(tmp_path: Path) -> None:
    chance = random.Random(7)
    with an_api(tmp_path) as api:
        door = Door(api)
        parts = door.parts(exposing(), a_specification(), a_rover("bill", subscriptions=[an_entry()]))
        door.publish(a_horizon_event())
        words = [*WORDS, *[*KNOWN, parts[-1]["subscriptionId"]] * 4]
        for _ in range(400):
            method, path = chance.choice(PATHS)
            while "{}" in path:
                path = path.replace("{}", quote(chance.choice(words), safe="%"), 1)
            body = chance.choice(BODIES) if method in ("POST", "PUT") else None
            kind = {"content-type": chance.choice(["application/json", "application/yaml", "x"])} if body is not None else {}
            query = chance.choice(QUERIES)
            answer = api.call(method, path + query, body, kind)
            assert answer.status in EXPECTED, (method, path + query, body, answer)
            if answer.status >= 400:
                assert answer.json["type"] == "about:blank" and answer.json["status"] == answer.status


def test_the_place_of_a_fault_is_told_once(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        Door(api).applied(exposing(), a_specification(), a_rover("bill", subscriptions=[an_entry()]))
        answer = Door(api).decide("x", "PERHAPS")
        assert (answer.status, answer.json["violations"][0]["path"]) == (400, "decision")
        assert answer.json["violations"][0]["reason"] == "must be APPROVE or REJECT, found 'PERHAPS'"
