"""Finds the app that MODULE:APP names, and says in a sentence why it can't be had."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from kizami.app.app import Kizami
from kizami.core.errors import DefinitionError, InvalidInputError, KizamiError

if TYPE_CHECKING:
    from types import ModuleType

AppPlace = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="The module and the name of the app in it, as in reports:app.")
]
_PACKAGE = str(Path(__file__).parents[1])


def load_app(place: str) -> Kizami:
    """Return the app that MODULE:APP names; the working directory is searched first.

    Raises InvalidInputError for a name that leads nowhere, DefinitionError for a module that fails, with its line.
    """
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute or module_name.endswith(".py") or "/" in module_name:
        raise _misspelt(place, module_name, attribute)
    found = getattr(_load_module(module_name), attribute, None)
    if found is None:
        remedy = f"Write {module_name}:NAME with the name that the Kizami object has there."
        raise InvalidInputError(f"Module {module_name} has no {attribute}.", remedy=remedy, path="MODULE:APP")
    if not isinstance(found, Kizami):
        kind = type(found).__name__
        remedy = f"Name the variable that holds Kizami(...) in {module_name}."
        raise InvalidInputError(f"{place} is of type {kind}, not a Kizami app.", remedy=remedy, path="MODULE:APP")
    return found


def _misspelt(place: str, module_name: str, attribute: str) -> InvalidInputError:
    module = module_name.removesuffix(".py").strip("./").replace("/", ".") or "reports"
    return InvalidInputError(
        f"{place!r} doesn't name an app.", remedy=f"Write {module}:{attribute or 'app'}.", path="MODULE:APP"
    )


def _load_module(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            _blame(name, error)
        remedy = f"Run the command in the folder that holds it; this one is {folder}."
        raise InvalidInputError(f"There is no module {name}.", remedy=remedy, path="MODULE:APP") from error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything
        _blame(name, error)


def _blame(module: str, error: BaseException) -> NoReturn:
    """Raise what says where in the user's code the import failed, and why."""
    where = _place_of(error)
    if isinstance(error, KizamiError):
        error.add_note(f"({where})")
        raise error
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    remedy = "Install what it imports." if isinstance(error, ModuleNotFoundError) else None
    raise DefinitionError(f"Module {module} can't be loaded: {where}: {said}.", remedy=remedy) from error


def _place_of(error: BaseException) -> str:
    """Return file:line of the innermost frame that is the user's own."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())] or frames
    return f"{_shown(own[-1].filename)}:{own[-1].lineno}" if own else "line unknown"


def _is_ours(filename: str) -> bool:
    return filename.startswith((_PACKAGE, "<frozen importlib")) or filename == importlib.__file__


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
