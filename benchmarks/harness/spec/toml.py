"""Reading TOML so that every mistake is one line: file, place in it, what is wrong."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError


def read_toml(path: Path, shown: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"{shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{shown}: not TOML: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{shown}: not TOML: {error}") from error


class Table:
    """One TOML table. Each key is asked for by its type; `done` refuses what nobody asked for."""

    def __init__(self, where: str, data: Mapping[str, Any]) -> None:
        self.where = where
        self._data = data
        self._asked: set[str] = set()

    def error(self, text: str) -> InputError:
        return InputError(f"{self.where}: {text}")

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def names(self) -> list[str]:
        self._asked.update(self._data)
        return list(self._data)

    def raw(self, key: str) -> Any:
        self._asked.add(key)
        return self._data.get(key)

    def _typed(self, key: str, types: tuple[type, ...], what: str) -> Any:
        value = self.raw(key)
        # bool is an int to Python, but `rounds = true` is a mistake.
        if value is not None and (
            not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        ):
            raise self.error(f'"{key}" must be {what}')
        return value

    def required(self, key: str) -> None:
        if key not in self._data:
            raise self.error(f'"{key}" is missing')

    def text(self, key: str, default: str | None = None) -> str:
        if default is None:
            self.required(key)
        value = self._typed(key, (str,), "text")
        return default or "" if value is None else str(value)

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in choices:
            raise self.error(f'"{key}" must be one of {", ".join(choices)}, not "{value}"')
        return value

    def number(self, key: str, default: float) -> float:
        value = self._typed(key, (int, float), "a number")
        return default if value is None else float(value)

    def optional_number(self, key: str) -> float | None:
        value = self._typed(key, (int, float), "a number")
        return None if value is None else float(value)

    def integer(self, key: str, default: int | None = None, least: int = 0) -> int:
        if default is None:
            self.required(key)
        found = self._typed(key, (int,), "a whole number")
        value = int(default or 0) if found is None else int(found)
        if value < least:
            raise self.error(f'"{key}" must be at least {least}, not {value}')
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._typed(key, (bool,), "true or false")
        return default if value is None else bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._typed(key, (list,), "a list of texts") or []
        if not all(isinstance(item, str) for item in value):
            raise self.error(f'"{key}" must be a list of texts')
        return tuple(value)

    def table(self, key: str) -> "Table":
        value = self._typed(key, (dict,), "a table") or {}
        return Table(f'{self.where}: "{key}"', value)

    def tables(self, key: str) -> list[dict[str, Any]]:
        value = self._typed(key, (list,), f"tables ([[{key}]])") or []
        if not all(isinstance(item, dict) for item in value):
            raise self.error(f'"{key}" must be tables ([[{key}]])')
        return list(value)

    def done(self) -> None:
        for key in self._data:
            if key not in self._asked:
                raise self.error(f'unknown key "{key}"')
