"""A topic with Avro payloads in a hub that really runs: published in both forms, filtered by avropath, pushed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.test_publish_to_callback import a_topic, create, publish, subscribed
from tests.hub import Hub, free_port
from tests.receivers import Receiver
from tidings.events.avro.schema import AvroSchema

pytestmark = [pytest.mark.hub, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "state", "type": "string"}, {"name": "n", "type": "long"}]}


def test_avropath_filters_decide_and_subscribers_get_the_bytes_of_the_publisher(hub: Hub) -> None:
    written = AvroSchema(json.dumps(SCHEMA))
    with Receiver() as by_path, Receiver() as by_value:
        topic = a_topic(hub, avro={"schema": SCHEMA})
        chain = [{"type": "avropath", "path": ".state", "matcher": "NEW|OPEN"}]
        delivery = {"kind": "push", "url": by_path.url, "mode": "binary"}
        wanted = {"topic": topic, "filter": {"dialect": "hermes", "filter": chain}, "delivery": delivery}
        create(hub, f"/api/subscriptions/{topic}-by-path", wanted)
        subscribed(hub, topic, by_value, where="n > 2")
        publish(hub, topic, {"state": "NEW", "n": 1}, {"state": "DONE", "n": 2}, {"state": "OPEN", "n": 3})
        binary = written.from_json(b'{"state":"NEW","n":4}')
        sent = hub.call("POST", f"/api/topics/{topic}/events", binary, headers={"content-type": "avro/binary"})
        assert sent.status == 202, sent.body
        arrivals = by_path.wait_for(3, 60)
        by_value.wait_for(2, 60)

    assert [written.value(arrival.body)["n"] for arrival in arrivals] == [1, 3, 4]
    assert arrivals[2].body == binary
    assert {arrival.headers["content-type"] for arrival in arrivals} == {"avro/binary"}
    assert len(by_value.arrivals) == 2


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_every_block_of_the_page_runs(hub: Hub, tmp_path: Path) -> None:
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", (ROOT / "docs" / "avro.md").read_text("utf-8"))
    script = "set -euo pipefail\n" + "\n".join(blocks).replace("9000", str(free_port()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "TIDINGS_URL": hub.url}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=720)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert '"total": 12.5' in ran.stdout
    assert "no match" in ran.stdout
