"""Settings shared by all tests."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Nothing is fetched while testing: a model is on this machine, or its test is skipped.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# No deadlines: how fast a machine is decides no test. On CI the examples are the same on every run.
_common: dict[str, Any] = {
    "deadline": None,
    "derandomize": bool(os.environ.get("CI")),
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("quick", max_examples=15, **_common)
settings.register_profile("default", max_examples=60, **_common)
settings.register_profile("long", max_examples=2000, **{**_common, "derandomize": False})
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def _use_core(path: str) -> None:
    """Loads the engine's module from ``path`` (``make sanitize`` builds one with checks)."""
    spec = importlib.util.spec_from_file_location("agentgram.engine._core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agentgram.engine._core"] = module
    spec.loader.exec_module(module)


if core := os.environ.get("AGENTGRAM_CORE"):
    _use_core(core)


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """The small real model, loaded once for all tests that need it."""
    pytest.importorskip("torch")
    from agentgram.errors import ModelError
    from agentgram.models import bundled, load_model

    try:
        bundled.find_weights("smollm2")  # its package is not importable without what it needs to run them its own way
    except ModelError as error:
        pytest.skip(str(error))
    return load_model("smollm2")
