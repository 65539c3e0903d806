"""The measured share of the peak of a GPU, written into the table of devices."""

from albert_lab.cost import rates


def with_share(text: str, device: str, precision: str, share: float) -> str:
    """The text of devices.yaml with the measured share of the peak of a device."""
    measured = rates.devices().devices[device].measured | {precision: round(share, 3)}
    entry = ", ".join(f"{name}: {value:g}" for name, value in measured.items())
    lines = text.splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if line.startswith(f"  {device}:"))
    kept = lines[place].rstrip().removesuffix("}").partition(", measured:")[0]
    lines[place] = f"{kept}, measured: {{{entry}}}}}\n"
    return "".join(lines)
