"""The figures as Markdown, JSON and plots."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from lengths import DEARER, STEP, STEP_SHARE
from libraries import LIBRARIES, OPERATIONS, SAME, Way
from timing import LONGEST

from chapoly._bench import STYLES, Panels, draw, in_bytes, in_time

PLOTTED = (
    "encrypt",
    "decrypt",
    "encrypt into a buffer, at offsets 0, 1, 32",
    "encrypt, new key: function",
    "XChaCha encrypt",
    "XChaCha decrypt",
    "ChaCha20 stream into a buffer",
    "Poly1305",
)
HOW = f"""
Called from Python, in one process, pinned to one core. In every round each library has a batch of calls, of
up to a thousand; every call takes the next of 256 nonces (XChaCha's differ in all 24 bytes) or keys, and of
several buffers. All answers are compared first. A cell has the time per call in the best batch;
its ratio to that of chapoly; and in parentheses the quartiles of the ratios within the rounds. Over 1:
chapoly is faster. The loop itself is in all times, and nothing is subtracted. -: a call would take over
{LONGEST} s.
"""


def table(header: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *body]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def markdown(facts: dict[str, Any]) -> str:
    """All of it."""
    parts = [heading(facts)]
    if facts["checks"] and facts["results"]:
        parts.append(asked(facts))
    if facts["results"]:
        parts += [glance(facts), speed(facts)]
    for name, section in (
        ("lengths", length_curve),
        ("mallocs", memory),
        ("imports", importing),
        ("threads", two_threads),
    ):
        if name in facts:
            parts.append(section(facts))
    return "\n".join(parts)


def heading(facts: dict[str, Any]) -> str:
    """The machine."""
    features = facts["machine"]["cpu features"]
    machine = facts["machine"] | {
        "cpu features": ", ".join(name for name, has in (features or {}).items() if has) or "unknown",
        "versions": ", ".join(f"{name} {version}" for name, version in facts["machine"]["versions"].items()),
    }
    text = f"# chapoly's kernel {facts['kernel']} beside other libraries\n\n"
    if facts["quick"]:
        text += "A quick run: the figures are rough.\n\n"
    text += table(("", ""), machine.items()).replace("--:", "---")
    if facts["missing"]:
        text += "\nNot in this chapoly, and so not measured:\n\n"
        text += "".join(f"- {name} (`{needs}`)\n" for name, needs in facts["missing"].items())
    return text


def asked(facts: dict[str, Any]) -> str:
    """The list of the musts."""
    body = [
        (
            check["what"],
            check["peer"],
            f"{check['asked']:g}",
            f"{check['aim']:g}" if check["aim"] else "",
            f"**{check['ratio']:.2f}** ({check['low']:.2f} to {check['high']:.2f})" if check["ratio"] else "",
            check["verdict"],
        )
        for check in facts["checks"]
    ]
    text = "## What is asked\n\n"
    text += table(("", "times as fast as", "asked", "reach for", "measured", ""), body)
    text += "\nSlower than another library by more than 3 %: "
    return text + (", ".join(f"{each}" for each in facts["slower"]) or "nowhere") + ".\n"


def glance(facts: dict[str, Any]) -> str:
    """Against the fastest other library."""
    found: dict[str, dict[int, float]] = {}
    for r in facts["results"]:
        if r["kernel"] == facts["kernel"] and not r["library"].startswith("chapoly"):
            sizes = found.setdefault(r["operation"], {})
            sizes[r["size"]] = min(r["ratio"], sizes.get(r["size"], r["ratio"]))
    columns = sorted({r["size"] for r in facts["results"] if r["operation"] in PLOTTED})
    body = [
        (name, *(f"{sizes[size]:.2f}" if size in sizes else "-" for size in columns))
        for name, sizes in found.items()
        if set(sizes) & set(columns)
    ]
    text = "## How many times as fast as the fastest of the others\n\n"
    return text + table(("", *map(in_bytes, columns)), body)


def speed(facts: dict[str, Any]) -> str:
    """A table for each operation, and what was called."""
    text = f"## Time per call\n{HOW}"
    if set(PLOTTED) & {r["operation"] for r in facts["results"]}:
        text += "\n![time per call](time.svg)\n\n![ratio to chapoly](ratio.svg)\n"
    for operation in OPERATIONS:
        results = [
            r for r in facts["results"] if r["operation"] == operation.name and r["kernel"] == facts["kernel"]
        ]
        if not results:
            continue
        libraries = list(dict.fromkeys(r["library"] for r in results))
        cells = {(r["size"], r["library"]): r for r in results}
        sizes = list(dict.fromkeys(r["size"] for r in results))
        body = [(in_bytes(size), *(cell(cells.get((size, name))) for name in libraries)) for size in sizes]
        text += f"\n### {operation.name}\n\n{table(('', *libraries), body)}\n"
        for name in libraries:
            way = operation.theirs.get(name, SAME)
            text += f"- {name}: {source(operation.ours if way is SAME else way)}\n"
    text += "\nThe names in these are those of chapoly, `AD` (13 bytes), `KEY`, and\n\n"
    return text + "".join(f"- {name}: `{library.imports}`\n" for name, library in LIBRARIES.items())


def cell(result: dict[str, Any] | None) -> str:
    """Time, and ratio with its spread."""
    if result is None:
        return "-"
    time = in_time(result["seconds"])
    if result["library"] == "chapoly":
        return time
    return f"{time} · **{result['ratio']:.2f}** ({result['low']:.2f} to {result['high']:.2f})"


def source(way: Way) -> str:
    """What was called."""
    once = f"once `{way.once}`, then " if way.once else ""
    return once + (f"`{way.before}; {way.call}`" if way.before else f"`{way.call}`")


def length_curve(facts: dict[str, Any]) -> str:
    """Where it is not smooth."""
    text = (
        "## Encrypting 0 to 2048 bytes\n\n"
        f"A byte more may cost {STEP * 1e9:.0f} ns or {STEP_SHARE:.0%} more, whichever is larger; no length "
        f"more than {DEARER} times what a longer one does. Medians.\n\n![time by length](lengths.svg)\n\n"
    )
    if facts["kernel"] == "pure":
        text += "chapoly's pure kernel is too slow to be measured at every length.\n\n"
    for label, found in facts["violations"].items():
        steps = [f"{length} B (+{rise * 1e9:.0f} ns, {share:.0%})" for length, rise, share in found["steps"]]
        dearer = [f"{first} to {last} B ({factor:.2f})" for first, last, factor in found["dearer"]]
        text += f"- {label}: steps at {listed(steps)}; dearer than a longer one: {listed(dearer)}\n"
    return text


def listed(items: Sequence[str]) -> str:
    """All of a few, the first of many."""
    if not items:
        return "none"
    more = f" and {len(items) - 12} more" if len(items) > 12 else ""
    return ", ".join(items[:12]) + more


def memory(facts: dict[str, Any]) -> str:
    """Of every library."""
    sizes = list(dict.fromkeys(m["size"] for m in facts["mallocs"]))
    text = "## Memory asked for\n\nRequests to malloc / bytes, per call, its result included. -: slow.\n\n"
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for m in facts["mallocs"]:
        figures = f"{m['requests']:g} / {m['bytes']:,.0f}"
        cells.setdefault((m["operation"], m["library"]), {})[m["size"]] = figures
    usual = [size for size in sizes if sum(size in row for row in cells.values()) > 5]
    body = [
        (operation, library, *(row.get(size, "-") for size in usual))
        for (operation, library), row in cells.items()
        if set(row) & set(usual)
    ]
    return text + table(("", "", *map(in_bytes, usual)), body)


def importing(facts: dict[str, Any]) -> str:
    """Time and memory."""
    body = [
        (i["library"], f"`{i['statement']}`", in_time(i["seconds"]), in_bytes(i["resident"]))
        for i in facts["imports"]
    ]
    text = "## Import\n\nThe least of several new processes; the memory is what is resident then.\n\n"
    return text + table(("", "", "time", "memory"), body)


def two_threads(facts: dict[str, Any]) -> str:
    """Whether the GIL is in the way."""
    body = [
        (
            f"{t['operation']}, {in_bytes(t['size'])}",
            t["library"],
            f"{t['one'] / 1e9:.2f}",
            f"{t['two'] / 1e9:.2f}",
            f"{t['two'] / t['one']:.2f}",
        )
        for t in facts["threads"]
    ]
    text = "## Two threads\n\nGB/s in the best of several tries"
    if not body:
        return f"{text}: not measured, as this process may use only one core.\n"
    return f"{text}.\n\n{table(('', '', 'one thread', 'two threads', 'ratio'), body)}"


# ---- Files. ----


def write(facts: dict[str, Any], text: str, folder: Path) -> None:
    """README.md, results.json, time.svg, ratio.svg, lengths.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(text, encoding="utf-8")
    (folder / "results.json").write_text(dumped(facts), encoding="utf-8")
    title = f"chapoly {facts['machine']['chapoly']}, kernel {facts['kernel']}, {facts['machine']['cpu']}"
    times, ratios = panels(facts, "seconds"), panels(facts, "ratio")
    if times:
        with (folder / "time.svg").open("wb") as file:
            draw(times, f"Time per call: lower is better\n{title}", "time per call", in_time, "library", file)
        with (folder / "ratio.svg").open("wb") as file:
            heading = f"How many times as long as chapoly the others take\n{title}"
            draw(ratios, heading, "times as long", lambda ratio: f"{ratio:g}", "library", file)
    if "lengths" in facts:
        with (folder / "lengths.svg").open("wb") as file:
            draw_lengths(facts["lengths"], title, file)


def dumped(facts: dict[str, Any]) -> str:
    """JSON with a line for each result, so that two runs can be compared."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, list) and value:
            value = "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in value) + "\n]"
        elif name == "lengths":
            value = "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(value[k])}" for k in value) + "\n}"
        else:
            value = json.dumps(value, indent=1)
        lines.append(f"{json.dumps(name)}: {value}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def panels(facts: dict[str, Any], quantity: str) -> Panels:
    """A panel for each operation of PLOTTED; an empty message has no place on its axis."""
    found: Panels = {}
    for r in facts["results"]:
        shown = r["kernel"] == facts["kernel"] and r["operation"] in PLOTTED and r["size"] > 0
        if shown and not (quantity == "ratio" and r["library"].startswith("chapoly")):
            sizes, values = found.setdefault(r["operation"], {}).setdefault(r["library"], ([], []))
            sizes.append(r["size"])
            values.append(r[quantity])
    return found


def draw_lengths(curves: dict[str, list[float]], title: str, file: IO[bytes]) -> None:
    """Every length from 0 on."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    for (label, curve), (color, _, dashes) in zip(curves.items(), STYLES, strict=False):
        axes.plot(curve, color=color, linestyle=dashes, linewidth=1, label=label)
    axes.set_title(f"Median time of encrypt() by length\n{title}", fontsize="medium")
    axes.set_xlabel("bytes")
    axes.set_ylabel("ns per call")
    axes.set_xticks(range(0, len(next(iter(curves.values()))), 128))
    axes.tick_params(axis="x", rotation=45)
    axes.set_ylim(bottom=0)
    axes.grid(color="0.9")
    axes.legend()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
