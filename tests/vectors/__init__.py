"""The vectors of this folder; index.md says where each record comes from."""

import json
from pathlib import Path
from types import SimpleNamespace

FOLDER = Path(__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
HEX = ("key", "nonce", "aad", "msg", "ciphertext", "tag")


def load(file: str) -> list[SimpleNamespace]:
    """Every record of a file, with its values decoded from hex."""
    records = json.loads((FOLDER / file).read_text(encoding="utf-8"))["vectors"]
    return [
        SimpleNamespace(**{name: bytes.fromhex(v) if name in HEX else v for name, v in record.items()})
        for record in records
    ]


def named(file: str, source: str, id: str) -> SimpleNamespace:
    """The one record of a file with this source and id."""
    (record,) = (v for v in load(file) if (v.source, v.id) == (source, id))
    return record
