"""`tidings serve`, `listen` and `demo` as processes: refusals at the start, receiving. A whole hub is tried elsewhere."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tidings.cli.demo.run import prepare
from tidings.cli.demo.scene import MARKER
from tidings.cli.listen import NOT_SIGNED, _line, script_of
from tidings.cli.receiver import ReceivedRequest, Receiver, Script
from tidings.delivery.push.request.signatures import sign, signer_of
from tidings.errors import DataFolderUnusable, Rejected
from tidings.serve import folder


def tidings(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **environ})


def refused(ran: subprocess.CompletedProcess[str], words: str) -> bool:
    """Exit code 2 with one sentence that has these words, and nothing else."""
    return ran.returncode == 2 and ran.stdout == "" and ran.stderr.count("\n") == 1 and words in ran.stderr


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert refused(tidings("serve", "--data", str(tmp_path / "d"), "--port", port), f"127.0.0.1:{port}")


def test_a_second_hub_on_the_same_folder(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    with folder.held(tmp_path):
        assert refused(tidings("serve", "--data", str(tmp_path), "--port", "0"), f"process {os.getpid()}")
        assert refused(tidings("api", "--data", str(tmp_path), "--port", "0"), f"process {os.getpid()}")


def test_open_access_beyond_loopback(tmp_path: Path) -> None:
    assert refused(tidings("serve", "--data", str(tmp_path), "--host", "0.0.0.0"), "open access")


def test_an_unknown_setting(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[server]\nprot = 1\n")
    assert refused(tidings("serve", "--config", str(tmp_path / "c.toml")), "server.port")
    assert refused(tidings("serve", TIDINGS_SERVER_PROT="1"), "server.port")


def test_a_settings_file_that_is_missing_or_broken(tmp_path: Path) -> None:
    assert refused(tidings("serve", "--config", str(tmp_path / "none.toml")), "none.toml")
    (tmp_path / "c.toml").write_text("[server\n")
    assert refused(tidings("serve", TIDINGS_CONFIG=str(tmp_path / "c.toml")), "no TOML")


def test_data_of_a_newer_version(tmp_path: Path) -> None:
    (tmp_path / folder.VERSION_FILE).write_text('{"format": 99}')
    assert refused(tidings("serve", "--data", str(tmp_path)), "newer")


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("")
    assert refused(tidings("serve", "--data", str(tmp_path)), "letters")


NO_JAVA_FOLDER = """
import os, pathlib, sys, tidings.java
tidings.java.find_java.__defaults__ = (os.environ, pathlib.Path(sys.argv.pop(1)))
from tidings.cli import main
main()
"""


def test_no_java(tmp_path: Path) -> None:
    """As on a machine where neither JAVA_HOME, PATH nor Debian's usual folder has one."""
    command = [sys.executable, "-c", NO_JAVA_FOLDER, str(tmp_path), "serve", "--data", str(tmp_path / "d"), "--port", "0"]
    environ = {**os.environ, "JAVA_HOME": "", "PATH": ""}
    assert refused(subprocess.run(command, capture_output=True, text=True, timeout=240, env=environ), "default-jre-headless")


def test_listen_prints_what_arrives() -> None:
    command = [sys.executable, "-m", "tidings.cli", "listen", "--port", "0", "--count", "2", "--json"]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert listener.stderr is not None
    url = listener.stderr.readline().split()[2].rstrip(",")
    structured = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"n": 1}}
    binary = {"ce-id": "2", "ce-type": "t", "Content-Type": "application/json"}
    for body, headers in ((json.dumps(structured).encode(), {}), (b'{"n": 2}', binary)):
        with urllib.request.urlopen(urllib.request.Request(f"{url}/in", body, headers)) as answer:
            assert answer.status == 204
    out, _ = listener.communicate(timeout=120)
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert [(event["id"], event["data"]) for event in events] == [("1", {"n": 1}), ("2", {"n": 2})]
    assert listener.returncode == 0


def test_listen_answers_by_a_script_and_checks_signatures() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    script = ["--answer", "503,429,200", "--retry-after", "2", "--delay", "10ms", "--secret", secret]
    command = [sys.executable, "-m", "tidings.cli", "listen", "--port", "0", "--count", "4", "--json", *script]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert listener.stderr is not None
    url = listener.stderr.readline().split()[2].rstrip(",")
    stamp = str(int(time.time()))
    signed = {"webhook-id": "msg_1", "webhook-timestamp": stamp}
    signature = sign("msg_1", int(stamp), b"{}", [signer_of(secret)])
    answers = []
    for headers in ({}, {**signed, "webhook-signature": signature}, {**signed, "webhook-signature": "v1,AAAA"}, {}):
        connection = http.client.HTTPConnection(url.partition("//")[2], timeout=120)
        connection.request("POST", "/in", b"{}", headers)
        answer = connection.getresponse()
        answers.append((answer.status, answer.getheader("retry-after")))
        connection.close()
    out, _ = listener.communicate(timeout=120)
    assert answers == [(503, "2"), (429, "2"), (200, None), (200, None)]
    verdicts = [json.loads(line)["signature"] for line in out.splitlines()]
    assert [verdict.partition(":")[0] for verdict in verdicts] == [NOT_SIGNED, "signature right", "signature wrong", NOT_SIGNED]


def test_health_checks_are_answered_as_the_next_delivery_would_be() -> None:
    receiver = Receiver(lambda arrival: None, script=Script((503, 200), retry_after="2")).start()

    def asked(method: str) -> tuple[int, str | None]:
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=120)
        connection.request(method, "/in", b"{}" if method == "POST" else None)
        answer = connection.getresponse()
        connection.close()
        return answer.status, answer.getheader("retry-after")

    assert [asked(method) for method in ("HEAD", "POST", "HEAD", "GET", "POST")] == [
        *((503, "2"), (503, "2")),
        *((200, None), (200, None), (200, None)),
    ]
    receiver.close()


@pytest.mark.parametrize(("answer", "delay"), [("503,abc", "0s"), ("99", "0s"), ("", "0s"), ("200", "soon")])
def test_a_script_that_cannot_be_read_is_refused(answer: str, delay: str) -> None:
    with pytest.raises(Rejected, match="expected such as"):
        script_of(answer, None, delay)


def test_an_arrival_that_is_no_event_is_shown_as_it_is() -> None:
    assert ReceivedRequest("POST", "/", {}, b"hello").event() == {"data": "hello"}
    assert ReceivedRequest("POST", "/", {}, b"").event() == {"data": None}


def test_the_demo_uses_only_folders_it_made(tmp_path: Path) -> None:
    prepare(tmp_path / "new")
    prepare(tmp_path / "new")
    assert (tmp_path / "new" / MARKER).exists()
    folder.prepare(tmp_path / "mine")
    with pytest.raises(DataFolderUnusable, match="did not make"):
        prepare(tmp_path / "mine")


def test_a_reference_is_shown_instead_of_data() -> None:
    event = b'{"specversion": "1.0", "id": "1", "type": "t", "dataref": "http://hub/data/1"}'
    assert _line(ReceivedRequest("POST", "/in", {}, event)).endswith("/in  t 1  dataref: http://hub/data/1")
