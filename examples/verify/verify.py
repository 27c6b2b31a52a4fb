#!/usr/bin/env python3
"""Checks the receipt of a trace, or a file of an archive: its signatures, and the chain of hashes to a signed head.

    python3 verify.py receipt.json [keys.json [SALT]]
    python3 verify.py 00000002.jsonl.gz [keys.json]        # beside it are its .chain.json and .parquet

keys.json is a copy of /.well-known/reflex-receipts.json. With a salt of `reflex receipts open`, it reads a value from
standard input and says in which signed entries a mask stands for that text. It needs Python 3.9 and nothing else: no server, no
network, no library. It does not decide again; `reflex verify` does. docs/receipts.md has the format.
"""

import base64
import gzip
import hashlib
import hmac
import json
import os
import re
import sys
import zlib

from ed25519 import is_signed

VERSION = 1
CHILDREN = 8
SEAL = re.compile(rb'^(\{.+),"seal":\{"key":"([0-9a-f]{16})","signature":"([0-9a-f]{128})"\}\}\n?\Z', re.S)
HEX32 = re.compile(r"[0-9a-f]{64}\Z")


class Flaw(Exception):
    """Something in the file does not fit."""


def demand(condition, what):
    if not condition:
        raise Flaw(what)


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def hash_in(text):
    demand(isinstance(text, str) and HEX32.match(text), "a hash is not one of 64 hexadecimal digits")
    return bytes.fromhex(text)


def whole(number):
    demand(isinstance(number, int) and not isinstance(number, bool) and number >= 0, "a number is not a whole one")
    return number


def public_keys(listed):
    keys = {}
    for one in listed:
        public = base64.urlsafe_b64decode(one["x"] + "=")
        demand(hashlib.sha256(public).hexdigest()[:16] == one["key"], "a key does not have the name of its bytes")
        keys[one["key"]] = public
    return keys


def check_signature(keys, signed, text, what):
    demand(signed["key"] in keys, f"{what}: the key {signed['key']} is not trusted")
    signature = signed["signature"]
    demand(re.match(r"[0-9a-f]{128}\Z", signature), f"{what}: the signature is not one")
    demand(is_signed(keys[signed["key"]], text, bytes.fromhex(signature)), f"{what}: the signature does not fit")


def check_seal(keys, data):
    """The seal signs all bytes before it."""
    found = SEAL.match(data)
    demand(found, "the file does not end with its seal")
    body, key, signature = found.groups()
    seal = {"key": key.decode(), "signature": signature.decode()}
    check_signature(keys, seal, b"reflex-receipt/1\n" + body, "the file")


def leaf(salt, text):
    return sha256(b"\0", salt, text.encode("utf-8", "surrogatepass"))


def leaf_of(entry):
    """The leaf of an entry, and its JSON; None where a mask hides a part of it."""
    if "leaf" in entry:
        return hash_in(entry["leaf"]), None
    salt = bytes.fromhex(entry["salt"])
    head = leaf(salt, entry["text"])
    if "context" not in entry:
        return head, entry["text"]
    context = entry["context"]
    if "leaf" in context:
        return sha256(b"\2", head, hash_in(context["leaf"])), entry["text"] + "null}"
    rest = leaf(bytes.fromhex(context["salt"]), context["text"])
    return sha256(b"\2", head, rest), entry["text"] + context["text"]


def mask_of(value, salt):
    """What the log has in place of a text."""
    text = f"reflex-mask/1\n{salt}\n{json.dumps(value, ensure_ascii=False)}"
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def masked_in(data, mask):
    """The entries of a checked file whose signed text has the mask."""
    found = []
    for part in json.loads(data)["scopes"]:
        rows = {row["seq"] for segment in part["segments"] for row in segment["rows"]}
        signed = [entry for entry in part["entries"] if "unsigned" not in entry and entry["row"] in rows]
        found += [(part["scope"], entry["seq"]) for entry in signed if mask in (leaf_of(entry)[1] or "")]
    return found


def root_above(node, index, count, path):
    """The root of a tree with `count` leaves, of which `node` is the one at `index`."""
    demand(0 <= index < count, "an entry is outside of its row")
    steps = list(path)
    while count > 1:
        place = index % CHILDREN
        demand(steps, "the way to a root is too short")
        others = [hash_in(one) for one in steps.pop(0)]
        demand(len(others) == min(CHILDREN, count - (index - place)) - 1, "a node has another number of children")
        children = others[:place] + [node] + others[place:]
        node = children[0] if len(children) == 1 else sha256(b"\1", *children)
        index, count = index // CHILDREN, -(-count // CHILDREN)
    demand(not steps, "the way to a root is too long")
    return node


def check_segment(keys, scope, segment):
    """Rows that follow each other, up to a signed head."""
    before, rows, head = segment["before"], segment["rows"], segment["head"]
    hash_in(before)
    demand(rows, "a segment has no rows")
    following = rows[0]["seq"]
    for row in rows:
        seq, count = whole(row["seq"]), whole(row["count"])
        hash_in(row["root"])
        demand(seq == following and count > 0, f"{scope}: the log has a gap before the entry {seq}")
        text = f"reflex-row/1\n{before}\n{row['root']}\n{seq}\n{count}"
        before = hashlib.sha256(text.encode()).hexdigest()
        following = seq + count
    demand(head["hash"] == before and head["seq"] == following - 1, f"{scope}: the chain does not lead to its head")
    text = f"reflex-head/1\n{whole(head['seq'])}\n{head['hash']}\n{whole(head['at'])}\n{scope}"
    check_signature(keys, head, text.encode(), f"{scope}: the head at {head['seq']}")
    return following - 1


def check_scope(keys, part, trace_id):
    """Returns how many entries are signed, are signed by their hash alone, and are not signed."""
    scope, rows, last = part["scope"], {}, 0
    for segment in part["segments"]:
        demand(segment["rows"][0]["seq"] > last, f"{scope}: rows are there twice, or in another order")
        last = check_segment(keys, scope, segment)
        rows.update({row["seq"]: row for row in segment["rows"]})
    counts, seen = [0, 0, 0], set()
    for entry in part["entries"]:
        seq = whole(entry["seq"])
        demand(seq not in seen, f"{scope}: the entry {seq} is there twice")
        seen.add(seq)
        if "unsigned" in entry or entry["row"] not in rows:
            counts[2] += 1
            continue
        row = rows[entry["row"]]
        node, text = leaf_of(entry)
        root = root_above(node, seq - row["seq"], row["count"], entry["path"])
        demand(root.hex() == row["root"], f"{scope}: the entry {seq} is not the one that was signed")
        if text is None:
            counts[1] += 1
            continue
        content = json.loads(text)
        demand(content["seq"] == seq and content["trace_id"] == trace_id, f"{scope}: the entry {seq} is not of this trace")
        counts[0] += 1
    return counts


def check(data, trusted=None):
    """Checks the bytes of a file. Raises Flaw; returns the counts of each scope."""
    try:
        file = json.loads(data)
        demand(isinstance(file, dict) and isinstance(file.get("receipt"), int), "the file is not a receipt")
        demand(file["receipt"] <= VERSION, f"the file has version {file['receipt']}: use a newer verify.py")
        keys = public_keys(file["keys"] if trusted is None else trusted["keys"])
        check_seal(keys, data)
        return {part["scope"]: check_scope(keys, part, file["trace_id"]) for part in file["scopes"]}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise Flaw(f"the file does not have the form of a receipt: {error!r}") from error


def salts_of(seed, count):
    """Two salts for each entry of a row, by HKDF."""
    key, salts = hmac.new(bytes(32), seed, hashlib.sha256).digest(), []
    for begin in range(0, 2 * count, 510):
        block, info, made = b"", str(begin).encode(), b""
        for number in range(1, -(-min(510, 2 * count - begin) // 2) + 1):
            block = hmac.new(key, block + info + bytes([number]), hashlib.sha256).digest()
            made += block
        salts += [made[at : at + 16] for at in range(0, len(made), 16)]
    return salts


def root_of(level):
    while len(level) > 1:
        groups = [level[at : at + CHILDREN] for at in range(0, len(level), CHILDREN)]
        level = [group[0] if len(group) == 1 else sha256(b"\1", *group) for group in groups]
    return level[0]


def archived_leaf(text, split, salt, context):
    """The leaf of a line. `split` counts units of UTF-16."""
    if split is None:
        return leaf(salt, text)
    units = text.encode("utf-16-le", "surrogatepass")
    parts = [part.decode("utf-16-le", "surrogatepass") for part in (units[: 2 * split], units[2 * split :])]
    return sha256(b"\2", leaf(salt, parts[0]), leaf(context, parts[1]))


def check_archive(jsonl, chain, trusted=None, parquet=None):
    """Checks a file of the log in an archive. Raises Flaw; returns counts as of a receipt."""
    try:
        file = json.loads(chain)
        demand(file["archive"] == VERSION and file["head"], "the chain has no signed head of this version")
        keys = public_keys(file["keys"] if trusted is None else trusted["keys"])
        check_seal(keys, chain)
        demand(sha256(jsonl).hex() == file["files"]["jsonl"], "the entries do not have the hash that was signed")
        demand(parquet is None or sha256(parquet).hex() == file["files"]["parquet"], "the .parquet does not have its hash")
        lines = gzip.decompress(jsonl).decode().rstrip("\n").split("\n")
        scope, before, links = file["scope"], file["before"], file["links"]
        first, following, unsigned = links[0]["seq"], links[0]["seq"], 0
        for link in links:
            seq, count = whole(link["seq"]), whole(link["count"])
            demand(seq == following, f"the log has a gap before the entry {seq}")
            following = seq + count
            if link["chain"] is None:
                before, unsigned = "0" * 64, unsigned + count
                continue
            salts, row = salts_of(bytes.fromhex(link["chain"])[64:], count), lines[seq - first : following - first]
            demand([json.loads(text)["seq"] for text in row] == list(range(seq, following)), "an entry is not at its place")
            leaves = [
                archived_leaf(text, link["splits"][at], salts[2 * at], salts[2 * at + 1])
                if link["leaves"][at] is None
                else hash_in(link["leaves"][at])
                for at, text in enumerate(row)
            ]
            text = f"reflex-row/1\n{before}\n{root_of(leaves).hex()}\n{seq}\n{count}"
            before = hashlib.sha256(text.encode()).hexdigest()
            demand(link["chain"][:64] == before, f"the row of the entry {seq} is not the one that was signed")
        head = file["head"]
        demand(len(lines) == following - first, "the chain has another number of entries")
        demand(head["hash"] == before and head["seq"] == following - 1, "the chain does not lead to its head")
        text = f"reflex-head/1\n{whole(head['seq'])}\n{head['hash']}\n{whole(head['at'])}\n{scope}"
        check_signature(keys, head, text.encode(), f"the head at {head['seq']}")
        masked = sum(one is not None for link in links for one in link["leaves"])
        return {scope: [len(lines) - unsigned - masked, masked, unsigned]}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, EOFError, zlib.error) as error:
        raise Flaw(f"the file does not have the form of an archive: {error!r}") from error


def read_if_there(name):
    if not os.path.exists(name):
        return None
    with open(name, "rb") as file:
        return file.read()


def main(names):
    if len(names) not in (1, 2, 3):
        print(__doc__)
        return 2
    with open(names[0], "rb") as file:
        data = file.read()
    trusted = None
    if len(names) > 1:
        with open(names[1], "rb") as file:
            trusted = json.load(file)
    try:
        stem = names[0][: -len(".jsonl.gz")] if names[0].endswith(".jsonl.gz") else None
        beside = stem and read_if_there(stem + ".chain.json")
        demand(stem is None or beside, "there is no .chain.json beside the file")
        found = check_archive(data, beside, trusted, read_if_there(stem + ".parquet")) if stem else check(data, trusted)
    except Flaw as flaw:
        print(f"FLAW: {flaw}")
        return 1
    for scope, (signed, hashed, unsigned) in found.items():
        print(f"{scope}: {signed} entries signed, {hashed} signed by their hash alone, {unsigned} not signed")
    if len(names) == 3:
        places = masked_in(data, mask_of(sys.stdin.read().rstrip("\r\n"), names[2]))
        print("\n".join(f"{scope}: entry {seq} has the value" for scope, seq in places) or "FLAW: no signed entry has the value")
        if not places:
            return 1
    print("OK" if trusted else "OK for the keys in the file itself: name a file of keys that you trust")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
