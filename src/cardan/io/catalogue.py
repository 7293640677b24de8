"""The catalogue of mechanisms as YAML files, which come with the package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from cardan.errors import FileError
from cardan.io.text_file import write_text


def mechanism_texts() -> dict[str, str]:
    """The text of each file of the catalogue, by the name of its mechanism."""
    folder = files("cardan") / "data" / "mechanisms"
    found = [file for file in folder.iterdir() if file.name.endswith(".yaml")]
    return {file.name.removesuffix(".yaml"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


def write_mechanisms(folder: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
    """Write every file of the catalogue into a folder, which is created if it does not exist; return their paths.

    Nothing is written if one of the files already exists, unless `overwrite` is set.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{place}: the folder cannot be made, {error.strerror or error}") from None
    texts = {place / f"{name}.yaml": text for name, text in mechanism_texts().items()}
    taken = [path for path in texts if path.exists()]
    if taken and not overwrite:
        raise FileError(f"{taken[0]}: there is such a file already; pass overwrite=True to replace it")
    for path, text in texts.items():
        write_text(path, text, overwrite)
    return list(texts)
