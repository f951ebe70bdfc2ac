"""The recipes of the documentation keep what their protocols promise, beyond what their pages show."""

import csv
from types import ModuleType
from typing import Any

import pytest
from entries import refuses
from pages import DOCS, session
from vectors import FOLDER

RECIPES = DOCS / "recipes"
BIP324 = list(csv.DictReader((FOLDER / "bip324.csv").read_text(encoding="ascii").splitlines()))


def test_the_vectors_of_bip324_are_there() -> None:
    assert [v["index"] for v in BIP324] == ["1", "999", "0", "255", "512", "769", "1024"]


@pytest.mark.parametrize("v", BIP324, ids=lambda v: v["index"])
def test_bip324(api: ModuleType, v: dict[str, str]) -> None:
    direction: Any = session(RECIPES / "bip324.md", api)["Direction"]
    length_key, packet_key = bytes.fromhex(v["length_key"]), bytes.fromhex(v["packet_key"])
    sender, receiver = direction(length_key, packet_key), direction(length_key, packet_key)
    for _ in range(int(v["index"])):  # empty packets come before
        receiver.receive(sender.send(b""))
    contents, aad, ignore = (
        bytes.fromhex(v["contents"]) * int(v["multiply"]),
        bytes.fromhex(v["aad"]),
        v["ignore"] == "1",
    )
    packet = sender.send(contents, aad, ignore)
    ciphertext, end = bytes.fromhex(v["ciphertext"]), bytes.fromhex(v["ciphertext_endswith"])
    assert ciphertext or end
    assert packet == ciphertext or (end and packet.endswith(end))
    assert receiver.receive(packet, aad) == (contents, ignore)


def test_bip324_refuses_a_changed_packet(api: ModuleType) -> None:
    direction: Any = session(RECIPES / "bip324.md", api)["Direction"]
    packet = direction(bytes(32), bytes(32)).send(b"contents")
    for i in range(len(packet)):
        changed = packet[:i] + bytes([packet[i] ^ 1]) + packet[i + 1 :]
        text = "the packet is not as long as it says" if i < 3 else "tag does not match"
        with refuses(api.InvalidTag, text):
            direction(bytes(32), bytes(32)).receive(changed)


def test_openssh_refuses_a_changed_packet(api: ModuleType) -> None:
    cipher: Any = session(RECIPES / "openssh.md", api)["OpenSSHCipher"](bytes(range(64)))
    message = cipher.encrypt(3, b"\0\0\0\x08\x06payload")
    for i in range(len(message)):
        with refuses(api.InvalidTag, "tag does not match"):
            cipher.decrypt(3, message[:i] + bytes([message[i] ^ 1]) + message[i + 1 :])
    for size in range(16):
        with pytest.raises(api.InvalidTag):
            cipher.decrypt(3, message[:size])


@pytest.mark.parametrize("header", [b"\x40\xff", b"\x41\xff\xff", b"\x43abcdefgh1234", b"\xc1long\x12\x34"])
@pytest.mark.parametrize("number", [0, 1, 0x7F, 0x80, 0xFF, 0x100, 654360564, 2**62 - 1])
def test_quic_packet_numbers(api: ModuleType, header: bytes, number: int) -> None:
    page: Any = session(RECIPES / "quic.md", api)
    key, iv, hp_key = bytes(range(32)), bytes(12), bytes(range(1, 33))
    size = (header[0] & 3) + 1
    number_at = len(header) - size
    header = header[:number_at] + (number % 256**size).to_bytes(size, "big")
    packet = page["protect"](key, iv, hp_key, header, number, b"payload")
    for expected in (number, number + 1, max(number - 100, 0), number + 100):
        assert page["unprotect"](key, iv, hp_key, packet, number_at, expected) == (number, b"payload")
    for i in range(len(packet)):
        with pytest.raises(api.InvalidTag):
            page["unprotect"](
                key, iv, hp_key, packet[:i] + bytes([packet[i] ^ 4]) + packet[i + 1 :], number_at, number
            )
        with pytest.raises(api.InvalidTag):
            page["unprotect"](key, iv, hp_key, packet[:i], number_at, number)


def test_wireguard_takes_each_packet_once_and_none_too_late(api: ModuleType) -> None:
    page: Any = session(RECIPES / "noise.md", api)
    key = bytes(range(32))
    sender, receiver = page["WireGuardSender"](key, 7), page["WireGuardReceiver"](key)
    window = receiver.WINDOW

    def sent(counter: int) -> bytes:
        sender.counter = counter
        message: bytes = sender.send(b"%32d" % counter)
        return message

    order = [5, 3, 5, 4, 3, window + 5, 6, 5, 4, 7, 7, 3 * window, window * 2 - 1, window * 2, window * 2]
    taken: set[int] = set()
    highest = -1
    for counter in order:
        expected = None
        if counter not in taken and counter > highest - window:
            expected = b"%32d" % counter
            taken.add(counter)
        assert receiver.receive(sent(counter)) == expected, counter
        highest = max(highest, counter)
    for size in range(32):
        with pytest.raises(api.InvalidTag):
            receiver.receive(sent(9)[:size])
    last = page["REJECT_AFTER_MESSAGES"]
    assert receiver.receive(sent(last - 1)) == b"%32d" % (last - 1)
    with refuses(api.CounterOverflow, "this key has been used up"):
        sent(last)


def test_noise_counts_only_messages_that_were_right(api: ModuleType) -> None:
    page: Any = session(RECIPES / "noise.md", api)
    sender, receiver = page["CipherState"](bytes(32)), page["CipherState"](bytes(32))
    message = sender.encrypt_with_ad(b"ad", b"message")
    with refuses(api.InvalidTag, "tag does not match"):
        receiver.decrypt_with_ad(b"da", message)
    assert receiver.decrypt_with_ad(b"ad", message) == b"message"
    sender.counter = 2**64 - 1
    with refuses(api.CounterOverflow, "every nonce has been used"):
        sender.encrypt_with_ad(b"", b"")


def test_homekit_frames_in_any_parts(api: ModuleType) -> None:
    page: Any = session(RECIPES / "homekit.md", api)
    key = page["control_key"](b"shared", "Read")
    assert key != page["control_key"](b"shared", "Write")
    data = bytes(range(256)) * 9
    frames = page["FrameSender"](key).send(data)
    for step in (1, 2, 3, 17, 1042, 1043, len(frames)):
        receiver = page["FrameReceiver"](key)
        parts = [receiver.receive(frames[i : i + step]) for i in range(0, len(frames), step)]
        assert b"".join(parts) == data
    with refuses(api.InvalidTag, "tag does not match"):
        page["FrameReceiver"](key).receive(frames[1042:2084])  # the second frame first


def test_secretstream_notices_what_is_missing_or_moved(api: ModuleType) -> None:
    page: Any = session(RECIPES / "libsodium.md", api)
    stream, key, header = page["SecretStream"], bytes(range(32)), bytes(24)
    sender = stream(key, header)
    first, second = sender.push(b"first", b"ad"), sender.push(b"second")
    for messages in (
        [(second, b"")],
        [(first, b"ad"), (first, b"ad")],
        [(first, b"")],
        [(first[:16], b"ad")],
    ):
        receiver = stream(key, header)
        *before, (last, aad) = messages
        for message, its_aad in before:
            receiver.pull(message, its_aad)
        with pytest.raises(api.InvalidTag):
            receiver.pull(last, aad)


def test_secretstream_has_a_new_key_when_its_counter_is_used_up(api: ModuleType) -> None:
    page: Any = session(RECIPES / "libsodium.md", api)
    stream, key, header = page["SecretStream"], bytes(range(32)), bytes(24)
    sender, receiver, unmoved = stream(key, header), stream(key, header), stream(key, header)
    sender.counter = receiver.counter = 2**32 - 1
    message = sender.push(b"the last under this key")
    assert receiver.pull(message) == (b"the last under this key", 0)
    assert sender.counter == receiver.counter == 1
    assert sender.key == receiver.key != unmoved.key
