"""Writes unicode_categories.inc, the general categories of Unicode, from this Python's own tables; run as a script."""

import sys
import unicodedata
from pathlib import Path

NAMES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps"]
NAMES += ["Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"]  # unicode.cpp's order


def main() -> None:
    """Write the table beside this script."""
    ranges: list[list[int]] = []
    for cp in range(sys.maxunicode + 1):
        name = unicodedata.category(chr(cp))
        if name not in NAMES:
            continue
        index = NAMES.index(name)
        if ranges and ranges[-1][1] == cp - 1 and ranges[-1][2] == index:
            ranges[-1][1] = cp
        else:
            ranges.append([cp, cp, index])
    entries = [f"{{{lo},{hi},{index}}}," for lo, hi, index in ranges]
    lines = [f"// Unicode {unicodedata.unidata_version}. Written by unicode_categories.py.", ""]
    line = ""
    for entry in entries:
        if len(line) + len(entry) > 118:
            lines.append(line)
            line = ""
        line += entry
    lines.append(line)
    Path(__file__).with_suffix(".inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
