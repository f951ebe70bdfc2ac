"""Writes the vectors that concern the C interface as a C table: vectors_h.py DIRECTORY_OF_JSON OUTPUT.h

A row has the fields of the JSON record as bytes. What the C interface has no words for is left out and
counted: keys of 16 bytes, nonces of a wrong length, the bare quarter round, and other formats (secretbox,
secretstream, the AEAD with an 8-byte nonce). The test program asserts both counts.
"""

import json
import pathlib
import sys

ALGORITHMS = {  # key, nonce and tag sizes that the C interface takes
    "chacha20": (32, 12, 0),
    "chacha20-djb": (32, 8, 0),
    "chacha12-djb": (32, 8, 0),
    "chacha8-djb": (32, 8, 0),
    "xchacha20": (32, 24, 0),
    "xchacha20-djb": (32, 24, 0),
    "hchacha20": (32, 16, 0),
    "poly1305": (32, 0, 16),
    "poly1305-keygen": (32, 12, 0),
    "poly1305-chacha20": (32, 12, 16),
    "chacha20-poly1305": (32, 12, 16),
    "xchacha20-poly1305": (32, 24, 16),
}
FIELDS = ("key", "nonce", "aad", "msg", "ciphertext", "tag")


def main(directory: str, output: str) -> None:
    rows: list[str] = []
    data = bytearray()
    left_out = 0
    for path in sorted(pathlib.Path(directory).glob("*.json")):
        for vector in json.loads(path.read_text())["vectors"]:
            algorithm = vector["algorithm"]
            values = {field: bytes.fromhex(vector[field]) for field in FIELDS}
            if ALGORITHMS.get(algorithm) != tuple(len(values[field]) for field in ("key", "nonce", "tag")):
                left_out += 1
                continue
            cells = []
            for field in FIELDS:
                cells.append(f"{{{len(data)}, {len(values[field])}}}")
                data += values[field]
            name = f"{algorithm}: {vector['source']} {vector['id']}".replace("\\", "\\\\").replace('"', '\\"')
            valid = "true" if vector["result"] == "valid" else "false"
            identifier = algorithm.upper().replace("-", "_")
            rows.append(
                f'    {{"{name}", {identifier}, {valid}, {vector["counter"] or 0}u, {{{", ".join(cells)}}}}},'
            )
    identifiers = ", ".join(algorithm.upper().replace("-", "_") for algorithm in ALGORITHMS)
    lines = [
        "/* Written by vectors_h.py from tests/vectors. */",
        f"enum algorithm {{ {identifiers} }};",
        f"enum field {{ {', '.join(field.upper() for field in FIELDS)}, FIELDS }};",
        "struct vector {",
        "    const char *name;",
        "    enum algorithm algorithm;",
        "    bool valid;",
        "    uint64_t counter;",
        "    struct { uint32_t at, len; } field[FIELDS]; /* in vector_bytes */",
        "};",
        f"enum {{ VECTORS = {len(rows)}, VECTORS_LEFT_OUT = {left_out} }};",
        "static const struct vector vectors[VECTORS] = {",
        *rows,
        "};",
        f"static const uint8_t vector_bytes[{len(data)}] = {{",
        *("    " + ",".join(map(str, data[at : at + 32])) + "," for at in range(0, len(data), 32)),
        "};",
    ]
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
