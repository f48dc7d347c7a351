"""Files of ours against their JSON Schemas, so that a mistake is one line: file, place, fault.

A schema may say of any of its parts how a mistake in it is to be told: "mistake".
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from quest.ground.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Made = TypeVar("Made", bound="DataclassInstance")
HERE = Path(__file__).parent
# Lists of tables, of which each has a name, and what one of them is called.
NAMED = {"rows": "row"}
TYPES = {
    "string": "text", "integer": "a whole number", "number": "a finite number", "array": "a list",
    "boolean": "true or false", "object": "a table",
}  # fmt: skip


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not TOML: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from error


@lru_cache
def _validator(name: str) -> Any:
    """None without python3-jsonschema: then what is wrong is seen where it is used."""
    try:
        from jsonschema import Draft202012Validator, validators
    except ImportError:
        return None
    text = (HERE / f"{name}.schema.json").read_text(encoding="utf-8")
    # The standard takes 2.0 for an integer, range() does not; and JSON has neither inf nor nan.
    types: Any = {
        "integer": lambda _, v: type(v) is int,
        "number": lambda _, v: type(v) in (int, float) and math.isfinite(v),
    }
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(types)
    extend: Any = validators.extend  # mypy knows no types of it
    return extend(Draft202012Validator, type_checker=checker)(json.loads(text))


def validate(data: Mapping[str, Any], name: str, shown: str) -> None:
    """InputError for the first thing that the schema of that name finds wrong."""
    validator = _validator(name)
    if validator is None:
        return
    # An unknown key is more to the point than what is missing for want of it.
    errors = sorted(
        validator.iter_errors(data),
        key=lambda e: (e.validator != "additionalProperties", len(e.absolute_path)),
    )
    if errors:
        raise InputError(f"{shown}: {_told(errors[0], data)}")


def _told(error: Any, data: Any) -> str:
    """The place, as `variant "diet"`, and what is wrong there."""
    place: list[str] = []
    key = ""
    for step in error.absolute_path:
        data = data[step]
        if isinstance(step, int) and isinstance(data, Mapping):
            name = data.get("name", data.get("key", data.get("id")))
            shown = f'"{name}"' if isinstance(name, str) else name or step + 1
            place[-1] = f"{NAMED.get(key, key)} {shown}"
        elif key == "profile":
            place[-1] = f'profile "{step}"'
        elif isinstance(step, str):
            place.append(f'"{step}"')
        key = str(step)
    if "propertyNames" in error.absolute_schema_path:
        place.append(f'"{error.instance}"')
    fault = _fault(error)
    # A value that is wrong is named with what it must be; a table before what is wrong in it.
    if place and not isinstance(error.instance, Mapping):
        return ": ".join([*place[:-1], f"{place[-1]} {fault}"])
    return ": ".join([*place, fault])


def _fault(error: Any) -> str:
    value, limit = error.instance, error.validator_value
    if "mistake" in error.schema:
        return str(error.schema["mistake"])
    if error.validator == "additionalProperties":
        unknown = next(k for k in value if k not in error.schema.get("properties", ()))
        return f'unknown key "{unknown}"'
    if error.validator == "required":
        return f'"{next(k for k in limit if k not in value)}" is missing'
    if error.validator == "dependentRequired":
        key, needed = next((k, v) for k, v in limit.items() if k in value and v[0] not in value)
        return f'"{key}" goes with "{needed[0]}"'
    if error.validator == "enum":
        return f'must be one of {", ".join(limit)}, not "{value}"'
    if error.validator == "type":
        types = [limit] if isinstance(limit, str) else limit
        return f"must be {' or '.join(TYPES[t] for t in types)}"
    if error.validator == "minimum":
        return f"must be at least {limit}, not {value}"
    if error.validator == "exclusiveMinimum":
        return f"must be above {limit}, not {value}"
    if error.validator in ("minItems", "minLength"):
        return "must not be empty"
    return str(error.message)


def made(cls: type[Made], data: Mapping[str, Any], **given: Any) -> Made:
    """A dataclass from its table, as the types of its fields say; what is absent has its default.
    What is given besides is taken as it is.
    """
    kinds = {field.name: field.type for field in fields(cls)}
    return cls(**{key: _typed(kinds[key], value) for key, value in data.items()} | given)


def _typed(kind: Any, value: Any) -> Any:
    """Lists become tuples, as one text does where there may be several."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        several = [value] if isinstance(value, str) else value
        return tuple(_typed(inner[0], each) for each in several)
    if get_origin(kind) is Mapping:
        return {key: _typed(inner[1], each) for key, each in value.items()}
    if kind in (float, float | None):
        return float(value)
    table: Any = next(filter(is_dataclass, (kind, *inner)), None)
    return made(table, value) if table else value
