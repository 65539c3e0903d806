"""Uploads by the real client of the Hugging Face Hub, to a server that stands in for the Hub's HTTP API."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import huggingface_hub
import pytest
from command import here
from huggingface_hub import ModelCard, constants
from parity import ALBERT
from toy_folders import toy_run, toy_tokenizer_file

TOKEN = "hf_toy"


class Hub(ThreadingHTTPServer):
    """A hub with one user. Attributes: repositories by name, each with its files; objects by their SHA-256."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.private, self.objects = {}, {}, {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Any  # a Hub

    def log_message(self, format, *_):
        pass

    def answer(self, content, status=200):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        result = b""
        while size := int(self.rfile.readline(), 16):
            result += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return result

    def do_GET(self):
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer({"error": "Invalid user token."}, 401)
        return self.answer({"name": "me", "type": "user"})

    def do_PUT(self):
        content = self.body()
        oid = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == oid
        self.server.objects[oid] = content
        self.answer({})

    def do_POST(self):
        hub, content = self.server, self.body()
        if self.path == "/api/repos/create":
            asked = json.loads(content)
            name = f"me/{asked['name']}"
            hub.repositories.setdefault(name, {})
            hub.private[name] = asked.get("visibility") == "private"
            return self.answer({"url": f"{hub.url}/{name}"})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if re.fullmatch(r"/(me/.+)\.git/info/lfs/objects/batch", self.path):
            return self.answer(
                {"transfer": "basic", "objects": [self.upload(entry) for entry in json.loads(content)["objects"]]}
            )
        name, what = re.findall(r"/api/models/(me/[^/]+)/(preupload|commit)/main", self.path)[0]
        if what == "preupload":
            modes = [
                {
                    "path": file["path"],
                    "shouldIgnore": False,
                    "uploadMode": "lfs" if is_large(file["path"]) else "regular",
                }
                for file in json.loads(content)["files"]
            ]
            return self.answer({"files": modes})
        for line in map(json.loads, content.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                hub.repositories[name][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                hub.repositories[name][value["path"]] = hub.objects[value["oid"]]
        return self.answer({"success": True, "commitOid": "0" * 40, "commitUrl": f"{hub.url}/{name}/commit/0"})

    def upload(self, asked):
        return {**asked, "actions": {"upload": {"href": f"{self.server.url}/objects/{asked['oid']}"}}}


def is_large(path):
    return path.endswith((".safetensors", ".model"))


@pytest.fixture
def hub(monkeypatch):
    """A running hub, which the client takes for the real one."""
    server = Hub()
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    huggingface_hub.close_session()  # that of an offline client
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield server
    huggingface_hub.close_session()
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(tmp_path, own_home):
    return toy_run(toy_tokenizer_file(tmp_path), ALBERT)


@pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw bytes/text content.:DeprecationWarning")
def test_an_export_is_pushed_with_all_its_files(hub, run, own_home):
    done = here("export", str(run), str(own_home / "out"), "--push", "me/toy", "--private", "--license", "mit")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(own_home / "out"), f"{hub.url}/me/toy"]
    files = {file.name: file.read_bytes() for file in (own_home / "out").iterdir()}
    assert hub.repositories == {"me/toy": files}
    assert "model.safetensors" in files
    assert hub.private == {"me/toy": True}
    card: Any = ModelCard((own_home / "out" / "README.md").read_text())
    assert card.data.license == "mit"


@pytest.mark.parametrize(
    ("repository", "token", "says"),
    [
        ("a b", TOKEN, "--push a b: Repo id must"),
        ("", TOKEN, "--push : Repo id must"),
        ("me/toy", "hf_other", "--push me/toy: .*(token|401)"),
    ],
)
def test_a_name_or_a_user_that_the_hub_refuses_is_an_error_before_anything_is_written(
    hub, run, own_home, monkeypatch, repository, token, says
):
    monkeypatch.setenv("HF_TOKEN", token)
    done = here("export", str(run), str(own_home / "out"), "--push", repository)
    assert done.returncode == 2
    assert re.search(says, done.stderr), done.stderr
    assert not (own_home / "out").exists()
    assert not hub.repositories
