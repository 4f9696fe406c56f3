"""The figures as Markdown."""

import os
import platform
import statistics


def digits(value):
    """Three significant digits, never as a power of ten."""
    if value >= 100 or value <= -100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.4f}"


def cell(values):
    if not values:
        return "failed"
    return f"{digits(statistics.median(values))} [{digits(min(values))}–{digits(max(values))}]"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def render(contenders, measures, figures, errors, options, missing):
    """`figures[measure][contender]` are the rounds' values, `errors[contender]` counts failed tunnels."""
    with open("/proc/loadavg") as file:
        load = file.read().split()[0]
    parts = [
        f"Rounds: {options.rounds}, on {os.cpu_count()} cores, Linux {platform.release()}, load {load} at the end; "
        f"median [least–most]. Not installed: {', '.join(missing) or 'none'}.",
        table(
            ["proxy", "does", *(title for _, title in measures), "failed"],
            [[each.name, each.does, *(cell(figures[key][each.name]) for key, _ in measures), str(errors[each.name])]
             for each in contenders]),
        "Pinfold ÷ peer, of the medians: below 1, Pinfold needs less.",
        table(
            ["peer", *(title for _, title in measures)],
            [[each.name, *(_ratio(figures[key], each.name) for key, _ in measures)]
             for each in contenders if each.name != "pinfold"]),
        "\n".join(f"- {each.name}: {each.version()}" for each in contenders),
    ]
    return "\n\n".join(parts)


def _ratio(values, peer):
    if not values["pinfold"] or not values[peer]:
        return "–"
    below = statistics.median(values[peer])
    return digits(statistics.median(values["pinfold"]) / below) if below > 0 else "–"
