"""What user code does to files stays in the scratch folder, and it stays offline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

CODE = """
import os, shutil, sys
from pathlib import Path
from kpredict.session.sandbox import confine
confine(Path(sys.argv[1]))
sys.argv = ["x"]
os.makedirs("new/deep")
Path("new/deep/a.txt").write_text("one")
assert Path("new/deep/a.txt").read_text() == "one"
assert os.listdir("new/deep") == ["a.txt"]
with open("kept.txt", "a") as f: f.write(" and more")
assert open("kept.txt").read() == "kept and more"
os.rename("new/deep/a.txt", "b.txt")
assert os.path.exists("b.txt") and not os.path.exists("new/deep/a.txt")
os.remove("kept.txt")
assert not os.path.exists("kept.txt")
shutil.rmtree("new")
assert not os.path.exists("new")
import torch
torch.save(torch.ones(2), "t.pt")
assert torch.load("t.pt").tolist() == [1, 1]
import io, socket
try: io.FileIO("low", "w")
except PermissionError: pass
else: raise SystemExit("FileIO wrote")
for connect in (
    lambda: socket.create_connection(("192.0.2.1", 80), 1),
    lambda: socket.socket().connect(("192.0.2.1", 80)),
    lambda: socket.getaddrinfo("example.org", 80),
):
    try: connect()
    except OSError as e: assert "offline" in str(e)
    else: raise SystemExit("it is online")
print("done")
"""


def test_files_and_network(tmp_path_factory: pytest.TempPathFactory) -> None:
    here = Path.home() / f".kpredict-test-{tmp_path_factory.getbasetemp().name}"
    here.mkdir()
    try:
        (here / "kept.txt").write_text("kept")
        scratch = tmp_path_factory.mktemp("scratch")
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(scratch)], cwd=here, capture_output=True, text=True
        )
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        assert [p.name for p in here.iterdir()] == ["kept.txt"]
        assert (here / "kept.txt").read_text() == "kept"
    finally:
        for path in here.iterdir():
            path.unlink()
        here.rmdir()
