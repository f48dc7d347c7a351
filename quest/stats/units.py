"""Numbers as a reader wants them: 41 µs, 40–43 µs, 58.8k requests/s, 26 billion."""

import math

TIME = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES = ("B", "B/s")
TIME_STEPS = ((" s", 1.0), (" ms", 1e-3), (" µs", 1e-6), (" ns", 1e-9))
BYTE_STEPS = ((" GB", 1e9), (" MB", 1e6), (" kB", 1e3), (" B", 1.0))
COUNT_STEPS = ((" billion", 1e9), (" million", 1e6), ("k", 1e3))
THOUSANDS_FROM = 1e4  # 5300 stays 5300
NARROW = 0.05  # an interval narrower than this earns a third digit


def digits_for(value: float, low: float | None, high: float | None) -> int:
    """Two significant digits; three where the interval is narrow enough to mean them."""
    if low is None or high is None or not value:
        return 2
    return 3 if (high - low) / abs(value) < NARROW else 2


def rounded(value: float, digits: int) -> float:
    """To so many significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def decimals(value: float, digits: int) -> int:
    """Places after the point that show `digits` significant digits."""
    if not value or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(rounded(value, digits)))))


def scale_of(value: float, unit: str, digits: int) -> tuple[float, str]:
    """What to divide by, and the unit to write then. Decided after rounding: 999.7 µs is 1 ms."""
    base = TIME.get(unit, 1.0)
    size = abs(rounded(value, digits)) * base
    behind = unit if unit.startswith("/") else f" {unit}".rstrip()
    steps: tuple[tuple[str, float], ...] = COUNT_STEPS if size >= THOUSANDS_FROM else (("", 1.0),)
    if unit in TIME:
        steps, behind = TIME_STEPS, ""
    elif unit in BYTES:
        steps, behind = BYTE_STEPS, unit[1:]
    # A hair below, because 1e-3 is no binary fraction.
    name, step = next((s for s in steps if size >= s[1] * (1 - 1e-9)), steps[-1])
    return step / base, name + behind


def number(value: float, digits: int, places: int) -> str:
    """With so many significant digits, of which `places` stand after the point."""
    text = f"{rounded(value, digits):.{places}f}"
    return text.replace("-", "−")


def exact(value: float, unit: str, low: float | None, high: float | None) -> bool:
    """Nothing to round: a count that was the same each time, or that has no interval."""
    if unit in TIME or unit in BYTES or not float(value).is_integer():
        return False
    same = unit in ("", "bytes") if low is None else low == value == high
    return same and abs(value) < THOUSANDS_FROM


def text(value: float, unit: str, low: float | None = None, high: float | None = None) -> str:
    """`41 µs`, of a value in `unit` with its interval, which says how many digits mean anything."""
    if not math.isfinite(value):
        return "∞"
    if exact(value, unit, low, high):
        return f"{int(value)} {unit}".rstrip().replace("-", "−")
    digits = digits_for(value, low, high)
    divisor, suffix = scale_of(value, unit, digits)
    return number(value / divisor, digits, decimals(value / divisor, digits)) + suffix


def interval(value: float, unit: str, low: float | None, high: float | None) -> str:
    """`40–43 µs`, in the unit and with the decimals of the value; "" without an interval."""
    if low is None or high is None or not math.isfinite(low + high):
        return ""
    if exact(value, unit, low, high):
        return text(value, unit, low, high)
    digits = digits_for(value, low, high)
    divisor, suffix = scale_of(value, unit, digits)
    places = decimals(value / divisor, digits)
    ends = [number(end / divisor, digits + 1, places) for end in (low, high)]
    if ends[0] == ends[1]:
        return ends[0] + suffix
    # A minus and a dash side by side cannot be read.
    dash = " to " if "−" in "".join(ends) else "–"
    return dash.join(ends) + suffix


def percent(share: float) -> str:
    """0.083 -> `8.3 %`; two digits, at most one decimal."""
    value = share * 100
    return f"{value:.1f} %" if value < 9.95 else f"{value:.0f} %"
